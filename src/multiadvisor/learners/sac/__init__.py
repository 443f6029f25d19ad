"""Continuous actions: an actor instead of the aggregator, and a critic that values each advisor."""
