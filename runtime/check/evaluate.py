# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluates expressions on NumPy arrays.

Elementwise operations follow NumPy in the operands' own types (a number takes the type of the array beside
it), so that a kernel that does the same operation can be compared exactly. Products of matrices and sums
accumulate in float64, or in int64 for integers: they are references for a comparison within a tolerance.
"""

import ast
import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ...base.errors import Code
from ...base.limits import DEFAULT_LIMITS
from ...dialects.run.grammar import OPERATORS, Expression, ExpressionError, Near
from ..engine import NumPyArray, NumPyType
from .limits import (
    MORE_MEMORY,
    SMALLER_RESULT,
    CostError,
    Memory,
    UnfitError,
    check_elements,
    infer_common_shape,
    is_floating,
    widen,
)

MAX_PRODUCTS = 2**40
"""Most multiplications that one matrix product may take (8192 cubed is half of it)."""

_EXACT_IN_DOUBLE = 2**53


def product(left: NumPyArray, right: NumPyArray) -> NumPyArray:
    """`left @ right` over the last two modes; the modes before them are a batch, and broadcast as NumPy's do.

    UnfitError for shapes that do not fit, CostError for a product that is too large.
    """
    if left.ndim < 2 or right.ndim < 2:
        raise UnfitError(
            f"'@' multiplies two matrices, or batches of them, not arrays of shape {left.shape} and {right.shape}"
        )
    (m, k), (rows, n) = left.shape[-2:], right.shape[-2:]
    if k != rows:
        raise UnfitError(
            f"'@' needs as many columns on the left as rows on the right, not {left.shape} and {right.shape}"
        )
    batch = infer_common_shape(left.shape[:-2], right.shape[:-2])
    check_elements((*batch, m, n))
    if prod(batch) * m * n * k > MAX_PRODUCTS:
        raise CostError(
            f"a matrix product of {'x'.join(map(str, (*batch, m, n, k)))} would take too long; at most "
            f"{MAX_PRODUCTS} products are accepted",
            SMALLER_RESULT,
        )
    left, right = widen(left), widen(right)
    if left.dtype == right.dtype == np.int64 and k * _largest(left) * _largest(right) < _EXACT_IN_DOUBLE:
        # no sum can be rounded then, and NumPy multiplies matrices of float64 by BLAS, of integers by a plain loop
        return np.matmul(left.astype(np.float64), right.astype(np.float64)).astype(np.int64)
    return np.matmul(left, right)


def _largest(array: NumPyArray) -> int:
    return max(abs(int(array.max())), abs(int(array.min()))) if array.size else 0


Value: TypeAlias = NumPyArray | int | float | tuple[int, ...]
Function: TypeAlias = Callable[..., Value]

_INT_LIMIT = 2**63
_MAX_EXPONENT = 64


@dataclass(frozen=True)
class Evaluator:
    """Evaluates expressions over `names` (the arguments of a launch) with the given functions.

    A function may also be written without parentheses when all its arguments are optional (`zeros`).
    """

    names: Mapping[str, Value]
    functions: Mapping[str, Function]
    memory: Memory = field(default_factory=lambda: Memory(DEFAULT_LIMITS.bytes))

    def value(self, node: Expression) -> Value:
        """The value of an expression. Raises ExpressionError with the position of the part at fault."""
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # of the mean of nothing; it is NaN
                result = self._value(node)
                is_view = isinstance(node, ast.Subscript) or (isinstance(node, ast.Name) and node.id in self.names)
                if isinstance(result, np.ndarray) and not is_view:
                    self.memory.take(result.nbytes)
        except CostError as error:
            raise ExpressionError.at(node, Code.CHECK_TOO_LARGE, str(error), error.hint) from error
        except MemoryError as error:
            raise ExpressionError.at(node, Code.CHECK_TOO_LARGE, "not enough memory", MORE_MEMORY) from error
        except (ValueError, TypeError, LookupError, ArithmeticError) as error:
            unfit = refusal(error)
            raise ExpressionError.at(node, Code.CHECK_VALUE, str(unfit), unfit.hint) from error
        if isinstance(result, int) and not -_INT_LIMIT <= result < _INT_LIMIT:
            raise ExpressionError.at(node, Code.CHECK_TOO_LARGE, "an integer beyond 64 bits")
        return result

    def array(self, node: Expression) -> NumPyArray:
        """The value of an expression as an array; a number is an array of rank 0."""
        value = self.value(node)
        if isinstance(value, tuple):
            raise ExpressionError.at(node, Code.CHECK_VALUE, "a tuple where an array or a number is needed")
        return np.asanyarray(value)

    def _value(self, node: Expression) -> Value:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name():
                return self._name(node)
            case ast.Tuple():
                return tuple([self._integer(item) for item in node.elts])
            case ast.UnaryOp(op=ast.USub()):
                return operator.neg(_numbers(self._operand(node.operand)))
            case ast.BinOp(op=ast.MatMult()):
                return product(self.array(node.left), self.array(node.right))
            case ast.BinOp():
                return self._binary(node.op, node.left, node.right)
            case ast.Compare(ops=[Near()]):
                raise UnfitError("'~=' states a condition of its own; it has no value to compute with")
            case ast.Compare():
                return self._binary(node.ops[0], node.left, node.comparators[0])
            case ast.BoolOp(op=ast.And()):
                return np.logical_and.reduce([self.array(part).astype(np.bool_) for part in node.values])
            case ast.Subscript(slice=ast.Tuple(elts=indices)):
                return self._subscript(self.array(node.value), indices)
            case ast.Attribute():
                return self._call("transpose", [node.value], (), node)
            case ast.Call(func=ast.Name(name)):
                return self._call(name, node.args, node.keywords, node)
            case _:
                raise UnfitError("only the expressions of parameters choose")

    def _operand(self, node: Expression) -> Any:
        value = self.value(node)
        if isinstance(value, tuple):
            raise UnfitError("a tuple is not an operand of arithmetic")
        return value

    def _integer(self, node: Expression) -> int:
        value = self.value(node)
        if not isinstance(value, int):
            raise ExpressionError.at(node, Code.CHECK_VALUE, "expected an integer")
        return value

    def _name(self, node: ast.Name) -> Value:
        if node.id in self.names:
            return self.names[node.id]
        if node.id in self.functions:
            return self._call(node.id, (), (), node)
        raise self._unknown("argument", node.id, node, self.names)

    def _call(self, name: str, given: Sequence[Expression], named: Sequence[ast.keyword], node: Expression) -> Value:
        if name not in self.functions:
            raise self._unknown("function", name, node, self.functions)
        arguments = [self.value(argument) for argument in given]
        keywords = {keyword.arg or "": self.value(keyword.value) for keyword in named}
        function = self.functions[name]
        try:
            signature(function).bind(*arguments, **keywords)
        except TypeError:
            raise UnfitError(f"the arguments do not fit {_form(name, function)}") from None
        return function(*arguments, **keywords)

    @staticmethod
    def _unknown(kind: str, name: str, node: Expression, known: Mapping[str, object]) -> ExpressionError:
        return ExpressionError(
            Code.CHECK_NAME,
            f"there is no {kind} '{name}'",
            node.col_offset,
            node.col_offset + len(name),
            hint="known: " + (", ".join(sorted(known)) or "none"),
        )

    def _binary(self, op: ast.operator | ast.cmpop, a: Expression, b: Expression) -> Value:
        left, right = self._operand(a), self._operand(b)
        left, right = _type_like(left, right), _type_like(right, left)
        shape = infer_common_shape(np.shape(left), np.shape(right))
        self.memory.check(prod(shape) * max(np.asanyarray(left).itemsize, np.asanyarray(right).itemsize))
        if isinstance(op, ast.Sub):
            left, right = _numbers(left), _numbers(right)
        integers = isinstance(left, int) and isinstance(right, int)
        if isinstance(op, ast.Pow) and integers and not 0 <= right <= _MAX_EXPONENT:
            raise CostError(f"an integer power must have an exponent of 0 to {_MAX_EXPONENT}")
        return OPERATORS[type(op)][1](left, right)

    def _subscript(self, array: NumPyArray, written: Sequence[Expression]) -> Value:
        indices = tuple(
            slice(*(None if part is None else self._integer(part) for part in (index.lower, index.upper, index.step)))
            if isinstance(index, ast.Slice)
            else self._integer(index)
            for index in written
        )
        if len(indices) > array.ndim:
            raise UnfitError(f"{len(indices)} indices for an array of {array.ndim} modes")
        for mode, (index, extent) in enumerate(zip(indices, array.shape, strict=False)):
            if isinstance(index, int) and not -extent <= index < extent:
                raise UnfitError(f"mode {mode} has {extent} elements, and no element {index}")
            if isinstance(index, slice) and index.step == 0:
                raise UnfitError("a slice has a step other than 0")
        return np.asanyarray(array[indices])


def refusal(error: Exception) -> UnfitError:
    """An Python error or NumPy, in words for the user."""
    match error:
        case UnfitError():
            return error
        case np.exceptions.AxisError():
            return UnfitError(f"an array of {error.ndim} modes has no mode {error.axis}")
        case ZeroDivisionError():
            return UnfitError("division by zero")
        case OverflowError():
            return UnfitError("a number is too large for its place")
        case TypeError():
            return UnfitError("there is no such operation on these element types", _CONVERT)
        case _:
            return UnfitError("the operation cannot be computed for these values")


_CONVERT = "convert an operand first, for example by f32(A) or i32(A)"


def _numbers(value: object) -> Any:
    if np.asanyarray(value).dtype == np.bool_:
        raise UnfitError("'-' is for numbers, not for truth values", _CONVERT)
    return value


def _form(name: str, function: Function) -> str:
    """How a function is called, `softmax(a, axis=-1)`."""
    given = signature(function).parameters.values()
    names = [p.name if p.default is p.empty else f"{p.name}={p.default}" for p in given]
    return f"{name}({', '.join(names)})"


def _type_like(value: object, beside: object) -> Any:
    """A number in the floating-point type of the array beside it, also where NumPy would widen (bfloat16)."""
    dtype: NumPyType = np.asanyarray(beside).dtype
    if isinstance(value, int | float) and not isinstance(beside, int | float) and is_floating(dtype):
        return dtype.type(value)
    return value
