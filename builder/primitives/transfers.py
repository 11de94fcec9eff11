# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Primitives that copy between memories: cp.async, bulk copies, matrices of a warp.

Exchanges between the lanes of a warp, and atomic changes of memory, are here, too.
"""

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from ...dialects import ptx
from ..instructions import arch, atomics, warp
from ..scalars.casts import from_vector, in_vector
from ..scalars.dtypes import DTYPES, Int32, Uint32
from ..scalars.values import Scalar, as_value, convert, wrap
from ..tensors.fragments import unary_of
from ..tensors.raw_pointers import Address
from ..tracing.state import emit
from .barriers import address
from .enums import (
    AtomicOp,
    CpReduceOp,
    CpReduceType,
    LoadShape,
    LoadSrcFormat,
    MemOrder,
    MemScope,
    MMALayout,
    ReductionKind,
    ReductionOp,
    ReductionType,
    SharedSpace,
    Shfl,
    StoreShape,
    VoteSync,
)

cp_async_commit_group = arch.cp_async_commit_group
cp_async_wait_group = arch.cp_async_wait_group
cp_async_bulk_commit_group = arch.cp_async_bulk_commit_group
cp_async_bulk_wait_group = arch.cp_async_bulk_wait_group


def cp_async_shared_global(dst: object, src: object, size: int, modifier: str = "ca", src_size: Any = None) -> None:
    """Starts a copy of 4, 8 or 16 bytes from global to shared memory, by `cg` only through L2. With `src_size`, only
    that number of bytes is read, and the others become zero.
    """
    read = None if src_size is None else convert(src_size, Int32).ssa
    emit(ptx.CpAsyncOp(modifier, size, address(dst).ssa, address(src).ssa, read))


def cp_async_bulk_shared_cluster_global(dst: Any, src: Any, mbar: Any, size: Any) -> None:
    """Starts a copy of contiguous bytes from global to shared memory, which an mbarrier counts (sm_90)."""
    arch.cp_async_bulk_load(address(dst), address(src), size, address(mbar))


def cp_async_bulk_shared_cluster_shared_cta(dst: Any, src: Any, mbar: Any, size: Any) -> None:
    """Starts a copy of contiguous bytes from the block's shared memory to that of a block of the cluster, whose
    mbarrier counts them: `dst` and `mbar` are places that `mapa` gives (PTX ISA, cp.async.bulk; sm_90).
    """
    emit(ptx.BulkSendOp(address(dst).ssa, address(src).ssa, convert(size, Int32).ssa, address(mbar).ssa))


def cp_async_bulk_global_shared_cta(dst: Any, src: Any, size: Any) -> None:
    """Starts a copy of contiguous bytes from shared to global memory, in the thread's bulk group (sm_90)."""
    arch.cp_async_bulk_store(address(dst), address(src), size)


def cp_reduce_async_bulk_global_shared_cta(
    dst: object, src: object, size: Scalar, *, op: CpReduceOp, type: CpReduceType, noftz: bool = False
) -> None:
    """Starts to combine contiguous numbers of shared memory with those of global memory, one by one and atomically, in
    the thread's bulk group (PTX ISA, cp.reduce.async.bulk; sm_90). Sums of f16 and bf16 keep subnormal numbers,
    whatever `noftz` is.
    """
    count = convert(size, Int32).ssa
    emit(ptx.BulkReduceOp(f"{op.value}.{type.value}", address(dst).ssa, address(src).ssa, count))


def cp_async_bulk_prefetch(src: Any, size: Any) -> None:
    """Prefetches contiguous bytes of global memory into the L2 cache (sm_90)."""
    arch.cp_async_bulk_prefetch(address(src), size)


