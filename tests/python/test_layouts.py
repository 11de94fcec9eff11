# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts in Python: every operation of the algebra has its name, and is the same for integers known at run time."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from tilefold.layout.algebra.inttuple import flatten_to_tuple
from tilefold.layout.text.operations import OPERATIONS

from tests.layout.svg import cells
from tilefold import cute

ELSEWHERE = {
    "get_layoutA_TV": cute.TiledMma, "get_layoutB_TV": cute.TiledMma, "get_layoutC_TV": cute.TiledMma,
    "get_layoutS_TV": cute.TiledCopy, "get_layoutD_TV": cute.TiledCopy, "retile": cute.ThrCopy,
    "partition_S": cute.ThrCopy, "partition_D": cute.ThrCopy, "partition_A": cute.ThrMma, "partition_B": cute.ThrMma,
    "partition_C": cute.ThrMma, "tidfrg_S": cute.TiledCopy, "tidfrg_D": cute.TiledCopy,
    "tile2thrfrg": cute.TiledCopy, "thrfrg_A": cute.TiledMma, "thrfrg_B": cute.TiledMma, "thrfrg_C": cute.TiledMma,
}  # fmt: skip
NAMED = {
    "slice": "slice_", "product": "size", "copy_atom": "make_copy_atom", "mma_atom": "make_mma_atom",
    "make_row_major_layout": "make_ordered_layout", "slice_and_offset": "slice_",
    "ungroup_mode": "flatten",
}  # fmt: skip


def test_every_operation_of_the_algebra_has_a_name() -> None:
    missing = {
        name
        for name in OPERATIONS
        if not hasattr(ELSEWHERE.get(name, cute), name if name in ELSEWHERE else NAMED.get(name, name))
    }
    assert missing == set()


L: Any = cute.make_layout
ON_LAYOUTS: Sequence[Callable[[Any], Any]] = (
    lambda n: L((n, 4), stride=(4, 1)),
    lambda n: L((4, n, 2)),
    lambda n: cute.make_ordered_layout((n, 4), (1, 0)),
    lambda n: cute.composition(L((16, n), stride=(n, 1)), L((4, 2), stride=(2, 1))),
    lambda n: cute.composition(L((16, n), stride=(n, 1)), (4, 2)),
    lambda n: cute.complement(L(4, stride=2), 8 * n),
    lambda n: cute.logical_divide(L((n, 32), stride=(32, 1)), (2, 8)),
    lambda n: cute.zipped_divide(L((n, 32), stride=(32, 1)), (2, 8)),
    lambda n: cute.flat_divide(L((n, 32), stride=(1, n)), [2, 8]),
    lambda n: cute.tiled_divide(L((n, 32), stride=(1, n)), (2, 8)),
    lambda n: cute.logical_product(L((2, 2)), L((n, 3))),
    lambda n: cute.blocked_product(L((2, 2)), L((n, 3))),
    lambda n: cute.raked_product(L((2, 2)), L((n, 3))),
    lambda n: cute.tile_to_shape(L((2, 2)), (n, 4)),
    lambda n: cute.group_modes(L((4, n, 2)), 0, 2),
    lambda n: cute.flatten(L((4, (n, 2)))),
    lambda n: cute.select(L((4, n, 2)), [2, 1]),
    lambda n: cute.take(L((4, n, 2)), 1, 3),
    lambda n: cute.append(L((4, n)), L(3, stride=7)),
    lambda n: cute.prepend(L((4, n)), up_to_rank=4),
    lambda n: cute.filter_zeros(L((4, n), stride=(0, 1))),
    lambda n: cute.replace(L((4, n)), 0, L(2)),
    lambda n: cute.coalesce(L((2, (2, 3), n)), (1, 1, 1)),
    lambda n: cute.recast_layout(cute.Float16, cute.Float32, L((4, n))),
    lambda n: cute.slice_(L((4, n, 2)), (None, 3, None)),
    lambda n: cute.dice(L((4, n, 2)), (None, 3, None)),
    lambda n: cute.get(L((4, (n, 2))), (1, 0)),
    lambda n: cute.make_layout_like(L((4, n), stride=(n, 1))),
)
ON_INTEGERS: Sequence[Callable[[Any], Any]] = (
    lambda n: cute.crd2idx((n - 1, 3), L((n, 4), stride=(4, 1))),
    lambda n: (*cute.idx2crd(13, (n, 4)), *flatten_to_tuple(cute.idx2crd(n, (4, (2, 3))))),
    lambda n: (*cute.ceil_div((n, 17), (3, 4)), cute.ceil_div(17, n)),
    lambda n: (cute.size(L((n, (4, 3))), mode=[1]), cute.size((n, 4)), cute.cosize(L((n, 4), stride=(4, 1)))),
    lambda n: (L((n, 4), stride=(4, 1))((3, 2)), L((n, 4), stride=(4, 1))(7), cute.shape_div(n, 4)),
    lambda n: (*cute.product_each((n, (4, 3))), *cute.slice_((n, 4), (None, 0)), *cute.dice((n, 4), (None, 0))),
    lambda n: cute.append(cute.prepend((n, 4)), 5),
    lambda n: cute.make_composed_layout(cute.make_swizzle(2, 0, 3), 0, L((8, 8)))((n - 1, 5)),
    lambda n: (cute.max_common_vector(L(8), L(4)), cute.is_static((4, 8)), cute.congruent((n, 1), (2, 3))),
)


