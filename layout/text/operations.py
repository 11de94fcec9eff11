# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations that expressions may call, by their CuTe names, and the kinds of arguments that each takes."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, cast

from ... import layout as algebra
from ...base.errors import Code, LayoutError
from ..algebra.coordinates import crd2crd, crd2idx, idx2crd
from ..algebra.core import ComposedLayout, Layout, LayoutLike
from ..algebra.integers import AnyTuple, ScaledBasis, Unknown
from ..algebra.inttuple import (
    ceil_div,
    compatible,
    congruent,
    leaves,
    product,
    product_each,
    shape_div,
    weakly_congruent,
    wrap,
)
from ..algebra.swizzle import Swizzle
from ..atoms.copy_atom import CopyAtom
from ..atoms.copy_names import copy_atom
from ..atoms.mma_atom import MmaAtom
from ..atoms.mma_table import mma_atom
from ..tiling.partition import inner_partition, local_partition, local_tile, outer_partition
from ..tiling.tiled_copy import (
    TiledCopy,
    make_cotiled_copy,
    make_tiled_copy,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_C_atom,
    make_tiled_copy_D,
    make_tiled_copy_S,
    make_tiled_copy_tv,
)
from ..tiling.tiled_mma import TiledMma, make_tiled_mma


@dataclass(frozen=True, slots=True)
class OperandKind:
    """A kind of argument: its name in messages, and the test."""

    name: str
    accepts: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Operation:
    """A function for expressions, and the kinds of its arguments.

    The last `optional` arguments may be left out; with `repeats`, further ones have the last kind.
    """

    function: Callable[..., object]
    kinds: tuple[OperandKind, ...]
    optional: int = 0
    repeats: bool = False

    def arity(self) -> tuple[int, int | None]:
        """The least and the largest number of arguments; None for no limit."""
        return len(self.kinds) - self.optional, None if self.repeats else len(self.kinds)

    def kind(self, index: int) -> OperandKind:
        """The kind of argument `index`."""
        return self.kinds[min(index, len(self.kinds) - 1)]


def _tuple_of(*types: type) -> Callable[[Any], bool]:
    return lambda x: all(type(leaf) in types for leaf in leaves(x))


LAYOUT = OperandKind("a layout", lambda x: type(x) in (Layout, ComposedLayout))
PLAIN = OperandKind("a plain layout", lambda x: type(x) is Layout)
INTEGER = OperandKind("a static integer", lambda x: type(x) is int)
INDEX = OperandKind("an integer", lambda x: type(x) in (int, Unknown))
SHAPE = OperandKind("a shape", _tuple_of(int, Unknown))
STRIDE = OperandKind("a stride", _tuple_of(int, Unknown, ScaledBasis))
COORD = OperandKind("a coordinate", _tuple_of(int, Unknown, type(None)))
TILER = OperandKind("a tiler", _tuple_of(int, Unknown, type(None), Layout))
SHAPE_OR_LAYOUT = OperandKind("a shape or a layout", lambda x: SHAPE.accepts(x) or LAYOUT.accepts(x))
SHAPE_OR_PLAIN = OperandKind("a shape or a plain layout", lambda x: SHAPE.accepts(x) or PLAIN.accepts(x))
STRIDE_OR_PLAIN = OperandKind("a stride or a plain layout", lambda x: STRIDE.accepts(x) or PLAIN.accepts(x))
SHAPED = OperandKind("a tuple or a layout", lambda x: STRIDE.accepts(x) or TILER.accepts(x) or LAYOUT.accepts(x))
FUNCTION = OperandKind("a layout or a swizzle", lambda x: LAYOUT.accepts(x) or type(x) is Swizzle)
RIGHT = OperandKind("a layout, a tiler or a swizzle", lambda x: FUNCTION.accepts(x) or TILER.accepts(x))
PROFILE = OperandKind("a profile", lambda x: COORD.accepts(x) or STRIDE.accepts(x))
PERMUTATION = OperandKind("a tuple of tilers", lambda x: isinstance(x, tuple) and TILER.accepts(cast(Any, x)))
TEXT = OperandKind("a name in quotes", lambda x: type(x) is str)
COPY_ATOM = OperandKind("a copy atom", lambda x: type(x) is CopyAtom)
MMA_ATOM = OperandKind("an MMA atom", lambda x: type(x) is MmaAtom)
COPY = OperandKind("a tiled copy", lambda x: type(x) is TiledCopy)
MMA = OperandKind("a tiled MMA", lambda x: type(x) is TiledMma)


def mode_of(x: Any, mode: int) -> Any:
    """Mode `mode` of a layout or an element of a tuple. Raises `LayoutError` (E0208) if there is none."""
    if isinstance(x, Layout | ComposedLayout):
        return x[mode]
    parts = wrap(x)
    if not 0 <= mode < len(parts):
        raise LayoutError(Code.MODE_OUT_OF_RANGE, f"there are modes 0 to {len(parts) - 1}, not {mode}")
    return parts[mode]


