# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the `cute` dialect refuses: values out of place in a type, and operands that an operation is not defined for."""

import pytest
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.frontend.program import parse_program
from tilefold.compiler.frontend.source import Source
from tilefold.compiler.pipeline import make_context

TYPES = {
    '!cute.int_tuple<"(1,_)">': "E0101",
    '!cute.int_tuple<"1@0">': "E0105",
    '!cute.int_tuple<"?{i8}">': "E0105",
    '!cute.int_tuple<"?{div=8}">': "E0105",
    "!cute.int_tuple<32>": "E1001",
    '!cute.coord<"(1,,2)">': "E0101",
    '!cute.shape<"(1@0,2)">': "E0105",
    '!cute.stride<"(1,1@0)">': "E0213",
    '!cute.stride<"(1@1@0,1@0)">': "E0213",
    '!cute.layout<"(0,3):(1,2)">': "E0205",
    '!cute.layout<"(2,3):(1,2,4)">': "E0104",
    '!cute.layout<"S<3,4,3> o 0 o 8:1">': "E0105",
    '!cute.tile<"[(2,3):(1,1@0)]">': "E0213",
    '!cute.composed_layout<"8:1">': "E0105",
    '!cute.composed_layout<"S<0,4,3> o 0 o 8:1">': "E0213",
    '!cute.composed_layout<"S<3,4,3> o 0 o (4,2):(1@0,1@1)">': "E0211",
    '!cute.composed_layout<"(4,5):(1,4) o 0 o ((?,?)):((?@0@0,?@1@0))">': "E0201",
    '!cute.swizzle<"S<5,29,5>">': "E0210",
}
"""Types, and the code that each is refused with."""

