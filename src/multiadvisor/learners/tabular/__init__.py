"""Tables, in one compiled loop."""
