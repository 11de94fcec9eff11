# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Coordinate tensors folded into index arithmetic: only the integers of their starts remain.

The index at which a slice begins follows from a coordinate whose run-time leaves are SSA values of type `index`.
"""

from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from ...base.errors import Code
from ...dialects.cute import CoordAttr, LayoutAttr
from ...dialects.cute.values import integers, typed, unknowns
from ...dialects.tile import (
    AllocOp,
    BoundsOp,
    CoordinateOp,
    CoordTensorOp,
    CoordTensorType,
    CopyOp,
    Crd2IdxOp,
    IdentityOp,
    MakeTensorOp,
    PrefetchOp,
    StoreOp,
    TmaTensorOp,
    TmaType,
)
from ...dialects.tile.assembly import fill_coordinate, unwrap
from ...dialects.tile.view_base import LayoutViewOp
from ...layout.algebra.axes import along
from ...layout.algebra.coalesce import coalesce_under
from ...layout.algebra.coordinates import crd2idx
from ...layout.algebra.core import Layout, plain_layout
from ...layout.algebra.integers import Coord, Unknown
from ...layout.algebra.inttuple import dice_tuple, leaves, slice_tuple, transform_leaves, wrap
from ..errors import LoweringError
from .emitter import Emitter, SsaInt
from .tensor_scalars import Scalars, scalars_for


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


Axes = dict[tuple[int, ...], "SSAValue | int"]
"""The integers of a coordinate by their paths, in order."""


class CoordinateFolding:
    """Folds the coordinate tensors of a program; each is known by its start."""

    def __init__(self, scalars: Scalars) -> None:
        self._scalars = scalars
        self._starts: dict[SSAValue, Axes] = {}
        self._folded: list[Operation] = []

    def fold(self, op: Operation) -> bool:
        """Folds an operation on a coordinate tensor; False for any other operation. LoweringError (E2004) for control
        flow that carries one.
        """
        carried = [*op.results, *(a for region in op.regions for block in region.blocks for a in block.args)]
        if op.regions and any(isinstance(value.type, CoordTensorType | TmaType) for value in carried):
            raise LoweringError(
                Code.CARRIED_TENSOR,
                f"a coordinate tensor or a tensor map cannot be a result or argument of {op.name}",
                op,
                "carry the coordinate instead, and take the view inside",
            )
        match op:
            case IdentityOp():
                assert isinstance(op.result.type, CoordTensorType)
                self._starts[op.result] = dict.fromkeys(axes(op.result.type.start.data), 0)
                extents = len(unknowns(op.result.type.plain_layout))
                self._scalars.note(op.result, op.scalars if op.like is None else self._scalars.of(op.like)[:extents])
                self._folded.append(op)
            case MakeTensorOp() if isinstance(op.result.type, CoordTensorType):
                self._starts[op.result] = self._starts[op.source]
                self._scalars.note(op.result, op.scalars)
                self._folded.append(op)
            case LayoutViewOp() if isinstance(op.result.type, CoordTensorType):
                self._starts[op.result] = self._view(op, Emitter(op))
                self._folded.append(op)
            case TmaTensorOp():
                assert isinstance(op.result.type, CoordTensorType)
                self._starts[op.result] = dict.fromkeys(axes(op.result.type.start.data), 0)
                emitter = Emitter(op)
                layout = op.coordinates(plain_layout(self._scalars.layout(emitter, op.tensor)))
                self._scalars.note(op.result, scalars_for(emitter, op.result.type.layout.data, layout))
                self._folded.append(op)
            case CopyOp() | PrefetchOp() if op.tma is not None:
                emitter = Emitter(op)
                for number, operand in enumerate(op.operands):
                    if operand in self._starts:
                        op.operands[number] = self._begun(emitter, operand)
            case CoordinateOp():
                self._coordinate(op, Emitter(op))
            case BoundsOp():
                self._bounds(op, Emitter(op))
            case _:
                return False
        return True

    def erase(self) -> None:
        """Erases the coordinate tensors, which are unused now."""
        for op in reversed(self._folded):
            op.detach()
            op.erase()

    def _view(self, op: LayoutViewOp, emitter: Emitter) -> Axes:
        whole = plain_layout(op.relayout(self._scalars.layout(emitter, op.source)))
        start = self._starts[op.source]
        coord = op.coordinate(whole, [SsaInt(emitter, value) for value in op.coords])
        sliced = whole if coord is None else sliced_layout(coord, whole)
        self._scalars.note(op.result, scalars_for(emitter, op.result.type.layout.data, sliced))
        if coord is None:
            return start
        return {path: self._moved(emitter, value, coord, along(whole, path)) for path, value in start.items()}

    def _moved(self, emitter: Emitter, value: SSAValue | int, coord: object, layout: Layout) -> SSAValue | int:
        """`value` plus the index at which the slice of `layout` at `coord` begins."""
        distance, constant = slice_index(emitter, coord, layout)
        return add_index(emitter, add_index(emitter, value, distance), constant)

    def _begun(self, emitter: Emitter, tensor: SSAValue) -> SSAValue:
        """A coordinate tensor as an operation that begins at its start, for TMA copies."""
        assert isinstance(tensor.type, CoordTensorType)
        start = [emitter.index(i) if isinstance(i, int) else i for i in self._starts[tensor].values()]
        return emitter.value(CoordTensorOp(start, tensor.type))

    def _coordinate(self, op: CoordinateOp, emitter: Emitter) -> None:
        layout = plain_layout(self._scalars.layout(emitter, op.tensor))
        coord = unwrap(fill_coordinate(op.coord.data, [SsaInt(emitter, value) for value in op.coords]))
        integers = [
            self._moved(emitter, value, coord, along(layout, path)) for path, value in self._starts[op.tensor].items()
        ]
        emitter.replace([emitter.index(i) if isinstance(i, int) else i for i in integers])

    def _bounds(self, op: BoundsOp, emitter: Emitter) -> None:
        """A fragment of predicates, filled in loops: the starts are added outside them, once."""
        layout = plain_layout(self._scalars.layout(emitter, op.tensor))
        start = self._starts[op.tensor]
        predicates = emitter.value(AllocOp(op.result.type))
        predicates.name_hint = op.result.name_hint
        limits = [
            (path, start[path], emitter.index(bound) if isinstance(bound, int) else bound)
            for path, bound in op.limits(tuple(op.coords))
        ]
        indices: list[SSAValue] = [emitter.loop(n) for n in reversed(list(leaves(layout.shape))) if n != 1][::-1]
        rest = iter([SsaInt(emitter, index) for index in indices])
        where = transform_leaves(lambda n: 0 if n == 1 else next(rest), layout.shape)
        inside: SSAValue | None = None
        for path, value, bound in limits:
            integer = self._moved(emitter, value, where, along(layout, path))
            integer = emitter.index(integer) if isinstance(integer, int) else integer
            below = emitter.value(arith.CmpiOp(integer, bound, "slt"))
            inside = below if inside is None else emitter.value(arith.AndIOp(inside, below))
        if inside is None:
            inside = emitter.value(arith.ConstantOp.from_int_and_width(1, 1))
        coord = transform_leaves(lambda n: 0 if n == 1 else Unknown(), layout.shape)
        emitter.insert(
            StoreOp.build(operands=[inside, predicates, indices], properties={"coord": CoordAttr(wrap(coord))})
        )
        emitter.replace([predicates])


def axes(start: object, path: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """The paths of the integers of a coordinate, from left to right."""
    if isinstance(start, tuple):
        return [leaf_path for mode, part in enumerate(start) for leaf_path in axes(part, (*path, mode))]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return [path]
