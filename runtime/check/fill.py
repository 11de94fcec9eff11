# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The first values of a kernel's arguments.

A fill is an expression: a generator (`zeros`, `normal(seed=0)`), an earlier argument, or arithmetic over them (`arange
/ 10`, `A * 2`). Its value is converted to the argument's element type. `poison` by itself marks an output: every byte
is 0xFF (a NaN for floats, -1 for integers), and an engine that tracks initialisation treats it as unwritten.
"""

import ast
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ...base.errors import Code
from ...base.limits import DEFAULT_LIMITS
from ...dialects.run.grammar import ExpressionError, parse_expression
from ..engine import NumPyArray, NumPyType
from .evaluate import Evaluator, Function, Value
from .functions import FUNCTIONS
from .limits import Memory, UnfitError, is_floating


@dataclass(frozen=True)
class Filled:
    """An argument's first values: a logical array, and whether it counts as written."""

    values: NumPyArray
    initialised: bool


def default_seed(name: str, seed: int = 0) -> int:
    """The seed of a generator that names none: it depends only on the argument's name and the run's seed."""
    return zlib.crc32(f"{seed}:{name}".encode())


def fill_argument(
    text: str,
    name: str,
    shape: tuple[int, ...],
    dtype: NumPyType,
    earlier: Mapping[str, Value],
    *,
    seed: int = 0,
    max_bytes: int = DEFAULT_LIMITS.bytes,
) -> Filled:
    """The values that the fill `text` gives to argument `name`.

    `shape` is () for a scalar argument; `earlier` holds the logical arrays of the arguments before it; `seed` is the
    run's; `max_bytes` bounds the memory of the evaluation. Raises ExpressionError, with the offsets of the fault in
    `text`.
    """
    node = parse_expression(text)
    if isinstance(node, ast.Name) and node.id == "poison":
        bits = np.full(shape, -1, dtype=f"i{dtype.itemsize}") if dtype.itemsize <= 8 else None
        assert bits is not None
        return Filled(bits.view(dtype), initialised=False)
    memory = Memory(max_bytes)
    evaluator = Evaluator(earlier, {**FUNCTIONS, **make_generators(name, shape, dtype, seed, memory)}, memory)
    values = evaluator.array(node)
    if values.shape not in ((), shape):
        problem = f"the fill has shape {values.shape}, argument '{name}' has {shape}"
        raise ExpressionError.at(node, Code.CHECK_VALUE, problem)
    rounds = not is_floating(dtype) and is_floating(values.dtype)
    if rounds and not np.array_equal(values, np.trunc(values)):
        problem = f"the fill has fractions, but argument '{name}' holds integers"
        raise ExpressionError.at(node, Code.CHECK_VALUE, problem, "use integers(lo, hi), or floor(...)")
    with np.errstate(all="ignore"):
        return Filled(np.broadcast_to(values, shape).astype(dtype, order="C"), initialised=True)


def make_generators(
    name: str, shape: tuple[int, ...], dtype: NumPyType, run_seed: int, given: Memory | None = None
) -> Mapping[str, Function]:
    """The functions that only a fill can call, since their result takes the argument's shape."""
    memory, elements = given or Memory(DEFAULT_LIMITS.bytes), prod(shape)
    floating = np.float64 if dtype.itemsize > 4 else np.float32  # generated in f32 where that is enough: half the time

    def random(seed: Value | None) -> np.random.Generator:
        if seed is None:
            seed = default_seed(name, run_seed)
        if not isinstance(seed, int) or seed < 0:
            raise UnfitError("a seed is an integer, zero or more")
        return np.random.default_rng(seed)

    def zeros() -> Value:
        """Zeros."""
        memory.check(elements * dtype.itemsize)
        return np.zeros(shape, dtype)

    def ones() -> Value:
        """Ones."""
        memory.check(elements * dtype.itemsize)
        return np.ones(shape, dtype)

    def full(value: Value) -> Value:
        """One number everywhere."""
        memory.check(elements * 8)
        return np.full(shape, _number(value))

    def arange(start: Value = 0, step: Value = 1) -> Value:
        """`start + step * i` for the i-th element, counted colexicographically (the first mode fastest)."""
        memory.check(2 * elements * 8)  # the numbers, and their products
        numbers = np.arange(elements, dtype=np.int64).reshape(shape, order="F")
        return numbers * _number(step) + _number(start)

    def normal(mean: Value = 0, std: Value = 1, seed: Value | None = None) -> Value:
        """Normally distributed numbers; without a seed, one that depends on the argument's name."""
        memory.check(2 * elements * 8)
        return random(seed).standard_normal(shape, floating) * _number(std) + _number(mean)

    def uniform(lo: Value = 0, hi: Value = 1, seed: Value | None = None) -> Value:
        """Uniformly distributed numbers from `lo` to `hi`."""
        memory.check(2 * elements * 8)
        return random(seed).random(shape, floating) * (_number(hi) - _number(lo)) + _number(lo)

    def integers(lo: Value, hi: Value, seed: Value | None = None) -> Value:
        """Integers from `lo` to `hi - 1`."""
        low, high = _number(lo), _number(hi)
        if not isinstance(low, int) or not isinstance(high, int) or low >= high:
            raise UnfitError(f"the range {low} to below {high} contains no integer", "write integers(0, 10)")
        memory.check(elements * 8)
        return random(seed).integers(low, high, shape)

    def poison() -> Value:
        """Alone: an unwritten output, every byte 0xFF."""
        raise UnfitError("'poison' stands alone; nothing can be computed from unwritten values")

    functions: tuple[Function, ...] = (zeros, ones, full, arange, normal, uniform, integers, poison)
    return {function.__name__: function for function in functions}


def _number(value: Value) -> Any:
    if isinstance(value, tuple) or np.ndim(value) != 0:
        raise UnfitError("expected a number")
    return value
