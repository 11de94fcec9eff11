# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Activations by name, as an epilogue applies them to sums in f32."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tilefold import cute
from tilefold.builder.scalars.operators import Operand

LOG2_E = 1.4426950408889634


def relu(x: object) -> Operand:
    """max(x, 0)."""
    return cute.math.max(x, 0.0)


def gelu(x: Operand) -> Operand:
    """GELU in its tanh form: x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))."""
    half = x * 0.5
    return half + half * cute.tanh(x * (0.7978845608 + 0.0356774081 * (x * x)), fastmath=True)


def silu(x: Operand) -> Operand:
    """x / (1 + exp(-x))."""
    return x * cute.arch.approx("rcp", cute.arch.approx("ex2", x * -LOG2_E, ftz=True) + 1.0)


ACTIVATIONS: Mapping[str, Callable[[Any], Any] | None] = MappingProxyType(
    {"none": None, "relu": relu, "gelu": gelu, "silu": silu}
)
