"""Keeping runs: checkpoints, and stopping without losing anything."""
