# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Negations and absolute values of integers in PTX that ptxas optimises wrongly, in a form that it leaves right.

Seen with CUDA 13.0, at -O1 and above; nvJitLink 13.5 wraps in 16 bits and keeps the negation:

- The least integer of a type has no negative in the type, so PTX's `neg` and `abs` return it as it is. ptxas takes that
  never to happen: `abs.s16` and `neg.s16` of -32768 become 32768 where the result is widened, compared, divided or
  shifted, and `abs.s32` and `abs.s64` count as not negative.
- From sm_90 on, `max(max(x, -y), z)` and the same with `min` become one instruction that drops the negation: the
  machine code is that of `max(max(x, y), z)`. It recognises `neg`, a difference from 0 and a product with -1.

So a negative is `~x + 1` here: each time in 16 bits and in an absolute value, and in 32 bits where it is an operand of
`max` or `min`.
"""

import re
from collections.abc import Collection
from functools import partial

_INSTRUCTION = re.compile(r"^\t(neg\.s(?:16|32)|abs\.s(?:16|32|64)) +\t?(%\w+), (%\w+);$", re.MULTILINE)
_EXTREME = re.compile(r"^\t(?:max|min)\.s32 +\t?%\w+, (%\w+), ([^;]+);$", re.MULTILINE)
_INLINE = re.compile(r"(\t// begin inline asm\n.*?\t// end inline asm$)", re.DOTALL | re.MULTILINE)
"""PTX that the program has as text, which stays as it is."""


def wrap_integers(ptx: str) -> str:
    """PTX from LLVM with these instructions replaced."""
    if _INSTRUCTION.search(ptx) is None:
        return ptx
    extreme = {operand for both in _EXTREME.findall(ptx) for operand in both}
    parts = _INLINE.split(ptx)
    parts[::2] = [_INSTRUCTION.sub(partial(_replace, extreme), part) for part in parts[::2]]
    return "".join(parts)


def _replace(extreme: Collection[str], match: re.Match[str]) -> str:
    """The text for an instruction; `extreme` are the operands of `max.s32` and `min.s32`."""
    name, result, operand = match.groups()
    operation, bits = name.split(".s")
    if operation == "neg":
        return match[0] if name == "neg.s32" and result not in extreme else "\n".join(_negate(result, operand, bits))
    lines = (
        "\t{",
        f"\t.reg .b{bits} \t%negated;",
        *_negate("%negated", operand, bits),
        f"\tmax.s{bits} \t{result}, {operand}, %negated;",
        "\t}",
    )
    return "\n".join(lines)


def _negate(result: str, operand: str, bits: str) -> tuple[str, str]:
    return f"\tnot.b{bits} \t{result}, {operand};", f"\tadd.s{bits} \t{result}, {result}, 1;"
