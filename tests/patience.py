"""How long a test waits for what must come: no test is about speed, and a busy machine may take its time."""

PATIENCE = 300  # seconds, after which it is a hang
