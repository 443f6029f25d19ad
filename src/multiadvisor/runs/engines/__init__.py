"""Where jobs run: one file for each engine."""
