# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clusters of blocks (sm_90): where a block is in its cluster, addresses in the shared memory of peers, and the barrier
of all threads of a cluster.
"""

from dataclasses import replace
from typing import overload

from ...base.target import MAX_CLUSTER
from ...dialects import gpu, ptx
from ...dialects.ptx.launch_control import ANSWER, ANSWER_BYTES
from ...dialects.tile import PeerOp
from ...layout.algebra.integers import Unknown
from ..control.control_functions import if_
from ..scalars.dtypes import Int32, of_sign
from ..scalars.operators import Operand
from ..scalars.values import Int, Scalar, convert, wrap
from ..tensors.coordinates import as_tuple
from ..tensors.tensors import Address, Pointer, Tensor, address_of, remote
from ..tracing.state import emit
from .arch import block_idx, coordinates
from .warp import shuffle_sync


def block_in_cluster_idx() -> tuple[Int, Int, Int]:
    """The block's coordinate in its cluster: x, y, z."""
    return coordinates(gpu.ClusterBlockIdOp)


def block_in_cluster_dim() -> tuple[Int, Int, Int]:
    """The cluster's size in blocks: x, y, z."""
    return coordinates(gpu.ClusterDimBlocksOp)


def cluster_idx() -> tuple[Int, Int, Int]:
    """The cluster's coordinate in the grid: x, y, z."""
    return coordinates(gpu.ClusterIdOp)


def cluster_dim() -> tuple[Int, Int, Int]:
    """The grid's size in clusters: x, y, z."""
    return coordinates(gpu.ClusterDimOp)


def block_idx_in_cluster() -> Int:
    """The rank of the block in its cluster, x the fastest."""
    return _register("cluster_ctarank", 0, MAX_CLUSTER - 1)


def cluster_size() -> Int:
    """The number of blocks of a cluster."""
    return _register("cluster_nctarank", 1, MAX_CLUSTER)


def _register(name: str, low: int, high: int) -> Int:
    return Int(emit(ptx.SregOp(name)).results[0], Int32, Unknown(32), (low, high))


def issue_clc_query(
    mbar_ptr: Address | Pointer, clc_response_ptr: Address | Pointer, *, multicast: bool = True
) -> None:
    """Asks to cancel a cluster of the launch that has not begun (sm_100; PTX ISA, clusterlaunchcontrol.try_cancel;
    CUTLASS, sm100_tile_scheduler.hpp). The answer is 16 bytes of shared memory at a multiple of 16, which the mbarrier
    counts; with `multicast`, each block of the cluster has it at the same place. One thread calls it.
    """
    emit(ptx.TryCancelOp(address_of(clc_response_ptr).ssa, address_of(mbar_ptr).ssa, multicast))


def clc_response(result_addr: Address | Pointer) -> tuple[Int, Int, Int, Operand]:
    """The first block of the cluster that has been cancelled, x, y, z, and whether one has (PTX ISA,
    clusterlaunchcontrol.query_cancel), by the answer, after a wait for it; else the block's own coordinate. A fence of
    the async proxy lies between this and the next request in these bytes.
    """
    answer = emit(ptx.LoadOp(address_of(result_addr).ssa, ANSWER, ANSWER_BYTES)).results[0]
    more = wrap(emit(ptx.IsCanceledOp(answer)).results[0])
    first = if_(more, lambda: tuple(wrap(x) for x in emit(ptx.FirstCtaidOp(answer)).results), block_idx)
    return *first, more


def cluster_arrive(*, aligned: bool = True) -> None:
    """Arrives at the barrier of the cluster without waiting. The thread's earlier accesses happen before the accesses
    of other threads after their waits. With `aligned`, all threads of the warp must execute it together.
    """
    emit(ptx.ClusterArriveOp(aligned=aligned))


def cluster_arrive_relaxed(*, aligned: bool = True) -> None:
    """Like `cluster_arrive`, but only accesses before a fence happen before the later ones."""
    emit(ptx.ClusterArriveOp(relaxed=True, aligned=aligned))


def cluster_wait(*, aligned: bool = True) -> None:
    """Waits until all threads of the cluster that have not ended have arrived at its barrier."""
    emit(ptx.ClusterWaitOp(aligned=aligned))


def mbarrier_init_fence() -> None:
    """Makes the mbarriers that the thread has initialised visible to copies of its block, after a barrier, and to
    threads and copies of other blocks, after a cluster barrier.
    """
    emit(ptx.FenceMbarrierInitOp())


@overload
def mapa(ptr: Tensor, cta_rank_in_cluster: "Int | int" = 0) -> Tensor: ...


@overload
def mapa(ptr: Pointer, cta_rank_in_cluster: "Int | int" = 0) -> Pointer: ...


@overload
def mapa(ptr: Address, cta_rank_in_cluster: "Int | int" = 0) -> Address: ...


def mapa(ptr: "Address | Pointer | Tensor", cta_rank_in_cluster: "Int | int" = 0) -> "Address | Pointer | Tensor":
    """Maps `ptr` in the thread's own shared memory to the same place in the block of a rank of the cluster: a tensor, a
    pointer, or an address. Atomic operations, `load_acquire`, `store_release`, `store_async` and `red_async` take the
    latter two.
    """
    if isinstance(ptr, Pointer):
        return replace(ptr, tensor=mapa(ptr.tensor, cta_rank_in_cluster))
    rank = convert(cta_rank_in_cluster, Int32).ssa
    if isinstance(ptr, Tensor):
        return Tensor(emit(PeerOp.inferred([ptr.ssa, rank])).results[0], ptr.element_type)
    at = address_of(ptr)
    return Address(emit(ptx.MapaOp(at.ssa, rank)).results[0], at.dtype)


def store_async(at: Address | Pointer, value: Scalar, mbarrier: Address | Pointer) -> None:
    """Starts a store to an element of a block of the cluster; the mbarrier, in the same block, counts its bytes on
    arrival. Both addresses come from `mapa`.
    """
    place = remote(at)
    emit(ptx.StAsyncOp(convert(value, place.dtype).ssa, place.ssa, remote(mbarrier).ssa))


def store_async_dsmem(smem_ptr: Pointer, value: Operand, mbar_ptr: Address | Pointer, peer_cta_rank: Operand) -> None:
    """`store_async` to the same place in the block of a rank in the cluster, and to its mbarrier; both pointers are of
    the own block. A tuple of values goes to adjacent elements.
    """
    bar, place = mapa(mbar_ptr, peer_cta_rank), mapa(smem_ptr, peer_cta_rank)
    for i, part in enumerate(as_tuple(value)):
        store_async(place + i, part, bar)


def red_async(kind: str, at: Address | Pointer, value: Scalar, mbarrier: Address | Pointer) -> None:
    """Starts an atomic change of an element of a block of the cluster; the mbarrier, in the same block, counts its
    bytes on completion. `add` takes integers of 32 and 64 bits; `min`, `max`, `umin`, `umax`, `and`, `or`, `xor`, `inc`
    and `dec` take 32 bits.
    """
    place = remote(at)
    operand = convert(value, place.dtype).ssa
    emit(ptx.RedAsyncOp(operand, place.ssa, remote(mbarrier).ssa, of_sign(kind, place.dtype)))


def make_warp_uniform(value: object) -> Operand:
    """The value of the warp's first lane, which the compiler knows to be the same in all lanes."""
    return shuffle_sync(value, 0)
