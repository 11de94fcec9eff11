# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Thread and block indices, barriers, fences, asynchronous copies and approximations."""

from functools import partial
from typing import TypeVar, cast

from xdsl.dialects import arith
from xdsl.dialects import gpu as xdsl_gpu
from xdsl.dialects.builtin import IndexType, i32
from xdsl.ir import SSAValue

from ...base.errors import Code, TilefoldError
from ...base.spaces import GMEM, SMEM
from ...base.target import MAX_BLOCK, WARP
from ...dialects import gpu, ptx
from ...dialects.ptx.approx import ApproximateOp
from ...layout.algebra.integers import Unknown
from ...passes.analysis.ranges import register_ranges
from ..scalars.dtypes import Float32, Int32
from ..scalars.operators import Operand
from ..scalars.values import Int, Scalar, Value, convert, wrap
from ..tensors.fragments import Vec, elementwise
from ..tensors.tensors import Address, Pointer, address_of
from ..tracing.state import emit, host, insert_value

Place = Address | Pointer
T = TypeVar("T", int, "int | None")


def _static(x: T, subject: str) -> T:
    if x is None or type(x) is int:
        return x
    if not isinstance(x, int) or type(x) is bool:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TilefoldError(Code.BUILD_RUN_TIME, f"{subject} must be static, but it is {x!r}", "pass a Python number")
    return cast("T", int(x))  # of an IntEnum, as programs name their barriers


def coordinates(op: type[gpu.CoordinateOp]) -> tuple[Int, Int, Int]:
    """The coordinates that an operation reads, each an Int32: x, y, z."""
    ranges = register_ranges(MAX_BLOCK, None)

    def read_dimension(dimension: xdsl_gpu.DimensionEnum) -> Int:
        made = op.create(properties={"dimension": xdsl_gpu.DimensionAttr(dimension)}, result_types=[IndexType()])
        least, most = ranges[made.register]
        register = insert_value(made)
        if (side := host()) is not None:
            side.effect(made)  # the host has no threads, and says so
        ssa = insert_value(arith.IndexCastOp(register, i32))
        return Int(ssa, Int32, Unknown(32), (least if least == 0 else 1, most))

    x, y, z = (read_dimension(dimension) for dimension in xdsl_gpu.DimensionEnum)
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


def sync_threads() -> None:
    """Waits until all threads of the block arrive; then sees their earlier writes."""
    barrier()


def barrier(*, barrier_id: "Int | int | None" = None, number_of_threads: int | None = None) -> None:
    """Waits until all threads of the block, or `number_of_threads` of them, have reached a barrier, 0 by default; then
    sees their earlier writes. The number of the barrier may be a value that is the same in all threads of a warp.
    """
    number, offset = _barrier(0 if barrier_id is None else barrier_id)
    emit(ptx.BarSyncOp(number, _static(number_of_threads, "the number of threads"), offset))


def barrier_arrive(*, barrier_id: "Int | int", number_of_threads: int, aligned: bool = True) -> None:
    """Arrives at a barrier of `number_of_threads` threads without waiting. The threads of a warp arrive together:
    TilefoldError (E5002) unless `aligned`.
    """
    if not aligned:
        raise TilefoldError(Code.BUILD_VALUE, "threads of a warp arrive one by one", "use an mbarrier for that")
    number, offset = _barrier(barrier_id)
    emit(ptx.BarArriveOp(number, _static(number_of_threads, "the number of threads"), offset))


def _barrier(number: "Int | int") -> tuple[int, SSAValue | None]:
    """The number of a barrier: a static one, or 0 and a value."""
    if isinstance(number, Int):
        return 0, convert(number, Int32).ssa
    return _static(number, "the number of a barrier"), None


def sync_warp(mask: int = -1) -> None:
    """Waits for the lanes of a mask; then sees their earlier writes."""
    emit(ptx.BarWarpSyncOp(_static(mask, "a mask of lanes")))


