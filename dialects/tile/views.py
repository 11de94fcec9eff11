# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views that divide, compose, reorder and slice a tensor (CuTe's tensor_impl.hpp and layout.hpp), and that shift its
coordinates: those of a tensor map may stand for several modes.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.ir import SSAValue
from xdsl.irdl import opt_prop_def, prop_def

from ...base.errors import Code, LayoutError
from ...layout import coalesce, composition
from ...layout.algebra.coordinates import idx2crd
from ...layout.algebra.core import LayoutLike
from ...layout.algebra.divide import flat_divide, logical_divide, tiled_divide, zipped_divide
from ...layout.algebra.integers import AnyTuple, Coord, IntTuple, ScaledBasis, is_static
from ...layout.algebra.inttuple import leaves, rank, show, wrap
from ...layout.algebra.modes import group_modes, select
from ...layout.tiling.partition import check_tiler, everything, padded, project
from ..cute import CoordAttr, TilerAttr
from ..definitions import irdl_op_definition, refusing
from .assembly import check_operands, fill_coordinate
from .coord_type import CoordTensorType
from .run_time import MakeTensorOp
from .tma import TmaTensorOp
from .view_base import RESULT, VIEWED, LayoutViewOp, SlicedViewOp, TilingViewOp


class _CoordinateView(SlicedViewOp):
    """A view sliced at a written coordinate."""

    coord = prop_def(CoordAttr)

    def verify_(self) -> None:
        check_operands(self.coord.data, self.coords)
        super().verify_()


class _TileView(_CoordinateView, TilingViewOp):
    """A view of a tensor that is divided into tiles, sliced at a coordinate of the tiles or within them.

    `proj "(1,_,1)"` takes only the modes marked 1 of tiler and coordinate.
    """

    tiler = prop_def(TilerAttr)
    proj = opt_prop_def(CoordAttr)
    assembly_format = (
        f"{VIEWED} `,` custom<Marked>() custom<Quoted>($tiler) `,` custom<LinearCoordinate>($coord, $coords) "
        f"(`proj` custom<Quoted>($proj)^)? (`ragged` $ragged^)? {RESULT}"
    )

    @classmethod
    def layout_by(cls, given: Any, layout: LayoutLike) -> LayoutLike:
        tiler = _project(given, given.tiler)
        check_tiler(tiler, "the tiler")
        cls.check_tiles(given, layout, tiler)
        return zipped_divide(layout, tiler)

    @staticmethod
    def chosen(given: Any, values: Sequence[Any]) -> Coord:
        """The coordinate with values for its operands."""
        return _project(given, fill_coordinate(given.coord, values))


def _project(given: Any, t: Any) -> Any:
    return t if given.proj is None else project(given.proj, t)


@irdl_op_definition
class LocalTileOp(_TileView):
    """`tile.local_tile %A, "(128,32)", (%m, %k)`: the tile at a coordinate of the tensor's tiles (CuTe's local_tile).

    The tiler divides the tensor; the tile's modes come first, then those that `_` keeps. A coordinate without
    parentheses, `%i`, counts through all tiles. With `proj "(1,_,1)"` only the modes marked 1 of tiler and coordinate
    are used (CuTe's Step). Tiles must cover the tensor exactly, unless `ragged` follows.
    """

    name = "tile.local_tile"
    SELECTS: ClassVar[str] = "the tiles"

    @classmethod
    def coordinate_by(cls, given: object, layout: LayoutLike, values: Sequence[object]) -> Coord:
        return (None,) * rank(layout[0].shape), padded(cls.chosen(given, values), layout[1].shape)

    @classmethod
    def selection(cls, coord: AnyTuple, shape: AnyTuple) -> tuple[AnyTuple, AnyTuple]:
        return coord[1], shape[1]


