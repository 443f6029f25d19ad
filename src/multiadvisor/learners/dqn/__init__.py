"""Networks instead of tables; the only part that imports JAX, and lazily."""
