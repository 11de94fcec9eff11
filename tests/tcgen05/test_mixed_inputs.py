# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`utils.mixed_input_helpers`: narrow integers become the floats that tcgen05.mma multiplies with."""

from math import prod
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.builder.pipelines.groups import peers_of

from tilefold import cute
from tilefold.cute import utils
from tilefold.cute.nvgpu import tcgen05
from tilefold.cute.runtime import from_dlpack
from tilefold.cute.testing import convert
from tilefold.cute.utils import blackwell_helpers as sm100
from tilefold.cute.utils import mixed_input_helpers as mixed

COUNT = 32
MN, K = tcgen05.OperandMajorMode("mn"), tcgen05.OperandMajorMode("k")


@cute.kernel
def widen(a: cute.Tensor, plain: cute.Tensor, shuffled: cute.Tensor) -> None:
    r = cute.make_rmem_tensor(COUNT, a.element_type)
    cute.autovec_copy(a, r)
    for turn in cute.range_constexpr(2):
        numbers = cute.make_rmem_tensor(COUNT, cute.BFloat16)
        numbers.store(mixed.cvt_tensor_a(r, cute.BFloat16, turn == 1))
        for i in cute.range_constexpr(COUNT):
            (plain, shuffled)[turn][i] = numbers[i].to(cute.Float32)


@pytest.mark.parametrize(("dtype", "least"), [(cute.Int4, -8), (cute.Uint4, 0), (cute.Int8, -8)], ids=str)
def test_integers_become_floats(dtype: Any, least: int) -> None:
    numbers = (np.arange(COUNT) % 16 + least).astype(np.float32)
    a = from_dlpack(np.zeros(COUNT, np.int8))
    a.element_type = dtype
    convert(from_dlpack(numbers), a)
    plain, shuffled = np.zeros((2, COUNT), np.float32)
    widen(a, plain, shuffled).launch(grid=1, block=1)
    assert np.array_equal(plain, numbers)
    assert np.array_equal(shuffled, numbers.reshape(-1, 8)[:, [0, 2, 1, 3, 4, 6, 5, 7]].ravel())


def test_elements_of_a_group_have_one_scale() -> None:
    tile, stage, staged = mixed.get_smem_layout_scale((256, 64, 64), True, 1, 32, MN, cute.BFloat16, 3)
    assert tile == (256, 2)
    assert [stage((m, k)) for m, k in ((5, 0), (5, 31), (5, 32), (133, 0))] == [5, 5, 133, 5]
    assert staged((5, 32, 2)) == 2 * 256 + 133
    laid = mixed.get_gmem_layout_scale((64, 256, 2), 1, 128, MN)
    assert [laid((3, k, 1)) for k in (0, 127, 128)] == [131, 131, 195]
    with pytest.raises(TilefoldError, match="the scales of A are contiguous along K"):
        mixed.get_gmem_layout_scale((64, 256, 2), 1, 128, K)


def test_operands_have_one_stage_by_the_type_that_they_are_stored_in() -> None:
    source = mixed.get_transform_a_source(MN)
    assert source is tcgen05.OperandSource.SMEM
    assert mixed.get_transform_a_source(K) is tcgen05.OperandSource.TMEM
    bf16, group = cute.BFloat16, tcgen05.CtaGroup.ONE
    mma = sm100.make_trivial_tiled_mma(bf16, bf16, MN, K, cute.Float32, group, (128, 64), source)
    laid = mixed.compute_smem_layout(mma, (128, 64, 64), cute.Int8, bf16, 3, 2)
    assert [cute.size(x) for x in laid] == [128 * 64 * 3, 128 * 64 * 2, 64 * 64 * 3]
    assert [str(x.inner) for x in laid] == ["S<3,4,3>", "S<3,3,3>", "S<3,3,3>"]


def test_tiles_and_scales_that_no_kernel_has() -> None:
    tiles = mixed.is_valid_mma_tiler_and_cluster_shape
    assert tiles((128, 64, 64), (2, 1), False)
    assert tiles((256, 64, 64), (2, 1), True)
    refused = ((128, 24, 64), (1, 1), False), ((256, 64, 64), (1, 1), True), ((128, 64, 64), (3, 1), False)
    assert not any(tiles(*each) for each in refused)
    scales = mixed.is_valid_scale_granularity
    assert scales(1, 128, cute.Int4, 256, 64)
    assert scales(0, 0, cute.Int8, 256, 64)
    assert not scales(1, 96, cute.Int4, 256, 64)
    assert not scales(1, 128, cute.Int8, 256, 64)
    assert [mixed.get_divisibility(x) for x in (24, 96, 1024)] == [8, 32, 128]


