# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TMA copies of shifted tensors (`domain_offset`): elements outside the tensor are zero, and stay unchanged."""

from math import prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import TilefoldError

from tests.kernels.harness import STAGES
from tilefold import cute
from tilefold.cute.nvgpu import cpasync

Coordinate = tuple[int, ...]


def parts_of(op: Any, X: Any, tile: Coordinate, begin: Any) -> Any:
    """The atom, the shared memory of a tile, as one mode, and both sides of the copy of a shifted tile."""
    modes = len(tile)
    layout = cute.make_ordered_layout(tile, order=tuple(reversed(range(modes))))
    atom, coords = cpasync.make_tiled_tma_atom(op, X, layout, tile)
    moved = cute.local_tile(cute.domain_offset(begin, coords), tile, (0,) * modes)
    s = cute.make_smem_tensor(layout, X.element_type, 128)
    s_tile, g_tile = cute.group_modes(s, 0, modes), cute.group_modes(moved, 0, modes)
    parts = cpasync.tma_partition(atom, 0, cute.make_layout(1), s_tile, g_tile)
    return atom, cute.make_tensor(s.iterator, cute.make_layout(cute.size(layout))), *parts


@cute.kernel
def load(X: cute.Tensor, Y: cute.Tensor, tile: cute.Constexpr[Any], begin: Any, fixed: cute.Constexpr[Any]):
    """Y gets the tile of X that begins at a coordinate, given at run time or `fixed`."""
    op, t = cpasync.CopyBulkTensorTileG2SOp(), cute.arch.thread_idx()[0]
    atom, flat, s, g = parts_of(op, X, tile, begin if fixed is None else fixed)
    full = cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)
    if t == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(full, cute.size(flat) * X.element_type.width // 8)
        cute.copy(atom, g, s, tma_bar_ptr=full)
    cute.arch.sync_threads()
    cute.arch.mbarrier_wait(full, 0)
    for i in range(t, cute.size(flat), 32):
        Y[i] = flat[i]


@cute.kernel
def store(X: cute.Tensor, Y: cute.Tensor, tile: cute.Constexpr[Any], begin: Any, fixed: cute.Constexpr[Any]):
    """X gets the elements of Y in its tile that begins at a coordinate."""
    op, t = cpasync.CopyBulkTensorTileS2GOp(), cute.arch.thread_idx()[0]
    atom, flat, s, g = parts_of(op, X, tile, begin if fixed is None else fixed)
    for i in range(t, cute.size(flat), 32):
        flat[i] = Y[i]
    cute.arch.fence_proxy("async")
    cute.arch.sync_threads()
    if t == 0:
        cute.copy(atom, s, g)
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0)


def expected(X: NDArray[Any], Y: NDArray[Any], tile: Coordinate, begin: Coordinate) -> tuple[Any, Any]:
    """The tile that a load gives, and X after a store of Y."""
    bounds = [(max(b, 0), max(min(b + n, extent), 0)) for b, n, extent in zip(begin, tile, X.shape, strict=True)]
    of_tensor = tuple(slice(low, high) for low, high in bounds)
    of_tile = tuple(slice(low - b, high - b) for (low, high), b in zip(bounds, begin, strict=True))
    loaded, stored = np.zeros(tile, X.dtype), X.copy()
    loaded[of_tile] = X[of_tensor]
    stored[of_tensor] = Y.reshape(tile)[of_tile]
    return loaded.ravel(), stored


CASES = [  # shape, tile, begin: the tile covers the last modes, which are contiguous; boxes begin at whole 16 bytes
    ((16, 32), (4, 32), (0, 4)),
    ((16, 32), (4, 32), (0, -4)),
    ((16, 32), (4, 32), (14, 28)),
    ((16, 32), (4, 32), (-1, -4)),
    ((6, 4, 8), (2, 4, 8), (0, 1, 0)),
    ((6, 4, 8), (2, 4, 8), (0, -3, 4)),
    ((3, 4, 4), (2, 4, 4), (2, 2, -4)),
    ((3, 2, 2, 8), (1, 2, 2, 8), (0, 0, 1, 0)),
    ((3, 2, 2, 2, 4), (2, 2, 2, 2, 4), (0, 1, -1, 1, 0)),
]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("at_run_time", [False, True])
@pytest.mark.parametrize(("shape", "tile", "begin"), CASES)
@pytest.mark.sampled(8)
def test_shifted_tiles(shape: Coordinate, tile: Coordinate, begin: Coordinate, at_run_time: bool, stage: str) -> None:
    X = np.random.default_rng(0).random(shape, np.float32) + 1
    Y = np.arange(prod(tile), dtype=np.float32) - 1000
    where = (begin, None) if at_run_time else (None, begin)
    tile_of_X, X_with_tile = expected(X, Y, tile, begin)
    loaded, stored = np.full(prod(tile), np.nan, np.float32), X.copy()
    load(X, loaded, tile, *where).launch(grid=1, block=32, device="sim", stage=stage)
    assert np.array_equal(loaded, tile_of_X)
    storing = store(stored, Y, tile, *where)
    if min(begin) < 0:
        with pytest.raises(TilefoldError, match="before the tensor"):
            storing.launch(grid=1, block=32, device="sim", stage=stage)
        return
    storing.launch(grid=1, block=32, device="sim", stage=stage)
    assert np.array_equal(stored, X_with_tile)


@pytest.mark.parametrize(("shape", "tile", "begin"), [
    ((16, 2), (8, 2), (0, 1)),  # rows of 8 bytes, which no dimension has
    ((6, 4, 2), (2, 4, 2), (1, 2, 0)),
    ((2, 2, 2, 2, 2, 16), (1, 1, 1, 1, 2, 16), (0, 0, 0, 0, 0, 8)),  # more than five modes
    ((2, 2, 2, 2, 3, 16), (1, 1, 1, 1, 1, 16), (0, 0, 0, 0, 1, 0)),
])  # fmt: skip
@pytest.mark.parametrize("at_run_time", [False, True])
def test_modes_that_share_a_dimension_are_not_shifted(
    shape: Coordinate, tile: Coordinate, begin: Coordinate, at_run_time: bool
) -> None:
    X, Y = np.zeros(shape, np.float32), np.zeros(prod(tile), np.float32)
    with pytest.raises(TilefoldError, match="shares dimension") as caught:
        load(X, Y, tile, *((begin, None) if at_run_time else (None, begin))).launch(grid=1, block=32, device="sim")
    assert caught.value.code == "E0323"
    assert "test_shifted_tiles.py:" in str(caught.value)


@pytest.mark.parametrize(("shape", "tile", "begin"), [
    ((16, 2), (8, 2), (14, 0)),
    ((16, 2), (8, 2), (4, 0)),
    ((6, 4, 2), (2, 4, 2), (5, 0, 0)),
    ((2, 2, 2, 2, 2, 16), (1, 1, 1, 1, 2, 16), (1, 0, 0, 0, 0, 0)),
    ((2, 2, 2, 2, 2, 16), (1, 1, 1, 1, 2, 16), (0, 1, 0, 1, 1, 0)),
    ((2, 2, 2, 2, 3, 16), (1, 1, 1, 1, 1, 16), (0, 0, 1, 1, 0, 0)),
])  # fmt: skip
def test_the_outermost_of_them_is_shifted(shape: Coordinate, tile: Coordinate, begin: Coordinate) -> None:
    test_shifted_tiles(shape, tile, begin, False, "instr")
