# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of the `cute` dialect while they run: one for each lane, exact, and the same after every stage of lowering."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilefold.layout.algebra.coordinates import crd2idx, idx2crd
from tilefold.layout.algebra.core import Layout, cosize, size
from tilefold.layout.text.layouts import parse_layout, to_text
from tilefold.runtime.sim.values.lane_int import LaneInt, ZeroDivisorError, number

from tests.host.harness import everywhere, kernel, main_of, refused, run

HEAD = "%t = gpu.thread_id x\n%i = arith.index_cast %t : index to i32\n"
INTEGERS = st.integers(-(2**70), 2**70)


def _any(value: int) -> Any:
    return LaneInt(value)


@given(INTEGERS, INTEGERS)
def test_division_rounds_toward_zero_exactly(a: int, b: int) -> None:
    if b == 0:
        with pytest.raises(ZeroDivisorError):
            _any(a).__floordiv__(0)
        return
    quotient, remainder = number(_any(a) // b), number(a % _any(b))
    assert quotient * b + remainder == a
    assert abs(remainder) < abs(b)
    assert remainder == 0 or (remainder < 0) == (a < 0)
    up = number(LaneInt(a).ceil_div(a, LaneInt(b)))
    assert up == -(-a // b)


@pytest.mark.parametrize("text", ["(4,8):(1,4)", "(4,(2,4)):(8,(1,2))", "32:3", "(8,4):(4,1)"])
def test_each_lane_has_its_own_coordinate(text: str) -> None:
    layout = parse_layout(text)
    assert isinstance(layout, Layout)
    body = (
        HEAD + f'%c = cute.make_coord(%i) : (i32) -> !cute.coord<"?">\n%l = cute.static : !cute.layout<"{text}">\n'
        f'%s = cute.get_shape(%l) : !cute.layout<"{text}"> -> !cute.shape<"{to_text(layout.shape)}">\n'
        '%n = cute.make_int_tuple(%i) : (i32) -> !cute.int_tuple<"?">\n'
    )
    coord = to_text(layout.shape).translate({ord(digit): "?" for digit in "0123456789"})
    indexed = idx2crd(0, layout.shape)
    assert indexed is not None
    evaluated = (
        f'%r = cute.idx2crd(%n, %s) : (!cute.int_tuple<"?">, !cute.shape<"{to_text(layout.shape)}">)'
        f' -> !cute.coord<"{_marks(coord)}">\ncute.print(%r) : !cute.coord<"{_marks(coord)}">'
    )
    lines = everywhere(kernel(body + evaluated, threads=32)).splitlines()
    assert lines == [to_text(idx2crd(i, layout.shape)) for i in range(32)]
    if not isinstance(layout.shape, tuple):
        return
    body += (
        f'%e = cute.layout_eval(%r, %l) : (!cute.coord<"{_marks(coord)}">, !cute.layout<"{text}">)'
        ' -> !cute.int_tuple<"?">\ncute.print(%e) : !cute.int_tuple<"?">'
    ).replace("%e =", evaluated.split("\n")[0] + "\n%e =")
    lines = everywhere(kernel(body, threads=32)).splitlines()
    assert lines == [str(crd2idx(i, layout.shape, layout.stride)) for i in range(32)]


def _marks(text: str) -> str:
    while "??" in text:
        text = text.replace("??", "?")
    return text


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 40), st.integers(0, 40))
def test_sizes_of_dynamic_layouts(m: int, n: int, a: int, b: int) -> None:
    layout = Layout((m, n), (a, b))
    body = "\n".join(
        f"%{name} = arith.constant {value} : i32" for name, value in zip("mnab", (m, n, a, b), strict=True)
    )
    kind = '!cute.layout<"(?,?):(?,?)">'
    body += (
        '\n%s = cute.make_shape(%m, %n) : (i32, i32) -> !cute.shape<"(?,?)">\n'
        '%d = cute.make_stride(%a, %b) : (i32, i32) -> !cute.stride<"(?,?)">\n'
        f'%l = cute.make_layout(%s, %d) : (!cute.shape<"(?,?)">, !cute.stride<"(?,?)">) -> {kind}\n'
        f'%x = cute.size(%l) : ({kind}) -> !cute.int_tuple<"?">\n'
        f'%y = cute.cosize(%l) : ({kind}) -> !cute.int_tuple<"?">\n'
        f'cute.print(%l) : {kind}\ncute.print(%x) : !cute.int_tuple<"?">\ncute.print(%y) : !cute.int_tuple<"?">'
    )
    assert run(main_of(body)).splitlines() == [to_text(layout), str(size(layout)), str(cosize(layout))]


