# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps that kernels in Python change: copies of tiles of tensors that the kernel chooses."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tests.kernels.harness import STAGES
from tilefold import cute
from tilefold.cute.nvgpu import cpasync
from tilefold.cute.runtime import make_ptr
from tilefold.cute.utils import TensorMapManager, TensorMapUpdateMode
from tilefold.cutlass.mlir.dialects import llvm

TILE = (16, 32)
ONE = cute.make_layout(1)


@cute.kernel
def halves(
    A: cute.Tensor,
    B: cute.Tensor,
    W: cute.Tensor,
    mode: cute.Constexpr[Any],
    fences: cute.Constexpr[bool],
    is_null: cute.Constexpr[bool] = False,
):
    """Copies a tile of each half of A, which is a tensor of its own with fewer rows, to B. The map that both begin with
    is that of the first half, or of a tensor without memory (`is_null`).
    """
    half = cute.arch.block_idx()[0]
    layout = cute.make_layout(TILE, stride=(32, 1))
    nowhere = make_ptr(cute.Float32, 0, cute.AddressSpace.gmem, assumed_align=16)
    begun = cute.make_tensor(nowhere, layout) if cute.const_expr(is_null) else A[None, None, 0]
    load, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), begun, layout, TILE)
    store, coords_B = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), B, layout, TILE)
    s = cute.group_modes(cute.make_smem_tensor(layout, cute.Float32, 128), 0, 2)
    own = cute.make_smem_tensor((16,), cute.Int64, 128)
    full = cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)
    manager = TensorMapManager(mode, 128)
    pointer = manager.get_tensormap_ptr(W.ptr(half, 0))
    place = own.ptr(0) if mode is TensorMapUpdateMode.SMEM else pointer
    manager.init_tensormap_from_atom(load, place, 1)
    manager.fence_tensormap_initialization()
    if cute.arch.thread_idx()[0] == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    manager.update_tensormap((A[None, None, half],), (load,), (pointer,), 1, (own.ptr(0),))
    cute.arch.sync_threads()
    if fences:
        manager.fence_tensormap_update(pointer)
    g = cute.group_modes(cute.local_tile(coords, TILE, (0, 0)), 0, 2)
    gB = cute.group_modes(cute.local_tile(coords_B, TILE, (half, 0)), 0, 2)
    to, source = cpasync.tma_partition(load, 0, ONE, s, g)
    back, target = cpasync.tma_partition(store, 0, ONE, s, gB)
    if cute.arch.thread_idx()[0] == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(full, 2048)
        cute.copy(load, source, to, tma_bar_ptr=full, tma_desc_ptr=pointer)
        cute.arch.mbarrier_wait(full, 0)
        cute.copy(store, back, target)
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0, read=True)


def arguments() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.random((16, 32, 2)).astype(np.float32), np.zeros((32, 32), np.float32), np.zeros((2, 16), np.int64)


def of_halves(a: np.ndarray) -> Any:
    """A in memory as two tensors of 16 rows, the second after the first."""
    return np.ascontiguousarray(np.moveaxis(a, 2, 0)).transpose(1, 2, 0)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("mode", TensorMapUpdateMode)
def test_maps_of_tensors_that_the_kernel_chooses(mode: TensorMapUpdateMode, stage: str) -> None:
    A, B, W = arguments()
    halves(of_halves(A), B, W, mode, True).launch(grid=2, block=64, device="sim", stage=stage)
    np.testing.assert_array_equal(B, np.concatenate([A[:, :, 0], A[:, :, 1]]))


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("mode", TensorMapUpdateMode)
def test_maps_that_begin_as_that_of_a_tensor_without_memory(mode: TensorMapUpdateMode, stage: str) -> None:
    A, B, W = arguments()
    halves(of_halves(A), B, W, mode, True, True).launch(grid=2, block=64, device="sim", stage=stage)
    np.testing.assert_array_equal(B, np.concatenate([A[:, :, 0], A[:, :, 1]]))


@pytest.mark.parametrize("stage", STAGES)
def test_a_map_without_its_fence_is_a_fault(stage: str) -> None:
    A, B, W = arguments()
    with pytest.raises(TilefoldError) as caught:
        halves(of_halves(A), B, W, TensorMapUpdateMode.GMEM, False).launch(grid=2, block=64, device="sim", stage=stage)
    assert caught.value.code == "E3216"
    assert "fence.proxy.tensormap::generic.acquire between them is missing" in str(caught.value)


