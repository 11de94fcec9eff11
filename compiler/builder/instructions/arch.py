# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Thread and block indices, barriers, asynchronous copies, and atomic accesses."""

from functools import partial
from typing import Any, TypeVar

from xdsl.dialects import arith
from xdsl.dialects import gpu as xdsl_gpu
from xdsl.dialects.builtin import IndexType, i32, i64
from xdsl.ir import SSAValue

from ....base.errors import Code, TilefoldError
from ....base.target import MAX_BLOCK, WARP
from ....dialects import gpu, ptx
from ....dialects.ptx.approx import ApproximateOp
from ....layout.algebra.unknown import Unknown
from ....passes.analysis.ranges import register_ranges
from ..scalars.dtypes import Float32, Index, Int32, of_sign
from ..scalars.values import Bool, Int, Scalar, Value, convert, wrap
from ..tensors.fragments import Vec, elementwise
from ..tensors.tensors import Address
from ..tracing.state import emit, insert_value

T = TypeVar("T", int, "int | None")


def _static(x: T, subject: str) -> T:
    if x is not None and type(x) is not int:
        raise TilefoldError(
            Code.BUILD_RUN_TIME, f"{subject} must be static, but it is {x!r}", "pass a number of Python"
        )
    return x


def coordinates(op: type[gpu.CoordinateOp]) -> tuple[Int, Int, Int]:
    """The coordinates that an operation reads: x, y, z."""
    ranges = register_ranges(MAX_BLOCK, None)

    def one(dimension: xdsl_gpu.DimensionEnum) -> Int:
        made = op.create(properties={"dimension": xdsl_gpu.DimensionAttr(dimension)}, result_types=[IndexType()])
        least, most = ranges[made.register]
        return Int(insert_value(made), Index, Unknown(32), (least if least == 0 else 1, most))

    x, y, z = (one(dimension) for dimension in xdsl_gpu.DimensionEnum)
    return x, y, z


def thread_idx() -> tuple[Int, Int, Int]:
    """The thread's coordinate in its block: x, y, z."""
    return coordinates(gpu.ThreadIdOp)


def block_idx() -> tuple[Int, Int, Int]:
    """The block's coordinate in the grid: x, y, z."""
    return coordinates(gpu.BlockIdOp)


def block_dim() -> tuple[Int, Int, Int]:
    """The block's size in threads: x, y, z."""
    return coordinates(gpu.BlockDimOp)


def grid_dim() -> tuple[Int, Int, Int]:
    """The grid's size in blocks: x, y, z."""
    return coordinates(gpu.GridDimOp)


def linear_thread_idx() -> Int:
    """The number of the thread in its block, x the fastest."""
    (x, y, z), (width, height, _) = thread_idx(), block_dim()
    return x + width * (y + height * z)


def lane_idx() -> Int:
    """The thread's lane in its warp, 0 to 31."""
    return linear_thread_idx() % WARP


def warp_idx() -> Int:
    """The number of the thread's warp in its block."""
    return linear_thread_idx() // WARP


def barrier(id: int = 0, threads: int | None = None) -> None:
    """Waits until all threads of the block, or `threads` of them, are at a barrier; then sees their earlier writes."""
    emit(ptx.BarSyncOp(_static(id, "the number of a barrier"), _static(threads, "the number of threads")))


def barrier_arrive(id: int, threads: int) -> None:
    """Arrives at barrier `id`, where `threads` threads meet, and does not wait."""
    emit(ptx.BarArriveOp(_static(id, "the number of a barrier"), _static(threads, "the number of threads")))


def sync_warp(mask: int = -1) -> None:
    """Waits for the lanes of a mask; their earlier writes are visible then."""
    emit(ptx.BarWarpSyncOp(_static(mask, "a mask of lanes")))


def cp_async_commit_group() -> None:
    """Makes a group of the asynchronous copies that the thread began since the last one."""
    emit(ptx.CpAsyncCommitGroupOp())


def cp_async_wait_group(n: int) -> None:
    """Waits until at most the last `n` groups of asynchronous copies are unfinished."""
    emit(ptx.CpAsyncWaitGroupOp(_static(n, "the number of groups")))


def cp_async_wait_all() -> None:
    """Waits until all asynchronous copies of the thread are finished."""
    emit(ptx.CpAsyncWaitAllOp())


