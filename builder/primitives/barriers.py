# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Primitives that wait and order: barriers of the block, the cluster and the warp, mbarriers, fences."""

from typing import Any

from ...base.errors import Code, TilefoldError
from ...dialects import ptx
from ..instructions import arch, cluster, mbarriers, warp
from ..scalars.dtypes import Boolean, Int32, Int64
from ..scalars.operators import Operand
from ..scalars.values import Scalar, convert, wrap
from ..tensors.raw_pointers import Address, RawPointer
from ..tensors.tensors import Pointer, Tensor, address_of
from ..tracing.state import emit
from .arrays import Array
from .enums import (
    GridDepAction,
    MBarrierScope,
    MBarrierWait,
    MemOrder,
    MemScope,
    Proxy,
    SetMaxRegisterAction,
    SharedSpace,
)

cluster_ctarank = cluster.block_idx_in_cluster
fence_mbarrier_init = cluster.mbarrier_init_fence
barrier_cluster_arrive = cluster.cluster_arrive
barrier_cluster_arrive_relaxed = cluster.cluster_arrive_relaxed
barrier_cluster_wait = cluster.cluster_wait


def address(x: object) -> Address:
    """The address of a pointer, an array, or a tensor's first element. Raises TilefoldError (E5002)."""
    if isinstance(x, Pointer) and x.tensor.ir_type.is_swizzled:
        return address_of(x)
    return x if isinstance(x, Address) else raw_pointer(x).address


def raw_pointer(x: object) -> RawPointer:
    """The pointer of an array, of a tensor or of its iterator. Raises TilefoldError (E5002) for anything else."""
    if isinstance(x, Tensor):
        x = x.iterator
    if isinstance(x, Array):
        return x.pointer
    if not isinstance(x, Pointer | RawPointer):
        hint = "give an array, or tensor.iterator"
        raise TilefoldError(Code.BUILD_VALUE, f"expected a pointer, got {type(x).__name__}", hint)
    return x.raw_ptr()


def griddepcontrol(kind: GridDepAction) -> None:
    """Waits until the launch before this one has ended, or lets the next one begin (PTX ISA, griddepcontrol)."""
    wait = kind is GridDepAction.WAIT
    (arch.griddepcontrol_wait if wait else arch.griddepcontrol_launch_dependents)()


def elect_sync(membermask: object = warp.FULL_MASK) -> Operand:
    """Whether this is the one lane of the mask that is chosen (sm_90)."""
    return warp.elect_one(membermask)


def barrier_cta_sync(barrier_id: int = 0, thread_count: int | None = None) -> None:
    """Waits until all threads of the block, or the given number of them, are at a barrier. Whole warps execute it."""
    arch.barrier(barrier_id=barrier_id, number_of_threads=thread_count)


barrier_cta_sync_aligned = barrier_cta_sync


def barrier_cta_arrive(barrier_id: int, thread_count: int) -> None:
    """Arrives at a barrier where the given number of threads meet, and does not wait."""
    arch.barrier_arrive(barrier_id=barrier_id, number_of_threads=thread_count)


def barrier_cta_red(
    predicate: Scalar, barrier_id: int = 0, kind: str = "or", thread_count: int | None = None
) -> Operand:
    """Does `barrier_cta_sync`, and returns whether a predicate holds in one (`or`), in all (`and`), or in how many
    (`popc`) of the threads that meet.
    """
    holds = convert(predicate, Boolean).ssa
    return wrap(emit(ptx.BarRedOp(kind, holds, barrier_id, thread_count)).results[0])


def bar_warp_sync(mask: int = warp.FULL_MASK) -> None:
    """Waits for the lanes of a mask; then sees their earlier writes."""
    arch.sync_warp(mask)


def mapa(pointer: object, cta_rank: Any) -> RawPointer:
    """The place in the block of a rank in the cluster that `pointer` points to in the own block's shared memory."""
    first = raw_pointer(pointer).view(1)
    return RawPointer(cluster.mapa(Tensor(first.ssa, first.element_type), cta_rank))


def mbarrier_init(bar: Any, count: Operand) -> None:
    """Makes eight bytes of shared memory an mbarrier whose phases end with `count` arrivals."""
    mbarriers.mbarrier_init(address(bar), count)


def mbarrier_inval(bar: object) -> None:
    """Ends an mbarrier, so that its bytes can be used otherwise."""
    emit(ptx.MbarrierInvalOp(address(bar).ssa))


