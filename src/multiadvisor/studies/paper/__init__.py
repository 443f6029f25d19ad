"""The paper's own experiments, and what it says about them."""