def fence(order: str = "acq_rel", scope: str = "gpu") -> None:
    """A memory fence, `acq_rel` or `sc`, in the scope `cta`, `cluster`, `gpu` or `sys`."""
    emit(ptx.FenceOp(order, None if scope == "gpu" else scope))


def griddepcontrol_wait() -> None:
    """Waits for earlier work in the stream, where the kernel is launched with `programmatic=True` (sm_90)."""
    emit(ptx.GridDependencyWaitOp())


def griddepcontrol_launch_dependents() -> None:
    """Lets the next kernel begin, if it is launched with `programmatic=True`, once all blocks got here (sm_90)."""
    emit(ptx.LaunchDependentsOp())


def nanosleep(nanoseconds: "Int | int") -> None:
    """Suspends the thread for about this time."""
    emit(ptx.NanosleepOp(convert(nanoseconds, Int32).ssa))


def atomic(kind: str, at: Address, value: Scalar, order: str | None = None, scope: str | None = None) -> Any:
    """Changes memory atomically and returns the old value: `atomic("add", t.ptr(i), 1)`.

    `add`, `min`, `max`, `umin`, `umax`, `and`, `or`, `xor` and `exch` of integers of 32 and 64 bits, `add` of floats,
    `exch` of those of 32 and 64 bits; `min` of unsigned integers is `umin`. The order is relaxed unless it is
    `acquire`, `release` or `acq_rel`, the scope that of the GPU.
    """
    operand = convert(value, address_of(at).dtype).ssa
    kind = of_sign(kind, at.dtype)
    bits = {32: i32, 64: i64}.get(at.dtype.bits) if kind == "exch" and at.dtype.kind == "float" else None
    if bits is None:
        return wrap(emit(ptx.AtomOp(kind, at.ssa, operand, order, scope)).results[0], at.dtype)
    before = emit(ptx.AtomOp(kind, at.ssa, insert_value(arith.BitcastOp(operand, bits)), order, scope)).results[0]
    return wrap(insert_value(arith.BitcastOp(before, at.dtype.ir)), at.dtype)


def atomic_add(at: Address, value: Scalar, order: str | None = None, scope: str | None = None) -> Any:
    """Adds to memory atomically and returns the old value."""
    return atomic("add", at, value, order, scope)


def atomic_max(at: Address, value: Scalar, order: str | None = None, scope: str | None = None) -> Any:
    """Writes the larger of memory and a value atomically and returns the old value."""
    return atomic("max", at, value, order, scope)


def atomic_min(at: Address, value: Scalar, order: str | None = None, scope: str | None = None) -> Any:
    """Writes the smaller of memory and a value atomically and returns the old value."""
    return atomic("min", at, value, order, scope)


def atomic_exch(at: Address, value: Scalar, order: str | None = None, scope: str | None = None) -> Any:
    """Writes a value atomically and returns the old value."""
    return atomic("exch", at, value, order, scope)


def atomic_cas(at: Address, compare: Scalar, value: Scalar, order: str | None = None, scope: str | None = None) -> Any:
    """Writes a value atomically if memory holds `compare`, and returns the old value."""
    expected, new = convert(compare, address_of(at).dtype), convert(value, at.dtype)
    return wrap(emit(ptx.AtomCasOp(at.ssa, expected.ssa, new.ssa, order, scope)).results[0], at.dtype)


def red(kind: str, at: Address, value: Scalar, order: str | None = None, scope: str | None = None) -> None:
    """Changes memory atomically, like `atomic`, without returning the old value."""
    operand = convert(value, address_of(at).dtype)
    emit(ptx.RedOp(of_sign(kind, at.dtype), at.ssa, operand.ssa, order, scope))


def load_acquire(at: Address, scope: str | None = None) -> Any:
    """Reads an element; the writes before its release are visible afterwards."""
    return wrap(emit(ptx.LoadAcquireOp(address_of(at).ssa, at.dtype.ir, scope)).results[0], at.dtype)


def store_release(at: Address, value: Scalar, scope: str | None = None) -> None:
    """Writes an element; the thread's earlier writes come before it."""
    emit(ptx.StoreReleaseOp(convert(value, address_of(at).dtype).ssa, at.ssa, scope))


def mbarrier_init(at: Address, count: "Int | int") -> None:
    """Makes eight bytes of shared memory a barrier whose phases end with `count` arrivals."""
    emit(ptx.MbarrierInitOp(_own(at), convert(count, Int32).ssa))


