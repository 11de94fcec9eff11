# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An example of every operation, with what the layout algebra computes for it. `forms.py` makes programs of them."""

from typing import Any

from tilefold.layout import (
    coalesce,
    complement,
    composition,
    left_inverse,
    recast_layout,
    right_inverse,
)
from tilefold.layout.algebra import modes
from tilefold.layout.algebra.complement import open_complement
from tilefold.layout.algebra.coordinates import crd2idx, idx2crd, increment
from tilefold.layout.algebra.core import (
    ComposedLayout,
    Layout,
    cosize,
    make_identity_layout,
    make_layout_like,
    make_ordered_layout,
    size,
)
from tilefold.layout.algebra.divide import flat_divide, logical_divide, tiled_divide, zipped_divide
from tilefold.layout.algebra.integers import add
from tilefold.layout.algebra.inttuple import (
    ceil_div,
    compact_major,
    dice_tuple,
    flatten,
    flatten_to_tuple,
    leaves,
    product,
    product_each,
    shape_div,
    slice_tuple,
)
from tilefold.layout.algebra.modes import dice, slice_
from tilefold.layout.algebra.product import (
    blocked_product,
    flat_product,
    logical_product,
    raked_product,
    tile_to_shape,
    tiled_product,
    zipped_product,
)

from tests.dialects.cute.forms import Case


def same(value: Any) -> Any:
    """The operand itself."""
    return value


def numbers(layout: Layout) -> list[int]:
    """The integers of a layout, the shape's first."""
    return [*flatten_to_tuple(layout.shape), *flatten_to_tuple(layout.stride)]


