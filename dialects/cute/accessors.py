# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that take values apart, and that see a tuple of one kind as one of another."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, UnitAttr, i32, i64
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, var_result_def

from ...layout.algebra.axes import has_basis
from ...layout.algebra.core import ComposedLayout, Layout
from ...layout.algebra.integers import Tree
from ...layout.algebra.inttuple import has_underscore, leaves, show, transform_leaves
from ...layout.algebra.swizzle import Swizzle
from ..definitions import irdl_op_definition
from . import modes
from .brackets import Flag, Mode
from .constructors import AnyType
from .op import PureOp, Signature
from .types import (
    ComposedLayoutType,
    CoordType,
    CuteType,
    IntTupleType,
    LayoutType,
    ShapeType,
    StrideType,
    SwizzleType,
    TileType,
    type_of,
)
from .values import AnyValue, integers, undefined_error

Indexable = ShapeType | IntTupleType | CoordType | StrideType | TileType | LayoutType | ComposedLayoutType


@irdl_op_definition
class GetShapeOp(PureOp):
    """The shape of a layout, or the shapes of a tile's layouts. A tile may hold no `_`, which has no shape.

    `%s = cute.get_shape(%l) : !cute.layout<"(4,8):(1,4)"> -> !cute.shape<"(4,8)">`
    """

    name = "cute.get_shape"
    input = operand_def(LayoutType | ComposedLayoutType | TileType)
    result = result_def(ShapeType)
    KIND: ClassVar = ShapeType
    SIGNATURE: ClassVar = Signature.ARROW

    @classmethod
    def evaluate(cls, value: Any) -> AnyValue:
        if isinstance(value, Layout | ComposedLayout):
            return value.shape
        if has_underscore(value):
            raise undefined_error(
                "a tile with an underscore has no shape", hint="take its layouts by cute.get_layouts_from_tile"
            )
        return transform_leaves(lambda layout: layout.shape, value)


@irdl_op_definition
class GetStrideOp(PureOp):
    """The stride of a layout. `%d = cute.get_stride(%l) : <"(4,8):(1,4)"> -> !cute.stride<"(1,4)">`."""

    name = "cute.get_stride"
    input = operand_def(LayoutType)
    result = result_def(StrideType)
    KIND: ClassVar = StrideType
    SIGNATURE: ClassVar = Signature.ARROW
    SHORT: ClassVar = {"input": LayoutType}
    FUNCTION: ClassVar = staticmethod(attrgetter("stride"))


@irdl_op_definition
class ComposedGetInnerOp(PureOp):
    """The inner function of a composed layout, applied last: a swizzle or a layout.

    `%s = cute.composed_get_inner(%c) : <"S<2,0,3> o 0 o (8,8):(8,1)"> -> !cute.swizzle<"S<2,0,3>">`
    """

    name = "cute.composed_get_inner"
    input = operand_def(ComposedLayoutType)
    result = result_def(LayoutType | SwizzleType)
    SIGNATURE: ClassVar = Signature.ARROW
    SHORT: ClassVar = {"input": ComposedLayoutType}
    FUNCTION: ClassVar = staticmethod(attrgetter("inner"))

    @classmethod
    def results_of(cls, value: object, operand_types: Sequence[Attribute]) -> list[Attribute]:
        return [(SwizzleType if isinstance(value, Swizzle) else LayoutType).of(value)]


@irdl_op_definition
class ComposedGetOffsetOp(PureOp):
    """The offset of a composed layout.

    `%o = cute.composed_get_offset(%c) : <"S<2,0,3> o 8 o 8:1"> -> !cute.int_tuple<"8">`
    """

    name = "cute.composed_get_offset"
    input = operand_def(ComposedLayoutType)
    result = result_def(IntTupleType)
    KIND: ClassVar = IntTupleType
    SIGNATURE: ClassVar = Signature.ARROW
    SHORT: ClassVar = {"input": ComposedLayoutType}
    FUNCTION: ClassVar = staticmethod(attrgetter("offset"))


@irdl_op_definition
class ComposedGetOuterOp(PureOp):
    """The layout that a composed layout applies first, and whose coordinates it takes.

    `%l = cute.composed_get_outer(%c) : <"S<2,0,3> o 0 o (8,8):(8,1)"> -> <"(8,8):(8,1)">`
    """

    name = "cute.composed_get_outer"
    input = operand_def(ComposedLayoutType)
    result = result_def(LayoutType)
    KIND: ClassVar = LayoutType
    SIGNATURE: ClassVar = Signature.ARROW
    SHORT: ClassVar = {"input": ComposedLayoutType, "result": LayoutType}
    FUNCTION: ClassVar = staticmethod(attrgetter("outer"))


@irdl_op_definition
class GetLeavesOp(PureOp):
    """Each leaf of a tuple or a tile, from left to right, as a value of the same kind; layouts as layouts.

    `%a, %b = cute.get_leaves(%s) : !cute.shape<"(4,?)">`
    """

    name = "cute.get_leaves"
    input = operand_def(ShapeType | StrideType | CoordType | IntTupleType | TileType)
    leaves = var_result_def(ShapeType | StrideType | CoordType | IntTupleType | LayoutType | TileType)
    SIGNATURE: ClassVar = Signature.OPERANDS

    @classmethod
    def evaluate(cls, value: Any) -> list[Any]:
        return list(leaves(value))

    @classmethod
    def results_of(cls, value: Any, operand_types: Sequence[Attribute]) -> list[Attribute]:
        first = operand_types[0]
        assert isinstance(first, CuteType)
        return [type_of(leaf, LayoutType if isinstance(leaf, Layout) else type(first)) for leaf in value]


