# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views, layouts and parts of threads taken apart into the integers that they hold.

Control flow that changes a view carries its coordinates, and takes the view anew where paths meet: the address is then
computed as if the program had carried the coordinate itself. An address that is a number is carried like a coordinate.
Where views are of other tensors, as when two buffers are swapped, control flow carries the number of the tensor, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from operator import is_
from typing import Any, Literal, TypeAlias

from xdsl.dialects import arith
from xdsl.ir import Attribute, Block, SSAValue

from ...dialects.cute import CoordAttr, LayoutAttr
from ...dialects.cute.values import integers
from ...dialects.ptx import IntToPtrOp, PtrType
from ...dialects.tile import ChooseOp, IdentityOp, MakeTensorOp, RecastOp, TensorAtOp, TensorType, ViewOp
from ...dialects.tile.view_base import LayoutViewOp
from ...layout.algebra.core import ComposedLayout, Layout
from ...layout.algebra.integers import Unknown
from ...layout.algebra.inttuple import transform_leaves
from ...layout.algebra.modes import slice_and_offset
from ..scalars.dtypes import DType, Index, dtype_of
from ..scalars.values import MOST, Int, compare, convert, index_of
from ..tensors.copies import ThrCopy
from ..tensors.tensor_base import AnyTensor, Elements, emit_inferred
from ..tensors.tensors import CoordPointer, Pointer, aligned_after
from ..tensors.tiled_mma import ThrMma
from ..tracing.attributes import Composite
from ..tracing.state import current, emit, insert_value

COMPOSITES: Any = (Composite, Layout, ComposedLayout, Pointer, CoordPointer, ThrCopy, ThrMma)
"""Classes whose fields are values, or hold some."""
_VIEWS = (LayoutViewOp, MakeTensorOp, RecastOp, ViewOp, IdentityOp)
_SOURCE, _COORDS = "source", "coords"
"""The operands of a view that are its tensor and the coordinate at which it looks."""
_OTHER = ("coord", "operandSegmentSizes")
"""Properties that follow from the operands."""


@dataclass(frozen=True)
class _Step:
    """A view without its tensor and its coordinate: the operation, its other operands and its properties, and the modes
    that the coordinate keeps; and the type of a view that infers none.
    """

    op: Any
    operands: tuple[object, ...]
    properties: tuple[tuple[str, Attribute], ...]
    pattern: Any
    type: Any

    def taken(self, source: SSAValue | None, leaves: list[object]) -> SSAValue:
        """The view of a tensor at the coordinate of the next `leaves`, which are taken from the list."""
        properties = dict(self.properties)
        coords: list[SSAValue] = []

        def convert(leaf: object) -> Any:
            if leaf is None:
                return None
            value = leaves.pop(0)
            if isinstance(value, int):
                return value
            coords.append(index_of(value).ssa)
            return Unknown()

        if self.pattern is not None:
            properties["coord"] = CoordAttr(transform_leaves(convert, self.pattern))
        elif _COORDS in self.operands:
            convert(True)
        groups = {_SOURCE: source, _COORDS: coords}
        operands = [groups[x] if isinstance(x, str) else x for x in self.operands]
        if self.type is None:
            return emit_inferred(self.op, operands, properties)
        assert source is not None, "an identity infers its type"
        assert isinstance(source.type, TensorType)
        type = self.type.with_layout(self.type.layout.data, min(self.type.align.data, source.type.align.data))
        return emit(self.op.build(operands=operands, properties=properties, result_types=[type])).results[0]


@dataclass(frozen=True)
class _OffsetTensor:
    """A plain tensor that begins somewhere in another one: that tensor, and its own layout."""

    root: SSAValue
    layout: LayoutAttr

    def taken(self, parts: Sequence[object]) -> SSAValue:
        """The tensor that begins `parts[0]` elements further on; the other parts are the integers of its layout that
        are known at run time.
        """
        assert isinstance(self.root.type, TensorType)
        distance, *scalars = map(index_of, parts)
        type = self.root.type.with_layout(self.layout.data, aligned_after(self.root.type, distance))
        return emit(ViewOp(self.root, distance.ssa, type, [scalar.ssa for scalar in scalars])).results[0]


