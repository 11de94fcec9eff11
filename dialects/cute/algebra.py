# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of the layout algebra proper: composition, complement, inverses, and rearranging modes."""

from typing import Any, ClassVar

from xdsl.dialects.builtin import I32, IntegerAttr
from xdsl.irdl import operand_def, opt_operand_def, prop_def, result_def

from ...base.errors import Code
from ...layout.algebra.axes import has_basis
from ...layout.algebra.coalesce import coalesce
from ...layout.algebra.complement import complement, open_complement
from ...layout.algebra.compose import composition
from ...layout.algebra.core import ComposedLayout, Layout, LayoutLike, plain_layout
from ...layout.algebra.integers import Tree
from ...layout.algebra.inttuple import (
    dice_tuple,
    flatten,
    has_underscore,
    leaves,
    rank,
    show,
    slice_tuple,
    weakly_congruent,
)
from ...layout.algebra.inverse import left_inverse, right_inverse
from ...layout.algebra.modes import flatten_layout, group_modes, on_outer, slice_
from ...layout.algebra.recast import recast_layout
from ...layout.algebra.swizzle import Swizzle
from ...layout.algebra.swizzled_slice import MixedBits, slice_as_cute
from ..definitions import irdl_op_definition
from .accessors import Indexable
from .brackets import Integers
from .op import PureOp, Signature
from .types import ComposedLayoutType, CoordType, IntTupleType, LayoutType, ShapeType, StrideType, TileType
from .values import AnyValue, is_static_value, undefined_error

AnyLayout = LayoutType | ComposedLayoutType
Sliceable = ShapeType | StrideType | CoordType | IntTupleType | LayoutType | ComposedLayoutType


@irdl_op_definition
class CompositionOp(PureOp):
    """The layout R with R(c) = lhs(rhs(c)). A shape stands for extents with stride 1, a tile composes mode by mode.

    `%r = cute.composition(%a, %b) : (!cute.layout<"(6,2):(8,2)">, !cute.layout<"(4,3):(3,1)">)
    -> !cute.layout<"((2,2),3):((24,2),8)">`
    """

    name = "cute.composition"
    lhs = operand_def(AnyLayout)
    rhs = operand_def(LayoutType | ShapeType | TileType)
    result = result_def(AnyLayout)
    FUNCTION: ClassVar = staticmethod(composition)


@irdl_op_definition
class CoalesceOp(PureOp):
    """The layout with the fewest modes that is the same function of integers; with a profile, each mode for itself.

    `%r = cute.coalesce(%l) : (!cute.layout<"(2,(1,6)):(1,(6,2))">) -> !cute.layout<"12:1">`
    """

    name = "cute.coalesce"
    input = operand_def(AnyLayout)
    target_profile = opt_operand_def(CoordType)
    result = result_def(AnyLayout)

    @classmethod
    def evaluate(cls, layout: LayoutLike, profile: Tree = None) -> AnyValue:
        if layout.shape == ():
            return layout
        return coalesce(layout, profile)


@irdl_op_definition
class FlattenOp(PureOp):
    """A value with all its modes at one level.

    `%r = cute.flatten(%s) : (!cute.shape<"(2,(3,4))">) -> !cute.shape<"(2,3,4)">`
    """

    name = "cute.flatten"
    input = operand_def(Indexable)
    result = result_def(Indexable)

    @classmethod
    def evaluate(cls, value: Any) -> AnyValue:
        return flatten_layout(value) if isinstance(value, Layout | ComposedLayout) else flatten(value)


@irdl_op_definition
class ComplementOp(PureOp):
    """The indices that a layout leaves out, up to the size of `cotarget` (a shape or a layout), as a layout.

    Without a cotarget the layout must be static; the last mode then has extent 1 and the stride of all that follows.
    `%r = cute.complement(%l, %s) : (!cute.layout<"4:2">, !cute.shape<"16">) -> !cute.layout<"(2,2):(1,8)">`
    """

    name = "cute.complement"
    input = operand_def(LayoutType)
    cotarget = opt_operand_def(LayoutType | ShapeType)
    result = result_def(LayoutType)

    @classmethod
    def evaluate(cls, layout: Layout, cotarget: Tree = None) -> Layout:
        if cotarget is None:
            if not is_static_value(layout):
                raise undefined_error(f"without a cotarget {layout} must be static", Code.DYNAMIC_UNSUPPORTED)
            return open_complement(layout)
        if has_basis(layout.stride):
            raise undefined_error(f"the complement of {layout} needs integer strides")
        if not is_static_value(layout.stride) and rank(layout.shape) > 1:
            raise undefined_error(f"the complement of {layout} needs static strides", Code.DYNAMIC_UNSUPPORTED)
        return complement(layout, cotarget.shape if isinstance(cotarget, Layout) else cotarget)


@irdl_op_definition
class GroupModesOp(PureOp):
    """A layout with modes `begin` to `end - 1` made one nested mode.

    `%r = cute.group_modes<0, 2> (%l) : (!cute.layout<"(2,3,4):(1,2,6)">) -> !cute.layout<"((2,3),4):((1,2),6)">`
    """

    name = "cute.group_modes"
    input = operand_def(AnyLayout)
    begin = prop_def(IntegerAttr[I32])
    end = prop_def(IntegerAttr[I32])
    result = result_def(AnyLayout)
    BRACKET: ClassVar = Integers(("begin", "end"))
    FUNCTION: ClassVar = staticmethod(group_modes)


