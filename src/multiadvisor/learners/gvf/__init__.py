"""Banks of general value functions."""
