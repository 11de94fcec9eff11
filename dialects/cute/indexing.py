# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on sizes, coordinates and indices."""

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import I32, DenseArrayBase, IntegerAttr, i32
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def

from ...base.errors import Code
from ...layout.algebra.coordinates import crd2idx, idx2crd, increment
from ...layout.algebra.core import ComposedLayout, Layout, LayoutLike, cosize, plain_layout, rank, size
from ...layout.algebra.integers import Coord, Tree, add, as_coordinate
from ...layout.algebra.inttuple import (
    compact_major,
    congruent,
    has_underscore,
    product,
    product_each,
    show,
    weakly_congruent,
)
from ..definitions import irdl_op_definition
from . import modes
from .algebra import AnyLayout
from .brackets import Integers, Mode
from .op import PureOp, Signature
from .types import ComposedLayoutType, CoordType, IntTupleType, LayoutType, ShapeType, StrideType
from .values import AnyValue, undefined_error

IntTupleOrShape = IntTupleType | ShapeType
TupleOrLayout = IntTupleType | CoordType | StrideType | ShapeType | LayoutType | ComposedLayoutType


@irdl_op_definition
class SizeOp(PureOp):
    """The number of coordinates of a layout or shape, or of the mode that a path names.

    `%n = cute.size<[1]> (%l) : (!cute.layout<"(4,(2,8)):(1,(4,8))">) -> !cute.int_tuple<"16">`
    """

    name = "cute.size"
    input = operand_def(ShapeType | IntTupleType | LayoutType | ComposedLayoutType)
    mode = opt_prop_def(DenseArrayBase.constr(i32))
    result = result_def(IntTupleType)
    KIND: ClassVar = IntTupleType
    BRACKET: ClassVar = Mode(optional=True)

    @classmethod
    def evaluate(cls, value: Any, mode: Sequence[int] = ()) -> AnyValue:
        return size(modes.get(value, mode))


@irdl_op_definition
class CosizeOp(PureOp):
    """One more than the largest index of a layout, or of the mode that a path names; a swizzle does not count.

    `%n = cute.cosize(%l) : (!cute.layout<"(4,8):(1,16)">) -> !cute.int_tuple<"116">`
    """

    name = "cute.cosize"
    input = operand_def(AnyLayout)
    mode = opt_prop_def(DenseArrayBase.constr(i32))
    result = result_def(IntTupleType)
    KIND: ClassVar = IntTupleType
    BRACKET: ClassVar = Mode(optional=True)

    @classmethod
    def evaluate(cls, layout: LayoutLike, mode: Sequence[int] = ()) -> AnyValue:
        if isinstance(layout, ComposedLayout) and isinstance(layout.inner, Layout):
            raise undefined_error(f"the cosize of {layout} is not defined", Code.COMPOSED_UNSUPPORTED)
        return cosize(modes.get(layout, mode))


@irdl_op_definition
class TupleProductOp(PureOp):
    """The product of all integers. `%n = cute.tuple_product(%s) : (!cute.shape<"(4,(2,8))">) -> !cute.shape<"64">`."""

    name = "cute.tuple_product"
    input = operand_def(IntTupleOrShape)
    result = result_def(IntTupleOrShape)
    FUNCTION: ClassVar = staticmethod(product)


@irdl_op_definition
class TupleProductEachOp(PureOp):
    """The product of each mode, as a tuple.

    `%n = cute.tuple_product_each(%s) : (!cute.shape<"(4,(2,8))">) -> !cute.shape<"(4,16)">`
    """

    name = "cute.tuple_product_each"
    input = operand_def(IntTupleOrShape)
    result = result_def(IntTupleOrShape)
    FUNCTION: ClassVar = staticmethod(product_each)


@irdl_op_definition
class LayoutEvalOp(PureOp):
    """The index of a coordinate in a layout; a tuple where the strides are bases. An underscore counts as 0.

    `%i = cute.layout_eval(%c, %l) : (!cute.coord<"(1,2)">, !cute.layout<"(4,8):(1,4)">) -> !cute.int_tuple<"9">`
    """

    name = "cute.layout_eval"
    coord = operand_def(CoordType)
    layout = operand_def(AnyLayout)
    result = result_def(IntTupleType)
    KIND: ClassVar = IntTupleType

    @classmethod
    def evaluate(cls, coord: Coord, layout: LayoutLike) -> AnyValue:
        if isinstance(coord, tuple) and len(coord) != len(plain_layout(layout)):
            raise undefined_error(
                f"the coordinate {show(coord)} and the layout {layout} differ in rank", Code.RANK_MISMATCH
            )
        index = as_coordinate(crd2idx(coord, plain_layout(layout).shape, plain_layout(layout).stride))
        if isinstance(layout, Layout):
            return index
        index = add(layout.offset, index)
        if isinstance(layout.inner, Layout):
            return as_coordinate(crd2idx(index, layout.inner.shape, layout.inner.stride))
        return layout.inner(index)