def test_ptx() -> None:
    A, B, W = arguments()
    ptx = halves(of_halves(A), B, W, TensorMapUpdateMode.SMEM, True).build(64).ptx("sm_90a")
    assert ptx.count("tensormap.replace.tile.global_address.shared::cta") == 1
    assert ptx.count("tensormap.replace.tile.global_dim.shared::cta") == 2
    assert ptx.count("tensormap.replace.tile.global_stride.shared::cta") == 1
    assert ptx.count("tensormap.cp_fenceproxy") == 1
    assert ptx.count("fence.proxy.tensormap::generic.acquire.gpu") == 1
    assert ".local" not in ptx


def test_another_tensor_has_the_modes_of_the_map() -> None:
    @cute.kernel
    def other(A: cute.Tensor, B: cute.Tensor, W: cute.Tensor):
        op, layout = cpasync.CopyBulkTensorTileG2SOp(), cute.make_layout(TILE, stride=(32, 1))
        atom, _ = cpasync.make_tiled_tma_atom(op, B, layout, TILE)
        cpasync.update_tma_descriptor(atom, A, W.ptr(0, 0))

    A, B, W = arguments()
    with pytest.raises(TilefoldError, match="has other modes"):
        other(of_halves(A), B, W).build(32)


@cute.kernel
def rows_of_pairs(A: cute.Tensor, B: cute.Tensor, W: cute.Tensor, step: cute.Int32, one: cute.Int32):
    """Makes a map of bytes that of a tensor of 4 bits whose strides only the run knows, and copies a tile to B."""
    layout = cute.make_layout(TILE, stride=(32, 1))
    load, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), B, layout, TILE)
    s = cute.make_smem_tensor(layout, cute.Uint8, 128)
    full = cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)
    t = cute.arch.thread_idx()[0]
    if t == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
        halves = cute.recast_ptr(A.iterator, dtype=cute.Float4E2M1FN)
        cpasync.copy_tensormap(load, W.ptr(0))
        cpasync.update_tma_descriptor(
            load, cute.make_tensor(halves, cute.make_layout((16, 2 * step), stride=(2 * step, one))), W.ptr(0)
        )
        cpasync.fence_tma_desc_release()
    cute.arch.sync_threads()
    cpasync.fence_tma_desc_acquire(W.ptr(0))
    g = cute.group_modes(cute.local_tile(coords, TILE, (0, 0)), 0, 2)
    to, source = cpasync.tma_partition(load, 0, ONE, cute.group_modes(s, 0, 2), g)
    if t == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(full, 512)
        cute.copy(load, source, to, tma_bar_ptr=full, tma_desc_ptr=W.ptr(0))
    cute.arch.mbarrier_wait(full, 0)
    for i in cute.range_constexpr(16):
        B[i, t] = s[i, t]


@pytest.mark.parametrize("stage", STAGES)
def test_a_map_of_bytes_becomes_that_of_a_tensor_of_4_bits(stage: str) -> None:
    A = np.random.default_rng(1).integers(0, 256, (16, 48)).astype(np.uint8)
    B, W = np.zeros((16, 32), np.uint8), np.zeros(16, np.int64)
    rows_of_pairs(A, B, W, 48, 1).launch(grid=1, block=32, device="sim", stage=stage)
    np.testing.assert_array_equal(B, A[:, :32])


