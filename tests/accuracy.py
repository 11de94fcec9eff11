# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far functions of f32 may be from the exact results: the table of docs/language.md, and checks against it."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefold.runtime.special_functions import erf

from tests.project.tree import ROOT

_ROW = re.compile(r"^\| `math\.(\w+)` \| ([\d.]+) \|", re.MULTILINE)
BOUNDS: Mapping[str, float] = {
    name: float(ulp) for name, ulp in _ROW.findall((ROOT / "docs" / "language.md").read_text(encoding="utf-8"))
}
"""The greatest error of each function without flags, in ulp."""


def _reciprocal_root(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / np.sqrt(x)


REFERENCES: Mapping[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "log10": np.log10, "sin": np.sin, "cos": np.cos,
    "tanh": np.tanh, "erf": erf, "rsqrt": _reciprocal_root,
}  # fmt: skip
_SPECIAL = (
    0.0, 1.0, np.inf, np.nan, 2.0**-149, 2.0**-130, 2.0**-126, 3.4028234663852886e38, 0.55, 89.0, 103.97, 104.0, 1000.0,
    105615.0, 105616.0, 1.1e30, np.sqrt(0.5), np.sqrt(2.0), np.pi, np.pi / 2, 10.0, 4.0, 128.0, -149.5, 2.0**100,
)  # fmt: skip
"""Zeros, infinities, NaN, subnormal numbers, and both sides of the places where a function changes its steps."""


def arguments(seed: int, count: int) -> NDArray[np.float32]:
    """Numbers of both signs: special ones, those of any exponent, and as many of moderate size."""
    rng = np.random.default_rng(seed)
    special = np.array([*_SPECIAL, *(-x for x in _SPECIAL)], np.float32)
    anything = rng.integers(0, 2**32, (count - special.size) // 2, dtype=np.uint32).view(np.float32)
    moderate = rng.normal(0, 4, count - special.size - anything.size).astype(np.float32)
    return np.concatenate([special, anything, moderate])


def check_function(name: str, x: NDArray[np.float32], y: NDArray[Any]) -> None:
    """AssertionError where a function of f32 is further from the exact one than the table says, or has another zero,
    infinity or NaN than it.
    """
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](x.astype(np.float64))
        nearest = exact.astype(np.float32)
        exponent = np.maximum(np.frexp(np.where(np.isfinite(exact), exact, 0))[1], -125)
        error = np.where(np.isfinite(nearest) & np.isfinite(y), np.abs(y - exact) / np.ldexp(1.0, exponent - 24), 0.0)
        plain = (nearest != 0) & np.isfinite(nearest)
        same = (y == nearest) & (np.signbit(y) == np.signbit(nearest)) | (np.isnan(y) & np.isnan(nearest))
    wrong = ~np.isfinite(y) & plain | ~same & ~plain & ((exact == 0) | ~np.isfinite(exact)) | (error > BOUNDS[name])
    at = int(np.argmax(wrong))
    assert not wrong.any(), f"{name} of {x[at]!r} is {exact[at]!r}, but was {y[at]!r}: {error[at]:.3f} ulp"