def mbarrier_arrive(at: Address, peer_cta_rank: "Int | int | None" = None, scope: str | None = None) -> None:
    """Arrives at a barrier in shared memory and does not wait: at the one of the block, or of the block of this rank in
    the cluster (sm_90). With the scope `cta`, an arrival at another block says only that memory has been read, and
    takes much less time.
    """
    emit(ptx.MbarrierArriveOp(_of_peer(at, peer_cta_rank), scope=scope))


def mbarrier_expect_tx(at: Address, bytes: "Int | int", peer_cta_rank: "Int | int | None" = None) -> None:
    """Adds to the bytes of asynchronous copies that the phase of a barrier in shared memory expects; at a rank as
    `mbarrier_arrive`.
    """
    emit(ptx.MbarrierExpectTxOp(_of_peer(at, peer_cta_rank), convert(bytes, Int32).ssa))


def mbarrier_arrive_and_expect_tx(at: Address, bytes: "Int | int", peer_cta_rank: "Int | int | None" = None) -> None:
    """Adds to the bytes that the phase expects, then arrives at the barrier and does not wait; at a rank as
    `mbarrier_arrive`.
    """
    emit(ptx.MbarrierArriveExpectTxOp(_of_peer(at, peer_cta_rank), convert(bytes, Int32).ssa))


def mbarrier_complete_tx(at: Address, bytes: "Int | int", peer_cta_rank: "Int | int | None" = None) -> None:
    """Counts bytes as moved, as an asynchronous copy does by itself; at a rank as `mbarrier_arrive`."""
    emit(ptx.MbarrierCompleteTxOp(_of_peer(at, peer_cta_rank), convert(bytes, Int32).ssa))


def mbarrier_wait(at: Address, parity: "Int | int", scope: str | None = None) -> None:
    """Waits until the phase of this parity, 0 for the first, of a barrier in shared memory has ended. With the scope
    `cluster` (sm_90), what threads of other blocks did before they arrived is visible then.
    """
    emit(ptx.MbarrierWaitOp(_own(at), convert(parity, Int32).ssa, scope))


def mbarrier_try_wait(at: Address, parity: "Int | int", scope: str | None = None) -> Bool:
    """Whether the phase of this parity of a barrier in shared memory has ended, after a short wait at most (sm_90);
    with a scope as `mbarrier_wait`.
    """
    return wrap(emit(ptx.MbarrierTryWaitOp(_own(at), convert(parity, Int32).ssa, scope)).results[0])


def mbarrier_test_wait(at: Address, parity: "Int | int", scope: str | None = None) -> Bool:
    """As `mbarrier_try_wait`, without a wait."""
    return wrap(emit(ptx.MbarrierTestWaitOp(_own(at), convert(parity, Int32).ssa, scope)).results[0])


def _own(at: Address) -> SSAValue:
    """The address of an mbarrier of the own block. Raises TilefoldError (E5002) for that of a peer."""
    if address_of(at).ssa.type == ptx.SHARED_CLUSTER:
        hint = "wait in the block that has the mbarrier, and let threads of others arrive there"
        raise TilefoldError(Code.BUILD_VALUE, "a thread initialises and awaits mbarriers of its own block only", hint)
    return at.ssa


def _of_peer(at: Address, rank: "Int | int | None") -> SSAValue:
    """The address of an mbarrier: as it is, or that of the same mbarrier in the block of a rank."""
    if rank is None:
        return address_of(at).ssa
    return emit(ptx.MapaOp(_own(at), convert(rank, Int32).ssa)).results[0]


def cp_async_mbarrier_arrive(at: Address) -> None:
    """Arrives at a barrier in shared memory when the thread's asynchronous copies so far are finished."""
    emit(ptx.CpAsyncMbarrierArriveOp(address_of(at).ssa))


def cp_async_bulk_load(to: Address, source: Address, bytes: "Int | int", mbarrier: Address) -> None:
    """Starts a copy of contiguous bytes from global to shared memory, which an mbarrier counts when they are there
    (sm_90). Addresses and size are multiples of 16.
    """
    size = convert(bytes, Int32).ssa
    emit(ptx.BulkLoadOp(address_of(to).ssa, address_of(source).ssa, size, address_of(mbarrier).ssa))


