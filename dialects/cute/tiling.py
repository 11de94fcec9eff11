# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products, divides and tilings of layouts."""

from collections.abc import Callable
from typing import Any, ClassVar

from xdsl.irdl import operand_def, opt_operand_def, result_def

from ...base.errors import Code
from ...layout.algebra import divide, product
from ...layout.algebra.axes import has_basis
from ...layout.algebra.coalesce import coalesce
from ...layout.algebra.core import Layout, LayoutLike, Tiler, plain_layout, rank
from ...layout.algebra.inttuple import leaves, show, wrap
from ...layout.algebra.modes import ungroup_mode
from ..definitions import irdl_op_definition
from .algebra import AnyLayout
from .op import PureOp
from .types import IntTupleType, LayoutType, ShapeType, TileType
from .values import AnyValue, is_static_value, undefined_error


class ProductOp(PureOp):
    """The base of products: copies of a static layout `lhs`, arranged as `rhs`, whose strides are integers."""

    FUNCTION: ClassVar[Callable[[Any, Any], Any]]
    lhs = operand_def(AnyLayout)
    rhs = operand_def(LayoutType)
    result = result_def(AnyLayout)

    @classmethod
    def evaluate(cls, lhs: LayoutLike, rhs: Layout) -> AnyValue:
        if not is_static_value(plain_layout(lhs)):
            raise undefined_error(f"the product of {lhs} needs it to be static", Code.DYNAMIC_UNSUPPORTED)
        if has_basis(rhs.stride):
            raise undefined_error(f"the product with {rhs} needs integer strides")
        if has_basis(plain_layout(lhs).stride) and not is_static_value(rhs):
            raise undefined_error(
                f"the product of {lhs} needs a static right layout, not {rhs}", Code.DYNAMIC_UNSUPPORTED
            )
        return cls.FUNCTION(lhs, rhs)


@irdl_op_definition
class LogicalProductOp(ProductOp):
    """(Block, Copies).

    `%r = cute.logical_product(%a, %b) : (!cute.layout<"4:1">, !cute.layout<"3:1">) -> !cute.layout<"(4,3):(1,4)">`
    """

    name = "cute.logical_product"
    FUNCTION: ClassVar = staticmethod(product.logical_product)


@irdl_op_definition
class ZippedProductOp(ProductOp):
    """((BlockM,BlockN,...), (CopiesM,CopiesN,...)).

    `%r = cute.zipped_product(%a, %b) : (!cute.layout<"4:1">, !cute.layout<"3:1">) -> !cute.layout<"(4,3):(1,4)">`
    """

    name = "cute.zipped_product"
    FUNCTION: ClassVar = staticmethod(product.zipped_product)


@irdl_op_definition
class TiledProductOp(ProductOp):
    """((BlockM,BlockN,...), CopiesM, CopiesN, ...).

    `%r = cute.tiled_product(%a, %b) : (!cute.layout<"4:1">, !cute.layout<"3:1">) -> !cute.layout<"(4,3):(1,4)">`
    """

    name = "cute.tiled_product"
    FUNCTION: ClassVar = staticmethod(product.tiled_product)


@irdl_op_definition
class FlatProductOp(ProductOp):
    """(BlockM, BlockN, ..., CopiesM, CopiesN, ...).

    `%r = cute.flat_product(%a, %b) : (!cute.layout<"4:1">, !cute.layout<"3:1">) -> !cute.layout<"(4,3):(1,4)">`
    """

    name = "cute.flat_product"
    FUNCTION: ClassVar = staticmethod(product.flat_product)


@irdl_op_definition
class RakedProductOp(ProductOp):
    """Copies interleaved, each mode coalesced: ((CopiesM,BlockM), (CopiesN,BlockN), ...).

    `%r = cute.raked_product(%a, %b) : (!cute.layout<"4:1">, !cute.layout<"3:1">) -> !cute.layout<"((3,4)):((4,1))">`
    """

    name = "cute.raked_product"
    FUNCTION: ClassVar = staticmethod(product.raked_product)

    @classmethod
    def evaluate(cls, lhs: LayoutLike, rhs: Layout) -> AnyValue:
        raked = super().evaluate(lhs, rhs)
        return coalesce(raked, (1,) * len(raked))


@irdl_op_definition
class BlockedProductOp(ProductOp):
    """Copies side by side: ((BlockM,CopiesM), (BlockN,CopiesN), ...).

    `%r = cute.blocked_product(%a, %b) : (!cute.layout<"4:1">, !cute.layout<"3:1">) -> !cute.layout<"((4,3)):((1,4))">`
    """

    name = "cute.blocked_product"
    FUNCTION: ClassVar = staticmethod(product.blocked_product)


