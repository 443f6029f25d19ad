"""The problems: compiled worlds, the built-in tasks, and Gymnasium both ways."""
