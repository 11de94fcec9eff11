# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Barriers in shared memory (PTX ISA, mbarrier), which count arrivals of threads and bytes of asynchronous copies.

A barrier is named by its address, `bars.ptr(i)`, or by a pointer, `bars.iterator + i`.
"""

from xdsl.ir import SSAValue

from ...base.errors import Code, TilefoldError
from ...dialects import ptx
from ..control.control_functions import if_
from ..scalars.dtypes import Boolean, Int32
from ..scalars.operators import Operand
from ..scalars.values import Bool, Int, convert, wrap
from ..tensors.tensors import Address, Pointer, address_of
from ..tracing.state import emit

Place = Address | Pointer


def mbarrier_init(mbar_ptr: Place, cnt: "Int | int") -> None:
    """Makes eight bytes of shared memory a barrier whose phases end with `cnt` arrivals."""
    mbarrier_init_named(mbar_ptr, cnt, None)


def mbarrier_init_named(mbar_ptr: Place, cnt: "Int | int", label: str | None) -> "ptx.MbarrierInitOp":
    """Like `mbarrier_init`, with a name for messages, which the operation that is returned has."""
    made = ptx.MbarrierInitOp(_own(mbar_ptr), convert(cnt, Int32).ssa, label)
    emit(made)
    return made


def mbarrier_arrive(
    mbar_ptr: Place,
    peer_cta_rank_in_cluster: "Int | int | None" = None,
    arrive_count: "Int | int" = 1,
    *,
    scope: str | None = None,
) -> None:
    """Arrives at a barrier in shared memory without waiting, `arrive_count` times (more than once: sm_90): in the
    thread's own block, or in the block of this rank in the cluster (sm_90). With the scope `cta`, an arrival at another
    block only announces the end of reads, and takes much less time.
    """
    once = type(arrive_count) is int and arrive_count == 1
    count = None if once else convert(arrive_count, Int32).ssa
    emit(ptx.MbarrierArriveOp(_of_peer(mbar_ptr, peer_cta_rank_in_cluster), count, scope))


def mbarrier_expect_tx(
    mbar_ptr: Place, bytes: "Int | int", peer_cta_rank_in_cluster: "Int | int | None" = None
) -> None:
    """Adds to the bytes of asynchronous copies that the phase of a barrier in shared memory expects; for ranks see
    `mbarrier_arrive`.
    """
    emit(ptx.MbarrierExpectTxOp(_of_peer(mbar_ptr, peer_cta_rank_in_cluster), convert(bytes, Int32).ssa))


def mbarrier_arrive_and_expect_tx(
    mbar_ptr: Place, bytes: "Int | int", peer_cta_rank_in_cluster: "Int | int | None" = None
) -> None:
    """Adds to the bytes that the phase expects, then arrives at the barrier without waiting; for ranks see
    `mbarrier_arrive`.
    """
    emit(ptx.MbarrierArriveExpectTxOp(_of_peer(mbar_ptr, peer_cta_rank_in_cluster), convert(bytes, Int32).ssa))


mbarrier_init_arrive_cnt, mbarrier_init_tx_bytes = mbarrier_init, mbarrier_arrive_and_expect_tx  # the names of before


def mbarrier_complete_tx(
    mbar_ptr: Place, bytes: "Int | int", peer_cta_rank_in_cluster: "Int | int | None" = None
) -> None:
    """Counts bytes as moved, like an asynchronous copy does; for ranks see `mbarrier_arrive`."""
    emit(ptx.MbarrierCompleteTxOp(_of_peer(mbar_ptr, peer_cta_rank_in_cluster), convert(bytes, Int32).ssa))


def mbarrier_wait(mbar_ptr: Place, phase: "Int | int", scope: str | None = None) -> None:
    """Waits until the phase of this parity, 0 for the first, of a barrier in shared memory has ended. With the scope
    `cluster` (sm_90), it also makes the writes of other blocks' threads before their arrivals visible.
    """
    emit(ptx.MbarrierWaitOp(_own(mbar_ptr), convert(phase, Int32).ssa, scope))


def mbarrier_try_wait(mbar_ptr: Place, phase: "Int | int", scope: str | None = None) -> Bool:
    """Whether the phase of this parity of a barrier in shared memory has ended, after at most a short wait (sm_90); for
    the scope see `mbarrier_wait`.
    """
    return wrap(emit(ptx.MbarrierTryWaitOp(_own(mbar_ptr), convert(phase, Int32).ssa, scope)).results[0])


def mbarrier_conditional_try_wait(cond: object, mbar_ptr: Place, phase: "Int | int") -> Operand:
    """Like `mbarrier_try_wait` if a condition holds, otherwise True."""
    return if_(cond, lambda: mbarrier_try_wait(mbar_ptr, phase), lambda: Boolean(True))


def mbarrier_test_wait(mbar_ptr: Place, phase: "Int | int", scope: str | None = None) -> Bool:
    """Like `mbarrier_try_wait`, without a wait."""
    return wrap(emit(ptx.MbarrierTestWaitOp(_own(mbar_ptr), convert(phase, Int32).ssa, scope)).results[0])


def cp_async_mbarrier_arrive_noinc(mbar_ptr: Place) -> None:
    """Arrives at a barrier in shared memory when the thread's asynchronous copies so far are complete; the barrier's
    initial number of arrivals includes this one.
    """
    emit(ptx.CpAsyncMbarrierArriveOp(address_of(mbar_ptr).ssa))


def _own(mbar_ptr: Place) -> SSAValue:
    """The address of an mbarrier of the own block. Raises TilefoldError (E5002) for that of a peer."""
    at = address_of(mbar_ptr)
    if at.ssa.type == ptx.SHARED_CLUSTER:
        hint = "wait in the block that has the mbarrier, and let threads of others arrive there"
        raise TilefoldError(
            Code.BUILD_VALUE, "a thread can initialise and wait on mbarriers of its own block only", hint
        )
    return at.ssa


def _of_peer(mbar_ptr: Place, rank: "Int | int | None") -> SSAValue:
    """The address of an mbarrier: as it is, or that of the same mbarrier in the block of a rank."""
    if rank is None:
        return address_of(mbar_ptr).ssa
    return emit(ptx.MapaOp(_own(mbar_ptr), convert(rank, Int32).ssa)).results[0]
