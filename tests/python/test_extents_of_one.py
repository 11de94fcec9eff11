# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays with modes of one element, whose strides mean nothing: tensor maps describe them; the target of a launch."""

from math import prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import TilefoldError
from tilefold.runtime.arrays.array import Array

from tilefold import cute
from tilefold.cute.nvgpu import cpasync
from tilefold.cute.runtime import from_dlpack


@cute.kernel
def loaded(X: cute.Tensor, Y: cute.Tensor, tile: cute.Constexpr[Any], order: cute.Constexpr[Any]):
    t, modes = cute.arch.thread_idx()[0], len(tile)
    layout = cute.make_ordered_layout(tile, order=order)
    atom, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), X, layout, tile)
    s = cute.make_smem_tensor(layout, X.element_type, 128)
    g = cute.local_tile(coords, tile, (0,) * modes)
    groups = cute.group_modes(s, 0, modes), cute.group_modes(g, 0, modes)
    to, source = cpasync.tma_partition(atom, 0, cute.make_layout(1), *groups)
    full = cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)
    if t == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(full, cute.size(layout) * 4)
        cute.copy(atom, source, to, tma_bar_ptr=full)
    cute.arch.sync_threads()
    cute.arch.mbarrier_wait(full, 0)
    if t < cute.size(layout):
        Y[t] = cute.make_tensor(s.iterator, cute.make_layout(cute.size(layout)))[t]


BASE = np.arange(1024, dtype=np.float32)
ARRAYS = [
    (BASE[:32].reshape(32, 1, 1), (0, 1, 2)),
    (np.asfortranarray(BASE[:32].reshape(32, 1, 1)), (0, 1, 2)),
    (BASE[:32, None], (0, 1)),
    (BASE[:32].reshape(1, 1, 32), (2, 1, 0)),
    (BASE[:32].reshape(4, 1, 8), (2, 1, 0)),
    (BASE[:30].reshape(30, 1), (0, 1)),
    (BASE.reshape(32, 32)[:4, :8][:, :, None], (1, 0, 2)),
    (BASE.reshape(32, 32)[:1, :8], (1, 0)),
    (BASE[:1].reshape(1, 1, 1), (2, 1, 0)),
]


def _forms(X: NDArray[np.float32]) -> list[Any]:
    each = [cute.dynamic(X, modes=(mode,)) for mode in range(X.ndim)]
    return [X, cute.dynamic(X), *each, from_dlpack(X), from_dlpack(X).mark_layout_dynamic()]


@pytest.mark.parametrize(("X", "order"), ARRAYS, ids=[f"{X.shape}-{X.strides}" for X, _ in ARRAYS])
def test_tensor_maps_describe_arrays_with_extents_of_one(X: NDArray[np.float32], order: tuple[int, ...]) -> None:
    tile = tuple(-(-n // 4) * 4 if order[mode] == 0 else n for mode, n in enumerate(X.shape))
    expected = np.zeros(tile, np.float32)
    expected[tuple(map(slice, X.shape))] = X
    for form in _forms(X):
        Y = np.full(prod(tile), np.nan, np.float32)
        loaded(form, Y, tile, order).launch(grid=1, block=32, device="sim")
        assert np.array_equal(Y, expected.transpose(np.argsort(order)[::-1]).ravel()), form


def test_strides_as_torch_leaves_them() -> None:
    X = np.arange(32, dtype=np.float32).reshape(4, 8, 1)
    left = Array(X.ctypes.data, "f32", X.shape, (8, 1, 1), None, offset=0)
    for form in (left, from_dlpack(left), from_dlpack(left).mark_layout_dynamic(leading_dim=1)):
        Y = np.zeros(32, np.float32)
        loaded(form, Y, (4, 8, 1), (1, 0, 2)).launch(grid=1, block=32, device="sim")
        assert np.array_equal(Y, X.ravel()), form


def test_a_program_is_shown_for_the_target_of_its_last_launch() -> None:
    @cute.kernel
    def plain(Y: cute.Tensor):
        Y[cute.arch.thread_idx()[0]] = 1.0

    X, Y = BASE[:16].reshape(16, 1), np.zeros(16, np.float32)  # of a type that no other test launches
    built = loaded(X, Y, (16, 1), (0, 1)).build(32)
    assert ".target sm_90a" in built.ptx()
    with pytest.raises(TilefoldError) as caught:
        built.ptx("sm_80")
    assert "sm_80" in str(caught.value)
    for stage in ("cute", "index", "instr"):
        loaded(X, Y, (16, 1), (0, 1)).launch(grid=1, block=32, device="sim", stage=stage)
        assert "ptx.cp.async.bulk.tensor.load" in loaded.ir("instr")
        assert "ptx.entry" in loaded.ir("index")
        assert ".target sm_90a" in loaded.ptx()
        assert ".target sm_100a" in loaded.ptx("sm_100a")
    plain(Y).launch(grid=1, block=16, device="sim")
    assert ".target sm_80" in plain.ptx()
