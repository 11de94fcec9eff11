# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fragments as values: `t.load()` is all elements of a tensor at once, with NumPy's arithmetic and broadcasting."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from ...base.errors import Code, TilefoldError
from ...base.spaces import RMEM
from ...dialects.tile import CopyOp
from ...layout.algebra.core import Layout, make_layout
from ...layout.algebra.inttuple import (
    flatten_to_tuple,
    is_fully_static,
    product,
    show,
    slice_tuple,
    unflatten,
    wrap,
    zip_modes,
)
from ..scalars.arithmetic import binary_type, power, unary_type
from ..scalars.casts import check_cast, check_operand, common_type
from ..scalars.dtypes import Boolean, DType, as_dtype
from ..scalars.operators import Arithmetic, Bitwise, Operand, not_combined
from ..scalars.values import Scalar, binary, compare, is_scalar, unary
from ..tracing.state import current, emit
from ..tracing.truth import refuse_truth
from .coordinates import as_tuple, tuples
from .expressions import Expression, Shape, broadcast, holds, repeat_modes, sizes, write
from .numpy_methods import NumpyMethods
from .tensor_base import AnyTensor, Elements, registers, tensor_type


class Vec(Arithmetic, Bitwise, NumpyMethods):
    """The elements of a fragment in registers, of a static shape and one type.

    Arithmetic, comparisons and the functions of `tilefold.cute` work element by element. Shapes are broadcast: modes
    are aligned at the first one, and those of size 1 are repeated. A number takes the type of the elements.
    It never changes: it has the tensor's elements at the time of `load`.
    """

    __slots__ = ("__weakref__", "expression")

    def __init__(
        self, expression: "Expression | Vec", shape: object = None, dtype: object = None, inside: bool = False
    ) -> None:
        if isinstance(expression, Vec):  # `TensorSSA(value, shape, dtype)`, as programs write it
            expression = expression.to(dtype or expression.dtype).reshape(shape or expression.shape).expression
        if not isinstance(expression, Expression):  # pyright: ignore[reportUnnecessaryIsInstance]
            problem, hint = "the class Vec does not make fragments", "write t.load() or cute.full"
            raise TilefoldError(Code.BUILD_VALUE, problem, hint)
        self.expression = expression
        if not expression.is_materialized:
            current().defer(self, inside)

    @property
    def shape(self) -> Shape:
        """The modes, each a number or nested."""
        return self.expression.shape

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.expression.dtype

    element_type = dtype

    @property
    def rank(self) -> int:
        """The number of modes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return product(self.shape)

    def materialize(self) -> Elements:
        """The registers that hold the elements; do not write to them."""
        return self.expression.materialize()

    def to(self, dtype: object) -> "Vec":
        """The elements as those of another type."""
        target = as_dtype(dtype)
        if target == self.dtype:
            return self
        check_cast(self.dtype, target)
        return Vec(Expression(self.shape, target, _same, [self.expression]))  # which converts

    def __getitem__(self, coord: object) -> Operand:
        part = self.materialize()[coord]
        return load(part) if isinstance(part, Elements) else part

    def __setitem__(self, coord: object, value: object) -> None:
        hint = "write to the tensor: t[i, j] = v, or r = cute.make_rmem_tensor(x.shape, x.dtype), r.store(x), r[i] = v"
        raise TilefoldError(Code.BUILD_VALUE, "a fragment is a value, whose elements never change", hint)

    def reshape(self, shape: object) -> "Vec":
        """The elements in another shape, or that of a layout, of the same size, counted colexicographically: the first
        mode is the fastest, as in every function of CuTe. NumPy's `reshape` does so only with `order="F"`.
        """
        modes = as_tuple(tuples(shape.shape if isinstance(shape, Layout) else shape))
        if product(modes) != self.size:
            raise TilefoldError(Code.BUILD_VALUE, f"{self.size} elements do not fit the shape {show(modes)}")
        wanted = sizes(modes)
        steps = [product(tuple(wanted[:mode])) if mode else 1 for mode in range(len(wanted))]
        return Vec(Expression(tuple(wanted), self.dtype, tensor=repeat_modes(self.materialize(), wanted, steps)))

    def broadcast_to(self, target_shape: object) -> "Vec":
        """The elements repeated to a shape."""
        modes = broadcast(self.shape, as_tuple(tuples(target_shape)))
        return Vec(Expression(modes, self.dtype, _same, [self.expression]))

    def apply_op(self, op: Callable[[Operand, Operand], object], other: object, flip: bool = False) -> Any:
        """A function of this and another operand, such as `operator.add`; the other one is first with `flip`."""
        return op(other, self) if flip else op(self, other)

    def reduce(
        self,
        op: "ReductionOp | str | Callable[[Any, Any], Any]",
        init_val: Operand = None,
        reduction_profile: object = 0,
        keepdims: bool = False,
    ) -> Operand:
        """Combines the elements to a value, or to a fragment of the modes that the profile keeps.

        `reduction_profile` has None for a mode that is kept and a number for one that is reduced, in a profile of the
        shape: 0 reduces every mode, `(None, 1)` the second one of two, `((None, 1), None)` a part of the first one.

        `op` is one of `ReductionOp`, its name in small letters, or a function of two
        values. It begins with `init_val`, by default the neutral element, which a function does not have, and takes
        elements in colexicographic order. The type is that of the elements; convert to a wider one before.
        """
        op = reduction(op)
        left = _unreduced_leaves(reduction_profile, self.shape)
        over = {mode for mode, kept in enumerate(left) if not kept}
        if any(0 < len(kept) < len(flatten_to_tuple(part)) for kept, part in zip(left, self.shape, strict=True)):
            return self._reduce_parts(op, init_val, left, keepdims)
        kept = tuple(1 if mode in over else part for mode, part in enumerate(self.shape))
        start = op.start(self.dtype) if init_val is None else init_val
        result = registers(self.dtype, make_layout(kept))
        first = full(kept, start, self.dtype) if not isinstance(start, Vec) else start.to(self.dtype)
        write(result, first.expression)
        steps: list[int] = []
        step = 1
        for mode, extent in enumerate(sizes(self.shape)):
            steps.append(0 if mode in over else step)
            step *= 1 if mode in over else extent
        whole = sizes(self.shape)
        self.materialize()  # it is rarely needed for the reduction alone
        write(repeat_modes(result, whole, steps), self.expression, op.function, self.shape)
        if len(over) == self.rank and not keepdims:
            return result[0]
        made = Vec(Expression(kept, self.dtype, tensor=result))
        return (
            made if keepdims else made.reshape(tuple(part for mode, part in enumerate(self.shape) if mode not in over))
        )

    def _reduce_parts(self, op: "ReductionOp", init: object, left: list[tuple[int, ...]], keepdims: bool) -> Operand:
        """A reduction over some leaves of the shape; `left` has those that each mode keeps."""
        extents = flatten_to_tuple(self.shape)
        kept = set(flatten_to_tuple(tuple(left)))
        profile = tuple(None if leaf in kept else 1 for leaf in range(len(extents)))
        flat = self.reshape(extents).reduce(op, init, profile)
        return flat.reshape(tuple(product(tuple(extents[leaf] for leaf in part)) for part in left if part or keepdims))

    def __bool__(self) -> bool:
        refuse_truth(
            "Python cannot branch on a fragment",
            "x.any() and x.all() tell about all elements, and cute.where(x > 0, a, b) chooses for each of them",
        )

    def __len__(self) -> int:
        """The rank, which is the number of modes, as of a tensor and a layout; `cute.size(x, 0)` is NumPy's `len`."""
        return self.rank

    def __iter__(self) -> Any:
        hint = "x[i] is an element; x.sum(), x.max(), x.min(), x.any() and x.all() combine all of them"
        raise TilefoldError(Code.BUILD_VALUE, "Python cannot iterate over a fragment", hint)

    def __repr__(self) -> str:
        return f"{self.dtype}{show(self.shape)}"

    def _binary(self, name: str, a: object, b: object) -> Operand:
        if not (_is_operand(a) and _is_operand(b)):
            return not_combined(a, b)
        return combined(name, a, b)

    def _compare(self, predicate: str, a: object, b: object) -> Operand:
        if not (_is_operand(a) and _is_operand(b)):
            return not_combined(a, b)
        common_type(a, b)
        return elementwise(partial(compare, predicate), Boolean, a, b)

    def _unary(self, name: str) -> Operand:
        return unary_of(name, self)


