# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Negations and absolute values in PTX that wrap after the assembler's optimisation, too.

The least integer of a type has no negative in the type, so PTX's `neg` and `abs` return it as it is. ptxas optimises as
if that never happened (seen with CUDA 13.0 for sm_90a, at -O1 and above). `abs.s16` and `neg.s16` of -32768 become
32768 where the result is widened, compared, divided or shifted; `abs.s32` and `abs.s64` count as not negative. The
sequences here gave the right result with every use that was tried on an H200.
"""

import re
from functools import partial

_INSTRUCTION = re.compile(r"^\t(neg\.s16|abs\.s(?:16|32|64)) +\t?(%\w+), (%\w+);$", re.MULTILINE)
_INLINE = re.compile(r"(\t// begin inline asm\n.*?\t// end inline asm$)", re.DOTALL | re.MULTILINE)
"""PTX that the program has as text, which stays as it is."""


def wrap_integers(ptx: str) -> str:
    """PTX from LLVM with these instructions replaced."""
    if _INSTRUCTION.search(ptx) is None:
        return ptx
    parts = _INLINE.split(ptx)
    parts[::2] = map(partial(_INSTRUCTION.sub, _replaced), parts[::2])
    return "".join(parts)


def _replaced(match: re.Match[str]) -> str:
    name, result, operand = match.groups()
    operation, bits = name.split(".s")
    if operation == "neg":
        return f"\tnot.b16 \t{result}, {operand};\n\tadd.s16 \t{result}, {result}, 1;"
    negated = [f"neg.s{bits} \t%negated, {operand};"]
    if bits == "16":
        negated = [f"not.b16 \t%negated, {operand};", "add.s16 \t%negated, %negated, 1;"]
    lines = ["{", f".reg .b{bits} %negated;", *negated, f"max.s{bits} \t{result}, {operand}, %negated;", "}"]
    return "\n".join(f"\t{line}" for line in lines)