@irdl_op_definition
class RecastLayoutOp(PureOp):
    """A layout of elements of `old_type_bits` bits, seen as elements of `new_type_bits` bits.

    `%r = cute.recast_layout<32, 8> (%l) : !cute.layout<"(8,4):(1,8)"> -> !cute.layout<"(2,4):(1,2)">`
    """

    name = "cute.recast_layout"
    source = operand_def(AnyLayout)
    new_type_bits = prop_def(IntegerAttr[I32])
    old_type_bits = prop_def(IntegerAttr[I32])
    result = result_def(AnyLayout)
    SIGNATURE: ClassVar = Signature.ARROW
    BRACKET: ClassVar = Integers(("new_type_bits", "old_type_bits"))

    @classmethod
    def evaluate(cls, layout: LayoutLike, new_type_bits: int, old_type_bits: int) -> AnyValue:
        if has_basis(plain_layout(layout).stride):
            raise undefined_error(f"the elements of {layout} have no width: its strides are bases")
        return recast_layout(layout, old_type_bits, new_type_bits)


def _check_coord(coord: Tree, value: Any) -> None:
    shape = value.shape if isinstance(value, Layout | ComposedLayout) else value
    if not weakly_congruent(coord, shape):
        raise undefined_error(f"the coordinate {show(coord)} does not fit {show(shape)}", Code.PROFILE_MISMATCH)


@irdl_op_definition
class SliceOp(PureOp):
    """The modes of a value that the underscores of a coordinate keep; a composed layout keeps the rest's offset.

    Of a swizzled layout the swizzle and the offset are kept only where CuTe C++ keeps them.

    `%r = cute.slice(%l, %c) : !cute.layout<"(2,3,4):(1,2,6)">, !cute.coord<"(_,1,_)">`
    """

    name = "cute.slice"
    input = operand_def(Sliceable)
    coord = operand_def(CoordType)
    result = result_def(Sliceable)
    SIGNATURE: ClassVar = Signature.OPERANDS

    @classmethod
    def evaluate(cls, value: Any, coord: AnyValue) -> AnyValue:
        _check_coord(coord, value)
        if isinstance(value, ComposedLayout) and isinstance(value.inner, Swizzle):
            if not is_static_value(value.outer):
                raise undefined_error(f"a slice of {value} needs a static outer layout", Code.DYNAMIC_UNSUPPORTED)
            if not has_underscore(coord):
                raise undefined_error(
                    f"the coordinate {show(coord)} keeps no mode of {value}", hint="use cute.layout_eval"
                )
            sliced = slice_as_cute(coord, value)[0]
            offset: Any = sliced.offset if isinstance(sliced, ComposedLayout) else None
            if isinstance(sliced, ComposedLayout) and isinstance(offset, MixedBits):
                return ComposedLayout(sliced.inner, offset.value, sliced.outer)
            return sliced
        return slice_(coord, value) if isinstance(value, Layout | ComposedLayout) else slice_tuple(coord, value)


@irdl_op_definition
class DiceOp(PureOp):
    """The modes of a value that the integers of a static coordinate keep, the opposite of `slice`.

    `%r = cute.dice(%l, %c) : !cute.layout<"(2,3,4):(1,2,6)">, !cute.coord<"(_,1,_)">`
    """

    name = "cute.dice"
    input = operand_def(Sliceable)
    coord = operand_def(CoordType)
    result = result_def(Sliceable)
    SIGNATURE: ClassVar = Signature.OPERANDS

    @classmethod
    def evaluate(cls, value: Any, coord: Tree) -> AnyValue:
        if not is_static_value(coord):
            raise undefined_error(f"the coordinate {show(coord)} must be static", Code.DYNAMIC_UNSUPPORTED)
        _check_coord(coord, value)
        if isinstance(value, ComposedLayout):
            return on_outer(value, lambda outer: _dice(coord, outer))
        return _dice(coord, value) if isinstance(value, Layout) else dice_tuple(coord, value)


def _dice(coord: Tree, layout: Layout) -> Layout:
    return Layout(dice_tuple(coord, layout.shape), dice_tuple(coord, layout.stride))


@irdl_op_definition
class RightInverseOp(PureOp):
    """The largest layout R with input(R(i)) = i that follows contiguous indices from 0. The shape must be static.

    `%r = cute.right_inverse(%l) : (!cute.layout<"(4,8):(8,1)">) -> !cute.layout<"(8,4):(4,1)">`
    """

    name = "cute.right_inverse"
    input = operand_def(LayoutType)
    result = result_def(LayoutType)

    @classmethod
    def evaluate(cls, layout: Layout) -> Layout:
        if not is_static_value(layout.shape):
            raise undefined_error(f"the right inverse of {layout} needs a static shape", Code.DYNAMIC_UNSUPPORTED)
        return right_inverse(layout)


@irdl_op_definition
class LeftInverseOp(PureOp):
    """A layout L with L(input(i)) = i, of a static injective layout.

    `%r = cute.left_inverse(%l) : (!cute.layout<"(4,8):(8,1)">) -> !cute.layout<"(8,4):(4,1)">`
    """

    name = "cute.left_inverse"
    input = operand_def(LayoutType)
    result = result_def(LayoutType)

    @classmethod
    def evaluate(cls, layout: Layout) -> Layout:
        if not is_static_value(layout):
            raise undefined_error(f"the left inverse of {layout} needs it to be static", Code.DYNAMIC_UNSUPPORTED)
        if all(type(d) is int and d == 0 for d in leaves(layout.stride)):
            return Layout(1, 0)
        return left_inverse(layout)
