# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that make values: from nothing (`static`), from integers, and from parts; and `print`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Self

from xdsl.dialects.builtin import I32, I64, IntegerType, i32, i64
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, result_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, MemoryWriteEffect, Pure

from ...base.errors import Code
from ...layout.algebra.axes import has_basis
from ...layout.algebra.core import ComposedLayout, Layout, make_identity_layout, make_layout_like, make_ordered_layout
from ...layout.algebra.integers import Unknown
from ...layout.algebra.inttuple import show, weakly_congruent
from ...layout.algebra.swizzle import Swizzle
from ..definitions import irdl_op_definition, refuse
from .op import CuteOp, PureOp, Signature
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
)
from .values import AnyValue, integers, is_static_value, undefined_error

SCALARS: Mapping[int, IntegerType] = MappingProxyType({32: i32, 64: i64})
"""The scalar types of dynamic integers, by width."""
ScalarType = I32 | I64 | IntTupleType
AnyType = IntTupleType | CoordType | ShapeType | StrideType | LayoutType | TileType | ComposedLayoutType | SwizzleType


@irdl_op_definition
class StaticOp(CuteOp):
    """A constant: its value is the result's type, which is static. `%l = cute.static : !cute.layout<"(4,8):(1,4)">`."""

    name = "cute.static"
    result = result_def(AnyType)
    traits = traits_def(Pure(), ConstantLike())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls.create(result_types=[parser.parse_type()], attributes=attributes)

    def print(self, printer: Printer) -> None:
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        if not self.result.type.is_static:
            refuse(undefined_error(f"a constant must be static, not {self.result.type}", Code.DYNAMIC_UNSUPPORTED))


@irdl_op_definition
class PrintOp(CuteOp):
    """Prints a value on a line of its own when the program runs. `cute.print(%l) : !cute.layout<"(?,8):(1,?)">`."""

    name = "cute.print"
    value = operand_def(AnyType)
    traits = traits_def(MemoryWriteEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        with parser.in_parens():
            operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        value = parser.resolve_operand(operand, parser.parse_type())
        return cls.create(operands=[value], attributes=parser.parse_optional_attr_dict())

    def print(self, printer: Printer) -> None:
        with printer.in_parens():
            printer.print_ssa_value(self.value)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)
        if self.attributes:
            printer.print_op_attributes(self.attributes)


class GatherOp(CuteOp):
    """Makes a value of the result's type, whose dynamic integers the operands give in order.

    An operand is an i32, an i64 or an int_tuple of depth 0; its width must be that of the integer it gives.
    """

    elements = var_operand_def(ScalarType)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        kind = self.results[0].type
        assert isinstance(kind, CuteType)
        wanted = [x for x in integers(kind.data) if isinstance(x, Unknown)]
        if len(wanted) != len(self.operands):
            refuse(undefined_error(f"{kind} takes {len(wanted)} operands, not {len(self.operands)}"))
        for index, (operand, leaf) in enumerate(zip(self.operands, wanted, strict=True)):
            if not _fits(operand.type, leaf.width):
                refuse(undefined_error(f"operand {index} of type {operand.type} is not an i{leaf.width}"))


def _fits(type: Attribute, width: int) -> bool:
    """Whether a value of a type gives a dynamic integer of `width` bits."""
    if isinstance(type, IntegerType):
        return type == SCALARS[width]
    assert isinstance(type, IntTupleType)
    match type.data:
        case int() as value:
            return -(1 << width - 1) <= value < 1 << width - 1
        case Unknown():
            return type.data.width == width
        case _:
            return False


@irdl_op_definition
class MakeIntTupleOp(GatherOp):
    """`%t = cute.make_int_tuple(%n) : (i32) -> !cute.int_tuple<"(8,?)">`."""

    name = "cute.make_int_tuple"
    result = result_def(IntTupleType)


@irdl_op_definition
class MakeShapeOp(GatherOp):
    """`%s = cute.make_shape(%m, %n) : (i32, i64) -> !cute.shape<"(?,?{i64})">`."""

    name = "cute.make_shape"
    result = result_def(ShapeType)


@irdl_op_definition
class MakeStrideOp(GatherOp):
    """An operand gives the factor of a scaled basis. `%d = cute.make_stride(%n) : (i32) -> !cute.stride<"(1,?)">`."""

    name = "cute.make_stride"
    result = result_def(StrideType)


