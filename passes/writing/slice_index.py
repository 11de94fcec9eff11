# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The index at which a slice begins, from a coordinate whose run-time leaves are SSA values of type `index`."""

from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from ...dialects.cute import CoordAttr, LayoutAttr
from ...dialects.cute.values import integers, typed
from ...dialects.tile import Crd2IdxOp
from ...layout.algebra.coalesce import coalesce_under
from ...layout.algebra.coordinates import crd2idx
from ...layout.algebra.core import Layout
from ...layout.algebra.integers import Coord, Unknown
from ...layout.algebra.inttuple import dice_tuple, slice_tuple
from .emitter import Emitter, SsaInt


def slice_index(emitter: Emitter, coord: Any, layout: Layout) -> tuple[SSAValue | None, int]:
    """The index of the modes that `coord` fixes, in a layout with integer strides: a run-time summand, if there is one,
    and a constant. Run-time integers of both are `SsaInt`.
    """
    fixed: list[tuple[Any, Any, Any]] = []
    constant = _split(
        dice_tuple(coord, coord), dice_tuple(coord, layout.shape), dice_tuple(coord, layout.stride), fixed
    )
    if not fixed:
        return None, constant
    coords, shapes, strides = zip(*fixed, strict=True)
    modes = coalesce_under(coords, Layout(shapes, strides))
    where = CoordAttr(tuple([Unknown() if isinstance(c, SsaInt) else c for c in coords]))
    values = [c.value for c in coords if isinstance(c, SsaInt)]
    scalars = [x.value for x in integers(modes) if isinstance(x, SsaInt)]
    return emitter.value(Crd2IdxOp(where, values, LayoutAttr(typed(modes)), scalars)), constant


def sliced_layout(coord: Coord, layout: Layout) -> Layout:
    """The layout of the modes that `coord` keeps."""
    return Layout(slice_tuple(coord, layout.shape), slice_tuple(coord, layout.stride))


def add_index(emitter: Emitter, value: SSAValue | int | None, more: SSAValue | int | None) -> SSAValue | int:
    """A sum of type `index`. Constants fold; None counts as 0."""
    a, b = value or 0, more or 0
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if isinstance(a, int):
        a, b = b, a
    assert isinstance(a, SSAValue)
    if isinstance(b, int):
        return a if b == 0 else emitter.value(arith.AddiOp(a, emitter.constant(b, IndexType())))
    return emitter.value(arith.AddiOp(a, b))


def _split(coord: Any, shape: Any, stride: Any, fixed: list[tuple[Any, Any, Any]]) -> int:
    """Collects the leaves of `coord` whose index is known at run time only, with the modes that they index; returns the
    index of the others.
    """
    if type(coord) is tuple:
        modes = zip(cast("tuple[Any, ...]", coord), shape, stride, strict=True)
        return sum(_split(c, s, d, fixed) for c, s, d in modes)
    if coord == 0 or all(type(d) is int and d == 0 for d in integers(stride)):
        return 0
    if isinstance(coord, SsaInt) or not all(type(x) is int for x in integers((shape, stride))):
        fixed.append((coord, shape, stride))
        return 0
    return crd2idx(coord, shape, stride)