def _of_mode(f: Callable[[Any], object]) -> Callable[..., object]:
    """`f` of a mode of its argument, which a path of mode indices names."""

    def apply(x: object, *modes: int) -> Any:
        for mode in modes:
            x = mode_of(x, mode)
        return f(x)

    return apply


def _shape(x: object) -> AnyTuple:
    return x.shape if isinstance(x, Layout | ComposedLayout) else x


def _stride(x: Layout) -> AnyTuple:
    return x.stride


def _itself(x: object) -> object:
    return x


def _operations() -> Iterator[tuple[str, Operation]]:
    yield "size", Operation(_of_mode(algebra.size), (SHAPE_OR_LAYOUT, INTEGER), 1, repeats=True)
    for name in ("rank", "depth"):
        yield name, Operation(_of_mode(getattr(algebra, name)), (SHAPED, INTEGER), 1, repeats=True)
    for name in ("cosize", "coshape"):
        kind = LAYOUT if name == "cosize" else PLAIN
        yield name, Operation(_of_mode(getattr(algebra, name)), (kind, INTEGER), 1, repeats=True)
    yield "shape", Operation(_of_mode(_shape), (SHAPED, INTEGER), 1, repeats=True)
    yield "stride", Operation(_of_mode(_stride), (PLAIN, INTEGER), 1, repeats=True)
    yield "get", Operation(_of_mode(_itself), (SHAPED, INTEGER), 1, repeats=True)
    yield "make_layout", Operation(algebra.make_layout, (SHAPE_OR_PLAIN, STRIDE_OR_PLAIN), 1, repeats=True)
    for name in ("make_row_major_layout", "make_identity_layout"):
        yield name, Operation(getattr(algebra, name), (SHAPE,))
    yield "make_ordered_layout", Operation(algebra.make_ordered_layout, (SHAPE, STRIDE))
    yield "make_layout_like", Operation(algebra.make_layout_like, (PLAIN,))
    yield "make_swizzle", Operation(algebra.make_swizzle, (INTEGER, INTEGER))
    for name in ("flatten", "right_inverse", "left_inverse", "nullspace", "max_alignment", "make_fragment_like"):
        yield name, Operation(getattr(algebra, name), (LAYOUT,))
    for name in ("coalesce", "filter", "filter_zeros"):
        yield name, Operation(getattr(algebra, name), (LAYOUT, PROFILE), 1)
    yield "complement", Operation(algebra.complement, (LAYOUT, SHAPE), 1)
    yield "composition", Operation(algebra.composition, (FUNCTION, RIGHT))
    yield "with_shape", Operation(algebra.with_shape, (LAYOUT, SHAPE))
    for form in ("logical", "zipped", "tiled", "flat"):
        for verb in ("divide", "product"):
            yield f"{form}_{verb}", Operation(getattr(algebra, f"{form}_{verb}"), (LAYOUT, TILER))
    for name in ("blocked_product", "raked_product"):
        yield name, Operation(getattr(algebra, name), (LAYOUT, PLAIN))
    yield "tile_to_shape", Operation(algebra.tile_to_shape, (LAYOUT, SHAPE, STRIDE), 1)
    for name in ("max_common_layout", "max_common_vector"):
        yield name, Operation(getattr(algebra, name), (LAYOUT, LAYOUT))
    yield from _list_mode_operations()
    yield from _list_coordinate_operations()
    yield from _list_tiled_operations()


def _list_mode_operations() -> Iterator[tuple[str, Operation]]:
    yield "unflatten", Operation(algebra.unflatten, (LAYOUT, PROFILE))
    for name in ("append", "prepend"):
        yield name, Operation(getattr(algebra, name), (LAYOUT, INTEGER, PLAIN), 1)
    for name in ("group_modes", "take"):
        yield name, Operation(getattr(algebra, name), (LAYOUT, INTEGER, INTEGER))
    yield "select", Operation(algebra.select, (LAYOUT, INTEGER), repeats=True)
    yield "ungroup_mode", Operation(algebra.ungroup_mode, (LAYOUT, INTEGER))
    yield "replace", Operation(algebra.replace, (PLAIN, INTEGER, PLAIN))
    yield "zip_layout", Operation(algebra.zip_layout, (LAYOUT,))
    yield "zip_layouts", Operation(algebra.zip_layouts, (PLAIN, PLAIN))
    for name in ("upcast", "downcast"):
        yield name, Operation(getattr(algebra, name), (LAYOUT, INTEGER))
    yield "recast_layout", Operation(algebra.recast_layout, (LAYOUT, INTEGER, INTEGER))


