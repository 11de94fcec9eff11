# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exact numbers in the memory and the registers of a kernel: by bit patterns of the kernel's own types.

A pattern stands for the number that it spells, unless an operation has taken it for its result. The result takes the
pattern of the nearest float or, where that stands for another number, the next greater one that is free. So one number
has one pattern for each type, and all that moves bits, packs or compares them stays as it is. Numbers that a program or
its arguments spell are never taken. Zero keeps its pattern.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ...check.limits import is_floating
from ...engine import Argument, NumPyArray, NumPyType, TensorArgument
from ...exact.number import ExactArray, element_of, of_parts, parts
from ..faults import SimulationError

Elements = NumPyArray
"""An array of Python's integers, elements of the ring."""


class Patterns:
    """The bit patterns of a floating-point type, and the elements of the ring that they stand for."""

    def __init__(self, dtype: NumPyType) -> None:
        self.dtype, self._bits = dtype, np.dtype(f"u{dtype.itemsize}")
        self._elements: dict[int, int] = {}
        self._patterns: dict[int, int] = {}
        self._next: dict[int, int] = {}
        """A pattern that may be free, to try in place of one that is taken."""
        self._sign = 1 << (8 * dtype.itemsize - 1)
        finite = np.array([self._greatest()], np.float64).astype(dtype)
        self._most = int(finite.view(self._bits)[0])
        self._elements[0], self._patterns[0], self._elements[self._sign] = 0, 0, 0

    def _greatest(self) -> float:
        import ml_dtypes

        return float(ml_dtypes.finfo(self.dtype).max)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]

    def keep(self, values: NumPyArray) -> None:
        """Reads the patterns of values as the numbers that they spell."""
        for pattern in np.unique(np.ascontiguousarray(values).view(self._bits)).tolist():
            self._element(pattern)

    def _element(self, pattern: int) -> int:
        element = self._elements.get(pattern)
        if element is None:
            spelled = np.array([pattern], self._bits).view(self.dtype).astype(np.float64)[0]
            element = self._elements[pattern] = element_of(float(spelled))
            self._patterns.setdefault(element, pattern)
        return element

    def elements(self, values: Any) -> Elements:
        """The elements that values stand for: an array of their shape."""
        array = np.ascontiguousarray(np.asarray(values, self.dtype))
        result = np.empty(array.size, object)
        get = self._elements.get
        for index, pattern in enumerate(array.view(self._bits).ravel().tolist()):
            element = get(pattern)
            result[index] = self._element(pattern) if element is None else element
        return result.reshape(np.shape(values))

    def numbers(self, values: object) -> ExactArray:
        """The numbers that values stand for: an array of their shape."""
        return of_parts(self.elements(values), np.asarray(values).astype(np.float64))

    def place(self, elements: Elements, near: NDArray[np.float64]) -> Any:
        """The values that stand for elements, near these floats: an array of their shape, or a number for none.
        SimulationError (E3240) where no pattern is left.
        """
        limit = self._greatest()
        rounded = np.asarray(np.where(np.isfinite(near), np.clip(near, -limit, limit), near)).astype(self.dtype)
        result = np.empty(rounded.size, self._bits)
        patterns = np.ascontiguousarray(rounded).view(self._bits).ravel().tolist()
        finite = np.isfinite(near).ravel().tolist()
        for index, (pattern, element) in enumerate(zip(patterns, elements.ravel().tolist(), strict=True)):
            known = self._patterns.get(element)
            if not finite[index]:
                result[index] = pattern
            elif known is not None:
                result[index] = known
            else:
                result[index] = self._take(pattern, element)
        return result.view(self.dtype).reshape(np.shape(near))[()]

    def _take(self, pattern: int, element: int) -> int:
        """A free pattern for an element, the given one or the next."""
        sign, start = pattern & self._sign, pattern & ~self._sign
        free = self._free(sign, start)
        if free > self._most:
            free = self._free(sign, 1)
        if free > self._most:
            free = self._free(sign ^ self._sign, 1)
            sign ^= self._sign
        if free > self._most:
            raise SimulationError(
                Code.SIM_EXACT,
                f"the launch computes with more different numbers of type {self.dtype} than it has bit patterns",
                "launch a smaller problem, or let the results be of a wider type",
            )
        self._elements[sign | free] = element
        self._patterns[element] = sign | free
        return sign | free

    def _free(self, sign: int, start: int) -> int:
        """The first free pattern of a sign from a magnitude on; beyond the greatest there may be none."""
        magnitude, passed = start, list[int]()
        while (sign | magnitude) in self._elements:
            passed.append(magnitude)
            magnitude = self._next.get(sign | magnitude, magnitude + 1)
        for pattern in passed:
            self._next[sign | pattern] = magnitude
        return magnitude


class Table:
    """The patterns of all types of a launch."""

    def __init__(self) -> None:
        self._of: dict[NumPyType, Patterns] = {}

    def of(self, dtype: NumPyType) -> Patterns:
        """The patterns of a type."""
        patterns = self._of.get(dtype)
        if patterns is None:
            patterns = self._of[dtype] = Patterns(dtype)
        return patterns

    def keep(self, values: NumPyArray) -> None:
        """Reads the patterns of values as the numbers that they spell, if their type is floating-point."""
        if is_floating(values.dtype):
            self.of(values.dtype).keep(values)

    def tensors(self, arguments: Mapping[str, Argument]) -> dict[str, ExactArray]:
        """The storages of tensors with floats among the arguments of a launch, as numbers."""
        given = {name: value.storage for name, value in arguments.items() if isinstance(value, TensorArgument)}
        return {name: self.numbers(storage) for name, storage in given.items() if is_floating(storage.dtype)}

    def numbers(self, values: object) -> ExactArray:
        """The numbers that an array stands for, of floats, integers or truth values."""
        array = np.asarray(values)
        if is_floating(array.dtype):
            return self.of(array.dtype).numbers(array)
        return of_parts(array.astype(object) * 1, array.astype(np.float64))

    def values(self, numbers: object, dtype: NumPyType) -> Any:
        """The values of a floating-point type that stand for numbers."""
        return self.of(dtype).place(*parts(numbers))
