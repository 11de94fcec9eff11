# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single instructions of arithmetic as text, `add.s32 $0, $1, $2;`, as functions of NumPy (PTX ISA, Integer Arithmetic,
Logic and Shift, Floating Point Instructions). Operands come as signed integers or as floats.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

_INSTRUCTION = re.compile(r"\s*(\w+(?:\.\w+)+)\s+\$0((?:\s*,\s*\$\d)+)\s*;?\s*")
_TYPES: Mapping[str, Any] = MappingProxyType(
    {
        f"{letter}{bits}": np.dtype(f"{kind}{bits // 8}")
        for letter, kind in (("s", "i"), ("u", "u"), ("b", "u"), ("f", "f"))
        for bits in (32, 64)
    }
)
"""NumPy's types by the ends of instructions."""


def _shifted(shift: Any) -> Callable[[Any, Any], Any]:
    """A shift by an unsigned number of 32 bits; by the width or more, it shifts everything out."""

    def function(x: Any, by: Any) -> Any:
        bits: int = 8 * x.dtype.itemsize
        count: Any = by.astype(np.uint32)
        kept: Any = np.minimum(count, bits - 1)
        out: Any = shift(x, kept.astype(x.dtype))
        if shift is np.right_shift and x.dtype.kind == "i":
            return out
        return out * (count < bits)

    return function


def _mad(a: Any, b: Any, c: Any) -> Any:
    return a * b + c


_INTEGERS: Mapping[str, Callable[..., Any]] = MappingProxyType({
    "add": np.add, "sub": np.subtract, "mul.lo": np.multiply, "mad.lo": _mad,
    "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "not": np.invert, "neg": np.negative, "abs": np.abs, "mov": np.copy, "shl": _shifted(np.left_shift),
    "shr": _shifted(np.right_shift),
})  # fmt: skip
_FLOATS: Mapping[str, Callable[..., Any]] = MappingProxyType({
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.fmin, "max": np.fmax, "neg": np.negative,
    "abs": np.abs, "mov": np.copy, "add.rn": np.add, "sub.rn": np.subtract, "mul.rn": np.multiply,
    "div.rn": np.divide, "sqrt.rn": np.sqrt,
})  # fmt: skip


def function_of(text: str) -> Callable[..., Any] | None:
    """The function that a text stands for: one instruction that writes $0 and reads $1, $2 and so on in this order;
    None for any other.
    """
    known = _INSTRUCTION.fullmatch(text)
    if known is None:
        return None
    name, _, type = known[1].rpartition(".")
    dtype = _TYPES.get(type)
    function = None if dtype is None else (_FLOATS if type[0] == "f" else _INTEGERS).get(name)
    operands = [int(number) for number in re.findall(r"\$(\d)", known[2])]
    if function is None or dtype is None or operands != list(range(1, len(operands) + 1)):
        return None

    def run(*given: Any) -> Any:
        by = given[1:] if name in ("shl", "shr") else ()
        values = [x.view(dtype) if x.dtype.itemsize == dtype.itemsize else x for x in given]
        with np.errstate(all="ignore"):
            return function(values[0], *by) if by else function(*values)

    return run
