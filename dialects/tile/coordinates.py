# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Coordinate tensors: their creation, one of their coordinates, and which of them lie within bounds.

A coordinate tensor is viewed like the tensor whose elements it numbers; then it tells for each element of a part which
one of the whole it is (CuTe's identity tensors).
"""

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import IndexType, IntAttr, i1
from xdsl.ir import Attribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...base.errors import Code, LayoutError
from ...base.spaces import RMEM
from ...layout.algebra.coordinates import check_within
from ...layout.algebra.core import Layout, make_identity_layout, make_layout
from ...layout.algebra.integers import AnyTuple, Unknown, add
from ...layout.algebra.inttuple import is_fully_static, leaves, repeat_like, show
from ...layout.text.parser import size_fits
from ..cute import CoordAttr, LayoutAttr, ShapeAttr
from ..definitions import irdl_op_definition, refusing, typed_operand
from ..ptx.base import SpaceAttr
from .assembly import check_operands, fill_coordinate, unwrap
from .coord_type import CoordTensorType
from .results import InferringOp
from .types import TensorType


@irdl_op_definition
class IdentityOp(InferringOp):
    """`%c = tile.identity "(128,64)"`: the coordinate tensor that maps each coordinate of a shape to itself (CuTe's
    make_identity_tensor).

    `tile.identity like %A` takes the shape of a tensor, run-time extents included; `tile.identity "(?,64)" (%m)` gives
    those as values, which are positive.
    """

    name = "tile.identity"
    shape = opt_prop_def(ShapeAttr)
    like = opt_operand_def(TensorType)
    scalars = var_operand_def(IndexType)
    result = result_def(CoordTensorType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())
    assembly_format = (
        "custom<Marked>() (`like` custom<Tensor>($like, type($like))^) : (custom<Quoted>($shape))? "
        "(` ` `(` $scalars^ `)`)? attr-dict custom<Inferred>(type($result))"
    )

    @classmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Sequence[Attribute]:
        """Raises `LayoutError` (E0103) where the size of the shape does not fit in 64 bits."""
        shape = _shape(operand_types, properties)
        if not size_fits(shape):
            raise LayoutError(Code.TEXT_INTEGER_RANGE, f"the size of {show(shape)} does not fit in 64 bits")
        return [CoordTensorType(CoordAttr(repeat_like(shape, 0)), LayoutAttr(make_identity_layout(shape)))]

    @property
    def extents(self) -> Any:
        """The shape, written or that of the tensor."""
        return _shape(self.operand_types, self.properties)

    def verify_(self) -> None:
        if (self.shape is None) == (self.like is None):
            raise VerifyException("an identity tensor needs a shape, or a tensor with this shape")
        missing = 0 if self.shape is None else sum(isinstance(leaf, Unknown) for leaf in leaves(self.shape.data))
        if len(self.scalars) != missing:
            raise VerifyException(f"the shape has {missing} dynamic extents, not {len(self.scalars)}")
        super().verify_()


def _shape(operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> AnyTuple:
    like, shape = next(iter(operand_types), None), properties.get("shape")
    if isinstance(like, TensorType):
        return like.layout.data.shape
    assert isinstance(shape, ShapeAttr)
    return shape.data


class _OfCoordinates(InferringOp, ABC):
    """An operation on a coordinate tensor and a tuple of `index` operands and static integers."""

    tensor = typed_operand(CoordTensorType)
    coords = var_operand_def(IndexType)
    coord = prop_def(CoordAttr)


@irdl_op_definition
class CoordinateOp(_OfCoordinates):
    """`%i, %j = tile.coordinate %c(0, %k)`: the coordinate that is the element at a coordinate, as its integers from
    left to right.

    Precondition: the coordinate is within the shape.
    """

    name = "tile.coordinate"
    integers = var_result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = (
        "custom<Coordinates>($tensor, type($tensor)) `` custom<Coordinate>($coord, $coords) attr-dict "
        "custom<Implied>(type($integers))"
    )

    @classmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Sequence[Attribute]:
        assert isinstance(operand_types[0], CoordTensorType)
        return [IndexType() for _ in leaves(operand_types[0].start.data)]

    def value(self, start: object, layout: Layout, values: Sequence[object]) -> Any:
        """The coordinate, for `values` of the operands and the start and layout of the tensor."""
        return add(start, layout(unwrap(fill_coordinate(self.coord.data, values))))

    def verify_(self) -> None:
        check_operands(self.coord.data, self.coords)
        type = self.tensor.type
        if any(leaf is None for leaf in leaves(self.coord.data)):
            raise VerifyException("the coordinate of one element has no '_'; use tile.slice for part of a tensor")
        with refusing():
            values = [Unknown() for _ in self.coords]
            self.value(type.start.data, type.plain_layout, values)
            coord = unwrap(fill_coordinate(self.coord.data, values))
            check_within(coord, type.plain_layout.shape, "the tensor")
        count = len(list(leaves(type.start.data)))
        if len(self.integers) != count:
            raise VerifyException(f"the coordinate {show(type.start.data)} has {count} integers")


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
    assembly_format = (
        "custom<Coordinates>($tensor, type($tensor)) `,` custom<Limits>($coord, $coords) "
        "attr-dict custom<Inferred>(type($result))"
    )

    @classmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Sequence[Attribute]:
        """Raises `LayoutError` (E0207) for a shape that is not static."""
        assert isinstance(operand_types[0], CoordTensorType)
        shape = operand_types[0].layout.data.shape
        if not is_fully_static(shape):
            raise LayoutError(
                Code.DYNAMIC_UNSUPPORTED,
                f"predicates are in registers, so their number must be static, but the shape is {show(shape)}",
                "take a tile first",
            )
        return [TensorType(i1, SpaceAttr(RMEM), IntAttr(1), LayoutAttr(make_layout(shape)))]

    def limits(self, values: Sequence[object]) -> list[tuple[tuple[int, ...], Any]]:
        """The axes that are looked at, as paths in the start, with their bounds; `values` stand for the operands."""
        return list(_axes(self.tensor.type.start.data, fill_coordinate(self.coord.data, values)))

    def verify_(self) -> None:
        check_operands(self.coord.data, self.coords)
        if not _fits(self.coord.data, self.tensor.type.start.data):
            raise VerifyException(
                f"the bounds {show(self.coord.data)} are nested differently from the coordinates, "
                f"{show(self.tensor.type.start.data)}"
            )
        super().verify_()


def _fits(bounds: object, start: object) -> bool:
    """Whether bounds have the profile of a coordinate; `_` stands for any part."""
    if bounds is None or not isinstance(start, tuple):
        return not isinstance(bounds, tuple)
    return isinstance(bounds, tuple) and len(bounds) == len(start) and all(map(_fits, bounds, start))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _axes(start: AnyTuple, bounds: AnyTuple, path: tuple[int, ...] = ()) -> AnyTuple:
    if bounds is None:
        return
    if isinstance(start, tuple):
        for mode, (part, bound) in enumerate(zip(start, bounds, strict=True)):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            yield from _axes(part, bound, (*path, mode))
    else:
        yield path, bounds
