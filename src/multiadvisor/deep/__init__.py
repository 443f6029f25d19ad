"""Networks in JAX: the only folder that imports it, and nothing imports this folder before it is needed."""
