# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views of tensors, by the functions of CuTe. Those that are defined for layouts too take either.

A view touches no element. Where tiles do not cover a tensor exactly, the last ones reach beyond it, and a kernel must
not access elements there. Everything raises `LayoutError` if the algebra does.
"""

from typing import Any, TypeVar

from xdsl.dialects.builtin import IndexType, IntegerAttr, i64
from xdsl.ir import Attribute

from ... import layout as algebra
from ...base.errors import Code, LayoutError, TilefoldError
from ...dialects.cute import CoordAttr, LayoutAttr, ShapeAttr, TilerAttr
from ...dialects.tile import (
    BoundsOp,
    CompositionOp,
    FlatDivideOp,
    IdentityOp,
    LocalPartitionOp,
    LocalTileOp,
    LogicalDivideOp,
    MakeTensorOp,
    OuterPartitionOp,
    RasterizeOp,
    TiledDivideOp,
    ZippedDivideOp,
)
from ...dialects.tile.view_base import LayoutViewOp
from ...layout.algebra.core import ComposedLayout, Layout
from ...layout.algebra.integers import AnyTuple
from ...layout.algebra.inttuple import dice_tuple, leaves, transform_leaves
from ...layout.algebra.swizzle import Swizzle
from ..scalars.dtypes import Index
from ..scalars.values import MOST, Int, index_of
from ..tracing.state import emit, host
from .coordinates import as_layout, as_tuple, check_static, split_coordinate, split_extents, split_layout, tuples
from .modes import layout_of
from .tensor_base import AnyTensor, emit_inferred
from .tensors import CoordTensor, Tensor

T = TypeVar("T", Tensor, CoordTensor)
"""A tensor, or a tensor of coordinates: a view of one is the same kind."""


def local_tile(input: T, tiler: object, coord: object, proj: object = None) -> T:
    """The tile at a coordinate of the tensor's tiles: `local_tile(mA, (128, 64), (m, None))`: (BLK_M,BLK_K,k).

    `None` keeps a mode of the tiles; an integer in place of the tuple counts through all tiles, the first mode fastest.
    With `proj=(1, None, 1)` only the modes marked 1 of tiler and coordinate are used (CuTe's Step); modes of the
    coordinate beyond those of `proj` stay.
    """
    return _tiles(LocalTileOp, input, tiler, coord, proj)


def inner_partition(tensor: T, tiler: object, coord: object) -> T:
    """The elements of the tile at a coordinate of the tensor's tiles, like `local_tile`: (BLK_M,BLK_N,...)."""
    return _tiles(LocalTileOp, tensor, tiler, coord, None)


def outer_partition(tensor: T, tiler: object, coord: object) -> T:
    """The elements at a coordinate within every tile: `outer_partition(mA, (8, 4), (i, j))`: (RestM,RestN,...).

    `None` keeps a mode of the tile, before the others; an integer in place of the tuple counts through the elements of
    a tile, the first mode fastest. `local_partition` is this for the coordinate of a thread.
    """
    return _tiles(OuterPartitionOp, tensor, tiler, coord, None)


def _tiles(op: type[LayoutViewOp], tensor: T, tiler: object, coord: object, proj: object) -> T:
    if proj is not None and len(as_tuple(coord)) > len(as_tuple(proj)):
        kept = as_tuple(tuples(proj))
        further = as_tuple(coord)[len(kept) :]
        tiler = dice_tuple(kept, as_tuple(tuples(tiler)))
        coord, proj = (*dice_tuple(kept, as_tuple(tuples(coord))[: len(kept)]), *further), None
    attribute, operands = split_coordinate(coord)
    properties = {"tiler": _tiler(as_tuple(tiler)), "coord": attribute}
    if proj is not None:
        properties["proj"] = CoordAttr(tuples(proj))
    return as_tensor(tensor).view(op, [operands], properties)


def local_partition(target: T, tiler: object, index: object, proj: object = None) -> T:
    """The elements at the coordinate of thread `index` in every tile of the shape of `tiler`, a layout that maps
    coordinates to thread indices: (RestM,RestN,...).
    """
    properties: dict[str, Attribute] = {"threads": LayoutAttr(_static(as_layout(tiler)))}
    if proj is not None:
        properties["proj"] = CoordAttr(tuples(proj))
    return as_tensor(target).view(LocalPartitionOp, [[index_of(index).ssa]], properties)


def logical_divide(target: object, tiler: object) -> Any:
    """Each mode becomes (inside the tile, the tiles): ((TileM,RestM),(TileN,RestN),...)."""
    return _divide(LogicalDivideOp, algebra.logical_divide, target, tiler)


def zipped_divide(target: object, tiler: object) -> Any:
    """Two modes, the tile and the tiles: ((TileM,TileN),(RestM,RestN,...))."""
    return _divide(ZippedDivideOp, algebra.zipped_divide, target, tiler)


def tiled_divide(target: object, tiler: object) -> Any:
    """The tile in one mode, then the tiles: ((TileM,TileN),RestM,RestN,...)."""
    return _divide(TiledDivideOp, algebra.tiled_divide, target, tiler)


def flat_divide(target: object, tiler: object) -> Any:
    """All modes in a row: (TileM,TileN,RestM,RestN,...)."""
    return _divide(FlatDivideOp, algebra.flat_divide, target, tiler)


def composition(lhs: object, rhs: object) -> Any:
    """Coordinates of `rhs`, which names places in the target: `composition(gA, tv_layout)`: (T,V).

    A tuple of layouts or extents composes mode by mode.
    """
    if isinstance(lhs, AnyTensor):
        return _view_by_tiler(CompositionOp, lhs, rhs)
    return algebra.composition(lhs if isinstance(lhs, Swizzle) else layout_of(lhs), tuples(rhs))


def make_identity_tensor(shape: object) -> CoordTensor:
    """The tensor that maps each coordinate of a shape, or of a tensor's shape, to itself."""
    if isinstance(shape, Tensor):
        return CoordTensor(emit(IdentityOp.inferred([shape.ssa, []])).results[0])
    extents, scalars = split_extents(tuples(shape))
    return CoordTensor(emit(IdentityOp.inferred([None, scalars], {"shape": ShapeAttr(extents)})).results[0])


def bounds(coords: CoordTensor, limits: object) -> Tensor:
    """Compares each coordinate of a tensor of coordinates with `limits`: a fragment of predicates in its shape, true
    below the limits. A limit of `None` allows every coordinate.
    """
    if not isinstance(coords, CoordTensor):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TilefoldError(
            Code.BUILD_VALUE,
            f"expected a tensor of coordinates, got {type(coords).__name__}",
            "take the same view of cute.make_identity_tensor(t)",
        )
    attribute, operands = split_coordinate(tuples(limits))
    return Tensor(emit(BoundsOp.inferred([coords.ssa, operands], {"coord": attribute})).results[0])


def elem_less(lhs: object, rhs: object) -> Any:
    """Whether all integers of a coordinate are below those of `rhs` (CuTe's elem_less)."""
    result = True
    parts, ends = list(leaves(tuples(lhs))), list(leaves(tuples(rhs)))
    if len(parts) != len(ends):
        message = f"{len(ends)} limits are given for a coordinate of {len(parts)} integers"
        raise TilefoldError(Code.PROFILE_MISMATCH, message, "give one for each, None for no limit")
    for part, limit in zip(parts, ends, strict=True):
        below = True if limit is None else part < limit
        if below is False:
            return False
        if below is not True:
            result = below if result is True else result & below
    return result


def rasterize(index: object, rows: object, columns: object, group: int = 8) -> tuple[Int, Int]:
    """The tile of block `index` in a grid of tiles, in groups of rows: (m, n).

    Blocks go through a group of rows column by column, then through the next, so that those that run at the same time
    read few rows and columns.
    """
    grid, operands = split_coordinate((rows, columns))
    op = RasterizeOp.build(
        operands=[index_of(index).ssa, operands],
        properties={"grid": grid, "group": IntegerAttr(group, i64)},
        result_types=[IndexType(), IndexType()],
    )
    m, n = emit(op).results
    return Int(m, Index, range=(0, MOST)), Int(n, Index, range=(0, MOST))


def _divide(op: type[LayoutViewOp], function: Any, target: Any, tiler: AnyTuple) -> Any:
    if isinstance(target, AnyTensor):
        return _view_by_tiler(op, target, tiler)
    return function(layout_of(target), tuples(tiler))


def _view_by_tiler(op: type[LayoutViewOp], target: AnyTensor, tiler: object) -> Any:
    """A view that may hold for some extents of the tensor only. A function of the host then asks for their numbers, so
    that it is compiled again for others; in a kernel the error of the algebra stands.
    """
    properties = {"tiler": _tiler(tiler)}
    try:
        return target.view(op, [], properties)
    except LayoutError as error:
        layout = target.layout
        if error.code != Code.STRIDE_DIVISIBILITY or host() is None or not isinstance(layout, Layout):
            raise
    numbers = transform_leaves(int, layout.shape)
    attribute, strides = split_layout(Layout(numbers, layout.stride))
    static = emit_inferred(MakeTensorOp, [target.ssa, strides], {"layout": attribute})
    return target.like(static).view(op, [], properties)


def _tiler(tiler: object) -> TilerAttr:
    return TilerAttr(_static(tuples(tiler)))


def _static(x: object) -> Any:
    check_static(x, "tiles and layouts of threads must be static, but this is")
    return x


def as_tensor(x: object) -> Any:
    """Converts a function's argument to a tensor. Raises TilefoldError (E5002) for anything else."""
    if not isinstance(x, AnyTensor):
        kind = "layout" if isinstance(x, Layout | ComposedLayout) else type(x).__name__
        by = "make one by cute.make_tensor(t.iterator, layout)"
        hint = "views are taken in the kernel, of its arguments" if hasattr(x, "layout") else by
        raise TilefoldError(Code.BUILD_VALUE, f"expected a tensor, got a {kind}", hint)
    return x


def inside(view: Tensor) -> Tensor | None:
    """Predicates that say of which elements of a view the original tensor has storage; None if no tile reaches beyond
    the tensor.
    """
    whole = viewed_tensor(view)
    if not any("ragged" in step.properties for step in _steps(view)):
        return None
    return bounds(on_coordinates(view, make_identity_tensor(whole)), whole.shape)


def viewed_tensor(view: Tensor) -> Tensor:
    """The tensor that a view was made from."""
    steps = _steps(view)
    return Tensor(steps[-1].source, view.element_type) if steps else view


def on_coordinates(view: Tensor, coords: CoordTensor) -> CoordTensor:
    """The same view of coordinates of the tensor that a view was made from."""
    value = coords.ssa
    for step in reversed(_steps(view)):
        operands = [value if operand is step.source else operand for operand in step.operands]
        types = step.infer([operand.type for operand in operands], step.properties)
        made = type(step).create(operands=operands, result_types=types, properties=dict(step.properties))
        value = emit(made).results[0]
    return CoordTensor(value)


def _steps(view: Tensor) -> list[LayoutViewOp]:
    """The views between a tensor and a view of it, the last one first."""
    steps: list[LayoutViewOp] = []
    value = view.ssa
    while isinstance(step := value.owner, LayoutViewOp):
        steps.append(step)
        value = step.source
    return steps
