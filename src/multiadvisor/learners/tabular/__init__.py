"""The tabular learner, twice: a readable reference and its compiled twin."""