@irdl_op_definition
class OuterPartitionOp(_TileView):
    """`tile.outer_partition %A, "(4,8)", (%i, %j)`: the elements at a coordinate within every tile (CuTe's
    outer_partition): (RestM,RestN,...), after the modes of the tile that `_` keeps.

    A coordinate without parentheses, `%i`, counts through the elements of a tile. With `proj "(1,_,1)"` only the modes
    marked 1 of tiler and coordinate are used. Tiles must cover the tensor exactly, unless `ragged` follows. Its
    counterpart, inner_partition, is `tile.local_tile`.
    """

    name = "tile.outer_partition"
    SELECTS: ClassVar[str] = "a tile"

    @classmethod
    def coordinate_by(cls, given: object, layout: LayoutLike, values: Sequence[object]) -> Coord:
        return padded(cls.chosen(given, values), layout[0].shape), everything(layout[1].shape)

    @classmethod
    def selection(cls, coord: AnyTuple, shape: AnyTuple) -> tuple[AnyTuple, AnyTuple]:
        return coord[0], shape[0]


@irdl_op_definition
class SliceOp(_CoordinateView):
    """`tile.slice %t, (_, %k)`: the modes that `_` keeps, at a coordinate of the others (CuTe's `tensor(_, k)`)."""

    name = "tile.slice"
    assembly_format = f"{VIEWED} `,` custom<Marked>() custom<Coordinate>($coord, $coords) {RESULT}"

    @classmethod
    def layout_by(cls, given: object, layout: LayoutLike) -> LayoutLike:
        return layout

    @classmethod
    def coordinate_by(cls, given: Any, layout: LayoutLike, values: Sequence[Any]) -> Coord:
        return fill_coordinate(given.coord, values)


@irdl_op_definition
class DomainOffsetOp(_CoordinateView):
    """`tile.domain_offset %t, (%i, 0)`: the tensor as seen from a coordinate: its layout, begun there (CuTe's
    domain_offset). Elements beyond its end must not be accessed.
    """

    name = "tile.domain_offset"
    assembly_format = f"{VIEWED} `,` custom<Marked>() custom<Coordinate>($coord, $coords) {RESULT}"

    @classmethod
    def layout_by(cls, given: object, layout: LayoutLike) -> LayoutLike:
        return select(group_modes(layout, 0, len(layout)), 0, 0)  # where it begins, and the layout from there

    def verify_(self) -> None:
        super().verify_()
        with refusing():
            check_shift(self.source, self.coord.data)

    @classmethod
    def coordinate_by(cls, given: Any, layout: LayoutLike, values: Sequence[Any]) -> Coord:
        return fill_coordinate(given.coord, values), everything(layout[1].shape)

    @classmethod
    def selection(cls, coord: AnyTuple, shape: AnyTuple) -> tuple[AnyTuple, AnyTuple]:
        return coord[0], shape[0]


class _TilerView(LayoutViewOp):
    """A view by a function of the layout and a tiler."""

    FUNCTION: ClassVar[Callable[[Any, Any], Any]]
    tiler = prop_def(TilerAttr)
    assembly_format = f"{VIEWED} `,` custom<Marked>() custom<Quoted>($tiler) {RESULT}"

    @classmethod
    def layout_by(cls, given: Any, layout: LayoutLike) -> LayoutLike:
        check_tiler(given.tiler, "the tiler")
        return cls.FUNCTION(layout, given.tiler)


class _DivideView(_TilerView, TilingViewOp):
    """A view by a function that divides the layout into tiles, exactly or `ragged`."""

    assembly_format = f"{VIEWED} `,` custom<Marked>() custom<Quoted>($tiler) (`ragged` $ragged^)? {RESULT}"

    @classmethod
    def layout_by(cls, given: Any, layout: LayoutLike) -> LayoutLike:
        check_tiler(given.tiler, "the tiler")
        cls.check_tiles(given, layout, given.tiler)
        return super().layout_by(given, layout)


@irdl_op_definition
class LogicalDivideOp(_DivideView):
    """`tile.logical_divide %t, "(4,8)"`: each mode becomes (inside the tile, the tiles)."""

    name = "tile.logical_divide"
    FUNCTION: ClassVar[Callable[[Any, Any], Any]] = staticmethod(logical_divide)


@irdl_op_definition
class ZippedDivideOp(_DivideView):
    """`tile.zipped_divide %t, "(4,8)"`: two modes, the tile and the tiles: ((TileM,TileN),(RestM,RestN))."""

    name = "tile.zipped_divide"
    FUNCTION: ClassVar[Callable[[Any, Any], Any]] = staticmethod(zipped_divide)