@dataclass(frozen=True, eq=False)
class Roots:
    """The tensors that the views of variables may come from, for variables that a loop or a branch changes, by type and
    in order. The kernel makes them before it, in one of the blocks `outside`.
    """

    outside: frozenset[Block]
    _lists: dict[TensorType, list[SSAValue]] = field(default_factory=dict[TensorType, list[SSAValue]])

    def number_of(self, root: SSAValue) -> Any:
        """The number of a tensor among those of its type, a value where the run chooses; None of one that may not
        exist.
        """
        if isinstance(op := root.owner, ChooseOp):
            numbers = [self.number_of(source) for source in op.sources]
            index = Int(op.index, Index, range=(0, len(numbers) - 1))
            return None if None in numbers else _look_up(numbers, index)
        others = self._lists.setdefault(_drop_alignment(root), [])
        if root not in others:
            if (root.owner if isinstance(root.owner, Block) else root.owner.parent) not in self.outside:
                return None
            others.append(root)
        return others.index(root)

    def choose(self, type: TensorType, number: object) -> SSAValue:
        """The tensor of a number among those of a type."""
        roots = self._lists[type]
        if isinstance(number, int):
            return roots[number]
        return emit(ChooseOp.inferred([index_of(number).ssa, roots])).results[0]


def _look_up(numbers: Sequence[int], index: Int) -> Int:
    """The number at an index."""
    if list(numbers) == list(range(len(numbers))):
        return index
    first, *rest = [index_of(number).ssa for number in numbers]
    for place, number in enumerate(rest, 1):
        first = insert_value(arith.SelectOp(compare("eq", index, place).ssa, number, first))
    return Int(first, Index, range=(0, max(numbers)))


