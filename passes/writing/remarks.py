# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Remarks: the decisions of passes and their reasons, kept in an attribute of the resulting operation."""

from collections.abc import Iterator

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

REMARK = "remark"
"""The attribute. It changes nothing; a pass that replaces the operation drops it."""


def remark(op: Operation, text: str) -> None:
    """Says `text` of an operation that a pass has made."""
    op.attributes[REMARK] = StringAttr(text)


def remarks_in(program: Operation) -> Iterator[tuple[Operation, str]]:
    """The operations of a program that carry remarks, in its order."""
    for op in program.walk():
        text = op.attributes.get(REMARK)
        if isinstance(text, StringAttr):
            yield op, text.data