class DivideOp(PureOp):
    """The base of divides: a layout seen as tiles, inside a tile and from tile to tile.

    The tiler is a layout; or a shape or a tile, which divide mode by mode and may have no more modes than the layout.
    """

    FUNCTION: ClassVar[Callable[..., Any]]
    input = operand_def(AnyLayout)
    tiler = operand_def(LayoutType | TileType | ShapeType)
    result = result_def(AnyLayout)

    @classmethod
    def evaluate(cls, layout: LayoutLike, tiler: Tiler) -> AnyValue:
        if not isinstance(tiler, Layout) and rank(tiler) > len(plain_layout(layout)):
            modes = len(plain_layout(layout))
            raise undefined_error(f"the tiler has {rank(tiler)} modes, {layout} has {modes}", Code.RANK_MISMATCH)
        for tile in leaves(tiler):
            if isinstance(tile, Layout):
                _check_tile(tile, nested=not isinstance(tiler, Layout))
        return cls.FUNCTION(layout, tiler, merge_dynamic=False)


def _check_tile(tile: Layout, nested: bool) -> None:
    if nested and has_basis(tile.stride):
        raise undefined_error(f"the layout {tile} in a tile needs integer strides")
    if len(tile) > 1 and not is_static_value(tile.stride):
        raise undefined_error(f"the tiler {tile} needs static strides, or a single mode", Code.DYNAMIC_UNSUPPORTED)


@irdl_op_definition
class LogicalDivideOp(DivideOp):
    """((TileM,RestM), (TileN,RestN), ...).

    `%r = cute.logical_divide(%l, %t) : (!cute.layout<"16:1">, !cute.layout<"4:1">) -> !cute.layout<"(4,4):(1,4)">`
    """

    name = "cute.logical_divide"
    FUNCTION: ClassVar = staticmethod(divide.logical_divide)


@irdl_op_definition
class ZippedDivideOp(DivideOp):
    """((TileM,TileN,...), (RestM,RestN,...)).

    `%r = cute.zipped_divide(%l, %t) : (!cute.layout<"16:1">, !cute.layout<"4:1">) -> !cute.layout<"(4,4):(1,4)">`
    """

    name = "cute.zipped_divide"
    FUNCTION: ClassVar = staticmethod(divide.zipped_divide)


@irdl_op_definition
class TiledDivideOp(DivideOp):
    """((TileM,TileN,...), RestM, RestN, ...).

    `%r = cute.tiled_divide(%l, %t) : (!cute.layout<"16:1">, !cute.layout<"4:1">) -> !cute.layout<"(4,4):(1,4)">`
    """

    name = "cute.tiled_divide"
    FUNCTION: ClassVar = staticmethod(divide.tiled_divide)


@irdl_op_definition
class FlatDivideOp(DivideOp):
    """(TileM, TileN, ..., RestM, RestN, ...).

    `%r = cute.flat_divide(%l, %t) : (!cute.layout<"16:1">, !cute.layout<"4:1">) -> !cute.layout<"(4,4):(1,4)">`
    """

    name = "cute.flat_divide"
    FUNCTION: ClassVar = staticmethod(divide.flat_divide)

    @classmethod
    def evaluate(cls, layout: LayoutLike, tiler: Tiler) -> AnyValue:
        flat = super().evaluate(layout, tiler)
        return ungroup_mode(flat, 0) if isinstance(tiler, tuple) and len(tiler) == 1 else flat


@irdl_op_definition
class TileToShapeOp(PureOp):
    """Copies of a layout side by side until they cover a shape, those modes first that come first in `order`.

    The order is a static permutation of 0, 1, ...; without one, the first mode runs fastest.
    `%r = cute.tile_to_shape(%l, %s) : (!cute.layout<"(2,2):(1,2)">, !cute.shape<"(4,4)">)
    -> !cute.layout<"((2,2),(2,2)):((1,4),(2,8))">`
    """

    name = "cute.tile_to_shape"
    input = operand_def(AnyLayout)
    shape = operand_def(ShapeType)
    order = opt_operand_def(IntTupleType)
    result = result_def(AnyLayout)

    @classmethod
    def evaluate(cls, layout: LayoutLike, shape: AnyValue, order: AnyValue = None) -> AnyValue:
        if order is not None:
            numbers = [x for x in wrap(order) if type(x) is int]
            if len(numbers) != rank(order) or sorted(numbers) != list(range(rank(shape))):
                raise undefined_error(f"the order {show(order)} is not a permutation of the modes of {show(shape)}")
        return product.tile_to_shape(layout, shape, order, round_up=True)
