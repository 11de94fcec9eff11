# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The allocation of tensor memory by the first warp of a block, and its end; part of `lower-tensors`."""

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, i32
from xdsl.dialects.gpu import DimensionAttr, DimensionEnum
from xdsl.ir import SSAValue

from ...base.target import WARP
from ...dialects import gpu
from ...dialects.kernel import kernel_of
from ...dialects.ptx import (
    TENSOR,
    BarSyncOp,
    ClusterArriveOp,
    ClusterWaitOp,
    IntToPtrOp,
    LoadOp,
    SmemAllocOp,
    TensorAllocOp,
    TensorDeallocOp,
    TensorFenceOp,
    TensorRelinquishOp,
)
from ...dialects.tile import TmemAllocOp, TmemDeallocOp
from .emitter import Emitter

_ADDRESS = 4
"""The bytes of an address in tensor memory."""


def lower_tmem_alloc(emitter: Emitter, op: TmemAllocOp) -> None:
    """Replaces an allocation by its instructions and a barrier."""
    group, slot = op.blocks, emitter.value(SmemAllocOp(_ADDRESS, _ADDRESS))
    if group == 2:  # the instruction waits for the other block, which must have begun
        _meet_cluster(emitter)

    def allocate() -> None:
        emitter.insert(TensorAllocOp(group, slot, emitter.constant(op.columns.value.data, i32)))
        emitter.insert(TensorRelinquishOp(group))

    _in_first_warp(emitter, op, allocate)
    _meet(emitter, lambda: emitter.insert(BarSyncOp(0)))
    number = emitter.value(LoadOp(slot, i32, _ADDRESS))
    emitter.replace([emitter.value(IntToPtrOp(number, _ADDRESS, TENSOR))])


def lower_tmem_dealloc(emitter: Emitter, op: TmemDeallocOp, allocation: TmemAllocOp) -> None:
    """Replaces the end of columns by its instructions, after a barrier."""
    group, columns = allocation.blocks, allocation.columns.value.data
    if group == 2:
        _meet(emitter, lambda: _meet_cluster(emitter))
    else:
        _meet(emitter, lambda: emitter.insert(BarSyncOp(0)))
    _in_first_warp(
        emitter, op, lambda: emitter.insert(TensorDeallocOp(group, op.address, emitter.constant(columns, i32)))
    )
    emitter.replace()


def _meet_cluster(emitter: Emitter) -> None:
    emitter.insert(ClusterArriveOp(aligned=True))
    emitter.insert(ClusterWaitOp(aligned=True))


def _meet(emitter: Emitter, barrier: Callable[[], object]) -> None:
    """Synchronises threads, and orders their uses of tensor memory around the barrier."""
    before, after = TensorFenceOp.FORMS
    emitter.insert(TensorFenceOp(before))
    barrier()
    emitter.insert(TensorFenceOp(after))


def _in_first_warp(emitter: Emitter, op: TmemAllocOp | TmemDeallocOp, act: Callable[[], object]) -> None:
    """Runs an action in the first warp of the block."""
    kernel = kernel_of(op)
    assert kernel is not None, "the stage's contract"
    x, y, _ = kernel.block
    thread: SSAValue | None = None
    for number, (axis, step) in enumerate(zip(DimensionEnum, (1, x, x * y), strict=True)):
        if thread is not None and kernel.block[number] == 1:
            continue
        properties = {"dimension": DimensionAttr(axis)}
        coordinate = emitter.value(gpu.ThreadIdOp.create(properties=properties, result_types=[IndexType()]))
        if thread is None:
            thread = coordinate
        else:
            scaled = emitter.value(arith.MuliOp(coordinate, emitter.constant(step, IndexType())))
            thread = emitter.value(arith.AddiOp(thread, scaled))
    assert thread is not None
    point = emitter.point
    emitter.branch(emitter.value(arith.CmpiOp(thread, emitter.constant(WARP, IndexType()), "ult")))
    act()
    emitter.point = point
