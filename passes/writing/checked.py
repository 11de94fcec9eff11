# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Index arithmetic whose exact results must fit its types, which the simulator checks."""

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation

from ...dialects.arith.semantics import CHECKED
from ..analysis.ranges import Ranges
from .emitter import Emitter


def check(op: Operation) -> Operation:
    """Marks an operation as one whose exact result must fit its type; returns it."""
    op.attributes[CHECKED] = UnitAttr()
    return op


class CheckedEmitter(Emitter):
    """Inserts operations where another emitter stands, and marks those whose results may not fit their types."""

    def __init__(self, emitter: Emitter, ranges: Ranges) -> None:
        self.op, self.point = emitter.op, emitter.point
        self._ranges = ranges

    def insert(self, op: Operation) -> Operation:
        super().insert(op)
        return check(op) if self._ranges.wraps(op) else op
