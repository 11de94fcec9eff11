# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cluster launch control: a cluster takes over the work of one that has not begun (PTX ISA, section Parallel
Synchronization and Communication Instructions: clusterlaunchcontrol).

A launch has a cluster for each piece of work. Those that run ask the GPU to cancel one that has not begun, and do its
work themselves. The answer is 16 bytes in shared memory, which an mbarrier counts.
"""

from typing import ClassVar

from xdsl.dialects.builtin import I1, I32, UnitAttr, VectorType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import result_def, traits_def
from xdsl.traits import Pure

from ...base.target import TargetFamily, Targets
from ..definitions import flag, operand, optional_prop, row
from .base import SHARED, PtxOp
from .effects import Mbarrier, Proxy, arrives, by_thread, issued, writes

ANSWER = VectorType(i64, [2])
"""An answer in registers; its bits mean nothing but to the queries."""
ANSWER_BYTES = 16

_BAR = Mbarrier("bar")
_MULTICAST = Targets(frozenset([TargetFamily(sm, ptx, "f", sm // 10) for sm, ptx in ((100, 86), (110, 90), (120, 87))]))


class _ControlOp(PtxOp):
    """An instruction that targets have since sm_100."""

    SINCE: ClassVar = 100, 86


@row
class TryCancelOp(_ControlOp):
    """`ptx.clusterlaunchcontrol.try_cancel %answer, %bar`: asks to cancel a cluster of the launch that has not begun;
    the answer goes to 16 bytes of shared memory, which the mbarrier at `bar` counts (PTX ISA,
    clusterlaunchcontrol.try_cancel). With `multicast`, it goes to the same place in each block of the cluster, whose
    own mbarrier at the place of `bar` counts it.

    Preconditions: `answer` is a multiple of 16; the phase expects 16 bytes; a `ptx.fence.proxy.async` lies between
    reads of an earlier answer in these bytes and the request; no earlier answer has been negative. Postcondition: who
    waits for the phase may load the answer.
    """

    name = "ptx.clusterlaunchcontrol.try_cancel"
    answer: SSAValue = operand(SHARED)
    bar: SSAValue = operand(SHARED)
    multicast: UnitAttr | None = optional_prop(converter=flag, default=False)
    traits = traits_def(by_thread(*issued(_BAR, Proxy.ASYNC, writes("answer", ANSWER_BYTES), arrives(_BAR))))
    assembly_format = "$answer `,` $bar (`multicast` $multicast^)? attr-dict"

    @property
    def targets(self) -> TargetFamily | Targets:
        return super().targets if self.multicast is None else _MULTICAST

    def mnemonic(self) -> str:
        blocks = "" if self.multicast is None else ".multicast::cluster::all"
        return f"clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes{blocks}.b128"


@row
class IsCanceledOp(_ControlOp):
    """`%c = ptx.clusterlaunchcontrol.is_canceled %v`: whether a cluster has been cancelled, by the answer, a
    `vector<2xi64>` (PTX ISA, clusterlaunchcontrol.query_cancel). Where none has, the cluster must not ask again.
    """

    name = "ptx.clusterlaunchcontrol.is_canceled"
    MNEMONIC: ClassVar[str | None] = "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128"
    answer: SSAValue = operand(ANSWER)
    result = result_def(I1)
    traits = traits_def(Pure())
    assembly_format = "$answer attr-dict"


@row
class FirstCtaidOp(_ControlOp):
    """`%x, %y, %z = ptx.clusterlaunchcontrol.get_first_ctaid %v`: the coordinate of the first block of the cluster that
    has been cancelled, by the answer, a `vector<2xi64>` (PTX ISA, clusterlaunchcontrol.query_cancel).

    Precondition: a cluster has been cancelled.
    """

    name = "ptx.clusterlaunchcontrol.get_first_ctaid"
    MNEMONIC: ClassVar[str | None] = "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128"
    answer: SSAValue = operand(ANSWER)
    x = result_def(I32)
    y = result_def(I32)
    z = result_def(I32)
    traits = traits_def(Pure())
    assembly_format = "$answer attr-dict"
