# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic and comparison of tuples, element by element."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from xdsl.dialects.builtin import i1
from xdsl.ir import Operation
from xdsl.irdl import operand_def, result_def, traits_def
from xdsl.traits import ConditionallySpeculatable, NoMemoryEffect, Pure

from ...base.errors import Code
from ...layout.algebra.core import Layout, size
from ...layout.algebra.integers import Tree, add, ceil_div_int, sub
from ...layout.algebra.inttuple import ceil_div, congruent, has_underscore, leaves, product, shape_div, show, wrap
from ..definitions import irdl_op_definition, refuse
from .op import AlgebraOp, CuteOp, PureOp
from .types import CoordType, CuteType, IntTupleType, LayoutType, ShapeType, StrideType, TileType
from .values import AnyValue, undefined_error

IntTupleOrShape = IntTupleType | ShapeType


def _check_nesting(a: Tree, b: Tree) -> None:
    """Raises `LayoutError` if an integer meets a tuple within the modes that both have."""
    if isinstance(a, tuple) != isinstance(b, tuple):
        raise undefined_error(f"{show(a)} and {show(b)} differ in nesting", Code.PROFILE_MISMATCH)
    if isinstance(a, tuple) and isinstance(b, tuple):
        for x, y in zip(a, b, strict=False):
            _check_nesting(x, y)


class SumOp(PureOp):
    """The base of `tuple_add` and `tuple_sub`: both operands are of one kind; the last elements of the longer stay."""

    lhs = operand_def(IntTupleOrShape)
    rhs = operand_def(IntTupleOrShape)
    result = result_def(IntTupleOrShape)

    @classmethod
    def infer(cls, operand_types: Any, properties: Any) -> Any:
        if type(operand_types[0]) is not type(operand_types[1]):
            raise undefined_error(f"{operand_types[0]} and {operand_types[1]} are of different kinds")
        return super().infer(operand_types, properties)


@irdl_op_definition
class TupleAddOp(SumOp):
    """The sum of two tuples; a static 0 may stand for a tuple.

    `%r = cute.tuple_add(%a, %b) : (!cute.int_tuple<"(1,?)">, !cute.int_tuple<"(2,3)">) -> !cute.int_tuple<"(3,?)">`
    """

    name = "cute.tuple_add"

    @classmethod
    def evaluate(cls, lhs: AnyValue, rhs: AnyValue) -> AnyValue:
        if _is_zero(lhs) or _is_zero(rhs):
            return rhs if _is_zero(lhs) else lhs
        _check_nesting(lhs, rhs)
        return add(lhs, rhs)


def _is_zero(x: object) -> bool:
    return type(x) is int and x == 0


@irdl_op_definition
class TupleSubOp(SumOp):
    """The difference of two tuples; a static 0 may stand for the second. Modes that only the second has stay as they
    are.

    `%r = cute.tuple_sub(%a, %b) : (!cute.int_tuple<"(5,7)">, !cute.int_tuple<"(2,3)">) -> !cute.int_tuple<"(3,4)">`
    """

    name = "cute.tuple_sub"

    @classmethod
    def evaluate(cls, lhs: AnyValue, rhs: AnyValue) -> AnyValue:
        if _is_zero(rhs):
            return lhs
        _check_nesting(lhs, rhs)
        return _sub(lhs, rhs)


def _sub(a: Tree, b: Tree) -> AnyValue:
    if not isinstance(a, tuple) or not isinstance(b, tuple):
        return sub(a, b)
    longer = a if len(a) > len(b) else b
    return (*(_sub(x, y) for x, y in zip(a, b, strict=False)), *longer[min(len(a), len(b)) :])


class DivisorSpeculatable(ConditionallySpeculatable):
    """A division may run where it was not asked for only if its divisor, the second operand, is static and never 0."""

    @classmethod
    def is_speculatable(cls, op: Operation) -> bool:
        divisor = op.operands[1].type
        if not isinstance(divisor, IntTupleType | ShapeType):
            return False
        return all(type(x) is int and x != 0 for x in leaves(divisor.data))


@irdl_op_definition
class ShapeDivOp(AlgebraOp):
    """A shape divided by another, where of static extents one must divide the other; quotients are rounded up.

    `%r = cute.shape_div(%a, %b) : (!cute.shape<"(12,3)">, !cute.shape<"6">) -> !cute.shape<"(2,3)">`
    """

    name = "cute.shape_div"
    dividend = operand_def(ShapeType)
    divisor = operand_def(ShapeType)
    result = result_def(ShapeType)
    traits = traits_def(NoMemoryEffect(), DivisorSpeculatable())
    FUNCTION: ClassVar = staticmethod(shape_div)