def _is_operand(x: object) -> bool:
    return isinstance(x, Vec) or is_scalar(x)


def _same(x: Scalar) -> Scalar:
    return x


def elementwise(function: Callable[..., object], dtype: DType, *operands: Operand) -> Vec:
    """A function of values, applied to the elements of fragments and to values, which are the same everywhere."""
    for operand in operands:
        check_operand(operand)
    parts = [operand.expression if isinstance(operand, Vec) else operand for operand in operands]
    shape = broadcast(*(part.shape for part in parts if isinstance(part, Expression)))
    return Vec(Expression(shape, dtype, function, parts))


def combined(name: str, a: object, b: object) -> Operand:
    """An operation on two values or numbers, or on fragments, element by element. Raises TilefoldError (E5002)."""
    if not (isinstance(a, Vec) or isinstance(b, Vec)):
        return binary(name, a, b)
    if name == "pow":
        return power(a, b, unary_of, full_like)
    return elementwise(partial(binary, name), binary_type(name, a, b), a, b)


def unary_of(name: str, x: object) -> Operand:
    """`neg`, `abs`, `not` or a mathematical function of a value, or of the elements of a fragment. Raises
    TilefoldError (E5002).
    """
    return elementwise(partial(unary, name), unary_type(name, x.dtype), x) if isinstance(x, Vec) else unary(name, x)