def mbarrier_arrive(
    bar: object, scope: MemScope = MemScope.CTA, relaxed: bool = False, *, count: Scalar = 1
) -> Operand:
    """Arrives at an mbarrier of the block, and returns the state, which names the phase; or, by a pointer of `mapa`, at
    one of another block, without a state. With the scope CLUSTER, the other block sees earlier writes; a
    `relaxed` arrival releases no less. A `count` of more than 1 arrives as often, without a state.
    """
    at = address(bar)
    if at.ssa.type == ptx.SHARED and count == 1:
        return wrap(emit(ptx.MbarrierArriveStateOp(at.ssa)).results[0])
    number = None if count == 1 else convert(count, Int32).ssa
    near = at.ssa.type == ptx.SHARED or scope is MemScope.CLUSTER
    emit(ptx.MbarrierArriveOp(at.ssa, number, None if near else "cta"))
    return None


def mbarrier_arrive_expect_tx(bar: Any, tx_count: Operand) -> None:
    """Makes the phase expect more bytes of asynchronous copies, then arrives."""
    mbarriers.mbarrier_arrive_and_expect_tx(address(bar), tx_count)


def mbarrier_expect_tx(bar: Any, tx_count: Operand) -> None:
    """Makes the phase expect more bytes of asynchronous copies."""
    mbarriers.mbarrier_expect_tx(address(bar), tx_count)


def mbarrier_try_wait_parity(bar: Any, parity: Operand, time_limit: object = None) -> Operand:
    """Whether the phase of this parity has ended, after a short wait at most (sm_90): `while not ...: pass`. How long
    that wait is, is the GPU's choice, whatever `time_limit` hints.
    """
    return mbarriers.mbarrier_try_wait(address(bar), parity)


def mbarrier_wait_parity(
    bar: Any,
    parity: Operand,
    wait: MBarrierWait = MBarrierWait.TRY,
    *,
    scope: MBarrierScope = MBarrierScope.CTA,
    order: MemOrder = MemOrder.ACQUIRE,
) -> Operand:
    """Whether the phase of this parity has ended (PTX ISA, mbarrier.try_wait and mbarrier.test_wait). If so, the
    thread sees the writes of the `scope` before the arrivals, also where `order` asks for less.
    """
    ended = mbarriers.mbarrier_test_wait if wait is MBarrierWait.TEST else mbarriers.mbarrier_try_wait
    return ended(address(bar), parity, "cluster" if scope is MBarrierScope.CLUSTER else None)


def mbarrier_complete_tx(bar: Any, tx_count: Operand) -> None:
    """Counts bytes as moved, like an asynchronous copy does."""
    mbarriers.mbarrier_complete_tx(address(bar), tx_count)


def fence_sync_restrict(order: MemOrder) -> None:
    """Orders accesses to shared memory of the cluster; a fence of the cluster, which orders no less (PTX ISA,
    fence.sync_restrict; sm_90). `order` is ACQUIRE or RELEASE.
    """
    arch.fence_acq_rel_cluster()


def mbarrier_try_wait_timelimit(bar: object, state: Scalar, time_limit: object = None) -> Operand:
    """Does `mbarrier_try_wait_parity` for the phase that a state of `mbarrier_arrive` names."""
    return wrap(emit(ptx.MbarrierTryWaitStateOp(address(bar).ssa, convert(state, Int64).ssa)).results[0])


def cp_async_mbarrier_arrive(bar: object, noinc: bool = False) -> None:
    """Arrives at an mbarrier when the thread's cp.async so far are finished; without `noinc` the phase needs one
    arrival more.
    """
    emit(ptx.CpAsyncMbarrierArriveOp(address(bar).ssa, noinc))


def fence_proxy(kind: Proxy | str, space: SharedSpace | None = None) -> None:
    """A fence between the proxies, by their member or its name in small letters: accesses through the other one after
    it see the writes before it. Raises TilefoldError (E5002) for another name.
    """
    arch.fence_proxy(Proxy(kind).value, None if space is None else space.value)


def setmaxregister(count: int, action: SetMaxRegisterAction) -> None:
    """Increases or decreases the registers of a warpgroup's threads (sm_90a)."""
    change = action is SetMaxRegisterAction.INCREASE
    (arch.setmaxregister_increase if change else arch.setmaxregister_decrease)(count)
