# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forms of CuTe's public vocabulary: staged layouts of TMA copies, moved swizzled pointers, text by accesses."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tests.kernels.harness import STAGES
from tilefold import cute
from tilefold.cute.nvgpu import cpasync
from tilefold.cutlass.experimental import primitives as prims
from tilefold.cutlass.mlir.dialects import nvvm

TILE, SWIZZLE = (64, 64), cute.make_swizzle(3, 4, 3)


def stages_of(count: int, swizzled: bool) -> Any:
    plain = cute.make_layout((*TILE, count), stride=(64, 1, 64 * 64))
    return cute.make_composed_layout(SWIZZLE, 0, plain) if swizzled else plain


@cute.kernel
def through_stages(A: cute.Tensor, B: cute.Tensor, swizzled: cute.Constexpr[bool], moved: cute.Constexpr[bool]):
    """B is A by two stages in shared memory, of which the second is a pointer's that is moved."""
    layout, t = stages_of(2, swizzled), cute.arch.thread_idx()[0]
    load, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), A, layout, TILE)
    memory = cute.make_smem_tensor((2 * 64 * 64 * 2 + 1024,), cute.Uint8, 1024)
    full = cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)
    outer = layout.outer if cute.const_expr(swizzled) else layout
    swizzle = SWIZZLE if cute.const_expr(swizzled) else None
    if cute.const_expr(moved):
        base = cute.recast_ptr(memory.iterator + 1024, swizzle, cute.Float16)
    else:
        base = cute.recast_ptr(memory.iterator, swizzle, cute.Float16)
    s = cute.make_tensor(base, outer)
    g = cute.group_modes(cute.local_tile(coords, TILE, (0, None)), 0, 2)
    to, source = cpasync.tma_partition(load, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), g)
    if t == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(full, 2 * 64 * 64 * 2)
        for stage in cute.range_constexpr(2):
            cute.copy(load, source[None, stage], to[None, stage], tma_bar_ptr=full)
    cute.arch.sync_threads()
    cute.arch.mbarrier_wait(full, 0)
    for stage in cute.range(2):
        pointer = base + stage * 64 * 64
        tile = cute.make_tensor(pointer, cute.make_layout(TILE, stride=(64, 1)))
        for column in cute.range(64):
            B[t, stage * 64 + column] = tile[t, column]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("swizzled", [False, True])
@pytest.mark.sampled(9)
def test_stages_by_one_map_and_moved_pointers(swizzled: bool, moved: bool, stage: str) -> None:
    A = np.random.default_rng(0).random((64, 128)).astype(np.float16)
    B = np.zeros_like(A)
    through_stages(A, B, swizzled, moved).launch(grid=1, block=64, device="sim", stage=stage)
    assert np.array_equal(A, B)


def nothing(*operands: Any) -> tuple[()]:
    """The results of an instruction that has none."""
    return ()


@cute.kernel
def texts(A: cute.Tensor, B: cute.Tensor, form: cute.Constexpr[Any]):
    t = cute.arch.thread_idx()[0]
    a, b = A[t, 0], A[t, 1]
    B[t, 0] = form("max.s32 {$w0}, {$r0}, {$r1};", write_only_types=[cute.Int32], read_only_args=[a, b])
    low, high = form(
        "{ min.s32 {$w0}, {$r0}, {$r1}; add.s32 $1, $2, $3; }",
        write_only_types=[cute.Int32, cute.Int32],
        read_only_args=(a, b),
        force_register_args=(0,),
    )
    B[t, 1] = low
    B[t, 2] = high
    if cute.const_expr(form("bar.warp.sync {$r0};", read_only_args=[0xFFFF], predicate=None, sim=nothing) is None):
        B[t, 3] = 7


@pytest.mark.parametrize("form", [cute.arch.inline_ptx, nvvm.inline_ptx, prims.inline_ptx])
def test_text_by_the_accesses_of_its_registers(form: Any) -> None:
    A = np.random.default_rng(0).integers(-99, 99, (32, 2)).astype(np.int32)
    B = np.zeros((32, 4), np.int32)
    texts(A, B, form).launch(grid=1, block=32, device="sim")
    assert np.array_equal(B, np.stack([A.max(1), A.min(1), A.sum(1), np.full(32, 7)], axis=1))


def test_a_predicate_guards_one_instruction() -> None:
    @cute.kernel
    def stored(A: cute.Tensor, single: cute.Constexpr[bool]):
        t = cute.arch.thread_idx()[0]
        more = "" if cute.const_expr(single) else " membar.gl;"
        text = "st.global.b32 [{$r0}], {$r1};" + more
        cute.arch.inline_ptx(text, read_only_args=[A.iterator + t, t], predicate=t < 7, sim=nothing)

    A = np.zeros(32, np.int32)
    assert "@decides st.global.b32" in stored(A, True).build(32).ptx("sm_90")
    with pytest.raises(TilefoldError, match="one instruction without results"):
        stored(A, False).build(32)


@pytest.mark.parametrize(("given", "said"), [({"read_write_args": [1]}, "both read and written")])
def test_operands_that_are_read_and_written_are_refused(given: Any, said: str) -> None:
    @cute.kernel
    def changed(A: cute.Tensor):
        cute.arch.inline_ptx("add.s32 {$rw0}, {$rw0}, 1;", **given)

    with pytest.raises(TilefoldError, match=said) as caught:
        changed(np.zeros(32, np.int32)).build(32)
    assert caught.value.code == "E5002"