@cute.kernel
def tell(told: cute.Tensor, layout: cute.Constexpr, modes: cute.Constexpr) -> None:
    peers = peers_of(layout, modes)
    assert peers is not None
    told[cute.arch.block_idx_in_cluster(), cute.arch.lane_idx()] = peers.tells.to(cute.Int32)
    told[cute.arch.block_idx_in_cluster(), 32] = cute.Int32(peers.told_blocks)


@pytest.mark.parametrize("modes", [(1, 1), (1, 0), (0, 1)])
@pytest.mark.parametrize("shape", [(2, 2, 1, 1), (2, 1, 2, 1), (2, 2, 2, 1), (1, 2, 2, 1)])
def test_blocks_of_pairs_share_with_those_at_their_place(shape: tuple[int, ...], modes: tuple[int, int]) -> None:
    """The rule of CUTLASS's is_same_row_or_col, by the coordinates of all blocks."""
    layout, blocks = cute.make_layout(shape), prod(shape)
    told = np.full((blocks, 33), -1, np.int32)
    tell(told, layout, modes).launch(grid=blocks, block=32, cluster=blocks, device="sim")
    coordinates = [layout.get_flat_coord(rank)[:3] for rank in range(blocks)]
    for rank, (v, m, n) in enumerate(coordinates):
        same = [(v == w and n == k and modes[0]) or ((v, m) == (w, i) and modes[1]) for w, i, k in coordinates]
        assert told[rank].tolist() == [*map(int, map(bool, same)), *[0] * (32 - blocks), sum(map(bool, same))]


def test_a_pair_that_shares_no_tiles_has_stages_of_each_block() -> None:
    assert peers_of(cute.make_layout(((2,), 1, 1, 1)), (1, 0)) is None
    with pytest.raises(TilefoldError, match="a cluster cannot have the layout"):
        peers_of(cute.make_layout((4, 2, 1, 1)), (1, 0))


TWO_ROWS = utils.PersistentTileSchedulerParams((2, 1, 1))


@cute.kernel
def find(cumsum: cute.Tensor, found: cute.Tensor, groups: cute.Constexpr) -> None:
    state = mixed.create_initial_contiguous_group_search_state()
    scheduler = utils.StaticPersistentRuntimeTileScheduler.create(TWO_ROWS, (0, 0, 0), (1, 1, 1), inner_mode=0)
    more, row = cute.Boolean(1), cute.Int32(0)
    while more:
        m, n, _ = scheduler.get_current_work().tile_idx
        state = mixed.contiguous_group_search((128, 16, 64), groups, n, state, cumsum, 1)
        more = state.cur_group_idx <= groups
        info = m, state.cur_start, state.cur_group_idx - 1, state.cur_boundary - state.cur_start
        for i in cute.range_constexpr(4):
            found[row, i] = info[i]
        tile = mixed.make_contiguous_group_work_tile_info(groups, found[row, None])
        found[row, 4] = tile.is_valid_tile.to(cute.Int32)
        row += 1
        scheduler.advance_to_next_work()


def test_each_group_begins_with_a_tile_of_its_own() -> None:
    ends = [0, 24, 24, 32, 64]
    found = np.full((12, 5), -1, np.int32)
    find(np.array(ends, np.int32), found, 4).launch(grid=1, block=1, device="sim")
    parts = [(0, 0, 24), (16, 0, 8), (24, 2, 8), (32, 3, 32), (48, 3, 16)]
    wanted = [[m, start, group, left, 1] for start, group, left in parts for m in range(2)]
    assert found[:10].tolist() == wanted
    assert found[10, 2:].tolist()[::2] == [4, 0]
    assert (found[11] == -1).all()
    with pytest.raises(TilefoldError, match="pass 0 for M, or 1 for N"):
        utils.StaticPersistentRuntimeTileScheduler.create(TWO_ROWS, (0, 0, 0), (1, 1, 1), inner_mode=2)
