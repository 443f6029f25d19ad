"""JAX and what is built on it, imported in one place: with a message where it is missing."""

from __future__ import annotations

import os

from multiadvisor.core.optional_dependencies import needed

# Networks of this size gain little from threads, and on a busy machine threads would only wait for each other.
# JAX reads this once, when it starts.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

with needed("deep"):
    import jax
    import jax.numpy as jnp
    import optax

__all__ = ["jax", "jnp", "optax"]
