# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tiles of persistent blocks: each once, in the order that raster and swizzle say."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.compiler.frontend.diagnostics import ProgramError

from tilefold import cute
from tilefold.cute import utils

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

MOST = 300
"""The most tiles of a problem here."""


@cute.kernel
def numbered(order, steps, m, n, layers, cluster: cute.Constexpr, swizzle: cute.Constexpr, along_m: cute.Constexpr):
    """Block b writes its tiles to order[b, :], and how many there are to steps[b]."""
    params = utils.PersistentTileSchedulerParams((m, n, layers), cluster, swizzle, along_m)
    (x, y, z), (width, height, _) = cute.arch.block_idx(), cute.arch.grid_dim()
    block = x + width * (y + height * z)
    scheduler = utils.StaticPersistentTileScheduler.create(params, cute.arch.block_idx(), cute.arch.grid_dim())
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        row, column, layer = work.tile_idx
        order[block, scheduler.num_tiles_executed, 0] = row
        order[block, scheduler.num_tiles_executed, 1] = column
        order[block, scheduler.num_tiles_executed, 2] = layer
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()
    steps[block] = scheduler.num_tiles_executed


def tiles_of(
    problem: tuple[int, int, int], active: int, cluster: tuple[int, int, int], swizzle: int, along_m: bool
) -> list[list[tuple[int, ...]]]:
    """The tiles of each block, in order."""
    params = utils.PersistentTileSchedulerParams(problem, cluster, swizzle, along_m)
    grid = utils.StaticPersistentTileScheduler.get_grid_shape(params, active)
    blocks = grid[0] * grid[1] * grid[2]
    order, steps = np.full((blocks, MOST, 3), -1, np.int32), np.zeros(blocks, np.int32)
    numbered(order, steps, *problem, cluster, swizzle, along_m).launch(grid, 1, device="sim")
    return [[tuple(map(int, tile)) for tile in order[b, : steps[b]]] for b in range(blocks)]


@pytest.mark.parametrize("along_m", [True, False])
@pytest.mark.parametrize("swizzle", [1, 2, 3, 8])
@pytest.mark.parametrize("cluster", [(1, 1, 1), (2, 1, 1), (1, 2, 1), (2, 2, 1)])
@pytest.mark.sampled(4)
def test_every_tile_is_computed_once(cluster: tuple[int, int, int], swizzle: int, along_m: bool) -> None:
    for problem, active in product([(1, 1, 1), (7, 5, 1), (4, 6, 3), (1, 9, 2)], [1, 4, 13]):
        found = [tile for block in tiles_of(problem, active, cluster, swizzle, along_m) for tile in block]
        inside = [tile for tile in found if tile[0] < problem[0] and tile[1] < problem[1]]
        assert sorted(inside) == [*product(*map(range, problem))]
        m, n, layers = ((problem[i] + cluster[i] - 1) // cluster[i] * cluster[i] for i in range(3))
        assert sorted(found) == [*product(range(m), range(n), range(layers))], "the rest is of clusters at the edges"


def test_the_order_of_the_tiles() -> None:
    def order(swizzle: int, along_m: bool, cluster: Any = (1, 1, 1)) -> list[tuple[int, int]]:
        (first, *_) = tiles_of((4, 3, 1), 1, cluster, swizzle, along_m)
        return [(m, n) for m, n, _ in first]

    assert order(1, True) == [(m, n) for n in range(3) for m in range(4)]
    assert order(1, False) == [(m, n) for m in range(4) for n in range(3)]
    pairs = [(m, n) for m in range(4) for n in (0, 1)] + [(m, 2) for m in range(4)]
    assert order(2, True) == pairs, "two columns at a time, then the last alone"
    assert order(2, False) == [(m, n) for rows in ((0, 1), (2, 3)) for n in range(3) for m in rows]
    assert order(1, True, (2, 1, 1)) == [(m, n) for n in range(3) for m in (0, 2)], "block (0, 0) of each cluster"


def test_tiles_of_concurrent_clusters_follow_each_other() -> None:
    blocks = tiles_of((4, 4, 1), 3, (1, 1, 1), 1, True)
    assert [block[0] for block in blocks] == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    assert [block[1] for block in blocks] == [(3, 0, 0), (0, 1, 0), (1, 1, 0)]


def test_grids() -> None:
    def grid(problem: Any, active: int, cluster: Any = (1, 1, 1)) -> tuple[int, int, int]:
        params = utils.PersistentTileSchedulerParams(problem, cluster)
        return params.get_grid_shape(active)

    assert grid((10, 10, 1), 132) == (1, 1, 100)
    assert grid((20, 20, 1), 132) == (1, 1, 132)
    assert grid((5, 4, 2), 66, (2, 1, 1)) == (2, 1, 24)
    assert grid((1000, 1000, 1), 10**6) == (1, 1, 65535)


@pytest.mark.parametrize("problem", [(0, 3, 1), (3, 0, 1), (2, 2, 0)])
def test_an_empty_problem_has_no_tiles(problem: tuple[int, int, int]) -> None:
    assert tiles_of(problem, 4, (1, 1, 1), 2, True) == [[]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((1, 1),), "a number of tiles has 2 modes"),
        (((1, 1, 1.5),), "a number of tiles is an integer"),
        (((1, 1, 1), (2, 1)), "a cluster has 2 modes"),
        (((1, 1, 1), (0, 1, 1)), "a cluster cannot have (0, 1, 1) blocks"),
        (((1, 1, 1), (1, 1, 2)), "a cluster cannot have (1, 1, 2) blocks"),
        (((1, 1, 1), (1, 1, 1), 0), "swizzle_size is 0"),
    ],
)
def test_refusals(arguments: Any, message: str) -> None:
    with pytest.raises(TilefoldError) as info:
        utils.PersistentTileSchedulerParams(*arguments)
    assert message in str(info.value)
    assert info.value.code == ("E5002" if "integer" in message else "E5011")


def test_grids_that_are_refused() -> None:
    params = utils.PersistentTileSchedulerParams((4, 4, 1))
    with pytest.raises(TilefoldError, match="max_active_clusters is 0"):
        utils.StaticPersistentTileScheduler.get_grid_shape(params, 0)

    @cute.kernel
    def kernel(n: cute.Int32):
        params = utils.PersistentTileSchedulerParams((n, 1, 1))
        utils.StaticPersistentTileScheduler.get_grid_shape(params, 4)

    with pytest.raises(ProgramError, match=r"E5003.*a grid must be static"):
        kernel(4).build(1)


def test_shared_memory_by_the_names_of_cute_programs() -> None:
    assert utils.get_smem_capacity_in_bytes("sm_90") == 227 * 1024

    @cute.kernel
    def kernel(out):
        t, _, _ = cute.arch.thread_idx()
        smem = utils.SmemAllocator()
        tile = smem.allocate_tensor(cute.Float32, cute.make_layout((8, 4)), 16, cute.make_swizzle(1, 2, 2))
        array = cute.make_tensor(smem.allocate_array(cute.Float32, 32), 32)
        tile[t] = t * 2.0
        array[31 - t] = t * 1.0
        cute.arch.sync_threads()
        out[t] = tile[31 - t] + array[t]

    out = np.zeros(32, np.float32)
    kernel(out).launch(1, 32, device="sim")
    assert out.tolist() == [3.0 * (31 - t) for t in range(32)]
