"""`check_task`: looks for defects in a task and names them."""
