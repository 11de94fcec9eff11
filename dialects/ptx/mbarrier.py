# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Barriers in shared memory that threads and asynchronous copies arrive at, phase after phase (PTX ISA, section
Parallel Synchronization and Communication Instructions: mbarrier).

An mbarrier is 64 bits of shared memory, at a multiple of 8 bytes. It counts arrivals: when the arrivals of `init` and
the bytes that the phase expects have come, its phase is complete, and the next one begins with the same count. Phases
are numbered from 0; their parity, 0 or 1, names the current one or the one before it.
"""

from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import I1, I32, I64, IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import SSAValue
from xdsl.irdl import result_def, traits_def
from xdsl.utils.exceptions import VerifyException

from ...base.errors import Code, TilefoldError
from ...base.spaces import SMEM
from ...base.target import Target
from ..definitions import fields, flag, operand, optional_operand, optional_prop, refuse, row, some_text
from .address import MbarrierAddress, expected_shared
from .base import SHARED, SHARED_CLUSTER, PtrType, PtxOp
from .effects import Group, Mbarrier, Proxy, arrives, by_thread, changes, ends, issued, waits

MAX_ARRIVALS = 2**20 - 1
"""The most arrivals that a phase can need (PTX ISA, Contents of the mbarrier object)."""

MAX_TRANSACTION = 2**20 - 1
"""The most bytes that a phase can expect, or get before it expects them (PTX ISA, tx-count)."""

_BAR = Mbarrier("bar")


class _MbarrierOp(PtxOp):
    """An instruction on an mbarrier."""

    SINCE: ClassVar = 80, 70


@row
class MbarrierInitOp(_MbarrierOp):
    """`ptx.mbarrier.init %bar, %count`: makes an mbarrier of 8 bytes of shared memory, in phase 0; each of its phases
    needs `count` arrivals, 1 to 2^20 - 1 (PTX ISA, mbarrier.init). Preconditions: the bytes hold no mbarrier yet. One
    thread executes it; the others need a barrier after it before they use the mbarrier. `named "ring.empty[0]"` is its
    name in messages.
    """

    name = "ptx.mbarrier.init"
    MNEMONIC: ClassVar[str | None] = "mbarrier.init.shared.b64"
    bar: SSAValue = operand(SHARED)
    count: SSAValue = operand(I32)
    label: StringAttr | None = optional_prop(converter=some_text, default=None)
    traits = traits_def(by_thread(changes(_BAR)))
    assembly_format = "$bar `,` $count (`named` $label^)? attr-dict"


@row
class MbarrierInvalOp(_MbarrierOp):
    """`ptx.mbarrier.inval %bar`: ends an mbarrier, so that its bytes can be used otherwise (PTX ISA, mbarrier.inval).

    Precondition: no thread uses it any more; a barrier before it ensures that.
    """

    name = "ptx.mbarrier.inval"
    MNEMONIC: ClassVar[str | None] = "mbarrier.inval.shared.b64"
    bar: SSAValue = operand(SHARED)
    traits = traits_def(by_thread(ends(_BAR)))
    assembly_format = "$bar attr-dict"


class _CountingOp(_MbarrierOp):
    """An instruction on an mbarrier of the own block or of another one of the cluster."""

    custom_directives = (MbarrierAddress,)

    @property
    def is_remote(self) -> bool:
        """Whether the mbarrier may be that of another block."""
        return self.operands[0].type == SHARED_CLUSTER

    def requires(self) -> tuple[int, int]:
        return (90, 80) if self.is_remote else super().requires()

    def verify_(self) -> None:
        if (type := self.operands[0].type) not in (SHARED, SHARED_CLUSTER):
            raise VerifyException(expected_shared(type))


@row
class MbarrierArriveOp(_CountingOp):
    """`ptx.mbarrier.arrive %bar count %n`: each thread arrives once, or from sm_90 on n times; its earlier accesses
    happen before those after a wait for the phase (PTX ISA, mbarrier.arrive: release at scope cta, or at scope cluster
    where `bar` is the address of a peer's mbarrier, from `ptx.mapa`).

    With `scope "cta"`, an arrival at a peer's mbarrier waits for no writes of the thread, which takes much less time.
    It tells the peer that memory has been read: such as a stage of a pipeline, which the peer then overwrites.
    Preconditions: the phase still needs this number of arrivals. The state that the instruction returns is not used: a
    phase is waited for by its parity.
    """

    name = "ptx.mbarrier.arrive"
    bar: SSAValue = operand(PtrType)
    count: SSAValue | None = optional_operand(I32, default=None)
    scope: StringAttr | None = optional_prop(converter=some_text, default=None)
    traits = traits_def(by_thread(arrives(_BAR)))
    assembly_format = "custom<MbarrierAddress>($bar, type($bar)) (`count` $count^)? (`scope` $scope^)? attr-dict"

    def mnemonic(self) -> str:
        if not self.is_remote:
            return "mbarrier.arrive.shared.b64"
        return f"mbarrier.arrive.{'release.cluster.' if self.scope is None else ''}shared::cluster.b64"

    def verify_(self) -> None:
        super().verify_()
        if self.scope is not None and (self.scope.data != "cta" or not self.is_remote):
            raise VerifyException('scope "cta" is for arrivals at mbarriers of the cluster, by addresses from ptx.mapa')

    def requires(self) -> tuple[int, int]:
        return max(super().requires(), (90, 78) if self.count is not None else (0, 0))


@row
class MbarrierArriveStateOp(_MbarrierOp):
    """`%state = ptx.mbarrier.arrive.state %bar`: as `ptx.mbarrier.arrive`, at an mbarrier of the own block; the state
    names the phase in which the thread arrives, for `ptx.mbarrier.try_wait.state` (PTX ISA, mbarrier.arrive). With
    `drop`, each phase behind this one needs one arrival less; from sm_90 on also `count` less, where the thread arrives
    that often (PTX ISA, mbarrier.arrive_drop).
    """

    name = "ptx.mbarrier.arrive.state"
    bar: SSAValue = operand(SHARED)
    count: SSAValue | None = optional_operand(I32, default=None)
    drop: UnitAttr | None = optional_prop(converter=flag, default=False)
    state = result_def(I64)
    traits = traits_def(by_thread(arrives(_BAR)))
    assembly_format = "(`drop` $drop^)? $bar (`count` $count^)? attr-dict"

    def mnemonic(self) -> str:
        return f"mbarrier.arrive{'' if self.drop is None else '_drop'}.shared.b64"

    def verify_(self) -> None:
        super().verify_()
        if self.count is not None and self.drop is None:
            raise VerifyException("a count is for arrivals that the next phases lack, with `drop`")

    def requires(self) -> tuple[int, int]:
        return max(super().requires(), (90, 78) if self.count is not None else (0, 0))


@fields
class _TransactionOp(_CountingOp):
    """An instruction that changes the number of bytes that the phase still expects."""

    SINCE: ClassVar = 90, 80
    ACTION: ClassVar[str]
    bar: SSAValue = operand(PtrType)
    bytes: SSAValue = operand(I32)
    assembly_format = "custom<MbarrierAddress>($bar, type($bar)) `,` $bytes attr-dict"

    def mnemonic(self) -> str:
        place = "cluster.shared::cluster" if self.is_remote else "cta.shared"
        return f"mbarrier.{self.ACTION}.{place}.b64"

    def verify_(self) -> None:
        super().verify_()
        made = self.bytes.owner
        value = made.value if isinstance(made, arith.ConstantOp) else None
        if isinstance(value, IntegerAttr) and not 0 <= value.value.data <= MAX_TRANSACTION:
            text = f"a phase counts 0 to {MAX_TRANSACTION} bytes, not {value.value.data}"
            refuse(TilefoldError(Code.IR_VERIFY, text, "copy the rest in another phase"))


@row
class MbarrierExpectTxOp(_TransactionOp):
    """`ptx.mbarrier.expect_tx %bar, %bytes`: the phase needs `%bytes` more bytes of asynchronous copies, at most
    2^20 - 1 together (PTX ISA, mbarrier.expect_tx: relaxed at scope cta). Bytes may come before they are expected.
    """

    name = "ptx.mbarrier.expect_tx"
    ACTION: ClassVar[str] = "expect_tx.relaxed"
    traits = traits_def(by_thread(changes(_BAR)))


@row
class MbarrierArriveExpectTxOp(_TransactionOp):
    """`ptx.mbarrier.arrive.expect_tx %bar, %bytes`: each thread has the phase expect `%bytes` more bytes, then arrives
    once (PTX ISA, mbarrier.arrive.expect_tx: release at scope cta).
    """

    name = "ptx.mbarrier.arrive.expect_tx"
    ACTION: ClassVar[str] = "arrive.expect_tx.release"
    traits = traits_def(by_thread(changes(_BAR), arrives(_BAR)))


@row
class MbarrierCompleteTxOp(_TransactionOp):
    """`ptx.mbarrier.complete_tx %bar, %bytes`: the phase needs `%bytes` bytes fewer, as when a copy has moved them (PTX
    ISA, mbarrier.complete_tx: relaxed at scope cta).
    """

    name = "ptx.mbarrier.complete_tx"
    ACTION: ClassVar[str] = "complete_tx.relaxed"
    traits = traits_def(by_thread(changes(_BAR)))


@fields
class _WaitingOp(_MbarrierOp):
    """An instruction that looks at a phase of an mbarrier of the own block; no thread can wait for another. With `scope
    "cluster"` it acquires the accesses of other blocks' threads before they arrived.
    """

    bar: SSAValue = operand(SHARED)
    parity: SSAValue = operand(I32)
    scope: StringAttr | None = optional_prop(converter=some_text, default=None)
    assembly_format = "$bar `,` $parity (`scope` $scope^)? attr-dict"
    TEST: ClassVar[str]

    def requires(self) -> tuple[int, int]:
        return max(super().requires(), (0, 0) if self.scope is None else (90, 80))

    def mnemonic(self) -> str:
        return self.test(self.TEST)

    def test(self, instruction: str) -> str:
        """The instruction that tests the phase: `test_wait` or `try_wait`."""
        place = SMEM.ptx if self.scope is None else f"acquire.{self.scope.data}.shared::cta"
        return f"mbarrier.{instruction}.parity.{place}.b64"

    def verify_(self) -> None:
        if self.scope is not None and self.scope.data not in ("cta", "cluster"):
            raise VerifyException(f'the scope of a wait is cta or cluster, not "{self.scope.data}"')


@fields
class _TestOp(_WaitingOp):
    """The base of tests of a phase."""

    done = result_def(I1)


@row
class MbarrierTestWaitOp(_TestOp):
    """`%done = ptx.mbarrier.test_wait %bar, %parity`: whether the phase of this parity, the current one or the one
    before it, is complete; if so, accesses before the arrivals in it happened before those that follow (PTX ISA,
    mbarrier.test_wait: acquire at scope cta).
    """

    name = "ptx.mbarrier.test_wait"
    TEST: ClassVar[str] = "test_wait"
    SINCE: ClassVar = 80, 71
    traits = traits_def(by_thread(waits(_BAR)))


@row
class MbarrierTryWaitOp(_TestOp):
    """`%done = ptx.mbarrier.try_wait %bar, %parity`: as `ptx.mbarrier.test_wait`, but the thread may be suspended for a
    while if the phase is not complete (PTX ISA, mbarrier.try_wait).
    """

    name = "ptx.mbarrier.try_wait"
    TEST: ClassVar[str] = "try_wait"
    SINCE: ClassVar = 90, 78
    traits = traits_def(by_thread(waits(_BAR)))


@row
class MbarrierTryWaitStateOp(_MbarrierOp):
    """`%done = ptx.mbarrier.try_wait.state %bar, %state`: as `ptx.mbarrier.try_wait`, of the phase that a state of
    `ptx.mbarrier.arrive.state` names, the current one or the one before it (PTX ISA, mbarrier.try_wait).
    """

    name = "ptx.mbarrier.try_wait.state"
    MNEMONIC: ClassVar[str | None] = "mbarrier.try_wait.shared.b64"
    SINCE: ClassVar = 90, 78
    bar: SSAValue = operand(SHARED)
    state: SSAValue = operand(I64)
    done = result_def(I1)
    traits = traits_def(by_thread(waits(_BAR)))
    assembly_format = "$bar `,` $state attr-dict"


@row
class MbarrierWaitOp(_WaitingOp):
    """`ptx.mbarrier.wait %bar, %parity`: waits until the phase of this parity, the current one or the one before it, is
    complete; accesses before the arrivals in it happened before those that follow.

    It is a loop around mbarrier.try_wait.parity, or around test_wait.parity below sm_90. The phase of parity 1
    of a new mbarrier counts as complete.
    """

    name = "ptx.mbarrier.wait"
    TEST: ClassVar[str] = "try_wait"
    SINCE: ClassVar = 80, 71
    traits = traits_def(by_thread(waits(_BAR)))

    def test_on(self, target: Target) -> str:
        """The instruction in the loop on a target."""
        return self.test("try_wait" if target.sm >= MbarrierTryWaitOp.SINCE[0] else "test_wait")


@row
class CpAsyncMbarrierArriveOp(_MbarrierOp):
    """`ptx.cp.async.mbarrier.arrive noinc %bar`: the thread arrives when all the cp.async that it has started so far
    are complete; threads that wait for the phase see their bytes (PTX ISA, cp.async.mbarrier.arrive). With `noinc` it
    is one of the arrivals that the phase needs anyway; without `noinc`, the phase needs one more.
    """

    name = "ptx.cp.async.mbarrier.arrive"
    bar: SSAValue = operand(SHARED)
    noinc: UnitAttr | None = optional_prop(converter=flag, default=True)
    traits = traits_def(by_thread(*issued(Group.CP_ASYNC, Proxy.GENERIC, arrives(_BAR))))
    assembly_format = "(`noinc` $noinc^)? $bar attr-dict"

    def mnemonic(self) -> str:
        return f"cp.async.mbarrier.arrive{'.noinc' if self.noinc is not None else ''}.shared.b64"
