"""Episodes of the Atari 2600, seen through the memory of the machine."""