def test_lanes_that_branch_keep_their_values() -> None:
    body = (
        HEAD
        + """
      %two = arith.constant 2 : i32
      %less = arith.cmpi slt, %i, %two : i32
      %s = scf.if %less -> (!cute.shape<"(?,4)">) {
        %a = cute.make_shape(%i) : (i32) -> !cute.shape<"(?,4)">
        scf.yield %a : !cute.shape<"(?,4)">
      } else {
        %b = cute.make_shape(%two) : (i32) -> !cute.shape<"(?,4)">
        scf.yield %b : !cute.shape<"(?,4)">
      }
      %n = cute.tuple_product(%s) : (!cute.shape<"(?,4)">) -> !cute.shape<"?">
      cute.print(%n) : !cute.shape<"?">"""
    )
    assert everywhere(kernel(body)) == "0\n4\n8\n8\n"


def test_comparisons_differ_between_lanes() -> None:
    body = (
        HEAD
        + """
      %c = cute.make_coord(%i) : (i32) -> !cute.coord<"(?,1)">
      %s = cute.static : !cute.shape<"(2,4)">
      %d = cute.static : !cute.coord<"(3,1)">
      %l = cute.elem_less(%c, %s) : (!cute.coord<"(?,1)">, !cute.shape<"(2,4)">) -> i1
      %e = cute.equal(%c, %d) : (!cute.coord<"(?,1)">, !cute.coord<"(3,1)">) -> i1
      %x = arith.extui %l : i1 to i32
      %y = arith.extui %e : i1 to i32
      gpu.printf "%d%d ", %x, %y : i32, i32"""
    )
    assert everywhere(kernel(body)) == "10 10 00 01 "


def test_integers_that_do_not_fit_are_refused_not_wrapped() -> None:
    body = (
        '%n = arith.constant 65536 : i32\n%s = cute.make_shape(%n, %n) : (i32, i32) -> !cute.shape<"(?,?)">\n'
        '%p = cute.size(%s) : (!cute.shape<"(?,?)">) -> !cute.int_tuple<"?">'
    )
    error = refused(main_of(body), "E3209")
    assert "4294967296 does not fit in 32 bits" in error.message
    wide = body.replace("i32", "i64").replace('"(?,?)"', '"(?{i64},?{i64})"').replace('"?"', '"?{i64}"')
    assert run(main_of(wide + '\ncute.print(%p) : !cute.int_tuple<"?{i64}">')) == "4294967296\n"


def test_division_by_zero_names_the_lane() -> None:
    body = (
        HEAD
        + """
      %n = arith.constant 12 : i32
      %one = arith.constant 1 : i32
      %j = arith.subi %i, %one : i32
      %a = cute.make_int_tuple(%n) : (i32) -> !cute.int_tuple<"?">
      %b = cute.make_int_tuple(%j) : (i32) -> !cute.int_tuple<"?">
      %q = cute.ceil_div(%a, %b) : (!cute.int_tuple<"?">, !cute.int_tuple<"?">) -> !cute.int_tuple<"?">"""
    )
    error = refused(kernel(body), "E3209")
    assert "thread (1,0,0): division by zero" in error.message
    guarded = body.replace(
        "%q = cute.ceil_div", "%go = arith.cmpi sgt, %j, %one : i32\nscf.if %go {\n%q = cute.ceil_div"
    )
    assert everywhere(kernel(guarded + '\ncute.print(%q) : !cute.int_tuple<"?">\n}')) == "6\n"


PRINTED = {
    '!cute.int_tuple<"(1,(2,3))">': "(1,(2,3))",
    '!cute.coord<"(_,(2,_))">': "(_,(2,_))",
    '!cute.shape<"()">': "()",
    '!cute.stride<"(1@0,2@0@1)">': "(1@0,2@0@1)",
    '!cute.layout<"(4,8):(1,4)">': "(4,8):(1,4)",
    '!cute.tile<"[4:1;_;(2,2):(1,8)]">': "[4:1;_;(2,2):(1,8)]",
    '!cute.tile<"4:1">': "4:1",
    '!cute.composed_layout<"S<2,4,3> o 0 o (8,8):(8,1)">': "S<2,4,3> o 0 o (8,8):(8,1)",
    '!cute.swizzle<"S<2,4,3>">': "S<2,4,3>",
}


@pytest.mark.parametrize("kind", PRINTED)
def test_static_values_print_as_types_write_them(kind: str) -> None:
    body = f"%v = cute.static : {kind}\ncute.print(%v) : {kind}"
    assert run(main_of(body)) == PRINTED[kind] + "\n"
    assert everywhere(kernel(body, threads=2)) == 2 * (PRINTED[kind] + "\n")
