# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expressions on the elements of tensors, and how they become operations of the kernel.

An expression becomes one `tile.map` where its elements are needed. It reads tensors that the user may change: whoever
writes memory first materializes the fragments that read it (`Builder.materialize`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Region, SSAValue

from ...base.errors import Code, TilefoldError
from ...base.spaces import RMEM
from ...dialects.cute import TilerAttr
from ...dialects.tile import (
    AliasOp,
    ChooseOp,
    CompositionOp,
    CopyOp,
    MakeTensorOp,
    MapOp,
    PeerOp,
    RecastOp,
    TensorAtOp,
    ViewOp,
    YieldOp,
)
from ...dialects.tile.view_base import LayoutViewOp
from ...layout.algebra.core import Layout, cosize, make_layout
from ...layout.algebra.inttuple import product, show, wrap
from ..scalars.dtypes import DType, Index, Int64
from ..scalars.values import Scalar, convert
from ..tracing.state import current, emit
from .address_space import AddressSpace
from .tensor_base import Elements, registers, tensor_type

Shape = tuple[Any, ...]
"""The top-level modes of a fragment, each a number or nested."""

MAX_DEPTH = 64
"""How deep an expression grows before its elements are computed."""


class Expression:
    """Elements in a shape: elements of `tensor`, or a function of the operands' elements at the same coordinate.

    A `borrowed` tensor belongs to the user, who may write to it.
    """

    __slots__ = ("borrowed", "depth", "dtype", "function", "operands", "shape", "tensor", "used")

    def __init__(
        self,
        shape: Shape,
        dtype: DType,
        function: Callable[..., Any] | None = None,
        operands: "Sequence[Expression | Scalar]" = (),
        tensor: Elements | None = None,
        borrowed: bool = False,
    ) -> None:
        self.shape, self.tensor, self.borrowed = shape, tensor, borrowed
        self.dtype = Int64 if dtype == Index else dtype  # no tensor has elements of type index
        self.function, self.operands, self.used = function, operands, False
        parts = [o for o in operands if isinstance(o, Expression)]
        self.depth = 1 + max((part.depth for part in parts), default=0)
        for part in {id(part): part for part in parts}.values():
            if part.tensor is None and part.used:
                part.materialize()  # a second expression needs it: it is computed once
            part.used = True
        if self.depth > MAX_DEPTH:
            self.materialize()

    @property
    def is_materialized(self) -> bool:
        """Whether its elements are in registers of its own, where nothing changes them."""
        return self.tensor is not None and not self.borrowed

    def materialize(self) -> Elements:
        """Its elements in registers of its own, computed here unless they are already."""
        if self.tensor is None or self.borrowed:
            own = registers(self.dtype, make_layout(self.shape))
            write(own, self)
            self.tensor, self.borrowed = own, False
            self.function, self.operands, self.depth = None, (), 1
        return self.tensor

    def borrow(self, tensor: Elements) -> None:
        """Takes its elements from a tensor of the user's that holds them, until it is written to."""
        self.tensor, self.borrowed = tensor, True
        self.function, self.operands, self.depth = None, (), 1

    def leaves(self) -> "list[Expression]":
        """The tensors in it, each once."""
        if self.tensor is not None:
            return [self]
        tensors: dict[tuple[SSAValue, Shape], Expression] = {}
        for operand in {id(operand): operand for operand in self.operands if isinstance(operand, Expression)}.values():
            for leaf in operand.leaves():
                tensors.setdefault(leaf.key, leaf)
        return list(tensors.values())

    @property
    def key(self) -> tuple[SSAValue, Shape]:
        """The identity of a leaf: its tensor, and the shape in which it is seen."""
        assert self.tensor is not None
        return self.tensor.ssa, self.shape

    def element(self, elements: Mapping[tuple[SSAValue, Shape], object], done: dict[int, Any]) -> Any:
        """Its element in the body of a map, given those of the tensors in it; `done` are parts that are computed."""
        if self.tensor is not None:
            return elements[self.key]
        if id(self) not in done:
            assert self.function is not None
            parts = [o.element(elements, done) if isinstance(o, Expression) else o for o in self.operands]
            done[id(self)] = convert(self.function(*parts), self.dtype)
        return done[id(self)]


def write(
    target: Elements,
    expression: Expression,
    combine: Callable[[Any, Any], object] | None = None,
    shape: Shape | None = None,
) -> None:
    """Writes the elements of an expression to a tensor in its shape, or combines them with the old ones: `target` is
    a view with strides of 0 then. `shape` is that in which coordinates are taken, by default the target's.
    """
    to = wrap(tensor_type(target).layout.data.shape) if shape is None else shape
    _check_fits(expression.shape, to)
    builder = current()
    for leaf in expression.leaves():
        if (
            leaf.borrowed
            and leaf.tensor is not None
            and _overlaps(leaf.tensor, target)
            and (leaf.tensor.ssa is not target.ssa or combine is not None or sizes(leaf.shape) != sizes(to))
        ):
            leaf.materialize()
    leaves = expression.leaves()
    sources = [_broadcast_view(leaf, to) for leaf in leaves]
    held = tensor_type(target).element_type
    if (
        combine is None
        and expression.tensor is not None
        and target.element_type == expression.dtype
        and held == tensor_type(expression.tensor).element_type != i1
    ):
        emit(CopyOp(sources[0].ssa, target.ssa), is_materialized=True)
        return
    types = [tensor_type(source).element_type for source in sources]
    old = [held] if combine is not None else []
    body = Block(arg_types=[*types, *old])
    with builder.body(body):
        elements = {
            leaf.key: source.element(argument, leaf.dtype)
            for leaf, source, argument in zip(leaves, sources, body.args, strict=False)
        }
        value = expression.element(elements, {})
        if combine is not None:
            value = combine(target.element(body.args[-1]), value)
        builder.insert(YieldOp(target.stored(value)))
    emit(MapOp(target.ssa, [source.ssa for source in sources], Region(body)), is_materialized=True)


def sizes(shape: Shape) -> list[int]:
    """The size of each mode."""
    return [product(mode) for mode in shape]


def broadcast(*shapes: Shape) -> Shape:
    """The shape in which fragments of these shapes are computed together: modes are aligned at the first one, as CuTe
    appends modes of size 1, and a mode of size 1, or none, is repeated. Raises TilefoldError (E5002) where sizes
    differ.
    """
    rank = max(map(len, shapes))
    padded = [(*shape, *(1,) * (rank - len(shape))) for shape in shapes]
    result: list[object] = []
    for modes in zip(*padded, strict=True):
        wide = [mode for mode in modes if product(mode) != 1] or [modes[0]]
        if len({product(mode) for mode in wide}) > 1:
            listed = " and ".join(show(shape) for shape in shapes)
            raise TilefoldError(
                Code.BUILD_VALUE,
                f"fragments of shapes {listed} have no common shape",
                "modes are aligned at the first one; only those of size 1 are repeated",
            )
        result.append(wide[0])
    return tuple(result)


def _check_fits(shape: Shape, target: Shape) -> None:
    if sizes(broadcast(shape, target)) != sizes(target):
        message = f"a fragment of shape {show(shape)} does not fit {show(target)}"
        raise TilefoldError(
            Code.BUILD_VALUE, message, "modes are aligned at the first one; those of size 1 are repeated"
        )


def _broadcast_view(leaf: Expression, shape: Shape) -> Elements:
    """The tensor of a leaf, with its modes repeated to `shape`."""
    assert leaf.tensor is not None
    wanted, own = sizes(shape), sizes(leaf.shape)
    if own == wanted:
        return leaf.tensor
    own += [1] * (len(wanted) - len(own))
    strides: list[int] = []
    step = 1
    for size, whole in zip(own, wanted, strict=True):
        strides.append(step if size == whole and size > 1 else 0)
        step *= size
    return repeat_modes(leaf.tensor, wanted, strides)


def repeat_modes(tensor: Elements, extents: Sequence[int], strides: Sequence[int]) -> Elements:
    """A tensor in other modes, which step through its elements by `strides`; one of 0 repeats."""
    layout = Layout(tuple(extents), tuple(strides))
    return tensor.view(CompositionOp, [], {"tiler": TilerAttr(layout)})


def _overlaps(a: Elements, b: Elements) -> bool:
    """Whether two tensors may share memory: in global memory any two may, elsewhere views of one allocation, and a
    tensor at an address that is a number.
    """
    if a.memspace is b.memspace is AddressSpace.gmem:
        return True
    x, y = _origins(a.ssa), _origins(b.ssa)
    return bool(x & y) or (a.memspace is b.memspace and any(isinstance(o.owner, TensorAtOp) for o in x | y))


def _origins(ssa: SSAValue) -> set[SSAValue]:
    """The tensors of whose memory a tensor may be."""
    while isinstance(ssa.owner, LayoutViewOp | ViewOp | AliasOp | PeerOp | RecastOp | MakeTensorOp):
        ssa = ssa.owner.source
    return set[SSAValue]().union(*map(_origins, ssa.owner.sources)) if isinstance(ssa.owner, ChooseOp) else {ssa}


def holds(tensor: Elements, expression: Expression) -> bool:
    """Whether a tensor to which an expression was written holds its elements as they are."""
    type = tensor_type(tensor)
    layout = type.layout.data
    same = tensor.element_type == expression.dtype and sizes(wrap(layout.shape)) == sizes(expression.shape)
    return same and type.space.data is RMEM and cosize(layout) >= product(layout.shape)