@irdl_op_definition
class Crd2IdxOp(PureOp):
    """The place of a coordinate in the colexicographic order of a shape.

    `%i = cute.crd2idx(%c, %s) : (!cute.coord<"(1,2)">, !cute.shape<"(4,8)">) -> !cute.int_tuple<"9">`
    """

    name = "cute.crd2idx"
    coord = operand_def(CoordType)
    shape = operand_def(ShapeType)
    result = result_def(IntTupleType)
    KIND: ClassVar = IntTupleType

    @classmethod
    def evaluate(cls, coord: Tree, shape: Tree) -> AnyValue:
        if not weakly_congruent(coord, shape) or has_underscore(coord):
            raise undefined_error(
                f"{show(coord)} is not a coordinate of the shape {show(shape)}", Code.PROFILE_MISMATCH
            )
        return crd2idx(coord, shape, compact_major(shape))


@irdl_op_definition
class Idx2CrdOp(PureOp):
    """The coordinate at a place in the colexicographic order of a shape.

    `%c = cute.idx2crd(%i, %s) : (!cute.int_tuple<"9">, !cute.shape<"(4,8)">) -> !cute.coord<"(1,2)">`
    """

    name = "cute.idx2crd"
    index = operand_def(IntTupleType)
    shape = operand_def(ShapeType)
    result = result_def(CoordType)
    KIND: ClassVar = CoordType

    @classmethod
    def evaluate(cls, index: AnyValue, shape: Tree) -> AnyValue:
        if rank(index) > 1 and rank(index) != rank(shape):
            raise undefined_error(
                f"the index {show(index)} and the shape {show(shape)} differ in rank", Code.RANK_MISMATCH
            )
        return idx2crd(index, shape)


@irdl_op_definition
class IncrementCoordOp(PureOp):
    """The next coordinate in the colexicographic order of a shape; the last mode runs on beyond its extent.

    `%d = cute.increment_coord(%c, %s) : (!cute.coord<"(3,2)">, !cute.shape<"(4,8)">) -> !cute.coord<"(0,3)">`
    """

    name = "cute.increment_coord"
    coord = operand_def(CoordType)
    shape = operand_def(ShapeType)
    result = result_def(CoordType)
    KIND: ClassVar = CoordType

    @classmethod
    def evaluate(cls, coord: Tree, shape: Tree) -> AnyValue:
        if not congruent(coord, shape):
            raise undefined_error(f"{show(coord)} and {show(shape)} are nested differently", Code.PROFILE_MISMATCH)
        if has_underscore(coord):
            raise undefined_error(f"the coordinate {show(coord)} has no successor: it keeps modes whole")
        return increment(coord, shape)


class PadOp(PureOp):
    """The base of `append_to_rank` and `prepend_to_rank`. The element is of the input's kind."""

    rank = prop_def(IntegerAttr[I32])
    input = operand_def(TupleOrLayout)
    element = operand_def(TupleOrLayout)
    result = result_def(TupleOrLayout)
    SIGNATURE: ClassVar = Signature.OPERANDS
    BRACKET: ClassVar = Integers(("rank",))
    AT_END: ClassVar[bool]

    @classmethod
    def evaluate(cls, value: Any, element: Any, rank: int) -> AnyValue:
        if rank < 1:
            raise undefined_error(f"the rank must be positive, not {rank}")
        return modes.pad(value, rank, element, cls.AT_END)

    @classmethod
    def infer(cls, operand_types: Any, properties: Any) -> Any:
        value, element = operand_types
        if type(element) is not (LayoutType if isinstance(value, ComposedLayoutType) else type(value)):
            raise undefined_error(f"{element} cannot be a mode of {value}")
        return super().infer(operand_types, properties)


@irdl_op_definition
class AppendToRankOp(PadOp):
    """A value with copies of an element after its modes, up to a rank; it stays as it is where it has that rank.

    `%r = cute.append_to_rank<4> (%s, %e) : !cute.shape<"(4,8)">, !cute.shape<"1">`
    """

    name = "cute.append_to_rank"
    AT_END: ClassVar = True


@irdl_op_definition
class PrependToRankOp(PadOp):
    """A value with copies of an element before its modes, up to a rank; it stays as it is where it has that rank.

    `%r = cute.prepend_to_rank<4> (%s, %e) : !cute.shape<"(4,8)">, !cute.shape<"1">`
    """

    name = "cute.prepend_to_rank"
    AT_END: ClassVar = False