@irdl_op_definition
class CeilDivOp(AlgebraOp):
    """How many tiles cover the input: quotients rounded up. An integer is used up by the modes from left to right.

    A layout of a tile counts by its size, and a tuple of layouts divides mode by mode.

    `%r = cute.ceil_div(%a, %b) : (!cute.shape<"(8,10)">, !cute.shape<"(3,4)">) -> !cute.shape<"(3,3)">`
    """

    name = "cute.ceil_div"
    input = operand_def(IntTupleOrShape)
    tiler = operand_def(IntTupleType | ShapeType | TileType)
    result = result_def(IntTupleOrShape)
    traits = traits_def(NoMemoryEffect(), DivisorSpeculatable())

    @classmethod
    def evaluate(cls, value: Any, tiler: AnyValue) -> AnyValue:
        if any(type(leaf) is Layout or leaf is None for leaf in leaves(tiler)):
            return _ceil_div_tile(value, tiler)
        if any(_is_zero(leaf) for leaf in leaves(tiler)):
            raise undefined_error(f"{show(value)} is divided by the tiler {show(tiler)}, which holds a 0")
        return ceil_div(value, tiler)


def _ceil_div_tile(value: Tree, tile: Tree) -> AnyValue:
    """How many tiles cover a shape: a layout counts by its size, a tuple mode by mode; modes beyond it stay."""
    if isinstance(tile, tuple):
        modes = wrap(value)
        if len(tile) > len(modes):
            raise undefined_error(f"the tile has {len(tile)} modes, {show(value)} has {len(modes)}", Code.RANK_MISMATCH)
        return (*(_ceil_div_tile(x, y) for x, y in zip(modes, tile, strict=False)), *modes[len(tile) :])
    if tile is None:
        raise undefined_error(f"an underscore cannot divide {show(value)}")
    return ceil_div_int(product(value), size(tile))


class CompareOp(CuteOp, ABC):
    """The base of comparisons, whose result is an i1."""

    traits = traits_def(Pure())

    @property
    def static_result(self) -> bool | None:
        """The result where it is known, which is where both operands are static."""
        lhs, rhs = self.operand_types
        if not (isinstance(lhs, CuteType) and isinstance(rhs, CuteType) and lhs.is_static and rhs.is_static):
            return None
        return self.compare(lhs.data, rhs.data)

    @classmethod
    @abstractmethod
    def compare(cls, lhs: object, rhs: object) -> bool:
        """Whether the comparison of two static values holds."""


@irdl_op_definition
class ElemLessOp(CompareOp):
    """Whether each integer of the left tuple is less than that of the right, which has the same profile.

    `%r = cute.elem_less(%c, %s) : (!cute.coord<"(?,2)">, !cute.shape<"(4,8)">) -> i1`
    """

    name = "cute.elem_less"
    lhs = operand_def(IntTupleType | ShapeType | CoordType)
    rhs = operand_def(IntTupleType | ShapeType | CoordType)
    result = result_def(i1)

    @classmethod
    def compare(cls, lhs: AnyValue, rhs: AnyValue) -> bool:
        return all(a < b for a, b in zip(leaves(lhs), leaves(rhs), strict=True))

    def verify_(self) -> None:
        lhs, rhs = self.lhs.type, self.rhs.type
        assert isinstance(lhs, CuteType)
        assert isinstance(rhs, CuteType)
        if not congruent(lhs.data, rhs.data):
            refuse(undefined_error(f"{lhs} and {rhs} are nested differently", Code.PROFILE_MISMATCH))
        if has_underscore(lhs.data) or has_underscore(rhs.data):
            refuse(undefined_error(f"{lhs} and {rhs} cannot be compared: an underscore is not an integer"))


@irdl_op_definition
class EqualOp(CompareOp):
    """Whether two values of one kind are equal, in profile and in each integer.

    `%r = cute.equal(%a, %b) : (!cute.layout<"(4,?):(1,4)">, !cute.layout<"(4,8):(1,4)">) -> i1`
    """

    name = "cute.equal"
    lhs = operand_def(IntTupleType | ShapeType | CoordType | StrideType | LayoutType)
    rhs = operand_def(IntTupleType | ShapeType | CoordType | StrideType | LayoutType)
    result = result_def(i1)

    @classmethod
    def compare(cls, lhs: object, rhs: object) -> bool:
        return bool(lhs == rhs)

    def verify_(self) -> None:
        if type(self.lhs.type) is not type(self.rhs.type):
            refuse(undefined_error(f"{self.lhs.type} and {self.rhs.type} are of different kinds"))
