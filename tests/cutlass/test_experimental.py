# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies that find their predicates themselves, `cutlass.cute.experimental`."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tests.ptxas import needs_ptxas
from tilefold import cute
from tilefold.cute import experimental

TILE = (32, 16)


@cute.kernel
def added(A: cute.Tensor, B: cute.Tensor, values: cute.Constexpr, space: cute.Constexpr) -> None:
    """Each of 32 threads copies `values` numbers at once, along the first mode."""
    t, _, _ = cute.arch.thread_idx()
    m, n, k = cute.arch.block_idx()
    a, b = (cute.zipped_divide(x, TILE)[(None, None), (m, n, k)] for x in (A, B))
    threads = cute.make_layout(((32 // values, values), (values, 1)), stride=((values, 32), (1, 32 * values)))
    parts = [experimental.partition(x, t, layout_tv=threads, tiler=(32, values)) for x in (a, b)]
    layout = cute.make_layout(((values, 1), (1, 16 // values)), stride=((1, values), (1, values)))
    buffer = experimental.allocate(A.element_type, space, layout, alignment=16)
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), A.element_type, num_bits_per_copy=16 * values)
    experimental.copy(parts[0], buffer, copy_atom=atom)
    buffer.store(buffer.load() + 1.0)
    experimental.copy(buffer, parts[1], copy_atom=atom)


def run(A: Any, values: int) -> None:
    B = np.zeros_like(A, order="F")
    blocks = [-(-extent // tile) for extent, tile in zip(A.shape, (*TILE, 1), strict=True)]
    added(A, B, values, cute.AddressSpace.rmem).launch(grid=tuple(blocks), block=32, device="sim")
    assert np.array_equal(B, A + np.float16(1))


def numbers(*shape: int) -> Any:
    return np.asfortranarray(np.random.default_rng(5).random(shape).astype(np.float16))


@pytest.mark.parametrize(("shape", "values"), [((40, 7, 2), 8), ((33, 16, 1), 1), ((64, 32, 1), 8)])
def test_tiles_that_reach_beyond_the_tensor(shape: tuple[int, ...], values: int) -> None:
    run(numbers(*shape), values)


def test_values_of_one_access_are_all_inside_or_all_outside() -> None:
    A = numbers(40, 16, 1)[:36]
    with pytest.raises(TilefoldError, match="E3214"):
        added(A, A, 8, cute.AddressSpace.rmem).launch(grid=(2, 1, 1), block=32, stage="cute")


@needs_ptxas
@pytest.mark.parametrize(("shape", "predicates"), [((40, 16, 1), True), ((64, 16, 1), False)])
def test_predicates_are_made_where_a_tile_may_reach_beyond_the_tensor(shape: Any, predicates: bool) -> None:
    A = np.zeros(shape, np.float16, order="F")
    ptx = added(A, A, 8, cute.AddressSpace.rmem).build(32).ptx("sm_90a")
    assert ("setp" in ptx) is predicates


def test_memory_that_a_kernel_does_not_allocate() -> None:
    A = np.zeros((64, 16, 1), np.float16, order="F")
    with pytest.raises(TilefoldError, match=r"E5002.*allocates no memory in"):
        added(A, A, 8, cute.AddressSpace.gmem).build(32)