def cp_async_bulk_store(to: Address, source: Address, bytes: "Int | int") -> None:
    """Starts a copy of contiguous bytes from shared to global memory, as a part of the thread's bulk group (sm_90).
    Addresses and size are multiples of 16; `fence_proxy_async` must lie after the writes of the bytes.
    """
    emit(ptx.BulkStoreOp(address_of(to).ssa, address_of(source).ssa, convert(bytes, Int32).ssa))


def cp_async_bulk_prefetch(source: Address, bytes: "Int | int") -> None:
    """Lets the L2 cache fetch contiguous bytes of global memory (sm_90). Address and size are multiples of 16."""
    emit(ptx.BulkPrefetchOp(address_of(source).ssa, convert(bytes, Int32).ssa))


def cp_async_bulk_commit_group() -> None:
    """Makes a bulk group of the bulk copies to global memory that the thread began since the last one (sm_90)."""
    emit(ptx.BulkCommitGroupOp())


def cp_async_bulk_wait_group(n: int, read: bool = False) -> None:
    """Waits until at most the last `n` bulk groups of the thread are unfinished; with `read`, until the others have
    read the shared memory that they copy (sm_90).
    """
    emit(ptx.BulkWaitGroupOp(_static(n, "the number of groups"), read))


def fence_proxy_async() -> None:
    """A fence between the proxies: bulk copies started after it see what was written before it (sm_90)."""
    emit(ptx.FenceProxyAsyncOp())


def fence_proxy(kind: str, space: str | None = None) -> None:
    """A fence between the proxies, of shared memory (`"async.shared", space="cta"`), of global memory
    (`"async.global"`), or of both (`"async"`): bulk copies and matrix instructions after it see what was written there
    before it (sm_90).
    """
    words: dict[tuple[str, str | None], str | None]
    words = {("async", None): None, ("async.shared", "cta"): "shared", ("async.global", None): "global"}
    if (kind, space) not in words:
        hint = 'write "async", "async.global", or "async.shared" with space="cta"'
        raise TilefoldError(Code.BUILD_VALUE, f"there is no fence of the proxy {kind!r} with the space {space!r}", hint)
    emit(ptx.FenceProxyAsyncOp(words[kind, space]))


def setmaxregister_increase(registers: int) -> None:
    """Waits until the block has enough registers for each thread of the warpgroup to have so many, a multiple of 8 from
    24 to 256 (sm_90a).
    """
    emit(ptx.SetMaxNRegOp(_static(registers, "the number of registers"), inc=True))


def setmaxregister_decrease(registers: int) -> None:
    """Leaves each thread of the warpgroup so many registers, a multiple of 8 from 24 to 256, and gives the others back
    to the block (sm_90a).
    """
    emit(ptx.SetMaxNRegOp(_static(registers, "the number of registers"), inc=False))


_APPROXIMATIONS = {
    "ex2": ptx.Ex2Op, "lg2": ptx.Lg2Op, "rcp": ptx.RcpOp, "rsqrt": ptx.RsqrtOp, "sqrt": ptx.SqrtOp, "sin": ptx.SinOp,
    "cos": ptx.CosOp, "tanh": ptx.TanhOp,
}  # fmt: skip


def approx(function: str, x: Any, ftz: bool = False) -> Any:
    """An approximation by one instruction: `ex2`, `lg2`, `rcp`, `rsqrt`, `sqrt`, `sin`, `cos` or `tanh`, of a Float32
    or of the elements of a fragment. With `ftz`, subnormal numbers count as zero.
    """
    op = _APPROXIMATIONS.get(function)
    if op is None:
        listed = ", ".join(_APPROXIMATIONS)
        raise TilefoldError(Code.BUILD_VALUE, f"unknown approximation '{function}'", f"write one of {listed}")
    if isinstance(x, Vec):
        return elementwise(partial(_approximated, op, ftz), x.dtype, x)
    return _approximated(op, ftz, x)


def _approximated(op: type[ApproximateOp], ftz: bool, x: Scalar) -> Any:
    value = x if isinstance(x, Value) else convert(x, Float32)
    return wrap(emit(op(value.ssa, ftz)).results[0], value.dtype)


def address_of(x: Any) -> Address:
    """An address. Raises TilefoldError (E5002) for anything else."""
    if not isinstance(x, Address):
        raise TilefoldError(
            Code.BUILD_VALUE, f"expected the address of an element, got {type(x).__name__}", "write tensor.ptr(i, j)"
        )
    return x
