"""Beyond the paper: other aggregations and plannings, beside the paper's own settings."""
