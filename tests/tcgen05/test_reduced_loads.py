# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads from tensor memory that also reduce a lane's values (tcgen05.ld.red), with the words of CuTe's Python."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute
from tilefold.cute.nvgpu import tcgen05

F32 = cute.Float32
COLUMNS = 32


@cute.kernel
def kernel(A: cute.Tensor, D: cute.Tensor, M: cute.Tensor, reduction: cute.Constexpr, element: cute.Constexpr) -> None:
    t, _, _ = cute.arch.thread_idx()
    slot = cute.make_smem_tensor(cute.make_layout(1), cute.Int32, 8).iterator
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    if warp == 0:
        cute.arch.alloc_tmem(COLUMNS, slot)
        cute.arch.relinquish_tmem_alloc_permit()
    cute.arch.sync_threads()
    start = cute.arch.retrieve_tmem_ptr(element, 16, slot)
    cells = cute.make_tensor(start, cute.make_layout(((128, COLUMNS), 1, 1), stride=((65536, 1), 0, 0)))
    rows = cute.make_tensor(A.iterator, cute.make_layout(((128, COLUMNS), 1, 1), stride=((COLUMNS, 1), 0, 0)))
    out = cute.make_tensor(D.iterator, rows.layout)
    store = tcgen05.make_tmem_copy(cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x32), element), cells)
    own = store.get_slice(t)
    held = cute.make_fragment_like(own.partition_S(rows))
    cute.autovec_copy(own.partition_S(rows), held)
    cute.copy(store, held, own.partition_D(cells))
    cute.arch.fence_view_async_tmem_store()
    atom = cute.make_copy_atom(tcgen05.LdRed32x32bOp(tcgen05.Repetition.x16, redOp=reduction), element)
    load = tcgen05.make_tmem_copy(atom, cells)
    own = load.get_slice(t)
    found = cute.make_fragment_like(own.partition_D(out))
    reduced = cute.make_rmem_tensor(cute.make_layout(2), element)
    cute.copy(load, own.partition_S(cells), (found, reduced))
    cute.arch.fence_view_async_tmem_load()
    cute.autovec_copy(found, own.partition_D(out))
    for i in cute.range_constexpr(2):
        M[t, i] = reduced[i]
    cute.arch.sync_threads()
    if warp == 0:
        cute.arch.dealloc_tmem(start, COLUMNS)


@pytest.mark.parametrize("reduction", list(tcgen05.TmemLoadRedOp))
def test_values_and_their_reductions(reduction: Any) -> None:
    a = np.random.default_rng(0).normal(size=(128, COLUMNS)).astype(np.float32)
    d, m = np.zeros_like(a), np.zeros((128, 2), np.float32)
    kernel(a, d, m, reduction, F32).launch(grid=1, block=128, device="sim")
    parts = a.reshape(128, 2, 16)
    parts = np.abs(parts) if reduction.value.endswith("abs") else parts
    assert np.array_equal(d, a)
    assert np.array_equal(m, parts.max(axis=2) if reduction.value.startswith("max") else parts.min(axis=2))


@pytest.mark.parametrize(("element", "kind"), [(cute.Int32, np.int32), (cute.Uint32, np.uint32)])
def test_integers_are_compared_with_their_sign(element: Any, kind: Any) -> None:
    a = np.random.default_rng(0).integers(-(1 << 31), 1 << 31, (128, COLUMNS)).astype(np.int32).view(kind)
    d, m = np.zeros_like(a), np.zeros((128, 2), a.dtype)
    kernel(a, d, m, tcgen05.TmemLoadRedOp.MAX, element).launch(grid=1, block=128, device="sim")
    assert np.array_equal(m, a.reshape(128, 2, 16).max(axis=2))


def test_a_fragment_for_the_reductions_is_asked_for() -> None:
    @cute.kernel
    def wrong() -> None:
        start = cute.arch.retrieve_tmem_ptr(F32, 16, cute.make_smem_tensor(cute.make_layout(1), cute.Int32, 8).iterator)
        cells = cute.make_tensor(start, cute.make_layout(((128, 32), 1, 1), stride=((65536, 1), 0, 0)))
        atom = cute.make_copy_atom(tcgen05.LdRed32x32bOp(tcgen05.Repetition.x32), F32)
        own = tcgen05.make_tmem_copy(atom, cells).get_slice(0)
        found = cute.make_rmem_tensor(cute.make_layout(((32, 1), 1, 1)), F32)
        cute.copy(tcgen05.make_tmem_copy(atom, cells), own.partition_S(cells), found)

    with pytest.raises(TilefoldError, match="a load that reduces needs two fragments"):
        wrong().build(128)
