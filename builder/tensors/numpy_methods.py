# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The methods of NumPy's arrays that combine elements, for fragments: each is a `reduce`."""

from typing import Any, cast

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute

from ...base.errors import Code, TilefoldError
from ...dialects.tile import RecastOp
from ...layout.algebra.core import Layout
from ...layout.algebra.inttuple import wrap
from ..scalars.arithmetic import binary_type
from ..scalars.dtypes import as_dtype
from ..scalars.operators import Operand
from ..tracing.state import emit
from .expressions import Expression
from .tensor_base import registers


class Reinterpreted:
    """The base of fragments that gives them these methods."""

    __slots__ = ()

    def bitcast(self: Any, dtype: object) -> Operand:
        """The bits of the elements as those of another type, (n,)."""
        element, held = as_dtype(dtype), registers(self.dtype, Layout(self.size, 1))
        for place in range(self.size):
            held.write(place, self[place])
        made = emit(RecastOp.inferred([held.ssa], {"element_type": element.in_memory})).results[0]
        words = type(held)(made, element)
        return self.__class__(Expression(wrap(words.shape), element, tensor=words, borrowed=True))

    def to_elements(self: Any) -> tuple[Operand, ...]:
        """The elements one by one, counted colexicographically."""
        return tuple(self[place] for place in range(self.size))

    @property
    def type(self: Any) -> "VectorType[Attribute]":
        """The type in the IR: a vector of all elements."""
        return VectorType(self.dtype.ir, [self.size])

    def ir_value(self: object) -> Operand:
        """The fragment itself, for programs that pass it to an operation of an IR."""
        return self

    maybe_downcast = ir_value


class NumpyMethods(Reinterpreted):
    """The base of fragments. Each method combines all elements to a value, or those along the modes `axis`, a number or
    a tuple of them, to a fragment of the others; with `keepdims` the modes stay, with one element each. Elements are
    taken in colexicographic order. Each raises TilefoldError (E5002) for a mode that the fragment lacks, and for a
    type without arithmetic.
    """

    __slots__ = ()

    def sum(self: Any, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Operand:
        """The sum, in the type of `x + x`: Int32 for predicates and for integers of fewer bits."""
        return self.to(binary_type("add", self, self)).reduce("add", None, _profile(axis, self.rank), keepdims)

    def prod(self: Any, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Operand:
        """The product, in the type of `x * x`."""
        return self.to(binary_type("mul", self, self)).reduce("mul", None, _profile(axis, self.rank), keepdims)

    def max(self: Any, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Any:
        """The greatest element; NaN counts only where there is nothing else, as in `cute.math.max`."""
        return self.to(binary_type("max", self, self)).reduce("max", None, _profile(axis, self.rank), keepdims)

    def min(self: Any, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Operand:
        """The least element; NaN counts only where there is nothing else, as in `cute.math.min`."""
        return self.to(binary_type("min", self, self)).reduce("min", None, _profile(axis, self.rank), keepdims)

    def any(self: Any, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Any:
        """Whether an element is true, or other than 0."""
        return _truths(self).reduce("or", None, _profile(axis, self.rank), keepdims)

    def all(self: Any, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Any:
        """Whether each element is true, or other than 0."""
        return _truths(self).reduce("and", None, _profile(axis, self.rank), keepdims)


def _truths(fragment: Any) -> Operand:
    return fragment if fragment.dtype.kind == "bool" else fragment != 0


def _profile(axis: int | tuple[int, ...] | None, rank: int) -> tuple[int | None, ...] | int:
    """The profile of a reduction along modes, which count from the end where they are negative; None is all of them."""
    if axis is None:
        return 0
    axes = cast("tuple[Any, ...]", axis) if isinstance(axis, tuple) else (axis,)
    for mode in axes:
        if type(mode) is not int or not -rank <= mode < rank:
            hint = f"give a mode from 0 to {rank - 1}, or a tuple of them"
            raise TilefoldError(Code.BUILD_VALUE, f"axis is {axis!r}, but the fragment has {rank} modes", hint)
    reduced = {mode % rank for mode in axes}
    return tuple(0 if mode in reduced else None for mode in range(rank))
