# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bytes that the copies into a stage count, compared with those that the pipeline expects."""

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.ptx.bulk import BulkLoadOp
from ...dialects.ptx.mbarrier import MAX_TRANSACTION, MbarrierExpectTxOp
from ...dialects.ptx.warp import ElectSyncOp
from ...dialects.tile import CopyOp
from ...layout.atoms.bulk_copy import BULK_UNIT
from ..tensors.tensors import Address
from ..tracing.state import current
from .groups import pipeline_error


class Transactions:
    """The bytes of a stage, and the mbarriers of the copies since the stage was acquired.

    Raises TilefoldError (E5011) for a number of bytes that no copies have.
    """

    def __init__(self, bytes: int) -> None:
        if type(bytes) is not int or not 0 < bytes <= MAX_TRANSACTION or bytes % BULK_UNIT:
            hint = f"copies have multiples of {BULK_UNIT} bytes, and a phase expects at most {MAX_TRANSACTION} bytes"
            raise pipeline_error(f"tx_count is {bytes!r}", hint)
        self.bytes = bytes
        self._block: Block | None = None
        self._bars: list[SSAValue] = []

    def begin(self) -> None:
        """A stage is acquired. Raises TilefoldError (E5011) as `end` does."""
        self.end()
        self._block = current().block

    def note(self, bar: Address) -> None:
        """Copies are given this mbarrier."""
        self._bars.append(bar.ssa)

    def end(self) -> None:
        """Compares the copies into the stage with the pipeline's bytes, if all of them are known and executed as often
        as the stage is acquired, and the kernel itself expects no more. Raises TilefoldError (E5011).
        """
        uses = [use.operation for bar in self._bars for use in bar.uses]
        expects_more = any(isinstance(op, MbarrierExpectTxOp) for op in uses)
        copies = [] if expects_more else [op for op in uses if _is_copy(op)]
        sizes = [_bytes(op) if _is_executed_once(op, self._block) else None for op in copies]
        self._block, self._bars = None, []
        known = [size for size in sizes if size is not None]
        if copies and len(known) == len(copies) and sum(known) != self.bytes:
            listed = " + ".join(map(str, known))
            raise pipeline_error(
                f"the copies into a stage have {listed} bytes, but the pipeline expects {self.bytes}",
                f"give the pipeline tx_count={sum(known)}",
            )


def _is_copy(op: Operation) -> bool:
    return isinstance(op, BulkLoadOp | CopyOp)


def _bytes(op: Operation) -> int | None:
    """The bytes that a copy counts, with a multicast's those of all blocks, None if they are known only when the kernel
    runs.
    """
    if isinstance(op, CopyOp):
        return op.dst.type.plain_layout.size * op.dst.type.element_bits // 8
    assert isinstance(op, BulkLoadOp)
    made = op.bytes.owner
    value = made.value if isinstance(made, arith.ConstantOp) else None
    return value.value.data if isinstance(value, IntegerAttr) else None


def _is_executed_once(op: Operation, block: Block | None) -> bool:
    """Whether one thread of the warp executes an operation each time that the block is executed."""
    parent = op.parent_block()
    while parent is not None and parent is not block:
        around = parent.parent_op()
        if not isinstance(around, scf.IfOp) or not isinstance(around.cond.owner, ElectSyncOp):
            return False
        parent = around.parent_block()
    return parent is not None