def integers(function: Callable[[Any], Any], n: Any) -> Iterator[Any]:
    """What a function gives, as the integers that it is made of."""
    found = function(n)
    parts = (found.shape, found.stride) if isinstance(found, cute.Layout) else (found,)
    for part in parts:
        yield from flatten_to_tuple(part)


@cute.kernel
def evaluate(out: cute.Tensor, n: cute.Int32):
    count = 0
    for function in (*ON_LAYOUTS, *ON_INTEGERS):
        for each in integers(function, n):
            out[count] = each
            count += 1


def test_integers_known_at_run_time_give_the_same() -> None:
    wanted = [int(each) for function in (*ON_LAYOUTS, *ON_INTEGERS) for each in integers(function, 8)]
    out = np.full(len(wanted), -1, np.int64)
    evaluate(out, 8).launch(grid=1, block=1, device="sim")
    assert out.tolist() == wanted


@pytest.mark.parametrize("is_static", [True, False])
@pytest.mark.parametrize("stage", ["cute", "instr"])
def test_views_by_modes(stage: str, is_static: bool) -> None:
    """Flat, offset and filtered tensors are the same elements, in memory and in registers."""
    source = np.arange(64, dtype=np.float32).reshape(4, 16)
    out = np.zeros(9, np.float32)

    @cute.kernel
    def views(A: cute.Tensor, out: cute.Tensor, n: cute.Int32):
        moved = cute.domain_offset((1, n), A)
        out[0] = moved[1, 2]
        out[1] = cute.take(A, 1, 2)[5]
        out[2] = cute.append(A, up_to_rank=3)[3, 2, 0]
        registers = cute.make_rmem_tensor((4, 4), cute.Float32)
        registers.fill(0.0)
        flat = cute.flatten(cute.zipped_divide(registers, (2, 2)))
        flat[0, 0, 1, 1] = A[0, 7]
        out[3] = registers[2, 2]
        rows = cute.make_tensor(A.iterator, cute.make_layout((4, 8), stride=(0, 1)))
        out[4] = cute.filter(rows)[6]
        out[5] = cute.size(cute.filter_zeros(rows))
        out[6] = cute.domain_offset(cute.domain_offset(registers, (1, 1)), (1, 1))[0, 0]
        out[7] = cute.size(cute.coalesce(A, (1, 1)), 1)
        row, column = cute.domain_offset((1, n), cute.make_identity_tensor((4, 16)))[1, 2]
        out[8] = row * 16 + column

    views(source if is_static else cute.dynamic(source), out, 3).launch(grid=1, block=1, device="sim", stage=stage)
    assert out.tolist() == [source[2, 5], 5, source[3, 2], 7, 6, 8, 7, 16, 2 * 16 + 5]