OPERATIONS: list[tuple[str, str, list[str], list[str], str]] = [
    ("cute.static", "", [], ['!cute.shape<"?">'], "E0207"),
    ("cute.make_shape", "", ["i32"], ['!cute.shape<"(?,?)">'], "E0213"),
    ("cute.make_shape", "", ["i64"], ['!cute.shape<"?">'], "E0213"),
    ("cute.make_shape", "", ['!cute.int_tuple<"4294967296">'], ['!cute.shape<"?">'], "E0213"),
    ("cute.make_layout", "", ['!cute.shape<"(2,3)">', '!cute.stride<"1">'], ['!cute.layout<"6:1">'], "E0201"),
    ("cute.make_layout", "", ['!cute.shape<"6">', '!cute.stride<"1">'], ['!cute.layout<"6:2">'], "E0213"),
    ("cute.make_layout_like", "", ['!cute.layout<"4:1@0">'], ['!cute.layout<"4:1">'], "E0213"),
    ("cute.make_ordered_layout", "", ['!cute.shape<"4">', '!cute.int_tuple<"?">'], ['!cute.layout<"4:1">'], "E0207"),
    ("cute.make_ordered_layout", "", ['!cute.shape<"4">', '!cute.int_tuple<"(0,1)">'],
     ['!cute.layout<"4:1">'], "E0201"),
    ("cute.get_shape", "", ['!cute.tile<"[4:1;_]">'], ['!cute.shape<"4">'], "E0213"),
    ("cute.get", "<{mode = array<i32: 2>}>", ['!cute.shape<"(4,8)">'], ['!cute.shape<"4">'], "E0208"),
    ("cute.get", "<{mode = array<i32: 0, 0>}>", ['!cute.shape<"(4,8)">'], ['!cute.shape<"4">'], "E0208"),
    ("cute.select", "<{mode = array<i32: -1>}>", ['!cute.shape<"(4,8)">'], ['!cute.shape<"(4)">'], "E0208"),
    ("cute.to_int_tuple", "", ['!cute.coord<"(_,1)">'], ['!cute.int_tuple<"(1,1)">'], "E0213"),
    ("cute.get_layouts_from_tile", "", ['!cute.tile<"[_;_]">'], [], "E0213"),
    ("cute.composition", "", ['!cute.layout<"(6,2):(8,2)">', '!cute.layout<"4:4">'],
     ['!cute.layout<"4:1">'], "E0203"),
    ("cute.coalesce", "", ['!cute.layout<"4:1">', '!cute.coord<"(1,1)">'], ['!cute.layout<"4:1">'], "E0202"),
    ("cute.complement", "", ['!cute.layout<"?:1">'], ['!cute.layout<"1:4">'], "E0207"),
    ("cute.complement", "", ['!cute.layout<"(4,4):(1,2)">', '!cute.shape<"32">'], ['!cute.layout<"1:4">'], "E0206"),
    ("cute.group_modes", "<{begin = 1 : i32, end = 1 : i32}>", ['!cute.layout<"(4,8):(1,4)">'],
     ['!cute.layout<"(4,8):(1,4)">'], "E0208"),
    ("cute.recast_layout", "<{new_type_bits = 0 : i32, old_type_bits = 8 : i32}>", ['!cute.layout<"8:1">'],
     ['!cute.layout<"8:1">'], "E0213"),
    ("cute.recast_layout", "<{new_type_bits = 32 : i32, old_type_bits = 8 : i32}>", ['!cute.layout<"(3,8):(3,9)">'],
     ['!cute.layout<"8:1">'], "E0203"),
    ("cute.slice", "", ['!cute.shape<"(4,8)">', '!cute.coord<"(_,_,_)">'], ['!cute.shape<"(4,8)">'], "E0201"),
    ("cute.dice", "", ['!cute.shape<"(4,8)">', '!cute.coord<"(?,_)">'], ['!cute.shape<"(4)">'], "E0207"),
    ("cute.right_inverse", "", ['!cute.layout<"?:1">'], ['!cute.layout<"4:1">'], "E0207"),
    ("cute.left_inverse", "", ['!cute.layout<"4:?">'], ['!cute.layout<"4:1">'], "E0207"),
    ("cute.cosize", "", ['!cute.composed_layout<"8:2 o 1 o 4:1">'], ['!cute.int_tuple<"4">'], "E0211"),
    ("cute.layout_eval", "", ['!cute.coord<"(1,2,3)">', '!cute.layout<"(4,8):(1,4)">'],
     ['!cute.int_tuple<"9">'], "E0202"),
    ("cute.crd2idx", "", ['!cute.coord<"(1,(2,3))">', '!cute.shape<"(4,8)">'], ['!cute.int_tuple<"9">'], "E0201"),
    ("cute.idx2crd", "", ['!cute.int_tuple<"(1,2,3)">', '!cute.shape<"(4,8)">'], ['!cute.coord<"(1,2)">'], "E0202"),
    ("cute.increment_coord", "", ['!cute.coord<"1">', '!cute.shape<"(4,8)">'], ['!cute.coord<"(2,0)">'], "E0201"),
    ("cute.append_to_rank", "<{rank = 0 : i32}>", ['!cute.shape<"4">', '!cute.shape<"1">'],
     ['!cute.shape<"4">'], "E0213"),
    ("cute.prepend_to_rank", "<{rank = 2 : i32}>", ['!cute.shape<"4">', '!cute.stride<"1">'],
     ['!cute.shape<"4">'], "E0213"),
    ("cute.tuple_add", "", ['!cute.shape<"(4,8)">', '!cute.shape<"1">'], ['!cute.shape<"(5,9)">'], "E0201"),
    ("cute.tuple_sub", "", ['!cute.shape<"4">', '!cute.int_tuple<"1">'], ['!cute.shape<"3">'], "E0213"),
    ("cute.shape_div", "", ['!cute.shape<"7">', '!cute.shape<"3">'], ['!cute.shape<"3">'], "E0204"),
    ("cute.ceil_div", "", ['!cute.shape<"7">', '!cute.shape<"0">'], ['!cute.shape<"3">'], "E0213"),
    ("cute.elem_less", "", ['!cute.shape<"7">', '!cute.shape<"(1,2)">'], ["i1"], "E0201"),
    ("cute.equal", "", ['!cute.shape<"7">', '!cute.coord<"7">'], ["i1"], "E0213"),
    ("cute.logical_product", "", ['!cute.layout<"?:1">', '!cute.layout<"3:1">'], ['!cute.layout<"4:1">'], "E0207"),
    ("cute.blocked_product", "", ['!cute.layout<"4:1">', '!cute.layout<"3:1@0">'], ['!cute.layout<"4:1">'], "E0213"),
    ("cute.logical_divide", "", ['!cute.layout<"16:1">', '!cute.shape<"(4,2)">'], ['!cute.layout<"4:1">'], "E0202"),
    ("cute.zipped_divide", "", ['!cute.layout<"16:1">', '!cute.layout<"(2,2):(?,?)">'],
     ['!cute.layout<"4:1">'], "E0207"),
    ("cute.tile_to_shape", "", ['!cute.layout<"4:1">', '!cute.shape<"(4,8)">', '!cute.int_tuple<"(0,0)">'],
     ['!cute.layout<"4:1">'], "E0213"),
    ("cute.make_int_tuple", "", ["i64"], ['!cute.int_tuple<"?">'], "E0213"),
    ("cute.make_stride", "", [], ['!cute.stride<"?@0">'], "E0213"),
    ("cute.make_coord", "", ["i32"], ['!cute.coord<"_">'], "E0213"),
    ("cute.make_tile", "", ['!cute.int_tuple<"(2,3)">'], ['!cute.tile<"[?:1]">'], "E0213"),
    ("cute.make_composed_layout", "",
     ['!cute.swizzle<"S<2,0,3>">', '!cute.int_tuple<"(0,0)">', '!cute.layout<"8:1">'],
     ['!cute.composed_layout<"S<2,0,3> o 0 o 8:1">'], "E0211"),
    ("cute.make_identity_layout", "", ['!cute.shape<"(4,8)">'], ['!cute.layout<"(4,8):(1@1,1@0)">'], "E0213"),
    ("cute.print", "", ["i32"], [], "E1003"),
    ("cute.get_stride", "", ['!cute.layout<"4:2">'], ['!cute.stride<"1">'], "E0213"),
    ("cute.composed_get_inner", "", ['!cute.composed_layout<"S<2,0,3> o 0 o 8:1">'],
     ['!cute.swizzle<"S<1,0,3>">'], "E0213"),
    ("cute.composed_get_offset", "", ['!cute.composed_layout<"S<2,0,3> o 8 o 8:1">'],
     ['!cute.int_tuple<"0">'], "E0213"),
    ("cute.composed_get_outer", "", ['!cute.composed_layout<"S<2,0,3> o 0 o 8:1">'], ['!cute.layout<"8:2">'], "E0213"),
    ("cute.get_leaves", "", ['!cute.shape<"(4,?)">'], ['!cute.shape<"4">'], "E0213"),
    ("cute.get_scalars", "", ['!cute.shape<"?{i64}">'], ["i32"], "E0213"),
    ("cute.to_shape", "", ['!cute.int_tuple<"(4,8)">'], ['!cute.shape<"32">'], "E0213"),
    ("cute.to_stride", "", ['!cute.int_tuple<"(1,?)">'], ['!cute.stride<"(1,4)">'], "E0213"),
    ("cute.to_coord", "", ['!cute.int_tuple<"(1,2)">'], ['!cute.coord<"(1,_)">'], "E0213"),
    ("cute.flatten", "", ['!cute.shape<"(2,(3,4))">'], ['!cute.shape<"(2,12)">'], "E0213"),
    ("cute.size", "<{mode = array<i32: 2>}>", ['!cute.shape<"(4,8)">'], ['!cute.int_tuple<"1">'], "E0208"),
    ("cute.tuple_product", "", ['!cute.shape<"(4,8)">'], ['!cute.shape<"12">'], "E0213"),
    ("cute.tuple_product_each", "", ['!cute.shape<"(4,(2,3))">'], ['!cute.shape<"24">'], "E0213"),
    ("cute.zipped_product", "", ['!cute.layout<"4:1">', '!cute.layout<"3:1@0">'], ['!cute.layout<"4:1">'], "E0213"),
    ("cute.tiled_product", "", ['!cute.layout<"4:?">', '!cute.layout<"3:1">'], ['!cute.layout<"4:1">'], "E0207"),
    ("cute.flat_product", "", ['!cute.layout<"4:1@0">', '!cute.layout<"?:1">'], ['!cute.layout<"4:1">'], "E0207"),
    ("cute.raked_product", "", ['!cute.layout<"4:1">', '!cute.layout<"3:1">'], ['!cute.layout<"12:1">'], "E0213"),
    ("cute.tiled_divide", "", ['!cute.layout<"16:1">', '!cute.tile<"[4:1;2:1]">'], ['!cute.layout<"16:1">'], "E0202"),
    ("cute.flat_divide", "", ['!cute.layout<"16:1">', '!cute.tile<"[2:1@0]">'], ['!cute.layout<"16:1">'], "E0213"),
]  # fmt: skip
"""An operation, its properties, the types of its operands and results, and the code that it is refused with."""


