# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps that programs make by the dialect `cute_nvgpu`, for a tile given by the coordinates of its values."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.builder.tensors.operand_copies import tiler_of_values

from tilefold import cute
from tilefold.cute.nvgpu import cpasync
from tilefold.cutlass.mlir.dialects import cute_nvgpu

TILE = (16, 32)
LOAD: Any = cpasync.CopyBulkTensorTileG2SOp()


@cute.jit
def of_values(gmem: cute.Tensor, smem: Any) -> Any:
    values = cute.composition(cute.make_identity_layout(gmem.shape), TILE)
    values = cute.select(cute.zipped_divide(values, TILE), mode=[0])
    made = cute_nvgpu.atom_make_non_exec_tiled_tma_load(
        gmem.value, cute.select(cute.tiled_divide(smem, TILE), mode=[0]).value, values, LOAD._to_ir(), num_multicast=1
    )
    trait: Any = cpasync.CopyBulkTensorTileG2SNonExecTrait(made[0])
    return cute.CopyAtom(LOAD, trait), made[1]


@cute.kernel
def pages(A: cute.Tensor, B: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    smem = cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, cute.make_layout(TILE, stride=(32, 1)))
    atom, coords = of_values(A, smem)
    s = cute.make_smem_tensor(smem, cute.Float16, 1024)
    full = cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)
    tile = cute.group_modes(cute.local_tile(coords[None, None, 1], TILE, (1, 0)), 0, 2)
    to, source = cpasync.tma_partition(atom, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), tile)
    if t == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    if t == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(full, 1024)
        cute.copy(atom, source, to, tma_bar_ptr=full)
    cute.arch.mbarrier_wait(full, 0)
    for row in range(TILE[0]):
        B[row, t] = s[row, t]


def test_a_page_is_loaded_by_the_coordinates_of_its_values() -> None:
    a, b = np.arange(2 * 32 * 32, dtype=np.float16).reshape(32, 32, 2), np.zeros(TILE, np.float16)
    a = np.ascontiguousarray(a.transpose(2, 0, 1)).transpose(1, 2, 0)
    pages(a, b).launch(grid=1, block=32, device="sim")
    assert np.array_equal(b, a[16:, :, 1])


def test_values_are_in_the_order_of_the_modes_of_the_tensor() -> None:
    e0, e1 = cute.E(0), cute.E(1)
    one = cute.make_layout(((64, 32),), stride=((e0, e1),))
    assert tiler_of_values(one) == (64, 32)
    spread: Any = tiler_of_values(cute.make_layout((4, 8, 2), stride=(e0, 16 * e0, e1)))
    assert (str(spread[0]), spread[1]) == ("(4,8):(1,16)", 2)
    for shape, stride in (((8, 4), (e1, e0)), ((8, 4), (e0, 8))):
        with pytest.raises(TilefoldError, match="one after the other"):
            tiler_of_values(cute.make_layout(shape, stride=stride))