CASES = (
    # constructors
    Case("static", ("layout (3?,(2,5)):(1,(15,3))",), same, refused="must be static"),
    Case("print", ("shape (3?,(7,5?{i64}))",), same),
    Case("print", ("int_tuple (-3?,0)",), same),
    Case("print", ("coord (_,(4?,2))",), same),
    Case("print", ("stride (3?@1,1@0)",), same),
    Case("print", ("layout (3?,5):(7?@0,1@1)",), same),
    Case("print", ("tile [3?:2;[_;4:5?]]",), same),
    Case("print", ("composed_layout 9?:2 o 3? o (4?,2):(1,4?)",), same),
    Case("print", ("composed_layout S<2,1,3> o 5? o (4?,2):(1,4?)",), same),
    Case("print", ("swizzle S<2,1,3>",), same),
    Case("make_int_tuple", ("int_tuple (-5?,(2,7?{i64}))",), same),
    Case("make_shape", ("shape (5?,(2,7?{i64}))",), same),
    Case("make_stride", ("stride (1@0,(3?@1@1,7?@0@1))",), same),
    Case("make_coord", ("coord (_,(2?,7))",), same),
    Case("make_tile", ("tile [6?:1;_;[2:3?]]",), same),
    Case("make_layout", ("shape (3?,(2,5?))", "stride (1,(15?,3))"), Layout),
    Case("make_composed_layout", ("swizzle S<2,1,3>", "int_tuple 6?", "layout (8,4?):(4?,1)"), ComposedLayout),
    Case("make_composed_layout", ("layout 40?:3", "int_tuple 6?", "layout (8,4):(4?,1)"), ComposedLayout),
    Case("make_layout_like", ("layout (3?,5,2):(10,2,1)",), make_layout_like),
    Case("make_layout_like", ("layout (3,5?,2):(10,0,1)",), make_layout_like),
    Case("make_ordered_layout", ("shape (3?,5?,(2,4))", "int_tuple (2,0,(3,1))"), make_ordered_layout),
    Case("make_ordered_layout", ("shape (3?,5,2?)", "int_tuple (1,1,3)"), make_ordered_layout),
    Case("make_layout_like", ("layout (3?,5,2?):(7,7,0)",), make_layout_like),
    Case("make_identity_layout", ("shape (3?,(2,7?))",), make_identity_layout),
    # accessors
    Case("get_shape", ("layout (3?,(2,5)):(1?,(15,3))",), lambda x: x.shape),
    Case("get_shape", ("tile [3?:2;[4:1]]",), lambda x: (x[0].shape, (x[1][0].shape,))),
    Case("get_stride", ("layout (3,(2,5?)):(1?,(15?,3))",), lambda x: x.stride),
    Case("composed_get_inner", ("composed_layout 9?:2? o 3 o 4:1",), lambda x: x.inner),
    Case("composed_get_inner", ("composed_layout S<2,1,3> o 3? o 4:1",), lambda x: x.inner),
    Case("composed_get_offset", ("composed_layout S<2,1,3> o 3? o (4?,2):(1,4)",), lambda x: x.offset),
    Case("composed_get_outer", ("composed_layout 9?:2? o 3? o (4?,2):(1,5?)",), lambda x: x.outer),
    Case("get_leaves", ("coord (3?,(_,5?{i64}))",), lambda x: list(leaves(x))),
    Case("get_leaves", ("tile [3?:2;[4:1]]",), lambda x: list(leaves(x))),
    Case("get_scalars", ("layout (3?,(2,5)):(1,(15?{i64},3))",), numbers),
    Case("get_scalars", ("stride (3?@1,2@0)",), lambda x: [3, 1, 2, 0]),
    Case("get", ("layout (3,(2?,5)):(1,(15?,3))",), lambda x: x[1][0], "<[1, 0]>"),
    Case("get", ("coord (3,(2?,_))",), lambda x: x[1], "<[1]>"),
    Case("select", ("layout (3,(2?,5),7):(1,(15?,3),30?)",), lambda x: modes.select(x, 2, 1), "<[2, 1]>"),
    Case("select", ("shape (3,(2?,5),7?)",), lambda x: (x[2], x[0]), "<[2, 0]>"),
    Case("to_int_tuple", ("shape (3?,(2,5?{i64}))",), same),
    Case("to_shape", ("int_tuple (3?,(2,5?{i64}))",), same),
    Case("to_stride", ("int_tuple (3?,(2,5?{i64}))",), same),
    Case("to_coord", ("int_tuple (3?,(2,5?{i64}))",), same),
    Case("get_layouts_from_tile", ("tile [3?:2;_;[4:5?]]",), lambda x: [x[0], x[2][0]]),
    # the algebra
    Case("composition", ("layout (12,7):(1?,12?)", "layout 4:3"), composition),
    Case("composition", ("layout (6,4?):(5?,40)", "shape (3,2?)"), composition),
    Case("coalesce", ("layout (3?,1,4):(1,0,3)",), coalesce, dynamic="(3,4):(1,3)"),
    Case("coalesce", ("layout (3,1,4?):(1,9?,3)",), coalesce, dynamic="(3,4):(1,3)"),
    Case("coalesce", ("layout (3,1,4):(1?,9?,3)",), coalesce, dynamic="(3,4):(1,3)"),
    Case("coalesce", ("layout (3?,1,4,2):(1,9?,3,12)",), coalesce, dynamic="(3,8):(1,3)"),
    Case(
        "coalesce",
        ("layout ((2,3?),(4,5)):((1,2),(6?,24))", "coord (1,1)"),
        coalesce,
        dynamic="((2,3),(4,5)):((1,2),(6,24))",
    ),
    Case("flatten", ("layout ((2,3?),(4,(5))):((1,2),(6?,(24)))",), modes.flatten_layout),
    Case("flatten", ("coord ((2,_),(4?,(5)))",), flatten),
    Case("complement", ("layout (2,3):(2,12)",), open_complement),
    Case("complement", ("layout 4:6?", "shape 72?"), complement),
    Case("complement", ("layout (2,3?):(2,12)", "layout (9,8?):(1,9)"), lambda x, y: complement(x, y.shape)),
    Case("group_modes", ("layout (2,3?,4):(1,2?,6)",), lambda x: modes.group_modes(x, 1, 3), "<1, 3>"),
    Case("recast_layout", ("layout (8,5?):(1,8)",), lambda x: recast_layout(x, 8, 32), "<32, 8>"),
    Case("recast_layout", ("layout (5?,8):(8?,1)",), lambda x: recast_layout(x, 32, 8), "<8, 32>"),
    Case("slice", ("layout (2,(3?,4),5):(1,(2,6),24?)", "coord (1?,(_,2),_)"), lambda x, c: slice_(c, x)),
    Case("slice", ("shape (2,(3?,4),5)", "coord (1,(_,2?),_)"), lambda x, c: slice_tuple(c, x)),
    Case("dice", ("layout (2,(3,4?),5):(1,(2,6?),24)", "coord (1,(_,2),_)"), lambda x, c: dice(c, x)),
    Case("dice", ("stride (2,(3?,4),5)", "coord (1,(2,_),_)"), lambda x, c: dice_tuple(c, x)),
    Case("right_inverse", ("layout (3,5):(5,1)",), right_inverse),
    Case("right_inverse", ("layout (3,5):(1,7?)",), right_inverse),
    Case("left_inverse", ("layout (3,5?):(5,1)",), left_inverse, refused="to be static"),
    # sizes, coordinates, indices
    Case("size", ("layout (3,(2?,5)):(1,(15,3))",), lambda x: size(x[1]), "<[1]>"),
    Case("size", ("shape (3?,(2?{i64},5))",), size),
    Case("cosize", ("layout (3,(2?,5)):(1,(15?,3))",), cosize),
    Case("cosize", ("composed_layout S<2,1,3> o 0 o (3?,4):(16,4)",), lambda x: cosize(x.outer)),
    Case("tuple_product", ("int_tuple (3?,(2?{i64},5))",), product),
    Case("tuple_product_each", ("shape (3?,(2?,5),())",), product_each),
    Case("layout_eval", ("coord (2?,(1,4?))", "layout (3,(2?,5)):(1,(15?,3))"), lambda c, x: x(c)),
    Case("layout_eval", ("coord (2?,3?)", "composed_layout S<2,1,3> o 32? o (8,8):(8,1)"), lambda c, x: x(c)),
    Case("layout_eval", ("coord (2?,3)", "layout (8,8?):(5@1,1@0)"), lambda c, x: x(c)),
    Case("crd2idx", ("coord (2?,(1,4))", "shape (3?,(2,5))"), lambda c, s: crd2idx(c, s, compact_major(s))),
    Case("idx2crd", ("int_tuple 23?", "shape (3?,(2,5))"), idx2crd),
    Case("idx2crd", ("int_tuple (2?,7?)", "shape (3,(2,5?))"), idx2crd),
    Case("increment_coord", ("coord (2?,(1,3))", "shape (3?,(2,5))"), increment),
    Case("increment_coord", ("coord (1?,(1,3?))", "shape (3,(2,5))"), increment),
    Case("append_to_rank", ("layout (3?,5):(5,1?)", "layout 2?:9"), lambda x, e: modes.append(x, 4, e), "<4>"),
    Case("append_to_rank", ("shape (3?,5)", "shape 2?"), lambda x, e: (*x, e), "<3>"),
    Case("prepend_to_rank", ("layout (3?,5):(5,1?)", "layout 2?:9"), lambda x, e: modes.prepend(x, 4, e), "<4>"),
    Case("prepend_to_rank", ("coord (3?,_)", "coord 2?"), lambda x, e: (e, *x), "<3>"),
    # arithmetic
    Case("tuple_add", ("int_tuple (3?,(2,5?{i64}),1)", "int_tuple (-4,(7,9))"), add),
    Case("tuple_sub", ("shape (3,(2,15?))", "shape (1,(2?,9))"), lambda a, b: (2, (0, 6))),
    Case("shape_div", ("shape (12?,3)", "shape 6"), shape_div),
    Case("shape_div", ("shape (12,8?)", "shape (4,2?)"), shape_div),
    Case("shape_div", ("shape (12,3?)", "shape (-4?,15)"), shape_div),
    Case("ceil_div", ("int_tuple (13?,(7,5))", "int_tuple (4?,2)"), ceil_div),
    Case("ceil_div", ("shape (13?,7)", "tile [4?:1;(2,2):(1,9)]"), lambda x, t: (ceil_div(x[0], size(t[0])), 2)),
    Case("elem_less", ("coord (2?,(1,4))", "shape (3?,(2,5?{i64}))"), lambda a, b: 1),
    Case("elem_less", ("coord (2?,(2,4))", "shape (3,(2?,5))"), lambda a, b: 0),
    Case("equal", ("layout (3?,(2,5)):(1,(15?,3))", "layout (3,(2?,5)):(1,(15,3))"), lambda a, b: int(a == b)),
    Case("equal", ("coord (3?,_)", "coord (2,_)"), lambda a, b: int(a == b)),
    Case("equal", ("shape (3?,4)", "shape (3,(4))"), lambda a, b: 0),
    # products and divides
    Case("logical_product", ("layout (2,3):(3,1)", "layout (5?,2):(1,5)"), logical_product),
    Case("zipped_product", ("layout (2,3):(3,1)", "layout (5?,2):(2,1)"), zipped_product),
    Case("tiled_product", ("layout (2,3):(3,1)", "layout (5?,2):(2,1)"), tiled_product),
    Case("flat_product", ("layout (2,3):(3,1)", "layout (5?,2):(2,1)"), flat_product),
    Case("raked_product", ("layout (2,3):(3,1)", "layout (5?,2):(2,1)"), raked_product),
    Case("blocked_product", ("layout (2,3):(3,1)", "layout (5?,2):(2,1)"), blocked_product),
    Case("logical_divide", ("layout (12?,10):(1,12?)", "tile [4:1;5:1]"), logical_divide),
    Case("logical_divide", ("layout 24:3?", "layout 4:2"), logical_divide),
    Case("zipped_divide", ("layout (12?,10):(1,12?)", "tile [4:1;5:1]"), zipped_divide),
    Case("tiled_divide", ("layout (12?,10):(1,12?)", "shape (4,5)"), tiled_divide),
    Case("flat_divide", ("layout (12?,10):(1,12?)", "tile [4:1;5:1]"), flat_divide),
    Case("tile_to_shape", ("layout (2,3):(3,1)", "shape (4?,9)"), tile_to_shape),
    Case("tile_to_shape", ("layout (2,3):(3,1)", "shape (4,9?)", "int_tuple (1,0)"), tile_to_shape),
)
"""At least one for each operation. Operands are distinct numbers, so that mixed up leaves show."""