def load(tensor: Elements) -> Vec:
    """All elements of a tensor of a static shape. Raises TilefoldError (E5003) for another."""
    type = tensor_type(tensor)
    type.check_single_elements()
    shape = type.layout.data.shape
    if not is_fully_static(shape):
        raise TilefoldError(
            Code.BUILD_RUN_TIME, f"a fragment must have a static shape, but this is {show(shape)}", "take a tile first"
        )
    modes: Shape = wrap(shape)
    if type.space.data is RMEM:
        return Vec(Expression(modes, tensor.element_type, tensor=tensor, borrowed=True))
    own = registers(tensor.element_type, make_layout(shape), type.element_type)
    emit(CopyOp(tensor.ssa, own.ssa), is_materialized=True)
    return Vec(Expression(modes, tensor.element_type, tensor=own))


def store(tensor: Elements, value: Operand) -> None:
    """Writes a fragment, which is broadcast to the tensor's shape, or one value everywhere, to a tensor. In registers a
    tensor of the same size but other modes takes the elements in their order.

    Elements are converted to the tensor's type, as by `x.to`: floats to integers towards zero, wider integers
    to their low bits.
    """
    if isinstance(value, Elements):
        value = load(value)
    if is_scalar(value):
        tensor.fill(value)
        return
    check_operand(value)
    held, in_registers = tensor_type(tensor).element_type, tensor_type(tensor).space.data is RMEM
    shape = wrap(tensor_type(tensor).layout.data.shape)
    aligned = sizes(value.shape) + [1] * (len(shape) - len(value.shape))
    if in_registers and value.size == product(shape) and aligned != sizes(shape):
        value = value.reshape(shape)
    if not in_registers:  # a copy from registers is as wide as it can be
        value = value.to(tensor.element_type)
        if value.expression.tensor is None or tensor_type(value.expression.tensor).element_type != held:
            own = registers(value.dtype, make_layout(value.shape), held)
            write(own, value.expression)
            value = Vec(Expression(value.shape, value.dtype, tensor=own))
    current().materialize(keep=value)
    expression = value.expression
    write(tensor, expression)
    if expression.tensor is None and holds(tensor, expression):
        expression.borrow(tensor)


class CarriedFragment:
    """Registers in which control flow passes on a fragment: one path writes it, the next reads it."""

    def __init__(self, like: Vec) -> None:
        self.shape = like.shape
        self.tensor = registers(like.dtype, make_layout(like.shape))

    def holds(self, value: Vec) -> bool:
        """Whether a fragment has its shape and type."""
        return sizes(value.shape) == sizes(self.shape) and value.dtype.of_tensor == self.tensor.element_type

    def entered(self) -> Vec:
        """The fragment in it as the block finds it that is entered next."""
        return Vec(self._expression(True), inside=True)

    def left(self) -> Vec:
        """The fragment in it, to which nothing is written any more."""
        return Vec(self._expression(False))

    def _expression(self, borrowed: bool) -> Expression:
        return Expression(self.shape, self.tensor.element_type, tensor=self.tensor, borrowed=borrowed)

    def write(self, value: Vec) -> None:
        """Hands on a fragment."""
        store(self.tensor, value)


