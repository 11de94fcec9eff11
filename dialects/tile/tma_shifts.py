# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rule of coordinates that are shifted: those of a tensor map whose dimensions stand for several modes."""

from collections.abc import Iterator
from typing import Any

from xdsl.ir import SSAValue

from ...base.errors import Code, LayoutError
from ...layout.algebra.coordinates import idx2crd
from ...layout.algebra.integers import Coord, ScaledBasis, is_static
from ...layout.algebra.inttuple import leaves, show, wrap
from .coord_type import CoordTensorType
from .run_time import MakeTensorOp
from .tma import TmaTensorOp
from .view_base import LayoutViewOp


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
                "the tensor map with others: beyond its end lie elements of the next row",
                "a map has dimensions of its own for up to five modes, if rows are multiples of 16 bytes: pad the "
                "rows, or begin the tensor itself at the coordinate, before the map is made",
            )


def _moved(coord: Coord, shape: Any, stride: Any) -> Iterator[ScaledBasis]:
    """The strides of the modes along which a coordinate is not 0."""
    extents: tuple[Any, ...] = wrap(shape)
    if extents is shape and type(coord) is int:
        coord = idx2crd(coord, extents)
    if isinstance(coord, tuple):
        for part, extent, step in zip(coord, extents, stride, strict=False):
            yield from _moved(part, extent, step)
    elif type(coord) is not int or coord:
        yield from (leaf for leaf in leaves(stride) if isinstance(leaf, ScaledBasis))