@cute.kernel
def copy_described(A: cute.Tensor, rows: cute.Int32, step: cute.Int32, B: cute.Tensor, W: cute.Tensor):
    """Puts the maps of tensors that only the kernel knows, of `rows` rows each, `step` elements after each other, into
    W, and copies a tile of each to B.
    """
    half, t = cute.arch.block_idx()[0], cute.arch.thread_idx()[0]
    tensor = cute.make_tensor(A.iterator + half * step, cute.make_layout((rows, 32), stride=(32, 1)))
    layout = cute.make_layout(TILE, stride=(32, 1))
    load, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), A, layout, TILE)
    s = cute.make_smem_tensor(layout, cute.Float32, 128)
    full = cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)
    if t == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    g = cute.group_modes(cute.local_tile(coords, TILE, (0, 0)), 0, 2)
    to, source = cpasync.tma_partition(load, 0, ONE, cute.group_modes(s, 0, 2), g)
    if t == 0:
        atom, _ = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), tensor, layout, TILE)
        cpasync.prefetch_descriptor(atom)  # of the map in the arguments, which the kernel changes in memory
        cpasync.copy_tensormap(atom, W.ptr(half, 0))
        cpasync.fence_tma_desc_release()
    cute.arch.sync_threads()
    cpasync.fence_tma_desc_acquire(W.ptr(half, 0))
    cute.arch.prefetch(W.ptr(half, 0), tensormap=True)
    if t == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(full, 2048)
        cute.copy(load, source, to, tma_bar_ptr=full, tma_desc_ptr=W.ptr(half, 0))
    cute.arch.mbarrier_wait(full, 0)
    for row in range(16):
        B[half * 16 + row, t] = s[row, t]


@pytest.mark.parametrize("stage", STAGES)
def test_maps_of_tensors_that_only_the_kernel_knows(stage: str) -> None:
    rng = np.random.default_rng(0)
    A, B, W = rng.random((20, 32)).astype(np.float32), np.zeros((32, 32), np.float32), np.zeros((2, 16), np.int64)
    copy_described(A, 10, 320, B, W).launch(grid=2, block=32, device="sim", stage=stage)
    expected = np.zeros((2, 16, 32), np.float32)
    expected[:, :10] = A.reshape(2, 10, 32)
    np.testing.assert_array_equal(B, expected.reshape(32, 32))


def test_a_tensor_that_only_the_kernel_knows_begins_at_16_bytes() -> None:
    A, B, W = np.zeros((20, 32), np.float32), np.zeros((32, 32), np.float32), np.zeros((2, 16), np.int64)
    with pytest.raises(TilefoldError, match="begins at the address") as error:
        copy_described(A, 10, 321, B, W).launch(grid=2, block=32, device="sim")
    assert error.value.code == "E0322"


def test_lines_of_a_cache_are_not_fetched() -> None:
    with pytest.raises(TilefoldError, match="single lines of a cache"):
        cute.arch.prefetch(None)  # pyright: ignore[reportArgumentType]


def test_the_coordinates_of_a_map_that_only_the_kernel_knows_are_refused() -> None:
    @cute.kernel
    def prefetched(A: cute.Tensor, rows: cute.Int32):
        tensor = cute.make_tensor(A.iterator, cute.make_layout((rows + cute.arch.block_idx()[0], 32), stride=(32, 1)))
        layout = cute.make_layout(TILE, stride=(32, 1))
        cpasync.prefetch_descriptor(
            cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), tensor, layout, TILE)[0]
        )

    with pytest.raises(TilefoldError, match="depends on values of the kernel"):
        prefetched(np.zeros((20, 32), np.float32), 10).build(32).ptx("sm_90a")


def test_a_class_of_a_program_extends_the_manager_as_a_dataclass() -> None:
    @dataclass(frozen=True)
    class Manager(TensorMapManager):
        warps: int = 1

    made = Manager(TensorMapUpdateMode.SMEM, 128, 4)
    assert (made.tensormap_update_mode, made.bytes_per_tensormap, made.warps) == (TensorMapUpdateMode.SMEM, 128, 4)


