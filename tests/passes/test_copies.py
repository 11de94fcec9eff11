# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies between any two layouts: what `expand-copies` makes of them moves what NumPy moves."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilefold.base.spaces import GMEM, RMEM
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.dialects.cute import LayoutAttr
from tilefold.dialects.ptx import SpaceAttr
from tilefold.dialects.tile import AtomCallOp, TensorType
from tilefold.layout.algebra.core import Layout, LayoutLike, plain_layout
from tilefold.layout.text.layouts import parse_layout, to_text
from tilefold.layout.tiling.copy_loops import repeats
from tilefold.passes.analysis.vector_width import MAX_BITS, choose_vector
from tilefold.runtime.arrays.storage import element_indices, storage_size
from xdsl.dialects.builtin import IntAttr, f16

from tests.examples import examples
from tests.passes.harness import execute, kernel, lowered

SIZES = st.sampled_from([1, 2, 3, 4, 6, 8, 12, 16])


def _factors(draw: Any, size: int) -> list[int]:
    """A way to write `size` as a product."""
    divisors = [d for d in range(2, size) if size % d == 0]
    if not divisors or draw(st.booleans()):
        return [size]
    first = draw(st.sampled_from(divisors))
    return [first, *_factors(draw, size // first)]


def _layout(draw: Any, sizes: list[int], injective: bool) -> Layout:
    """A layout with modes of these sizes, each of any profile; strides continue each other, leave gaps, or repeat."""
    modes: list[list[int]] = [_factors(draw, size) for size in sizes]
    places = [(i, j) for i, mode in enumerate(modes) for j in range(len(mode))]
    strides: dict[tuple[int, int], int] = {}
    span: int = 1
    order: list[tuple[int, int]] = draw(st.permutations(places))
    for i, j in order:
        unit: int = draw(st.sampled_from([1, 1, 1, 2, 8]))
        strides[i, j] = -(-span // unit) * unit
        span += strides[i, j] * (modes[i][j] - 1)
        if not injective and draw(st.integers(0, 5)) == 0:
            strides[i, j] = draw(st.sampled_from([0, 1]))
    shape = tuple(tuple(mode) if len(mode) > 1 else mode[0] for mode in modes)
    stride = tuple(
        tuple(strides[i, j] for j in range(len(mode))) if len(mode) > 1 else strides[i, 0]
        for i, mode in enumerate(modes)
    )
    return Layout(shape, stride)


@st.composite
def pairs(draw: Any) -> tuple[LayoutLike, LayoutLike]:
    """A source and a destination of equal sizes; the destination's elements are distinct. Either may be swizzled."""
    sizes = draw(st.lists(SIZES, min_size=1, max_size=3).filter(lambda n: math.prod(n) <= 256))
    found: list[LayoutLike] = []
    for injective in (False, True):
        layout = _layout(draw, sizes, injective)
        swizzle = draw(st.sampled_from(["", "", "S<1,0,2> o 0 o ", "S<2,3,3> o 0 o ", "S<2,1,2> o 8 o "]))
        found.append(parse_layout(swizzle + to_text(layout)))
    return found[0], found[1]


def tensor(layout: LayoutLike, align: int) -> TensorType:
    """A tensor of f16 in global memory."""
    return TensorType(f16, SpaceAttr(GMEM), IntAttr(align), LayoutAttr(layout))


@given(pairs(), st.sampled_from([2, 4, 8, 16]), st.sampled_from([2, 16]))
def test_copies_move_what_numpy_moves(layouts: tuple[LayoutLike, LayoutLike], first: int, second: int) -> None:
    src, dst = layouts
    text = kernel("tile.copy %A, %B", f"%A: {tensor(src, first)}, %B: {tensor(dst, second)}", "1")
    a = np.arange(storage_size(src), dtype=np.float16)
    expected = np.full(storage_size(dst), -1, np.float16)
    expected[element_indices(dst)] = a[element_indices(src)]
    for stage in ("folded", "atoms", "instr"):
        b = np.full(storage_size(dst), -1, np.float16)
        execute(lowered(text, stage), {"A": a.copy(), "B": b}, threads=1)
        assert (b == expected).all(), stage


@given(pairs(), st.sampled_from([2, 4, 8, 16]), st.sampled_from([2, 4, 8, 16]), st.sampled_from([16, 32, 64, 128]))
def test_the_width_is_what_layouts_and_alignment_allow(
    layouts: tuple[LayoutLike, LayoutLike], first: int, second: int, most: int
) -> None:
    src, dst = tensor(layouts[0], first), tensor(layouts[1], second)
    choice = choose_vector(src, dst, most)
    assert choice.bits <= min(most, MAX_BITS)
    assert f"{choice.bits} bits" in choice.remark
    assert first * 8 % choice.bits == 0
    assert second * 8 % choice.bits == 0
    count = choice.bits // 16
    for type, values in zip((src, dst), choice.values, strict=True):
        assert plain_layout(values).size == count
        if not type.is_swizzled:
            assert [plain_layout(values)(i) for i in range(count)] == list(range(count))
    loops = math.prod(repeat.extent for repeat in choice.rest)
    assert loops * count == plain_layout(src.layout.data).size


@given(pairs())
def test_loops_walk_both_layouts_in_step(layouts: tuple[LayoutLike, LayoutLike]) -> None:
    src, dst = plain_layout(layouts[0]), plain_layout(layouts[1])
    loops = repeats([src[i] for i in range(len(src))], [dst[i] for i in range(len(dst))])
    walked: list[tuple[int, int]] = [(0, 0)]
    for loop in loops:
        walked = [(a + loop.modes[0](i), b + loop.modes[1](i)) for i in range(loop.extent) for a, b in walked]
    assert walked == [(src(i), dst(i)) for i in range(src.size)]


@pytest.mark.parametrize(
    ("src", "dst", "remark"),
    [
        (
            "((2,3)):((17,1))",
            "((3,2)):((1,4))",
            "16 bits: 1 element at a time; 32 bits rejected: 1 element is adjacent",
        ),
        (
            "(2,3,2):(3,1,6)",
            "(2,3,2):(3,1,6)",
            "16 bits: 1 element at a time; 64 bits rejected: the layouts do not divide",
        ),
    ],
)
def test_adjacent_elements_that_no_layout_groups(src: str, dst: str, remark: str) -> None:
    choice = choose_vector(tensor(parse_layout(src), 16), tensor(parse_layout(dst), 16), 64 if "64" in remark else 32)
    assert choice.remark.startswith(remark)


def test_loops_are_merged_where_one_serves_for_two() -> None:
    loops = repeats([Layout(4, 1), Layout(8, 4)], [Layout((2, 2), (2, 4)), Layout(8, 8)])
    assert [(loop.extent, loop.modes) for loop in loops] == [(32, (Layout(32, 1), Layout(32, 2)))]


@pytest.mark.parametrize(
    ("atom", "loops", "bits"),
    [("AutoVectorizingCopy", 1, 128), ("DefaultCopy", 8, 16), ("AutoVectorizingCopyWithAssumedAlignment<32>", 4, 32)],
)
def test_atoms_that_leave_the_width_to_the_compiler(atom: str, loops: int, bits: int) -> None:
    type = '!tile.tensor<f16, gmem, align<16>, "8:1">'
    part = type.replace("8:1", "((1,8)):((0,1))")
    body = f'%a = tile.view %A : {part}\n%b = tile.view %B : {part}\ntile.copy #tile.copy_atom<"{atom}", f16> %a, %b'
    module = lowered(kernel(body, f"%A: {type}, %B: {type}"), "atoms")
    (call,) = [op for op in module.walk() if isinstance(op, AtomCallOp)]
    assert call.atom.atom_name == f"UniversalCopy<uint{bits}_t>"
    extents = [op.operands[1] for op in module.walk() if op.name == "scf.for"]
    assert len(extents) == (loops > 1)


def test_a_swizzled_view_is_copied_in_pieces_that_the_swizzle_keeps() -> None:
    smem = '!tile.tensor<f16, smem, align<128>, "S<2,3,3> o 0 o (8,32):(32,1)">'
    body = (
        f"%t = gpu.thread_id x\n%s = tile.alloc : {smem}\n%row = tile.slice %s, (%t, _)\n"
        '%r = tile.alloc : !tile.tensor<f16, rmem, align<16>, "32:1">\ntile.copy %r, %row'
    )
    module = lowered(kernel(body, threads="8"), "atoms")
    (call,) = [op for op in module.walk() if isinstance(op, AtomCallOp)]
    assert call.atom.atom_name == "UniversalCopy<uint128_t>"
    assert "S<2,3,3> o ?{div=8} o" in str(call.dst.type)


def test_an_atom_that_does_not_fit_is_refused_before_any_pass() -> None:
    with pytest.raises(ProgramError) as caught:
        lowered(
            kernel(
                '%t = gpu.thread_id x\n%c = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint128_t>", f16>'
                ' thr "32:1" val "8:1"\n%p = tile.partition_S %c, %A, %t\n%q = tile.partition_D %c, %B, %t\n'
                "tile.copy %c, %p, %q",
                '%A: !tile.tensor<f16, gmem, align<16>, "256:2">, %B: !tile.tensor<f16, gmem, align<16>, "256:1">',
            ),
            "atoms",
        )
    assert caught.value.code == "E0311"


@st.composite
def predicated_copies(draw: Any) -> tuple[Layout, Layout, Layout]:
    """A source, a destination, and predicates with the same modes, some of stride 0."""
    src, dst = draw(pairs())
    src, dst = plain_layout(src), plain_layout(dst)
    modes = [src[i].size for i in range(len(src))]
    span, strides = 1, list[int]()
    for size in modes:
        shared = draw(st.booleans())
        strides.append(0 if shared else span)
        span *= 1 if shared else size
    return src, dst, Layout(tuple(modes), tuple(strides))


@given(predicated_copies(), st.integers(0, 2**32 - 1))
@settings(max_examples=examples(12))
def test_copies_under_predicates_move_what_numpy_moves(layouts: tuple[Layout, Layout, Layout], seed: int) -> None:
    src, dst, pred = layouts
    flags = np.random.default_rng(seed).integers(0, 2, storage_size(pred), np.int32)
    body = f"""
%p = tile.alloc : !tile.tensor<i1, rmem, align<1>, "{to_text(pred)}">
%whole = tile.view %p : !tile.tensor<i1, rmem, align<1>, "{len(flags)}:1">
%zero = arith.constant 0 : i32
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%n = arith.constant {len(flags)} : index
scf.for %i = %c0 to %n step %c1 {{
  %f = tile.load %F(%i)
  %b = arith.cmpi ne, %f, %zero : i32
  tile.store %b, %whole(%i)
}} {{unroll}}
tile.copy %A, %B if %p
"""
    types = f"%A: {tensor(src, 16)}, %B: {tensor(dst, 16)}"
    text = kernel(body, f'{types}, %F: !tile.tensor<i32, gmem, align<4>, "{len(flags)}:1">', "1")
    a = np.arange(storage_size(src), dtype=np.float16)
    expected = np.full(storage_size(dst), -1, np.float16)
    chosen = flags[element_indices(pred)].astype(bool)
    expected[element_indices(dst)[chosen]] = a[element_indices(src)[chosen]]
    for stage in ("cute", "atoms", "instr"):
        b = np.full(storage_size(dst), -1, np.float16)
        execute(lowered(text, stage), {"A": a.copy(), "B": b, "F": flags}, threads=1)
        assert (b == expected).all(), stage


def test_a_predicate_for_several_elements_keeps_an_access_wide() -> None:
    type = tensor(parse_layout("(8,4):(1,8)"), 16)
    assert choose_vector(type, type, 128, Layout((8, 4), (0, 1))).bits == 128
    own = choose_vector(type, type, 128, Layout((8, 4), (1, 8)))
    assert own.bits == 16
    assert own.remark == (
        "16 bits: 1 element at a time; 128 bits rejected: 8 adjacent elements have different predicates"
    )


def test_a_fragment_asks_nothing_of_the_other_side() -> None:
    """Its registers are in another order, and those of one access lie apart."""
    memory = tensor(parse_layout("(4,4):(16,1)"), 8)
    fragment = TensorType(f16, SpaceAttr(RMEM), IntAttr(16), LayoutAttr(Layout((4, 4), (1, 4))))
    for sides, role in (((memory, fragment), "source"), ((fragment, memory), "destination")):
        choice = choose_vector(*sides, 128)
        assert choice.remark == f"64 bits: 4 elements at a time; 128 bits rejected: 4 elements are adjacent in {role}"


def test_both_reasons_are_given_where_they_differ() -> None:
    type = tensor(parse_layout("(2,4):(1,8)"), 16)
    assert choose_vector(type, type, 128, Layout((2, 4), (1, 2))).remark == (
        "16 bits: 1 element at a time; 128 bits rejected: 2 elements are adjacent in source and destination; "
        "32 bits rejected: 2 adjacent elements have different predicates"
    )
