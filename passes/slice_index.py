# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The index at which a slice begins, from a coordinate whose run-time leaves are SSA values of type `index`."""

from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from ..dialects.cute import CoordAttr, LayoutAttr
from ..dialects.tile import Crd2IdxOp
from ..layout.coordinates import crd2idx
from ..layout.core import Layout
from ..layout.inttuple import dice_tuple, leaves
from ..layout.unknown import Unknown
from .emitter import Emitter


def slice_index(emitter: Emitter, coord: Any, layout: Layout) -> tuple[SSAValue | None, int]:
    """The index of what `coord` fixes, in a layout with integer strides: a run-time summand, if there is one, and a
    constant.
    """
    fixed: list[tuple[SSAValue, Any, Any]] = []
    constant = _split(
        dice_tuple(coord, coord), dice_tuple(coord, layout.shape), dice_tuple(coord, layout.stride), fixed
    )
    if not fixed:
        return None, constant
    values, shapes, strides = zip(*fixed, strict=True)
    where = CoordAttr((Unknown(),) * len(fixed))
    return emitter.value(Crd2IdxOp(where, values, LayoutAttr(Layout(shapes, strides)))), constant


def added(emitter: Emitter, value: SSAValue | int | None, more: SSAValue | int | None) -> SSAValue | int:
    """A sum of type `index`, of which constants fold; None counts as 0."""
    a, b = value or 0, more or 0
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if isinstance(a, int):
        a, b = b, a
    assert isinstance(a, SSAValue)
    if isinstance(b, int):
        return a if b == 0 else emitter.value(arith.AddiOp(a, emitter.constant(b, IndexType())))
    return emitter.value(arith.AddiOp(a, b))


def _split(coord: Any, shape: Any, stride: Any, fixed: list[tuple[SSAValue, Any, Any]]) -> int:
    """Collects the run-time leaves of `coord` with the modes that they index, but for those of stride 0; returns the
    index of the static leaves.
    """
    if isinstance(coord, SSAValue):
        if any(type(d) is not int or d != 0 for d in leaves(stride)):
            fixed.append((cast("SSAValue", coord), shape, stride))
        return 0
    if type(coord) is tuple:
        modes = zip(cast("tuple[Any, ...]", coord), shape, stride, strict=True)
        return sum(_split(c, s, d, fixed) for c, s, d in modes)
    return crd2idx(coord, shape, stride)