@irdl_op_definition
class TiledDivideOp(_DivideView):
    """`tile.tiled_divide %t, "(4,8)"`: the tile in one mode, then the tiles: ((TileM,TileN),RestM,RestN)."""

    name = "tile.tiled_divide"
    FUNCTION: ClassVar[Callable[[Any, Any], Any]] = staticmethod(tiled_divide)


@irdl_op_definition
class FlatDivideOp(_DivideView):
    """`tile.flat_divide %t, "(4,8)"`: all modes in a row: (TileM,TileN,RestM,RestN)."""

    name = "tile.flat_divide"
    FUNCTION: ClassVar[Callable[[Any, Any], Any]] = staticmethod(flat_divide)


@irdl_op_definition
class CompositionOp(_TilerView):
    """`tile.composition %t, "((16,8),8):((64,1),8)"`: coordinates of the layout, which names places in the tensor.

    A tuple of layouts or extents composes mode by mode.
    """

    name = "tile.composition"
    FUNCTION: ClassVar[Callable[[Any, Any], Any]] = staticmethod(composition)


@irdl_op_definition
class CoalesceOp(LayoutViewOp):
    """`tile.coalesce %t`: the same elements in the same order with as few modes as possible."""

    name = "tile.coalesce"
    assembly_format = f"{VIEWED} {RESULT}"

    @classmethod
    def layout_by(cls, given: object, layout: LayoutLike) -> LayoutLike:
        return coalesce(layout)


class _ModesView(LayoutViewOp):
    """A view given by a list of mode numbers."""

    modes = prop_def(DenseArrayBase.constr(i64))
    assembly_format = f"{VIEWED} `,` custom<Marked>() custom<Modes>($modes) {RESULT}"


@irdl_op_definition
class SelectOp(_ModesView):
    """`tile.select %t, [0, 1, 3, 2]`: the named modes in that order (the others stay at coordinate 0)."""

    name = "tile.select"

    @classmethod
    def layout_by(cls, given: Any, layout: LayoutLike) -> LayoutLike:
        return select(layout, *given.modes)


@irdl_op_definition
class GroupModesOp(_ModesView):
    """`tile.group_modes %t, [2, 4]`: modes 2 to 3 become one mode."""

    name = "tile.group_modes"

    @classmethod
    def layout_by(cls, given: Any, layout: LayoutLike) -> LayoutLike:
        if len(given.modes) != 2:
            raise LayoutError(
                Code.BAD_ARGUMENT,
                f"group_modes takes the first mode and the one after the last, not {len(given.modes)} numbers",
            )
        return group_modes(layout, *given.modes)


def check_shift(source: SSAValue, coord: Coord) -> None:
    """Raises `LayoutError` (E0323) if `source` has the coordinates of a tensor map, and from `coord` on those outside
    of the tensor would be elements of the map: along a mode that shares a dimension, but is not the outermost there.
    """
    type = source.type
    while isinstance(op := source.owner, LayoutViewOp | MakeTensorOp):
        source = op.source
    if not isinstance(type, CoordTensorType) or not isinstance(op, TmaTensorOp):
        return
    outermost = op.tma.type.tma_copy.outermost_steps
    layout = type.plain_layout
    for basis in _moved(coord, layout.shape, layout.stride) if outermost else ():
        step = outermost.get(basis.path[0], 1)
        if step is None or not is_static(basis.value) or basis.value % step:
            raise LayoutError(
                Code.TMA_BOX,
                f"the coordinate {show(coord)} shifts {layout} along a mode that shares dimension {basis.path[0]} of "
                "the tensor map with others: elements of the next row follow its end",
                "a map has dimensions of its own for up to five modes, if rows are multiples of 16 bytes: pad the "
                "rows, or begin the tensor itself at the coordinate, before the map is made",
            )


def _moved(coord: Coord, shape: IntTuple, stride: AnyTuple) -> Iterator[ScaledBasis]:
    """The strides of the modes along which a coordinate is not 0."""
    extents: tuple[AnyTuple, ...] = wrap(shape)
    if extents is shape and type(coord) is int:
        coord = idx2crd(coord, extents)
    if isinstance(coord, tuple):
        for part, extent, step in zip(coord, extents, stride, strict=False):
            yield from _moved(part, extent, step)
    elif type(coord) is not int or coord:
        yield from (leaf for leaf in leaves(stride) if isinstance(leaf, ScaledBasis))
