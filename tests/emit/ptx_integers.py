# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integer instructions of PTX for `.ptx_interpreter`, each by what the PTX ISA says of it, in Python's integers."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from tests.emit.numbers import wrapped
from tests.emit.ptx_machine import Machine, integer_type


def _quotient(a: int, b: int, _: int) -> int:
    """Towards zero; what a division by zero gives is not said (PTX ISA, div), here all ones as GPUs have it."""
    return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int, width: int) -> int:
    return a if b == 0 else a - b * _quotient(a, b, width)


def _reversed(a: int, width: int) -> int:
    return int(f"{a & (1 << width) - 1:0{width}b}"[::-1], 2)


def _ones(a: int, width: int) -> int:
    return (a & (1 << width) - 1).bit_count()


def _leading_zeros(a: int, width: int) -> int:
    return width - (a & (1 << width) - 1).bit_length()


def by_thread(function: Callable[..., int], result: str = "") -> Callable[[Machine, list[str], list[str]], None]:
    """An instruction that computes each thread's result of its operands and their width."""

    def run(m: Machine, modifiers: list[str], operands: list[str]) -> None:
        type = modifiers[-1]
        width = integer_type(type)[1]
        columns = [m.read(text, type).tolist() for text in operands[1:]]
        found = [wrapped(function(*map(int, row), width), 64) for row in zip(*columns, strict=True)]
        m.write(operands[0], result or type, np.array(found, np.int64))

    return run


def _shf(m: Machine, modifiers: list[str], operands: list[str]) -> None:
    direction, mode, _ = modifiers
    low, high, by = (m.read(text, "u32") for text in operands[1:])
    by = by & np.uint64(31) if mode == "wrap" else np.minimum(by, np.uint64(32))
    whole = low | high << np.uint64(32)
    moved = whole << by >> np.uint64(32) if direction == "l" else whole >> by
    m.write(operands[0], "b32", np.where(by == np.uint64(32), low if direction == "l" else high, moved))


INTEGER_INSTRUCTIONS: Mapping[str, Callable[[Machine, list[str], list[str]], None]] = MappingProxyType({
    "rem": by_thread(_remainder), "brev": by_thread(_reversed), "shf": _shf,
    "popc": by_thread(_ones, "u32"),
    "clz": by_thread(_leading_zeros, "u32"),
})  # fmt: skip
QUOTIENT = by_thread(_quotient)
