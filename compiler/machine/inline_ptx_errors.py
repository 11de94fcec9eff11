# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the text of a program (`ptx.inline`) that the assembler refuses.

LLVM passes such text on between two comments. Only the assembler reads it, and names a line of the PTX.
"""

import re
from collections.abc import Sequence

from ...base.errors import Code, TilefoldError
from ...base.target import Target
from ...dialects.ptx import InlineOp
from ...passes.errors import LoweringError
from .assemble import AssembleError

_INLINE = re.compile(r"// begin inline asm\n(.*?)\n\s*// end inline asm\n", re.DOTALL)
_REFUSED = re.compile(r"line (\d+); (?:error|fatal)\s*: (.*)")
_PLACE = re.compile(r"\\\$(\d+|\\\$)")  # `$1` or `$$`, as re.escape leaves it


def refusal(error: AssembleError, ptx: str, target: Target, texts: Sequence[InlineOp]) -> TilefoldError:
    """The error of an assembler as an error of the operation among `texts` that has the refused line; the error itself
    if none of them has it. `texts` are in the order of the program.
    """
    refused = _REFUSED.search(error.log)
    if refused is None or not texts:
        return error
    line = int(refused[1])
    before = [text for text in _INLINE.finditer(ptx) if _line(ptx, text.start(1)) <= line]
    # a text without its last semicolon is refused at the line that follows its comment
    is_inside = bool(before) and line <= _line(ptx, before[-1].end())
    ops = [op for op in texts if _becomes(op, before[-1])] if is_inside else []
    if not ops:
        hint = "check that each text of `ptx.inline` closes the braces and comments that it opens"
        return AssembleError(Code.ASSEMBLE_REFUSED, error.message, hint, error.log)
    number = sum(_becomes(ops[0], text) for text in before)  # of several with this text
    message = f"the assembler refused the text for {target}: {refused[2]}"
    hint = "look up the instruction and the types of its registers in the PTX ISA"
    return LoweringError(Code.ASSEMBLE_REFUSED, message, ops[min(number, len(ops)) - 1], hint)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _becomes(op: InlineOp, text: re.Match[str]) -> bool:
    """Whether LLVM makes this of a text: a register in each place, and the rest as it is, but for space at its ends."""
    pattern = _PLACE.sub(lambda place: r"\$" if place[1] == r"\$" else r"\S+?", re.escape(op.text.data.strip()))
    return re.fullmatch(pattern, text[1].strip()) is not None