def _list_coordinate_operations() -> Iterator[tuple[str, Operation]]:
    yield "slice", Operation(algebra.slice_, (COORD, LAYOUT))
    yield "dice", Operation(algebra.dice, (COORD, LAYOUT))
    yield "slice_and_offset", Operation(algebra.slice_and_offset, (COORD, LAYOUT))
    yield "domain_offset", Operation(algebra.domain_offset, (COORD, LAYOUT))
    yield "crd2idx", Operation(_crd2idx, (COORD, SHAPE_OR_LAYOUT, STRIDE), 1)
    yield "idx2crd", Operation(idx2crd, (SHAPE, SHAPE, SHAPE), 1)
    yield "crd2crd", Operation(crd2crd, (SHAPE, SHAPE, SHAPE))
    yield "product", Operation(product, (SHAPE,))
    yield "product_each", Operation(product_each, (SHAPE,))
    yield "ceil_div", Operation(ceil_div, (SHAPE, SHAPE))
    yield "shape_div", Operation(shape_div, (SHAPE, SHAPE))
    for name, f in (("congruent", congruent), ("weakly_congruent", weakly_congruent), ("compatible", compatible)):
        yield name, Operation(_of_shapes(f), (SHAPE_OR_LAYOUT, SHAPE_OR_LAYOUT))


def _crd2idx(coord: AnyTuple, shape: AnyTuple, *stride: AnyTuple) -> AnyTuple:
    """CuTe's crd2idx(coord, layout) and crd2idx(coord, shape, stride); compact strides by default."""
    layout = shape if isinstance(shape, Layout | ComposedLayout) else algebra.make_layout(shape, *stride)
    return layout(coord) if isinstance(layout, ComposedLayout) else crd2idx(coord, layout.shape, layout.stride)


def _of_shapes(f: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda a, b: f(_shape(a), _shape(b))


def _list_tiled_operations() -> Iterator[tuple[str, Operation]]:
    for tile in (local_tile, inner_partition, outer_partition):
        kinds = (LAYOUT, TILER, COORD)
        projected = tile is local_tile
        yield tile.__name__, Operation(tile, (*kinds, COORD) if projected else kinds, int(projected))
    yield "local_partition", Operation(local_partition, (LAYOUT, PLAIN, INDEX, COORD), 1)
    yield "copy_atom", Operation(copy_atom, (TEXT, INTEGER), 1)
    yield "make_tiled_copy", Operation(make_tiled_copy, (COPY_ATOM, PLAIN, PLAIN))
    yield "make_tiled_copy_tv", Operation(make_tiled_copy_tv, (COPY_ATOM, PLAIN, TILER))
    yield "make_cotiled_copy", Operation(make_cotiled_copy, (COPY_ATOM, PLAIN, PLAIN))
    for make in (make_tiled_copy_A, make_tiled_copy_B, make_tiled_copy_C, make_tiled_copy_C_atom):
        yield make.__name__, Operation(make, (COPY_ATOM, MMA))
    for make in (make_tiled_copy_S, make_tiled_copy_D):
        yield make.__name__, Operation(make, (COPY_ATOM, COPY))
    for name in ("partition_S", "partition_D"):
        yield name, Operation(getattr(TiledCopy, name), (COPY, LAYOUT, INDEX))
    for name in ("tidfrg_S", "tidfrg_D", "retile"):
        yield name, Operation(getattr(TiledCopy, name), (COPY, LAYOUT))
    yield "tile2thrfrg", Operation(TiledCopy.tile2thrfrg, (COPY, LAYOUT, PLAIN))
    for name in ("get_layoutS_TV", "get_layoutD_TV"):
        yield name, Operation(getattr(TiledCopy, name), (COPY,))
    yield "mma_atom", Operation(mma_atom, (TEXT,))
    yield "make_tiled_mma", Operation(make_tiled_mma, (MMA_ATOM, PLAIN, PERMUTATION), 2)
    for operand in "ABC":
        yield f"partition_{operand}", Operation(getattr(TiledMma, f"partition_{operand}"), (MMA, LAYOUT, INDEX))
        yield f"get_layout{operand}_TV", Operation(partial(_layout_tv, operand), (MMA,))
        yield f"thrfrg_{operand}", Operation(partial(_thrfrg, operand), (MMA, LAYOUT))


def _layout_tv(operand: str, mma: TiledMma) -> Layout:
    return mma.layout_tv(operand)


def _thrfrg(operand: str, mma: TiledMma, layout: LayoutLike) -> LayoutLike:
    return mma.thrfrg(operand, layout)


OPERATIONS: Mapping[str, Operation] = MappingProxyType(dict(_operations()))
"""Every operation that an expression may call, by its CuTe name."""
