"""The paper's experiments: one small file per figure or table, each a grid, a run, a score and a plot."""
