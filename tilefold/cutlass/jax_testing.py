# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of random numbers for tests of calls of JAX (`cutlass.jax.testing`)."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

__all__ = ["create_tensor"]


def create_tensor(shape: Sequence[int], dtype: object, key: object, *, minval: float = -2, maxval: float = 2) -> Any:
    """An array of uniformly distributed numbers from `minval` to `maxval`, integers if the type is one of integers."""
    jax, jnp = import_module("jax"), import_module("jax.numpy")
    if jnp.issubdtype(dtype, jnp.integer):
        return jax.random.randint(key, shape, int(minval), int(maxval) + 1, dtype)
    return jax.random.uniform(key, shape, jnp.float32, minval, maxval).astype(dtype)
