# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accesses in tiles that do not divide their tensor: the fault says which size does not divide which, at each stage."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute

STAGES = ["cute", "folded", "atoms", "index", "instr"]


def element(A: Any, B: Any) -> None:
    x = cute.local_tile(A, (3,), (2,))
    B[0] = x[2]


def last_tile(A: Any, B: Any) -> None:
    x = cute.zipped_divide(A, (3,))
    B[0] = x[None, (2,)].load()[0]


def tile_of_a_block(A: Any, B: Any) -> None:
    b, _, _ = cute.arch.block_idx()
    cute.local_tile(B, (3,), (b,)).store(cute.local_tile(A, (3,), (b,)).load())


def store_of_a_thread(A: Any, B: Any) -> None:
    b, _, _ = cute.arch.block_idx()
    t, _, _ = cute.arch.thread_idx()
    x = cute.local_tile(A, (3,), (b,))
    x[t] = B[t]


def tiled_copy(A: Any, B: Any) -> None:
    b, _, _ = cute.arch.block_idx()
    t, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32)
    copy = cute.make_tiled_copy_tv(atom, cute.make_layout((3,)), cute.make_layout((1,)))
    source = copy.get_slice(t).partition_S(cute.local_tile(A, (3,), (b,)))
    registers = cute.make_fragment_like(source)
    cute.copy(atom, source, registers)
    B[t] = registers[0]


KERNELS = (element, last_tile, tile_of_a_block, store_of_a_thread, tiled_copy)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("function", KERNELS, ids=lambda f: f.__name__)
def test_the_fault_names_both_sizes(function: Callable[..., None], stage: str) -> None:
    grid = 1 if function in (element, last_tile) else 3
    call = cute.kernel(function)(np.zeros(8, np.float32), np.zeros(64, np.float32))
    with pytest.raises(TilefoldError, match="E3202") as caught:
        call.launch(grid, 3, device="sim", stage=stage)
    assert "mode 0 of the tensor has 8 elements, which tiles of 3 do not divide" in caught.value.message
    assert "bytes past the end of" not in caught.value.message
    assert caught.value.hint.startswith("use tiles of 2, or pad the tensor to 9 elements, or access only the elements")
    assert str(caught.value).startswith(f"{__file__}:")


@pytest.mark.parametrize("stage", ["index", "instr"])
def test_the_fault_names_the_view(stage: str) -> None:
    with pytest.raises(TilefoldError) as caught:
        cute.kernel(element)(np.zeros(8, np.float32), np.zeros(64, np.float32)).launch(1, 3, device="sim", stage=stage)
    line = element.__code__.co_firstlineno + 1
    assert re.search(
        rf"the tiles of the view of A at {re.escape(__file__)}:{line}:9 reach beyond it", str(caught.value)
    )


@pytest.mark.parametrize("stage", STAGES)
def test_an_index_before_the_tensor_is_another_fault(stage: str) -> None:
    """The tiles are no reason for it."""

    def before(A: Any, B: Any, n: cute.Int32) -> None:
        x = cute.local_tile(A, (3,), (0,))
        B[1] = x[0]
        B[0] = cute.make_tensor(A.iterator + n, (1,))[0]

    call = cute.kernel(before)(np.zeros(8, np.float32), np.zeros(64, np.float32), -1)
    with pytest.raises(TilefoldError, match="E3202") as caught:
        call.launch(1, 1, device="sim", stage=stage)
    assert "divide" not in str(caught.value)