def cp_async_commit_group() -> None:
    """Commits the asynchronous copies that the thread has started since the last commit to a group."""
    emit(ptx.CpAsyncCommitGroupOp())


def cp_async_wait_group(n: int) -> None:
    """Waits until at most the last `n` groups of asynchronous copies are unfinished."""
    emit(ptx.CpAsyncWaitGroupOp(_static(n, "the number of groups")))


def cp_async_wait_all() -> None:
    """Waits until all asynchronous copies of the thread are finished."""
    emit(ptx.CpAsyncWaitAllOp())


def fence(order: str = "acq_rel", scope: str = "gpu") -> None:
    """A memory fence, `acq_rel` or `sc`, in the scope `cta`, `cluster`, `gpu` or `sys`."""
    emit(ptx.FenceOp(order, scope=None if scope == "gpu" else scope))


def fence_acq_rel_cta() -> None:
    """`fence("acq_rel", "cta")`."""
    fence(scope="cta")


def fence_acq_rel_cluster() -> None:
    """`fence("acq_rel", "cluster")` (sm_90)."""
    fence(scope="cluster")


def fence_acq_rel_gpu() -> None:
    """`fence("acq_rel", "gpu")`."""
    fence()


def fence_acq_rel_sys() -> None:
    """`fence("acq_rel", "sys")`."""
    fence(scope="sys")


def griddepcontrol_wait() -> None:
    """Waits for earlier work in the stream, if the launch has `use_pdl=True` (sm_90)."""
    emit(ptx.GridDependencyWaitOp())


def griddepcontrol_launch_dependents() -> None:
    """Permits the next kernel to begin, if its launch has `use_pdl=True`, once all blocks have called this (sm_90)."""
    emit(ptx.LaunchDependentsOp())


def nanosleep(sleep_time: "Int | int") -> None:
    """Suspends the thread for about this time, in nanoseconds."""
    emit(ptx.NanosleepOp(convert(sleep_time, Int32).ssa))


def cp_async_bulk_load(to: Place, source: Place, bytes: "Int | int", mbarrier: Place) -> None:
    """Starts a copy of contiguous bytes from global to shared memory; an mbarrier counts the bytes on arrival (sm_90).
    Addresses and size are multiples of 16.
    """
    size = convert(bytes, Int32).ssa
    emit(ptx.BulkLoadOp(address_of(to).ssa, address_of(source).ssa, size, address_of(mbarrier).ssa))


def cp_async_bulk_store(to: Place, source: Place, bytes: "Int | int") -> None:
    """Starts a copy of contiguous bytes from shared to global memory, as a part of the thread's bulk group (sm_90).
    Addresses and size are multiples of 16; `fence_proxy("async")` must lie after the writes of the bytes.
    """
    emit(ptx.BulkStoreOp(address_of(to).ssa, address_of(source).ssa, convert(bytes, Int32).ssa))


def cp_async_bulk_prefetch(source: Place, bytes: "Int | int") -> None:
    """Prefetches contiguous bytes of global memory into the L2 cache (sm_90). Address and size are multiples of 16."""
    emit(ptx.BulkPrefetchOp(address_of(source).ssa, convert(bytes, Int32).ssa))


def prefetch(addr: Place, *, tensormap: bool = False) -> None:
    """Prefetches the tensor map at an address of global memory into a cache (PTX ISA, prefetch). Raises TilefoldError
    (E5002) without `tensormap`.
    """
    if not tensormap:
        hint = "write tensormap=True for a map, or cute.prefetch for tiles"
        raise TilefoldError(Code.BUILD_VALUE, "single lines of a cache cannot be fetched", hint)
    map = emit(ptx.CvtaTensorMapOp(address_of(addr).ssa)).results[0]
    emit(ptx.PrefetchTensorMapOp(map))


def cp_async_bulk_commit_group() -> None:
    """Commits the bulk copies to global memory that the thread has started since the last commit to a bulk group
    (sm_90).
    """
    emit(ptx.BulkCommitGroupOp())


