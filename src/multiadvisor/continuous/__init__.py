"""Continuous actions: an actor in the place of the aggregator, and a critic that values each advisor."""
