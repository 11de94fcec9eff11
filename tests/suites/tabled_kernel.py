# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel of a suite with its arguments and its reference."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Draw:
    """Arrays of random numbers, the same in each run."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def f(self, *shape: int) -> NDArray[np.float32]:
        """Floats."""
        return self.rng.standard_normal(shape).astype(np.float32)

    def d(self, *shape: int) -> NDArray[np.float64]:
        """Doubles."""
        return self.rng.standard_normal(shape)

    def i(self, high: int, *shape: int, dtype: Any = np.int32) -> NDArray[Any]:
        """Integers from 0 to below `high`."""
        return self.rng.integers(0, high, shape, np.uint64).astype(dtype)


@dataclass(frozen=True)
class Kernel:
    """A kernel of a file. `given` draws its arguments, and `wanted` computes from them the arrays that it writes, by
    their places. `instance` is an explicit instantiation of a template. `fault` is the code of a fault that it has.
    """

    file: str
    name: str
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    given: Callable[[Draw], Sequence[Any]]
    wanted: Callable[[Sequence[Any]], Mapping[int, Any]]
    instance: str = ""
    tolerance: float = 1e-5
    fault: str = ""
    shared: int = 0