def cp_async_bulk_wait_group(group: int, read: bool = False) -> None:
    """Waits until at most the last `group` bulk groups of the thread are unfinished; with `read`, until the others have
    read the shared memory that they copy (sm_90).
    """
    emit(ptx.BulkWaitGroupOp(_static(group, "the number of groups"), read))


class ProxyKind:
    """The kinds of `fence_proxy` by name, as CuTe programs write them."""

    async_ = "async"
    async_shared = "async.shared"
    async_global = "async.global"


class SharedSpace:
    """The spaces of `fence_proxy` by name."""

    shared_cta = "cta"


def fence_proxy(kind: str, space: str | None = None, use_intrinsic: bool | None = None) -> None:
    """A fence between the proxies, of shared memory (`"async.shared", space="cta"`), of global memory
    (`"async.global"`), or of both (`"async"`): bulk copies and matrix instructions after it see the writes before it
    (sm_90). It is the same whatever `use_intrinsic`.
    """
    words: dict[tuple[str, str | None], str | None]
    words = {("async", None): None, ("async.shared", "cta"): SMEM.ptx, ("async.global", None): GMEM.ptx}
    if (kind, space) not in words:
        hint = 'write "async", "async.global", or "async.shared" with space="cta"'
        raise TilefoldError(Code.BUILD_VALUE, f"there is no fence of the proxy {kind!r} with the space {space!r}", hint)
    emit(ptx.FenceProxyAsyncOp(words[kind, space]))


def fence_view_async_shared() -> None:
    """`fence_proxy("async.shared", space="cta")`."""
    fence_proxy("async.shared", "cta")


def setmaxregister_increase(reg_count: int) -> None:
    """Waits until the block has enough registers for each thread of the warpgroup to have `reg_count`, a multiple of 8
    from 24 to 256 (sm_90a). A kernel without `max_registers` begins with at most that number.
    """
    emit(ptx.SetMaxNRegOp(_static(reg_count, "the number of registers"), inc=True))


def setmaxregister_decrease(reg_count: int) -> None:
    """Leaves each thread of the warpgroup `reg_count` registers, a multiple of 8 from 24 to 256, and gives the
    others back to the block (sm_90a).
    """
    emit(ptx.SetMaxNRegOp(_static(reg_count, "the number of registers"), inc=False))


warpgroup_reg_alloc, warpgroup_reg_dealloc = setmaxregister_increase, setmaxregister_decrease  # the names of before


APPROXIMATIONS = {
    "ex2": ptx.Ex2Op, "lg2": ptx.Lg2Op, "rcp": ptx.RcpOp, "rsqrt": ptx.RsqrtOp, "sqrt": ptx.SqrtOp, "sin": ptx.SinOp,
    "cos": ptx.CosOp, "tanh": ptx.TanhOp,
}  # fmt: skip


def approx(function: str, x: Operand, ftz: bool = False) -> Operand:
    """Approximates `ex2`, `lg2`, `rcp`, `rsqrt`, `sqrt`, `sin`, `cos` or `tanh` by one instruction, for a Float32 or
    the elements of a fragment. With `ftz`, subnormal numbers count as zero.
    """
    op = APPROXIMATIONS.get(function)
    if op is None:
        listed = ", ".join(APPROXIMATIONS)
        raise TilefoldError(Code.BUILD_VALUE, f"unknown approximation '{function}'", f"write one of {listed}")
    if isinstance(x, Vec):
        return elementwise(partial(_approximate, op, ftz), x.dtype, x)
    return _approximate(op, ftz, x)


def rcp_approx(a: object) -> Operand:
    """1 divided by a Float32, or by the elements of a fragment, with an error of 1 ulp: `approx("rcp", a)`."""
    return approx("rcp", a)


def _approximate(op: type[ApproximateOp], ftz: bool, x: Scalar) -> Operand:
    value = x if isinstance(x, Value) else convert(x, Float32)
    return wrap(emit(op(value.ssa, ftz)).results[0], value.dtype)