@irdl_op_definition
class MakeCoordOp(GatherOp):
    """`%c = cute.make_coord(%i) : (i32) -> !cute.coord<"(_,?)">`."""

    name = "cute.make_coord"
    result = result_def(CoordType)


@irdl_op_definition
class MakeTileOp(GatherOp):
    """`%t = cute.make_tile(%n) : (i32) -> !cute.tile<"[?:1;_]">`."""

    name = "cute.make_tile"
    result = result_def(TileType)


@irdl_op_definition
class MakeLayoutOp(PureOp):
    """The layout `shape:stride` of two congruent tuples.

    `%l = cute.make_layout(%s, %d) : (!cute.shape<"(4,?)">, !cute.stride<"(1,4)">) -> !cute.layout<"(4,?):(1,4)">`
    """

    name = "cute.make_layout"
    shape = operand_def(ShapeType)
    stride = operand_def(StrideType)
    layout = result_def(LayoutType)
    KIND: ClassVar = LayoutType
    FUNCTION: ClassVar = Layout


@irdl_op_definition
class MakeComposedLayoutOp(PureOp):
    """The function inner(offset + outer(coordinate)); here `inner`, a swizzle or a layout, is applied last.

    `%c = cute.make_composed_layout(%s, %o, %l) : (!cute.swizzle<"S<2,0,3>">, <"0">, <"8:1">) -> <"S<2,0,3> o 0 o 8:1">`
    """

    name = "cute.make_composed_layout"
    inner = operand_def(LayoutType | SwizzleType)
    offset = operand_def(IntTupleType)
    outer = operand_def(LayoutType)
    result = result_def(ComposedLayoutType)
    KIND: ClassVar = ComposedLayoutType
    SHORT: ClassVar = {"offset": IntTupleType, "outer": LayoutType, "result": ComposedLayoutType}
    FUNCTION: ClassVar = ComposedLayout


@irdl_op_definition
class MakeLayoutLikeOp(PureOp):
    """A compact layout with the shape of the source and its order of strides; modes of stride 0 keep it.

    `%r = cute.make_layout_like(%l) : !cute.layout<"(4,8):(16,1)"> -> !cute.layout<"(4,8):(8,1)">`
    """

    name = "cute.make_layout_like"
    source = operand_def(LayoutType | ComposedLayoutType)
    result = result_def(LayoutType)
    KIND: ClassVar = LayoutType
    SIGNATURE: ClassVar = Signature.ARROW

    @classmethod
    def evaluate(cls, source: Layout | ComposedLayout) -> Layout:
        if isinstance(source, ComposedLayout):
            if not isinstance(source.inner, Swizzle):
                raise undefined_error(f"a layout like {source} is defined only where a swizzle is applied last")
            source = source.outer
        if has_basis(source.stride):
            raise undefined_error(f"the strides of {source} are bases, which have no order")
        return make_layout_like(source)


@irdl_op_definition
class MakeOrderedLayoutOp(PureOp):
    """The compact layout of a shape whose modes run the faster the smaller their integer in `order`, which is static.

    Modes of equal integers begin at the same stride, as in CuTe C++.

    `%l = cute.make_ordered_layout(%s, %o) : (!cute.shape<"(4,8)">, !cute.int_tuple<"(1,0)">)
    -> !cute.layout<"(4,8):(8,1)">`
    """

    name = "cute.make_ordered_layout"
    shape = operand_def(ShapeType)
    order = operand_def(IntTupleType)
    layout = result_def(LayoutType)
    KIND: ClassVar = LayoutType

    @classmethod
    def evaluate(cls, shape: AnyValue, order: AnyValue) -> Layout:
        if not is_static_value(order):
            raise undefined_error(f"the order {show(order)} must be static", Code.DYNAMIC_UNSUPPORTED)
        if not weakly_congruent(order, shape):
            raise undefined_error(
                f"the order {show(order)} does not fit the shape {show(shape)}", Code.PROFILE_MISMATCH
            )
        return make_ordered_layout(shape, order)


@irdl_op_definition
class MakeIdentityLayoutOp(PureOp):
    """The layout that maps each coordinate to itself; its strides are bases.

    `%l = cute.make_identity_layout(%s) : !cute.shape<"(4,8)"> -> !cute.layout<"(4,8):(1@0,1@1)">`
    """

    name = "cute.make_identity_layout"
    shape = operand_def(ShapeType)
    result = result_def(LayoutType)
    KIND: ClassVar = LayoutType
    SIGNATURE: ClassVar = Signature.ARROW
    FUNCTION: ClassVar = staticmethod(make_identity_layout)
