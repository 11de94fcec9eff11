# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random elements of the types that matrix instructions multiply."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefold.runtime.sim.atoms.mma_arithmetic import DTYPES

_RANGES = {"b1": (0, 2), "s4": (-8, 8), "u4": (0, 16), "s8": (-128, 128), "u8": (0, 256), "s32": (-(2**31), 2**31)}


def random_elements(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[Any]:
    """Elements of PTX type `name`: floats normally distributed, integers over their whole range."""
    if name in _RANGES:
        return rng.integers(*_RANGES[name], shape).astype(DTYPES[name])
    return rng.standard_normal(shape).astype(DTYPES[name])
