# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random inputs of a kernel: extents, strides, alignments, numbers and values, as the types of the parameters and the
arguments of a launch allow.

A static extent or stride stays. A dynamic one becomes at most as large as given, so that the grid of the launch covers
it, and stays a multiple of its divisor; extents that are equal stay equal, and an integer that equals one follows it.
Another integer is drawn from 0 to its value, or from a range that the user gives. Integers in arrays change places;
floats are new ones, some of them special.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import lcm
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np

from tilefold.layout.algebra.integers import Unknown
from tilefold.runtime.engine import NumPyArray

Expected: TypeAlias = "int | Unknown"
"""An extent or a stride of a parameter's type."""
_SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0)
_SHARE = 8
"""One in this many floats is special where some are."""


@dataclass(frozen=True)
class Geometry:
    """An array that a launch is given: its extents and strides, in elements, and those of the parameter's type, with
    the bytes to which the type aligns it.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    extents: tuple[Expected, ...]
    steps: tuple[Expected, ...]
    align: int


@dataclass
class Draw:
    """One draw of the arguments of a launch; `words` describe it."""

    rng: np.random.Generator
    ranges: Mapping[str, range] = field(default_factory=dict[str, range])
    words: list[str] = field(default_factory=list[str])
    is_special: bool = False
    """Whether some floats are NaN, infinite or extreme."""
    _sizes: dict[int, int] = field(default_factory=dict[int, int])
    _fixed: set[int] = field(default_factory=set[int])

    def begin(self, arrays: Sequence[Geometry]) -> None:
        """Draws the dynamic extents of all arrays of the launch."""
        divisors: dict[int, int] = {}
        for array in arrays:
            self._fixed |= {stride for stride in array.strides if stride > 1}
            for extent, expected in zip(array.shape, array.extents, strict=True):
                if isinstance(expected, Unknown):
                    divisors[extent] = lcm(divisors.get(extent, 1), expected.div)
        for extent, divisor in divisors.items():
            most = max(extent // divisor, 1)
            count = (most, max(most - 1, 1), int(self.rng.integers(1, most + 1)))[int(self.rng.integers(3))]
            self._sizes[extent] = count * divisor

    def layout(self, name: str, array: Geometry) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shape and the strides of an array."""
        pairs = list(zip(array.shape, array.extents, strict=True))
        shape = tuple(self._sizes[n] if isinstance(expected, Unknown) else n for n, expected in pairs)
        strides = list(array.strides)
        need = 1
        for mode in sorted(range(len(shape)), key=lambda mode: array.strides[mode]):
            expected = array.steps[mode]
            if isinstance(expected, Unknown) and array.strides[mode] >= need and array.strides[mode]:
                more = int(self.rng.integers(3)) * expected.div if need > 1 else 0
                strides[mode] = -(-need // expected.div) * expected.div + more
            need = max(need, strides[mode] * shape[mode])
        if (shape, tuple(strides)) != (array.shape, array.strides):
            self.words.append(f"{name} of shape {shape} with strides {tuple(strides)}")
        return shape, tuple(strides)

    def number(self, name: str, given: Any) -> Any:
        """A scalar argument."""
        kind = np.asarray(given).dtype.kind
        make: Any = cast(Any, type)(given)
        value: int | float
        if kind in "iu":
            value = self._integer(name, int(given))
        elif kind == "f" and self.rng.integers(2):
            value = float(self.rng.choice([*_SPECIAL, 1.0, -1.0, self.rng.standard_normal()]))
            self.is_special = True
        else:
            return given
        self.words.append(f"{name}={value}")
        return make(value)

    def _integer(self, name: str, given: int) -> int:
        if name in self.ranges:
            return int(self.rng.choice(np.array(self.ranges[name])))
        if given in self._sizes or given in self._fixed:
            return self._sizes.get(given, given)
        low, high = sorted((0, given))
        return (given, low, int(self.rng.integers(low, high + 1)))[int(self.rng.integers(3))]

    def values(self, name: str, given: NumPyArray) -> NumPyArray:
        """The elements of an array, from those that it is given."""
        if not given.size or not self.rng.integers(3):
            return given
        if given.dtype.kind in "iub":
            return self.rng.permutation(given.reshape(-1)).reshape(given.shape)
        if not (given.dtype.kind == "f" or given.dtype.kind == "V") or (given == given.reshape(-1)[0]).all():
            return given
        made = self.rng.standard_normal(given.shape).astype(given.dtype)
        if self.rng.integers(2):
            limits = cast(Any, ml_dtypes).finfo(given.dtype)
            chosen = self.rng.integers(_SHARE, size=given.shape) == 0
            extremes = [*_SPECIAL, float(limits.max), float(limits.min), float(limits.smallest_subnormal)]
            with np.errstate(all="ignore"):
                made[chosen] = self.rng.choice(extremes, size=int(chosen.sum())).astype(given.dtype)
            self.words.append(f"special values in {name}")
            self.is_special = True
        return made
