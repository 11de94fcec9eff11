# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Barriers in shared memory that threads and asynchronous copies arrive at, phase after phase (PTX ISA, section
Parallel Synchronization and Communication Instructions: mbarrier).

An mbarrier is 64 bits of shared memory, at a multiple of 8 bytes. It counts arrivals: when as many have arrived as
`init` says, and as many bytes have come as the phase expects, its phase is complete, and the next one begins with the
same count. Phases are numbered from 0; their parity, 0 or 1, names the current one or the one before it.
"""

from typing import ClassVar

from xdsl.dialects.builtin import I1, I32, UnitAttr, i1
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, result_def, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from .base import PtxOp
from .types import SHARED

MAX_ARRIVALS = 2**20 - 1
"""The most arrivals that a phase can need (PTX ISA, Contents of the mbarrier object)."""

MAX_TRANSACTION = 2**20 - 1
"""The most bytes that a phase can expect, or get before it expects them (PTX ISA, tx-count)."""


class _MbarrierOp(PtxOp):
    """An instruction on an mbarrier."""

    MIN_SM: ClassVar[int] = 80
    MIN_PTX: ClassVar[int] = 70
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@irdl_op_definition
class MbarrierInitOp(_MbarrierOp):
    """`ptx.mbarrier.init %bar, %count`: makes an mbarrier of 8 bytes of shared memory, in phase 0; each of its phases
    needs `count` arrivals, 1 to 2^20 - 1 (PTX ISA, mbarrier.init). Preconditions: the bytes hold no mbarrier yet. One
    thread executes it; the others need a barrier after it before they use the mbarrier.
    """

    name = "ptx.mbarrier.init"
    MNEMONIC: ClassVar[str | None] = "mbarrier.init.shared.b64"
    bar = operand_def(SHARED)
    count = operand_def(I32)
    assembly_format = "$bar `,` $count attr-dict"

    def __init__(self, bar: SSAValue | Operation, count: SSAValue | Operation):
        super().__init__(operands=[bar, count])


@irdl_op_definition
class MbarrierInvalOp(_MbarrierOp):
    """`ptx.mbarrier.inval %bar`: ends an mbarrier, so that its bytes can be used otherwise (PTX ISA, mbarrier.inval).

    Precondition: no thread uses it any more; a barrier before it ensures that.
    """

    name = "ptx.mbarrier.inval"
    MNEMONIC: ClassVar[str | None] = "mbarrier.inval.shared.b64"
    bar = operand_def(SHARED)
    assembly_format = "$bar attr-dict"

    def __init__(self, bar: SSAValue | Operation):
        super().__init__(operands=[bar])


@irdl_op_definition
class MbarrierArriveOp(_MbarrierOp):
    """`ptx.mbarrier.arrive %bar count %n`: each thread arrives once, or from sm_90 on n times; what it did before
    happened before whatever follows a wait for the phase (PTX ISA, mbarrier.arrive: release at scope cta).

    Preconditions: the phase still needs so many arrivals. The state that the instruction returns is not used: a phase
    is waited for by its parity.
    """

    name = "ptx.mbarrier.arrive"
    MNEMONIC: ClassVar[str | None] = "mbarrier.arrive.shared.b64"
    bar = operand_def(SHARED)
    count = opt_operand_def(I32)
    assembly_format = "$bar (`count` $count^)? attr-dict"

    def __init__(self, bar: SSAValue | Operation, count: SSAValue | None = None):
        super().__init__(operands=[bar, count])

    def requires(self) -> tuple[int, int]:
        return (90, 78) if self.count is not None else (self.MIN_SM, self.MIN_PTX)


class _TransactionOp(_MbarrierOp):
    """An instruction that changes the number of bytes that the phase still expects."""

    MIN_SM: ClassVar[int] = 90
    MIN_PTX: ClassVar[int] = 80
    bar = operand_def(SHARED)
    bytes = operand_def(I32)
    assembly_format = "$bar `,` $bytes attr-dict"

    def __init__(self, bar: SSAValue | Operation, bytes: SSAValue | Operation):
        super().__init__(operands=[bar, bytes])


@irdl_op_definition
class MbarrierExpectTxOp(_TransactionOp):
    """`ptx.mbarrier.expect_tx %bar, %bytes`: the phase needs so many more bytes of asynchronous copies, at most
    2^20 - 1 together (PTX ISA, mbarrier.expect_tx: relaxed at scope cta). Bytes may come before they are expected.
    """

    name = "ptx.mbarrier.expect_tx"
    MNEMONIC: ClassVar[str | None] = "mbarrier.expect_tx.relaxed.cta.shared.b64"


@irdl_op_definition
class MbarrierArriveExpectTxOp(_TransactionOp):
    """`ptx.mbarrier.arrive.expect_tx %bar, %bytes`: each thread has the phase expect so many more bytes, then arrives
    once (PTX ISA, mbarrier.arrive.expect_tx: release at scope cta).
    """

    name = "ptx.mbarrier.arrive.expect_tx"
    MNEMONIC: ClassVar[str | None] = "mbarrier.arrive.expect_tx.release.cta.shared.b64"


@irdl_op_definition
class MbarrierCompleteTxOp(_TransactionOp):
    """`ptx.mbarrier.complete_tx %bar, %bytes`: the phase needs so many bytes fewer, as when a copy has moved them (PTX
    ISA, mbarrier.complete_tx: relaxed at scope cta).
    """

    name = "ptx.mbarrier.complete_tx"
    MNEMONIC: ClassVar[str | None] = "mbarrier.complete_tx.relaxed.cta.shared.b64"


class _TestOp(_MbarrierOp):
    """What tests of a phase have in common."""

    bar = operand_def(SHARED)
    parity = operand_def(I32)
    done = result_def(I1)
    assembly_format = "$bar `,` $parity attr-dict"

    def __init__(self, bar: SSAValue | Operation, parity: SSAValue | Operation):
        super().__init__(operands=[bar, parity], result_types=[i1])


@irdl_op_definition
class MbarrierTestWaitOp(_TestOp):
    """`%done = ptx.mbarrier.test_wait %bar, %parity`: whether the phase of this parity, the current one or the one
    before it, is complete; if so, what happened before the arrivals in it happened before what follows (PTX ISA,
    mbarrier.test_wait: acquire at scope cta).
    """

    name = "ptx.mbarrier.test_wait"
    MNEMONIC: ClassVar[str | None] = "mbarrier.test_wait.parity.shared.b64"
    MIN_PTX: ClassVar[int] = 71


@irdl_op_definition
class MbarrierTryWaitOp(_TestOp):
    """`%done = ptx.mbarrier.try_wait %bar, %parity`: as `ptx.mbarrier.test_wait`, but the thread may be suspended for a
    while if the phase is not complete (PTX ISA, mbarrier.try_wait).
    """

    name = "ptx.mbarrier.try_wait"
    MNEMONIC: ClassVar[str | None] = "mbarrier.try_wait.parity.shared.b64"
    MIN_SM: ClassVar[int] = 90
    MIN_PTX: ClassVar[int] = 78


@irdl_op_definition
class MbarrierWaitOp(_MbarrierOp):
    """`ptx.mbarrier.wait %bar, %parity`: waits until the phase of this parity, the current one or the one before it, is
    complete; what happened before the arrivals in it happened before what follows.

    It is a loop around mbarrier.try_wait.parity, or around test_wait.parity below sm_90. Of a new mbarrier the phase of
    parity 1 counts as complete.
    """

    name = "ptx.mbarrier.wait"
    MNEMONIC: ClassVar[str | None] = "mbarrier.try_wait.parity.shared.b64"
    MIN_PTX: ClassVar[int] = 71
    bar = operand_def(SHARED)
    parity = operand_def(I32)
    assembly_format = "$bar `,` $parity attr-dict"

    def __init__(self, bar: SSAValue | Operation, parity: SSAValue | Operation):
        super().__init__(operands=[bar, parity])


@irdl_op_definition
class CpAsyncMbarrierArriveOp(_MbarrierOp):
    """`ptx.cp.async.mbarrier.arrive noinc %bar`: the thread arrives when all the cp.async that it has started so far
    are complete; threads that wait for the phase see their bytes (PTX ISA, cp.async.mbarrier.arrive). With `noinc` it
    is one of the arrivals that the phase needs anyway; without `noinc`, the phase needs one more.
    """

    name = "ptx.cp.async.mbarrier.arrive"
    bar = operand_def(SHARED)
    noinc = opt_prop_def(UnitAttr)
    assembly_format = "(`noinc` $noinc^)? $bar attr-dict"

    def __init__(self, bar: SSAValue | Operation, noinc: bool = True):
        super().__init__(operands=[bar], properties={"noinc": UnitAttr() if noinc else None})

    def mnemonic(self) -> str:
        return f"cp.async.mbarrier.arrive{'.noinc' if self.noinc is not None else ''}.shared.b64"