def ldmatrix(
    ptr: object,
    num: int,
    layout: MMALayout = MMALayout.ROW,
    *,
    shape: LoadShape = LoadShape.M8N8,
    src_format: LoadSrcFormat = LoadSrcFormat.B16,
) -> list[Any]:
    """Loads matrices, `num` registers of each lane, transposed by COL. Each lane points to a row (PTX ISA, ldmatrix).
    The result is the list of the registers, each an Int32.
    """
    name = f"{shape.value}.{src_format.value}"
    registers_of_one = ptx.LdMatrixOp.SHAPES.get(name, (1,))[0]
    op = ptx.LdMatrixOp(max(1, num // registers_of_one), layout is MMALayout.COL, address(ptr).ssa, name)
    registers = emit(op).results[0]
    return [wrap(register, Int32) for register in from_vector(registers, op.registers)]


def stmatrix(
    ptr: object, registers: Sequence[Any], layout: MMALayout = MMALayout.ROW, *, shape: StoreShape = StoreShape.M8N8
) -> None:
    """Stores matrices, transposed by COL; each lane passes registers and points to a row (PTX ISA, stmatrix; sm_90)."""
    words = [convert(register, Uint32).ssa for register in registers]
    name = {StoreShape.M8N8: "m8n8.b16", StoreShape.M16N8: "m16n8.b8"}[shape]
    emit(ptx.StMatrixOp(len(words), layout is MMALayout.COL, in_vector(words), address(ptr).ssa, name))


def vote_sync(mask: object, predicate: object, kind: VoteSync) -> Any:
    """A vote of the lanes of a mask on a predicate: a predicate, or an Int32 with a bit for each lane (BALLOT)."""
    return getattr(warp, f"vote_{kind.value}_sync")(predicate, mask)


def shfl_sync(
    thread_mask: Scalar,
    val: Scalar,
    offset: Scalar,
    mask_and_clamp: Scalar,
    kind: Shfl,
    return_value_and_is_valid: bool = False,
) -> Any:
    """The value of another lane, by the operands of the instruction (PTX ISA, shfl.sync); with
    `return_value_and_is_valid` also whether the segment of the executing lane has it.
    """
    lane, control = convert(offset, Int32).ssa, convert(mask_and_clamp, Int32).ssa
    valid: list[Any] = []

    def word(ssa: SSAValue) -> SSAValue:
        result, has_lane = emit(
            ptx.ShflSyncValidOp(kind.value, ssa, lane, control, warp.lane_mask(thread_mask))
        ).results
        valid.append(wrap(has_lane))
        return result

    moved = warp.by_words(word, as_value(val))
    return (moved, valid[0]) if return_value_and_is_valid else moved


def redux_sync(value: Scalar, kind: ReductionKind, mask: object = warp.FULL_MASK, abs: bool = False) -> Any:
    """The Int32 or Uint32 of the lanes of a mask combined (sm_80); of Float32, by FMIN and FMAX only, compute
    capability 10.x. With `abs`, of absolute values.
    """
    operand = as_value(value)
    word = kind.value
    if operand.dtype.kind == "float":
        word = word.removeprefix("f")
    return warp.redux_sync(unary_of("abs", operand) if abs else operand, word, mask)


def red(
    op: ReductionOp,
    type: ReductionType,
    ptr: object,
    value: Scalar,
    *,
    mem_order: MemOrder = MemOrder.RELAXED,
    mem_scope: MemScope = MemScope.GPU,
) -> None:
    """Changes a number of memory atomically, and returns nothing (PTX ISA, red)."""
    at = Address(address(ptr).ssa, DTYPES[type.value])
    atomics.red(at, value, op=op.value, sem=mem_order.value, scope=mem_scope.value)


def atomicrmw(
    op: AtomicOp,
    ptr: Any,
    a: Any,
    *,
    mem_order: MemOrder | None = None,
    mem_scope: MemScope | None = None,
    syncscope: MemScope | None = None,
    space: SharedSpace | None = None,
) -> Any:
    """Changes the number at an address atomically and returns the old one (PTX ISA, atom). The number has the type of
    the memory, or of `a` where the pointer says none. `syncscope` is another name of `mem_scope`, and the address says
    which memory it is in, whatever `space` is.
    """
    order = None if mem_order is None else mem_order.value
    of_threads = syncscope if mem_scope is None else mem_scope
    scope = None if of_threads is None else of_threads.value
    return atomics.atomic(op.value.removeprefix("f"), ptr, a, order, scope)
