# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The end of kernels that multiply into tensor memory: sums go to global memory, and the tensor memory is freed."""

from typing import Any

from tilefold import cute
from tilefold.cute.nvgpu import tcgen05
from tilefold.cutlass.experimental import primitives as prims


@cute.jit
def copy_result(acc: Any, D: Any, start: Any, columns: int) -> None:
    """Copies the sums of a tile to D, by 32 numbers of a row in each thread."""
    load = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32, tcgen05.Pack.NONE), cute.Float32)
    out = tcgen05.make_tmem_copy(load, acc)
    mine = out.get_slice(cute.arch.thread_idx()[0])
    tDtC, tDgD = mine.partition_S(acc), mine.partition_D(D)
    held = cute.make_rmem_tensor(tDgD.shape, cute.Float32)
    cute.copy(out, tDtC, held)
    cute.arch.fence_view_async_tmem_load()
    cute.autovec_copy(held, tDgD)
    prims.tcgen05_fence(prims.Tcgen05Fence.BEFORE_THREAD_SYNC)
    cute.arch.sync_threads()
    if cute.arch.warp_idx() == 0:
        cute.arch.dealloc_tmem(start, columns)


@cute.jit
def store_rows(D: Any, tile: Any, start: Any, columns: int) -> None:
    """Stores the rows of D, one by each thread, by loads of 8 numbers from the address `start`."""
    t, warp = cute.arch.thread_idx()[0], cute.arch.warp_idx()
    base = prims.TmemAddr(start)
    for n in cute.range_constexpr(0, D.shape[1], 8):
        row = prims.TmemAddr.from_row_col(base.row_id + warp * 32, base.col_id + n).as_ptr(cute.Float32)
        values = prims.tcgen05_ld("32x32b", row, num=8)
        prims.tcgen05_wait(prims.Tcgen05Wait.LOAD)
        for i in cute.range_constexpr(8):
            D[t, n + i] = values[i]
    prims.tcgen05_fence(prims.Tcgen05Fence.BEFORE_THREAD_SYNC)
    cute.arch.barrier()
    if warp == 0:
        prims.tcgen05_dealloc(tile, columns)