def codes(text: str) -> list[tuple[str, int]]:
    """The code and line of every diagnostic that a program is refused with."""
    try:
        parse_program(Source("test", text, text), make_context())
    except ProgramError as error:
        return [(d.code or "", d.place.line if d.place else 0) for d in error.diagnostics]
    return []


@pytest.mark.parametrize(("kind", "code"), TYPES.items())
def test_type_is_refused(kind: str, code: str) -> None:
    assert codes(f"module {{\n func.func private @f({kind}) -> ()\n}}") == [(code, 2)]


@pytest.mark.parametrize(("name", "properties", "operands", "results", "code"), OPERATIONS)
def test_operation_is_refused(name: str, properties: str, operands: list[str], results: list[str], code: str) -> None:
    parameters = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(operands))
    names = ", ".join(f"%a{i}" for i in range(len(operands)))
    types = f"({', '.join(operands)}) -> ({', '.join(results)})"
    left = "%r = " if results else ""
    text = f'func.func @f({parameters}) {{\n  {left}"{name}"({names}) {properties} : {types}\n  return\n}}'
    assert codes(text) == [(code, 2)]


def refused(operand: str, operation: str) -> list[tuple[str, int]]:
    """The diagnostics of an operation on line 2, whose operand `%a` is of the type `operand`."""
    return codes(f"func.func @f(%a: {operand}) {{\n  {operation}\n  return\n}}")


def test_a_type_out_of_place_in_the_short_form() -> None:
    assert refused('!cute.layout<"4:1">', '%d = cute.get_stride(%a) : <"4:"> -> !cute.stride<"1">') == [("E0101", 2)]


def test_operand_of_another_kind_is_named_before_results_are_inferred() -> None:
    swizzle = '!cute.swizzle<"S<3,4,3>">'
    assert refused(swizzle, f"%d = cute.get_leaves(%a) : {swizzle}") == [("E1003", 2)]


def test_strides_of_extents_of_one_do_not_matter() -> None:
    layout = '!cute.layout<"(1,4):(0,1)">'
    assert refused(layout, f'%d = cute.flatten(%a) : ({layout}) -> !cute.layout<"(1,4):(7,1)">') == []
    assert refused(layout, f'%d = cute.flatten(%a) : ({layout}) -> !cute.layout<"(1,4):(0,2)">') == [("E0213", 2)]