@irdl_op_definition
class GetScalarsOp(PureOp):
    """The integers of a value as i32 or i64: a layout's shape, then its stride; a basis's factor and the
    mode indices of its path.

    With `only_dynamic`, only those that are not static.
    `%n = cute.get_scalars<{only_dynamic}> (%s) : !cute.shape<"(4,?)">`
    """

    name = "cute.get_scalars"
    value = operand_def(AnyType)
    only_dynamic = opt_prop_def(UnitAttr)
    scalars = var_result_def(IntegerType)
    SIGNATURE: ClassVar = Signature.OPERANDS
    BRACKET: ClassVar = Flag("only_dynamic")

    @classmethod
    def evaluate(cls, value: Any, only_dynamic: bool = False) -> list[Any]:
        if isinstance(value, Swizzle):
            return [] if only_dynamic else [value.bits, value.base, value.shift]
        if only_dynamic:
            return [x for x in integers(value) if type(x) is not int]
        return list(integers(value, paths=True))

    @classmethod
    def results_of(cls, value: Any, operand_types: Sequence[Attribute]) -> list[Attribute]:
        return [_scalar_type(x) for x in value]


def _scalar_type(integer: Any) -> IntegerType:
    """i32 or i64: the type that holds an integer."""
    wide = not -(1 << 31) <= integer < 1 << 31 if isinstance(integer, int) else integer.width > 32
    return i64 if wide else i32


@irdl_op_definition
class GetOp(PureOp):
    """The part of a value that a path of mode indices names; all of it without one.

    `%m = cute.get<[1, 0]> (%l) : !cute.layout<"(4,(2,8)):(1,(4,8))"> -> !cute.layout<"2:4">`
    """

    name = "cute.get"
    input = operand_def(Indexable)
    mode = opt_prop_def(DenseArrayBase.constr(i32))
    result = result_def(Indexable)
    SIGNATURE: ClassVar = Signature.ARROW
    BRACKET: ClassVar = Mode(optional=True)
    FUNCTION: ClassVar = staticmethod(modes.get)


@irdl_op_definition
class SelectOp(PureOp):
    """The named modes of a value, in that order.

    `%r = cute.select<[2, 0]> (%s) : !cute.shape<"(4,8,2)"> -> !cute.shape<"(2,4)">`
    """

    name = "cute.select"
    input = operand_def(Indexable)
    mode = prop_def(DenseArrayBase.constr(i32))
    result = result_def(Indexable)
    SIGNATURE: ClassVar = Signature.ARROW
    BRACKET: ClassVar = Mode(optional=False)
    FUNCTION: ClassVar = staticmethod(modes.select)


class CastOp(PureOp):
    """The same integers seen as another kind of tuple."""

    SIGNATURE: ClassVar = Signature.ARROW

    @classmethod
    def evaluate(cls, value: Any) -> AnyValue:
        return value


@irdl_op_definition
class ToIntTupleOp(CastOp):
    """A shape, stride or coordinate as an int_tuple; bases and underscores have no place there.

    `%t = cute.to_int_tuple(%s) : !cute.shape<"(4,?)"> -> !cute.int_tuple<"(4,?)">`
    """

    name = "cute.to_int_tuple"
    source = operand_def(ShapeType | StrideType | CoordType | IntTupleType)
    result = result_def(IntTupleType)
    KIND: ClassVar = IntTupleType

    @classmethod
    def evaluate(cls, value: Any) -> AnyValue:
        if has_underscore(value) or has_basis(value):
            raise undefined_error(f"{show(value)} has parts that are not integers")
        return value


@irdl_op_definition
class ToShapeOp(CastOp):
    """An int_tuple as a shape. `%s = cute.to_shape(%t) : !cute.int_tuple<"(4,?)"> -> !cute.shape<"(4,?)">`."""

    name = "cute.to_shape"
    source = operand_def(IntTupleType)
    result = result_def(ShapeType)
    KIND: ClassVar = ShapeType


@irdl_op_definition
class ToStrideOp(CastOp):
    """An int_tuple as a stride. `%d = cute.to_stride(%t) : !cute.int_tuple<"(1,?)"> -> !cute.stride<"(1,?)">`."""

    name = "cute.to_stride"
    source = operand_def(IntTupleType)
    result = result_def(StrideType)
    KIND: ClassVar = StrideType


@irdl_op_definition
class ToCoordOp(CastOp):
    """An int_tuple as a coordinate. `%c = cute.to_coord(%t) : !cute.int_tuple<"(1,?)"> -> !cute.coord<"(1,?)">`."""

    name = "cute.to_coord"
    source = operand_def(IntTupleType)
    result = result_def(CoordType)
    KIND: ClassVar = CoordType


@irdl_op_definition
class GetLayoutsFromTileOp(PureOp):
    """The layouts of a tile, from left to right, without its underscores; there must be one at least.

    `%a, %b = cute.get_layouts_from_tile(%t) : <"[4:1;_;[2:1;_]]">`
    """

    name = "cute.get_layouts_from_tile"
    tile = operand_def(TileType)
    layouts = var_result_def(LayoutType)
    SIGNATURE: ClassVar = Signature.OPERANDS
    SHORT: ClassVar[Mapping[str, type[CuteType]]] = {"tile": TileType}

    @classmethod
    def evaluate(cls, tile: Tree) -> list[Layout]:
        layouts = [leaf for leaf in leaves(tile) if leaf is not None]
        if not layouts:
            raise undefined_error("a tile of underscores has no layout")
        return layouts

    @classmethod
    def results_of(cls, value: Any, operand_types: Sequence[Attribute]) -> list[Attribute]:
        return [LayoutType.of(layout) for layout in value]
