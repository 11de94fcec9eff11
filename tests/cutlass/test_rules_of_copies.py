# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which copies, predicates and threads CuTe takes: the decisions of its C++ (copy.hpp, copy_if and copy; copy_atom.hpp,
Copy_Atom::call and make_tiled_copy) for forms that public programs have.
"""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute
from tilefold.cute import utils
from tilefold.cute.nvgpu import CopyUniversalOp, cpasync, warp

THREE, NESTED = (4, 2, 4), ((4, 2), 4)
TAKEN: tuple[tuple[Any, Any, Any, list[int]], ...] = (
    (THREE, (1, 2, 4), (0, 1, 2), [1, 0] * 4),
    (THREE, (2, 4), (1, 2), [1, 0] * 4),
    (THREE, (1, 2, 4), (0, 1, 0), [1, 0] * 4),
    (NESTED, ((1, 2), 4), ((0, 1), 2), [1, 0] * 4),
    (NESTED, (2, 4), (1, 2), [1, 0] * 4),
    (NESTED, (1, 4), (0, 1), [1, 1, 0, 0] * 2),
    (THREE, (1, 8), (0, 1), [1, 0] * 4),
    (THREE, (1, 4, 2), (0, 1, 4), [1, 0] * 4),
    (THREE, (1, 8, 1), (0, 1, 0), [1, 0] * 4),
    (THREE, (4, 2), (2, 1), [1, 0] * 4),
    (THREE, (1, 4, 1), (0, 1, 0), [1, 0] * 4),
    (THREE, (1, (2, 2), 2), (0, (2, 0), 1), [1, 0] * 4),
    (NESTED, (4,), (1,), [1, 1, 0, 0] * 2),
)
"""The layout of 32 elements, that of the predicates, which alternate, and which fours the copy moves."""


@cute.kernel
def with_predicates(A: cute.Tensor, B: cute.Tensor, shape: cute.Constexpr[Any], predicates: cute.Constexpr[Any]):
    atom = cute.make_copy_atom(CopyUniversalOp(), cute.Float32, num_bits_per_copy=128)
    p = cute.make_rmem_tensor(predicates, cute.Boolean)
    for i in cute.range_constexpr(cute.size(p)):
        p[i] = i % 2 == 0
    layout = cute.make_layout(shape)
    cute.copy(atom, cute.make_tensor(A.iterator, layout), cute.make_tensor(B.iterator, layout), pred=p)


@pytest.mark.parametrize(("shape", "modes", "strides", "moved"), TAKEN)
def test_predicates_that_fit(shape: Any, modes: Any, strides: Any, moved: list[int]) -> None:
    a, b = np.arange(1, 33, dtype=np.float32), np.zeros(32, np.float32)
    with_predicates(a, b, shape, cute.make_layout(modes, stride=strides)).launch(grid=1, block=1, device="sim")
    assert np.array_equal(b, a * np.repeat(moved, 4))


@pytest.mark.parametrize(
    ("shape", "modes", "text"),
    [
        (THREE, (1, 2, 2), "mode 2 has 2 predicates for 4"),
        (THREE, (8,), "1 modes"),
        (THREE, (1, 3, 2), "mode 1 has 3 predicates for 2"),
    ],
)
def test_predicates_that_do_not_fit(shape: Any, modes: Any, text: str) -> None:
    a = np.zeros(32, np.float32)
    with pytest.raises(TilefoldError, match=text) as caught:
        with_predicates(a, a.copy(), shape, cute.make_layout(modes)).build(1)
    assert caught.value.code == "E0316"


@cute.kernel
def moving(A: cute.Tensor, B: cute.Tensor, shape: cute.Constexpr[Any], bits: cute.Constexpr[int]):
    atom, layout = cute.make_copy_atom(CopyUniversalOp(), cute.Float32, num_bits_per_copy=bits), cute.make_layout(shape)
    cute.copy(atom, cute.make_tensor(A.iterator, layout), cute.make_tensor(B.iterator, layout))


@pytest.mark.parametrize(
    ("shape", "bits", "is_taken"),
    [(((4, 2), 3), 128, True), (((1, 8), 3), 32, True), (((8, 4), 2), 32, False), (((2, 4), 3), 128, False),
     (((6, 2), 3), 128, False)],
)  # fmt: skip
def test_the_first_mode_is_peeled_once(shape: Any, bits: int, is_taken: bool) -> None:
    a = np.arange(cute.size(shape), dtype=np.float32)
    b = np.zeros_like(a)
    if is_taken:
        moving(a, b, shape, bits).launch(grid=1, block=1, device="sim")
        assert np.array_equal(a, b)
        return
    with pytest.raises(TilefoldError, match="values per thread") as caught:
        moving(a, b, shape, bits).build(1)
    assert caught.value.code == "E0310"


@pytest.mark.parametrize(
    ("threads", "values", "layout"),
    [("128:8", "8:1", "(128,8):(1,128)"), ("128:8", "4:1", "(128,4):(1,128)"), ("128:1", "8:1", "(128,8):(8,1)"),
     ("128:1", "8:128", "E0313"), ("128:2", "8:1", "E0202")],
)  # fmt: skip
def test_threads_with_strides(threads: str, values: str, layout: str) -> None:
    atom = cute.make_copy_atom(CopyUniversalOp(), cute.Float32)
    (n, d), (m, e) = ([int(x) for x in text.split(":")] for text in (threads, values))
    given = cute.make_layout(n, stride=d), cute.make_layout(m, stride=e)
    if layout.startswith("E"):
        with pytest.raises(TilefoldError) as caught:
            cute.make_tiled_copy_tv(atom, *given)
        assert caught.value.code == layout
        return
    assert str(cute.make_tiled_copy_tv(atom, *given).layout_tv_tiled) == layout


@cute.kernel
def loading(A: cute.Tensor, B: cute.Tensor, bits: cute.Constexpr[int], columns: cute.Constexpr[int]):
    t, rows = cute.arch.thread_idx()[0], 8
    inner = 64 >> (3 - bits)
    atom = cute.make_composed_layout(cute.make_swizzle(bits, 4, 3), 0, cute.make_layout((8, inner), stride=(inner, 1)))
    layout = cute.tile_to_shape(atom, (rows, columns), (0, 1))
    load, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), A, layout, (rows, columns))
    memory = utils.SmemAllocator()
    full = memory.allocate_array(cute.Int64)
    s = memory.allocate_tensor(cute.Float16, layout.outer, 1024, layout.inner)
    if t == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    tile = cute.group_modes(cute.local_tile(coords, (rows, columns), (0, 0)), 0, 2)
    to, source = cpasync.tma_partition(load, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), tile)
    if t == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(full, rows * columns * 2)
        cute.copy(load, source, to, tma_bar_ptr=full)
    cute.arch.mbarrier_wait(full, 0)
    for row in range(rows):
        for part in cute.range_constexpr(columns // 32):
            B[row, t + 32 * part] = s[row, t + 32 * part]


@pytest.mark.parametrize(("bits", "columns"), [(3, 128), (1, 64)])
def test_a_tile_wider_than_its_swizzle_is_copied_by_several_boxes(bits: int, columns: int) -> None:
    a, b = np.arange(8 * columns, dtype=np.float16).reshape(8, columns), np.zeros((8, columns), np.float16)
    loading(a, b, bits, columns).launch(grid=1, block=32, device="sim")
    assert np.array_equal(a, b)


@cute.kernel
def through_matrices(A: cute.Tensor, B: cute.Tensor, places: cute.Tensor):
    """Stores a fragment of BFloat16 by an atom that is made for Float16, with the coordinates of its values."""
    t = cute.arch.thread_idx()[0]
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.BFloat16, cute.Float32, (16, 8, 16)))
    atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(num_matrices=2), cute.Float16)
    copy = cute.make_tiled_copy_C(atom, mma).get_slice(t)
    tile = cute.make_smem_tensor(cute.make_layout((16, 8), stride=(8, 1)), cute.BFloat16)
    for i in cute.range_constexpr(4):
        tile[t // 8 + i * 4, t % 8] = A[t // 8 + i * 4, t % 8]
    cute.arch.sync_warp()
    part = mma.get_slice(t).partition_C(cute.make_identity_tensor((16, 8)))
    fragment = cute.make_rmem_tensor(part.shape, cute.BFloat16)
    cute.copy(copy, copy.partition_S(tile), copy.retile(fragment))
    at = copy.retile(part)
    for i in cute.range_constexpr(cute.size(at)):
        m, n = at[i]
        B[m, n] = copy.retile(fragment)[i]
        places[t, i] = m * 8 + n


def test_a_copy_moves_elements_of_another_type_as_wide_and_their_coordinates() -> None:
    a = np.arange(128, dtype=np.float32).astype(ml_dtypes.bfloat16).reshape(16, 8)
    b, places = np.zeros_like(a), np.zeros((32, 4), np.int32)
    through_matrices(a, b, places).launch(grid=1, block=32, device="sim")
    assert (a == b).all()
    assert sorted(places.ravel().tolist()) == list(range(128))


class Doubling:
    @cute.jit
    def __call__(self, A: cute.Tensor) -> None:
        self.kernel.set_name_prefix("of_rows")
        self.kernel(A).launch(grid=(1, 1, 1), block=(4, 1, 1))

    @cute.kernel
    def kernel(self, A: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=256)
        row = cute.make_rmem_tensor(8, cute.Float32)
        cute.copy(atom, A[t, None], row)
        row.store(row.load() * 2.0)
        cute.copy(atom, row, A[t, None])


def test_copies_of_256_bits_by_a_method_with_a_name() -> None:
    a = np.arange(32, dtype=np.float32).reshape(4, 8)
    doubling = Doubling()
    doubling.kernel.set_name_prefix("early")
    doubling(a)
    assert np.array_equal(a, 2.0 * np.arange(32).reshape(4, 8))
