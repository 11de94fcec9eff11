# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Primitives that copy between memories: cp.async, bulk copies, matrices of a warp."""

from collections.abc import Sequence
from typing import Any

from ...dialects import ptx
from ..instructions import arch
from ..scalars.casts import from_vector, in_vector
from ..scalars.dtypes import Int32, Uint32
from ..scalars.values import Scalar, convert, wrap
from ..tracing.state import emit
from .barriers import address
from .enums import CpReduceOp, CpReduceType, LoadShape, LoadSrcFormat, MMALayout, StoreShape

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