def full(shape: object, fill_value: Scalar, dtype: object) -> Vec:
    """A fragment of a shape in which every element is `fill_value`."""
    target = as_dtype(dtype)
    modes = as_tuple(tuples(shape))
    if not is_fully_static(modes):
        raise TilefoldError(
            Code.BUILD_RUN_TIME, "the shape of a fragment must be static", "pass sizes as cute.Constexpr"
        )
    if not is_scalar(fill_value):
        message = f"expected a value or a number, got {type(fill_value).__name__}"
        raise TilefoldError(Code.BUILD_VALUE, message, "x.broadcast_to(shape) repeats a fragment")
    return Vec(Expression(modes, target, partial(_same, fill_value)))


def full_like(a: Vec | Elements, fill_value: Scalar, dtype: object = None) -> Vec:
    """A fragment in the shape of another, or of a tensor, in which every element is `fill_value`."""
    if not isinstance(a, Vec | AnyTensor):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"expected a fragment or a tensor, got {type(a).__name__}"
        raise TilefoldError(Code.BUILD_VALUE, message, "cute.full(shape, fill_value, dtype) takes a shape")
    element = a.dtype if dtype is None else dtype
    return full(a.shape, fill_value, element)


def empty_like(a: Vec | Elements, dtype: object = None) -> Vec:
    """A fragment in the shape of another, or of a tensor, with unspecified elements; they are zeros."""
    return full_like(a, 0, dtype)


def _unreduced_leaves(profile: object, shape: Shape) -> list[tuple[int, ...]]:
    """The leaves of each mode that a reduction keeps, by their numbers in the shape.

    Raises TilefoldError: E0201 for the profile of another shape, E5002 for anything else.
    """
    leaves = unflatten(range(len(flatten_to_tuple(shape))), shape)
    given = tuples(profile)
    if any(isinstance(part, bool) or not (part is None or isinstance(part, int)) for part in flatten_to_tuple(given)):
        hint = "None keeps a mode, a number reduces it: 0 for all modes, (None, 1) for the second of two"
        raise TilefoldError(Code.BUILD_VALUE, f"{show(given)} is not a profile of a shape", hint)
    if not isinstance(given, tuple):
        return [() if given is not None else flatten_to_tuple(part) for part in leaves]
    return [flatten_to_tuple(slice_tuple(part, mode)) for part, mode in zip_modes(given, leaves)]  # pyright: ignore[reportUnknownArgumentType]


@dataclass(frozen=True, slots=True)
class ReductionOp:
    """The way that `reduce` combines elements: an operation by its name, or a function of two values."""

    name: str
    combine: Callable[[Operand, Operand], Operand] | None = None
    ADD: ClassVar["ReductionOp"]
    MUL: ClassVar["ReductionOp"]
    MAX: ClassVar["ReductionOp"]
    MIN: ClassVar["ReductionOp"]
    AND: ClassVar["ReductionOp"]
    OR: ClassVar["ReductionOp"]
    XOR: ClassVar["ReductionOp"]

    def function(self, a: object, b: object) -> Operand:
        """Combines two values, or two fragments element by element."""
        return combined(self.name, a, b) if self.combine is None else self.combine(a, b)

    def start(self, dtype: DType) -> Operand:
        """The neutral element. Raises TilefoldError (E5002) for a function."""
        if self.combine is not None:
            raise TilefoldError(Code.BUILD_VALUE, f"{self.name} needs an initial value", "give init_val")
        if dtype.kind == "float" and self.name in ("min", "max"):
            return float("inf") if self.name == "min" else float("-inf")
        ones = True if dtype.kind == "bool" else dtype.greatest if dtype.unsigned else -1
        neutral = {"add": 0, "mul": 1, "max": dtype.least, "min": dtype.greatest, "and": ones, "or": 0, "xor": 0}
        return neutral[self.name]


_BY_NAME = {word: ReductionOp(word) for word in ("add", "mul", "max", "min", "and", "or", "xor")}
for _word, _op in _BY_NAME.items():
    setattr(ReductionOp, _word.upper(), _op)


def reduction(x: object) -> ReductionOp:
    """Converts a function's argument to a reduction. Raises TilefoldError (E5002) for anything else."""
    if isinstance(x, str) and x in _BY_NAME:
        return _BY_NAME[x]
    if not isinstance(x, ReductionOp):
        if callable(x):
            return ReductionOp(getattr(x, "__name__", "the function"), x)
        raise TilefoldError(Code.BUILD_VALUE, f"expected a reduction such as cute.ReductionOp.ADD, got {x!r}")
    return x
