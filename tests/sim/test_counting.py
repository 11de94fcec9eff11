# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""In how many iterations a counter gets where the condition of its loop fails."""

from collections.abc import Callable

import pytest
from tilefold.runtime.sim.ordering.loop_values import iterations_left

WIDTH = 6
_SIGNED = {"slt": int.__lt__, "sle": int.__le__, "sgt": int.__gt__, "sge": int.__ge__, "ne": int.__ne__}
_UNSIGNED = {"ult": int.__lt__, "ule": int.__le__, "ugt": int.__gt__, "uge": int.__ge__}


def _counted(holds: Callable[[int, int], bool], value: int, bound: int, step: int, signed: bool) -> int | None:
    size = 1 << WIDTH

    def number(n: int) -> int:
        n %= size
        return n - size if signed and n >= size // 2 else n

    for count in range(size + 1):
        if not holds(number(value + count * step), number(bound)):
            return count
    return None


@pytest.mark.parametrize("name", [*_SIGNED, *_UNSIGNED])
def test_iterations_until_a_condition_fails(name: str) -> None:
    for step in (-3, -1, 1, 2, 8):
        for value in range(0, 64, 9):
            for bound in (0, 1, 2, 31, 32, 33, 62, 63):
                counted = _counted((_SIGNED | _UNSIGNED)[name], value, bound, step, name in _SIGNED)
                told = iterations_left(name, value, bound, step, WIDTH)
                assert counted is None or (told is not None and told <= counted), "no loop that ends is refused"
                assert told == counted or abs(step) != 1