@cute.kernel
def sum_from_an_incomplete_tile(A: cute.Tensor, out: cute.Tensor, before: cute.Int32) -> None:
    """The first tile of each row begins `before` elements ahead of the row, as the residue of K does in GEMMs."""
    rows, columns = cute.arch.thread_idx()[0], cute.make_identity_tensor(A.shape)
    for moved, coords in (
        (cute.domain_offset((0, -before), A), cute.domain_offset((0, -before), columns)),
        (cute.domain_offset((0, -3), A), cute.domain_offset((0, -3), columns)),
    ):
        for j in range(8):
            if cute.elem_less(-1, coords[rows, j][1]):
                out[rows] = out[rows] + moved[rows, j]


@pytest.mark.parametrize("is_static", [True, False])
@pytest.mark.parametrize("stage", ["cute", "folded", "instr"])
def test_tensors_begin_before_their_first_element(stage: str, is_static: bool) -> None:
    source = np.arange(64, dtype=np.float32).reshape(4, 16)
    out = np.zeros(4, np.float32)
    given = source if is_static else cute.dynamic(source)
    sum_from_an_incomplete_tile(given, out, 3).launch(grid=1, block=4, device="sim", stage=stage)
    assert out.tolist() == (2 * source[:, :5].sum(1)).tolist()


def test_tiled_copies_and_multiplications_show_themselves() -> None:
    """As CuTe prints them, in one line where they are a part of something, and as pictures in notebooks."""
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128)
    copy = cute.make_tiled_copy_tv(atom, cute.make_layout((8, 4), stride=(4, 1)), cute.make_layout((1, 4)))
    mma = cute.make_tiled_mma(cute.nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32), (2, 2, 1), (32, 32, 16))
    assert repr(copy) == "TiledCopy(CopyAtom(UniversalCopy<uint128_t>, Float32), ((4,8),4):((32,1),8), (8,16))"
    assert str(copy).startswith("TiledCopy\n  Tiler_MN:       (8,16)\n  TiledLayout_TV: ((4,8),4):((32,1),8)\n")
    assert repr(mma) == "TiledMma(SM80_16x8x16_F32F16F16F32_TN, (2,2,1):(1,2,0), (32,32,16))"
    assert str(mma).startswith("TiledMMA\n  ThrLayoutVMNK:  (32,2,2,1):(1,32,64,0)\n  PermutationMNK: (32,32,16)\n")
    for shown, place in ((copy, "T31V3"), (mma, "T127V7")):
        svg = shown._repr_svg_()  # pyright: ignore[reportPrivateUsage]
        assert svg is not None
        assert svg.startswith("<svg")
        assert place in cells(svg)
        assert svg in shown._repr_html_()  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("stage", ["cute", "instr"])
def test_coordinates_of_an_index(stage: str) -> None:
    layout = cute.make_layout(((2, 3), 4), stride=((1, 2), 6))
    assert [layout.get_hier_coord(i) for i in (0, 5, 23)] == [((0, 0), 0), ((1, 2), 0), ((1, 2), 3)]
    assert [layout.get_flat_coord(i) for i in (0, 5, 23)] == [(0, 0), (5, 0), (5, 3)]
    rows = cute.make_layout((4, 6), stride=(6, 1))
    assert (rows.get_flat_coord(8), rows.get_1d_coord(8)) == ((1, 2), 9)
    assert cute.make_layout(8).get_flat_coord(3) == 3

    @cute.kernel
    def coordinates(out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        m, n = rows.get_flat_coord(t)
        out[t] = m + 100 * n

    out = np.zeros(24, np.int32)
    coordinates(out).launch(grid=1, block=24, device="sim", stage=stage)
    assert out.tolist() == [i // 6 + 100 * (i % 6) for i in range(24)]