@cute.kernel
def with_fewer_rows(A: cute.Tensor, B: cute.Tensor, W: cute.Tensor, rows: cute.Int32, shared: cute.Constexpr[bool]):
    """Copies a tile of A by a map whose number of rows an instruction changes that is written as text."""
    t, layout = cute.arch.thread_idx()[0], cute.make_layout(TILE, stride=(32, 1))
    load, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), A, layout, TILE)
    s = cute.group_modes(cute.make_smem_tensor(layout, cute.Float32, 128), 0, 2)
    own = cute.make_smem_tensor((16,), cute.Int64, 128)
    full = cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)
    place = own.ptr(0) if shared else W.ptr(0)
    text = "tensormap.replace.tile.global_dim.{}.b1024.b32 [{}], 1, $1;"
    wide = "{\n\t.reg .b64 wide;\n\tcvt.u64.u32 wide, $0;\n\t" + text.format("shared::cta", "wide") + "\n\t}\n"
    if t < 32:
        cpasync.copy_tensormap(load, place)
        cute.arch.sync_warp()
        if t == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
            text, letters = (wide, "r,r") if shared else (text.format("global", "$0"), "l,r")
            llvm.inline_asm(None, [place.toint().ir_value(), rows.ir_value(), cute.Int32(1)], text, letters)
        cute.arch.sync_warp()
        if cute.const_expr(shared):
            cpasync.cp_fence_tma_desc_release(W.ptr(0), place)
        else:
            cpasync.fence_tma_desc_release()
    cute.arch.sync_threads()
    cpasync.fence_tma_desc_acquire(W.ptr(0))
    g = cute.group_modes(cute.local_tile(coords, TILE, (0, 0)), 0, 2)
    to, source = cpasync.tma_partition(load, 0, ONE, s, g)
    if t == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(full, 2048)
        cute.copy(load, source, to, tma_bar_ptr=full, tma_desc_ptr=W.ptr(0))
    cute.arch.mbarrier_wait(full, 0)
    for i in range(16):
        B[i, t] = s[i + 16 * t]


@pytest.mark.parametrize("shared", [False, True])
def test_text_changes_a_map(shared: bool) -> None:
    a, b = np.arange(1, 513, dtype=np.float32).reshape(16, 32), np.ones((16, 32), np.float32)
    with_fewer_rows(a, b, np.zeros(16, np.int64), 5, shared).launch(grid=1, block=32, device="sim")
    np.testing.assert_array_equal(b, np.where(np.arange(16)[:, None] < 5, a, 0))


@cute.kernel
def reused(A: cute.Tensor, B: cute.Tensor, W: cute.Tensor, waits: cute.Constexpr[int]):
    """Warp 0 copies three tiles of A by one map, the last after warp 1 has seen the first. Warp 3 changes the map when
    it has waited for the last `waits` of them.
    """
    layout = cute.make_layout(TILE, stride=(32, 1))
    load, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), A, layout, TILE)
    s = [cute.group_modes(cute.make_smem_tensor(layout, cute.Float32, 128), 0, 2) for _ in range(2)]
    full = [cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0) for _ in range(3)]
    empty = cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)
    manager = TensorMapManager(TensorMapUpdateMode.GMEM, 128)
    pointer, warp = W.ptr(0, 0), cute.arch.warp_idx()
    manager.init_tensormap_from_atom(load, pointer, 0)
    manager.fence_tensormap_initialization()
    if cute.arch.thread_idx()[0] == 0:
        for bar in (*full, empty):
            cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    manager.fence_tensormap_update(pointer)
    if cute.arch.thread_idx()[0] == 0:
        for number in cute.range_constexpr(3):
            if cute.const_expr(number == 2):
                cute.arch.mbarrier_wait(empty, 0)
            g = cute.group_modes(cute.local_tile(coords, TILE, (number % 2, 0)), 0, 2)
            to, source = cpasync.tma_partition(load, 0, ONE, s[number % 2], g)
            cute.arch.mbarrier_arrive_and_expect_tx(full[number], 2048)
            cute.copy(load, source, to, tma_bar_ptr=full[number], tma_desc_ptr=pointer)
    if warp == 1:
        cute.arch.mbarrier_wait(full[0], 0)
        if cute.arch.lane_idx() == 0:
            cute.arch.mbarrier_arrive(empty)
    if warp == 2:
        cute.arch.mbarrier_wait(full[1], 0)
    if warp == 3:
        for number in cute.range_constexpr(3 - waits, 3):
            cute.arch.mbarrier_wait(full[number], 0)
    manager.update_tensormap((B,), (load,), (pointer,), 3, (pointer,))
    cute.arch.mbarrier_wait(full[1], 0)
    cute.arch.mbarrier_wait(full[2], 0)


@pytest.mark.parametrize("waits", [1, 2])
def test_a_map_changes_after_all_copies_that_read_it(waits: int) -> None:
    A = np.zeros((32, 32), np.float32)
    call = reused(A, A.copy(), np.zeros((2, 16), np.int64), waits)
    if waits == 2:
        call.launch(grid=1, block=128, device="sim")
        return
    with pytest.raises(TilefoldError) as caught:
        call.launch(grid=1, block=128, device="sim")
    assert caught.value.code in ("E3205", "E3206")