def _drop_alignment(tensor: SSAValue) -> TensorType:
    """The type of a tensor but for its alignment."""
    type = tensor.type
    assert isinstance(type, TensorType)
    return type.with_layout(type.layout.data, max(1, type.element_bits // 8))


Strategy: TypeAlias = "Literal['coordinates', 'distance'] | Roots"
"""The parts of a view: its coordinates, or how far it is from the tensor that it is a view of, or, beside the
coordinates, the number of this tensor among others.
"""


@dataclass(frozen=True, eq=False)
class Decomposed:
    """A value's parts, and the rest of it: two values with equal rests differ only in their parts."""

    value: Any
    key: Any
    parts: tuple[object, ...]

    @classmethod
    def of(cls, value: Any, strategy: Strategy = "coordinates") -> "Decomposed | None":
        """The parts of a value; None for a value without parts."""
        if isinstance(value, COMPOSITES):
            names = tuple([field.name for field in fields(value)])
            return cls(value, names, tuple([getattr(value, name) for name in names]))
        if not isinstance(value, AnyTensor):
            return None
        return _move(value) if strategy == "distance" else _view(value, strategy)

    def rebuilt(self, parts: Sequence[Any]) -> object:
        """The value with other parts: itself if they are the same and it can be used here."""
        value = self.value
        if all(map(is_, self.parts, parts)) and (not isinstance(value, AnyTensor) or current().sees(value.ssa)):
            return value
        if isinstance(value, COMPOSITES):
            return type(value)(*parts)
        if isinstance(self.key, _OffsetTensor):
            return value.like(self.key.taken(parts))
        root, *steps = self.key
        rest = list(parts)
        if isinstance(root, _Choice):
            root = root.roots.choose(root.type, rest.pop(0))
        elif isinstance(root, _AtNumber):
            root = root.tensor(rest.pop(0))
        for step in steps:
            root = step.taken(root, rest)
        return value.like(root)


@dataclass(frozen=True)
class _Choice:
    """One of the tensors of a type, and the type of their elements in Python."""

    roots: Roots
    type: TensorType
    dtype: DType


@dataclass(frozen=True)
class _AtNumber:
    """A tensor at an address that is a number, but for the number: the types of the tensor and its pointer, and the
    alignment; and the tensor itself, with its number.
    """

    type: TensorType
    pointer: PtrType
    align: int
    ssa: SSAValue = field(compare=False)
    number: Int = field(compare=False)

    @classmethod
    def of(cls, ssa: SSAValue) -> "_AtNumber | None":
        """None for another tensor."""
        if not isinstance(op := ssa.owner, TensorAtOp) or not isinstance(at := op.ptr.owner, IntToPtrOp):
            return None
        assert isinstance(ssa.type, TensorType)
        assert isinstance(op.ptr.type, PtrType)
        return cls(ssa.type, op.ptr.type, at.align.value.data, ssa, Int(at.number, dtype_of(at.number.type)))

    def tensor(self, number: Any) -> SSAValue:
        """The tensor at another number."""
        if number is self.number and current().sees(self.ssa):
            return self.ssa
        at = emit(IntToPtrOp(convert(number, self.number.dtype).ssa, self.align, self.pointer)).results[0]
        return emit(TensorAtOp(at, self.type)).results[0]


def _view(tensor: AnyTensor, strategy: Strategy) -> Decomposed | None:
    """A view as the tensor from which views lead to it, and these views; the parts are the integers of their
    coordinates, after the number of the tensor where there are several, or its address where that is a number.
    """
    steps: list[_Step] = []
    leaves: list[object] = []
    ssa: SSAValue | None = tensor.ssa
    while ssa is not None and isinstance(op := ssa.owner, _VIEWS):
        given = [Int(x, Index, range=(0, MOST)) for x in getattr(op, _COORDS, ())]
        pattern = None
        if isinstance(coord := op.properties.get("coord"), CoordAttr):
            values, given = iter(given), []

            def convert(leaf: Any, given: list[object] = given, values: Any = values) -> Any:
                if leaf is not None:
                    given.append(next(values) if isinstance(leaf, Unknown) else leaf)
                return leaf if leaf is None else 1

            pattern = transform_leaves(convert, coord.data)
        names = [name for name, _ in op.get_irdl_definition().operands]
        operands = tuple([name if name in (_SOURCE, _COORDS) else _group(getattr(op, name)) for name in names])
        properties = tuple(sorted([item for item in op.properties.items() if item[0] not in _OTHER]))
        view_type = op.result.type if isinstance(op, ViewOp) else None
        steps.insert(0, _Step(type(op), operands, properties, pattern, view_type))
        leaves[:0] = given
        ssa = getattr(op, _SOURCE, None)
    if isinstance(strategy, Roots) and isinstance(tensor, Elements) and ssa is not None:
        number = strategy.number_of(ssa)
        choice = _Choice(strategy, _drop_alignment(ssa), tensor.element_type)
        return None if number is None else Decomposed(tensor, (choice, *steps), (number, *leaves))
    if ssa is not None and (at := _AtNumber.of(ssa)) is not None:
        return Decomposed(tensor, (at, *steps), (at.number, *leaves))
    return Decomposed(tensor, (ssa, *steps), tuple(leaves)) if steps else None


def _move(tensor: AnyTensor) -> Decomposed | None:
    """A plain tensor in memory as one that begins a number of elements after another."""
    type, ssa, distance = tensor.ir_type, tensor.ssa, 0
    if not isinstance(type, TensorType) or type.is_swizzled:
        return None
    while isinstance(op := ssa.owner, LayoutViewOp | MakeTensorOp | ViewOp):
        source: Any = op.source
        if source.type.element_type != type.element_type or source.type.is_swizzled:
            break
        if isinstance(op, LayoutViewOp):
            whole = op.relayout(AnyTensor(source).layout)
            coord = op.coordinate(whole, [Int(x, Index, range=(0, MOST)) for x in op.coords])
            distance += 0 if coord is None else slice_and_offset(coord, whole)[1]
        elif isinstance(op, ViewOp) and op.offset is not None:
            distance += Int(op.offset, Index)
        ssa = source
    values = [x for x in integers(tensor.layout) if isinstance(x, Int)]
    return Decomposed(tensor, _OffsetTensor(ssa, type.layout), (distance, *values))


def _group(operand: object) -> Any:
    return tuple(operand) if isinstance(operand, Sequence) else operand  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
