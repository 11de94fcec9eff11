# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Coordinate tensors: what they begin as, one of their coordinates, and which of them lie within bounds.

A coordinate tensor is viewed as the tensor is whose elements it numbers; then it says of each element of a part which
one of the whole it is (CuTe's identity tensors).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

from xdsl.dialects.builtin import IndexType, IntAttr, i1
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...base.errors import Code, LayoutError
from ...layout.algebra.core import Layout, make_identity_layout, make_layout
from ...layout.algebra.integers import add
from ...layout.algebra.inttuple import is_fully_static, leaves, repeat_like, show
from ...layout.algebra.slicing import check_within
from ...layout.algebra.unknown import Unknown
from ...layout.text.layouts import parse_int_tuple, to_text
from ...layout.text.parser import size_fits
from ..cute import CoordAttr, LayoutAttr, ShapeAttr, parse_quoted
from ..errors import refuse
from .assembly import (
    check_operands,
    fill_coordinate,
    parse_coordinate,
    parse_defined,
    parse_tensor,
    print_coordinate,
    tensor_type_of,
    unwrapped,
)
from .coord_type import CoordTensorType
from .results import parse_result, print_result, verify_result
from .types import Space, SpaceAttr, TensorType


@irdl_op_definition
class IdentityOp(IRDLOperation):
    """`%c = tile.identity "(128,64)"`: the coordinate tensor that maps each coordinate of a shape to itself (CuTe's
    make_identity_tensor).

    `tile.identity like %A` takes the shape of a tensor, run-time extents included.
    """

    name = "tile.identity"
    shape = opt_prop_def(ShapeAttr)
    like = opt_operand_def(TensorType)
    result = result_def(CoordTensorType)
    traits = traits_def(Pure())

    @staticmethod
    def infer(shape: Any) -> CoordTensorType:
        """The type of the identity of a shape. Raises `LayoutError` (E0103) where its size does not fit in 64 bits."""
        if not size_fits(shape):
            raise LayoutError(Code.TEXT_INTEGER_RANGE, f"the size of {show(shape)} does not fit in 64 bits")
        return CoordTensorType(CoordAttr(repeat_like(shape, 0)), LayoutAttr(make_identity_layout(shape)))

    @property
    def extents(self) -> Any:
        """The shape, written or that of the tensor."""
        if self.like is not None:
            return tensor_type_of(self.like).layout.data.shape
        assert self.shape is not None
        return self.shape.data

    def verify_(self) -> None:
        if (self.shape is None) == (self.like is None):
            raise VerifyException("an identity tensor needs a shape or a tensor that has it")
        if self.shape is not None and not is_fully_static(self.shape.data):
            raise VerifyException("a written shape is static; take run-time extents from a tensor by 'like'")
        verify_result(self.result, lambda: self.infer(self.extents))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        like, shape = None, None
        if parser.parse_optional_keyword("like") is not None:
            like = parse_tensor(parser)
            extents = tensor_type_of(like).layout.data.shape
        else:
            extents = parse_quoted(parser, parse_int_tuple)
            shape = ShapeAttr(extents)
        end = parser.pos
        attributes = parser.parse_optional_attr_dict()
        type = parse_result(parser, partial(cls.infer, extents), start, end)
        return cls.build(operands=[like], properties={"shape": shape}, result_types=[type], attributes=attributes)

    def print(self, printer: Printer) -> None:
        if self.like is not None:
            printer.print_string(" like ")
            printer.print_operand(self.like)
        elif self.shape is not None:
            printer.print_string(f' "{to_text(self.shape.data)}"')
        print_result(printer, self)


class _OfCoordinates(IRDLOperation):
    """An operation on a coordinate tensor and a tuple of `index` operands and static integers."""

    tensor = operand_def(CoordTensorType)
    coords = var_operand_def(IndexType)
    coord = prop_def(CoordAttr)

    @property
    def tensor_type(self) -> CoordTensorType:
        """The type of the coordinate tensor."""
        assert isinstance(self.tensor.type, CoordTensorType)
        return self.tensor.type


def _parse_coord_tensor(parser: Parser) -> SSAValue:
    at = parser.pos
    operand = parse_defined(parser)
    if not isinstance(operand.type, CoordTensorType):
        parser.raise_error(f"expected a coordinate tensor, got a value of type {operand.type}", at, parser.pos)
    return operand


@irdl_op_definition
class CoordinateOp(_OfCoordinates):
    """`%i, %j = tile.coordinate %c(0, %k)`: the coordinate that is the element at a coordinate, as its integers from
    left to right.

    Precondition: the coordinate is within the shape.
    """

    name = "tile.coordinate"
    integers = var_result_def(IndexType)
    traits = traits_def(Pure())

    def value(self, start: Any, layout: Layout, values: Sequence[Any]) -> Any:
        """The coordinate, for `values` of the operands and the start and layout of the tensor."""
        return add(start, layout(unwrapped(fill_coordinate(self.coord.data, values))))

    def verify_(self) -> None:
        check_operands(self.coord.data, self.coords)
        type = self.tensor_type
        if any(leaf is None for leaf in leaves(self.coord.data)):
            raise VerifyException("the coordinate of one element has no '_'; use tile.slice for part of a tensor")
        try:
            values = [Unknown() for _ in self.coords]
            self.value(type.start.data, type.plain_layout, values)
            coord = unwrapped(fill_coordinate(self.coord.data, values))
            check_within(coord, type.plain_layout.shape, "the tensor")
        except LayoutError as error:
            refuse(error)
        count = len(list(leaves(type.start.data)))
        if len(self.integers) != count:
            raise VerifyException(f"the coordinate {show(type.start.data)} has {count} integers")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        tensor = _parse_coord_tensor(parser)
        assert isinstance(tensor.type, CoordTensorType)
        coord, coords = parse_coordinate(parser)
        return cls.build(
            operands=[tensor, coords],
            result_types=[[IndexType() for _ in leaves(tensor.type.start.data)]],
            properties={"coord": coord},
            attributes=parser.parse_optional_attr_dict(),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.tensor)
        print_coordinate(printer, self.coord.data, self.coords)
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class BoundsOp(_OfCoordinates):
    """`%p = tile.bounds %c, (%m, 100)`: for each coordinate of a coordinate tensor whether all its integers are below
    the bounds; `_` skips an integer.

    The result is a new, compact tensor of predicates in registers, in the shape of `%c`. Bounds are compared as signed
    integers. The shape must be static.
    """

    name = "tile.bounds"
    result = result_def(TensorType)
    traits = traits_def(Pure())

    @staticmethod
    def infer(tensor: CoordTensorType) -> TensorType:
        """The type of the predicates. Raises `LayoutError` (E0207) for a shape that is not static."""
        shape = tensor.layout.data.shape
        if not is_fully_static(shape):
            raise LayoutError(
                Code.DYNAMIC_UNSUPPORTED,
                f"predicates are in registers, so their number must be static, but the shape is {show(shape)}",
                "take a tile first",
            )
        return TensorType(i1, SpaceAttr(Space.Rmem), IntAttr(1), LayoutAttr(make_layout(shape)))

    @property
    def result_type(self) -> TensorType:
        """The type of the predicates."""
        return tensor_type_of(self.result)

    def limits(self, values: Sequence[Any]) -> list[tuple[tuple[int, ...], Any]]:
        """The axes that are looked at, as paths in the start, with their bounds; `values` stand for the operands."""
        return list(_axes(self.tensor_type.start.data, fill_coordinate(self.coord.data, values)))

    def verify_(self) -> None:
        check_operands(self.coord.data, self.coords)
        if not _fits(self.coord.data, self.tensor_type.start.data):
            raise VerifyException(
                f"the bounds {show(self.coord.data)} have not the profile of the coordinates, "
                f"{show(self.tensor_type.start.data)}"
            )
        verify_result(self.result, lambda: self.infer(self.tensor_type))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        tensor = _parse_coord_tensor(parser)
        assert isinstance(tensor.type, CoordTensorType)
        parser.parse_punctuation(",")
        coord, coords = parse_coordinate(parser)
        end = parser.pos
        attributes = parser.parse_optional_attr_dict()
        type = parse_result(parser, partial(cls.infer, tensor.type), start, end)
        if not isinstance(tensor.type.start.data, tuple):
            coord = CoordAttr(unwrapped(coord.data))
        return cls.build(
            operands=[tensor, coords], result_types=[type], properties={"coord": coord}, attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.tensor)
        printer.print_string(", ")
        bounds = self.coord.data
        print_coordinate(printer, bounds if isinstance(bounds, tuple) else (bounds,), self.coords)
        print_result(printer, self)


def _fits(bounds: Any, start: Any) -> bool:
    """Whether bounds have the profile of a coordinate; `_` stands for any part."""
    if bounds is None or not isinstance(start, tuple):
        return not isinstance(bounds, tuple)
    return isinstance(bounds, tuple) and len(bounds) == len(start) and all(map(_fits, bounds, start))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _axes(start: Any, bounds: Any, path: tuple[int, ...] = ()) -> Any:
    if bounds is None:
        return
    if isinstance(start, tuple):
        for mode, (part, bound) in enumerate(zip(start, bounds, strict=True)):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            yield from _axes(part, bound, (*path, mode))
    else:
        yield path, bounds
