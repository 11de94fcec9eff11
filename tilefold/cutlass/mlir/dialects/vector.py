# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vectors and their elements, in the form of MLIR's dialect vector."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import Any

from xdsl.dialects.builtin import VectorType

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.scalars.operators import Operand
from tilefold.builder.tensors.fragments import Vec
from tilefold.builder.tensors.vectors import from_elements as vector_of


@dataclass(frozen=True, slots=True)
class Undefined:
    """A value of a type whose members are not all known yet; an unknown one is None."""

    type: Any
    members: tuple[object, ...]

    @property
    def is_complete(self) -> bool:
        """Whether all members are known."""
        return all(member is not None for member in self.members)

    def with_member(self, place: int, member: object) -> "Undefined":
        """The same with a member in a place. Raises TilefoldError (E5002) for a place that it does not have."""
        if not 0 <= place < len(self.members):
            problem = f"a value with {len(self.members)} members has no member {place}"
            raise TilefoldError(Code.BUILD_VALUE, problem, "count the members from 0")
        return replace(self, members=(*self.members[:place], member, *self.members[place + 1 :]))


__all__ = [
    "Undefined", "bitcast", "extract", "extract_strided_slice", "extractelement", "from_elements", "insert",
    "insert_strided_slice", "insertelement",
]  # fmt: skip


def bitcast(result: VectorType, source: Vec) -> Vec:
    """The bits of a vector as elements of another type, that of `result`."""
    return source.bitcast(result.element_type)


def from_elements(result: VectorType, elements: Sequence[object]) -> Vec:
    """A vector of a type, made of its elements."""
    return vector_of(elements, result.element_type)


def extract(source: Operand, dynamic_position: Sequence[object], static_position: Sequence[int]) -> Operand:
    """The element of a vector at a place: static, or a value; exactly one of the two is given."""
    (place,) = (*dynamic_position, *static_position)
    return source[place]


def insert(
    value_to_store: object, dest: Vec | Undefined, dynamic_position: Sequence[object], static_position: Sequence[int]
) -> Vec | Undefined:
    """A vector with a number in a place, which is static. One of `llvm.mlir_undef` is a vector when all its places have
    numbers. Raises TilefoldError (E5002) for a place that the kernel computes.
    """
    if dynamic_position or len(static_position) != 1:
        message = "an element can be inserted only at a static position of a vector"
        raise TilefoldError(Code.BUILD_VALUE, message, "loop over the places by cutlass.range_constexpr")
    if isinstance(dest, Undefined):
        changed = dest.with_member(static_position[0], value_to_store)
        return vector_of(changed.members, changed.type.element_type) if changed.is_complete else changed
    members = [dest[place] for place in range(dest.shape[0])]
    members[static_position[0]] = value_to_store
    return vector_of(members, dest.dtype)


def extractelement(vector: Operand, *, position: Operand) -> Operand:
    """The element of a vector at a place, which may be a value."""
    return vector[position]


def insertelement(source: object, dest: Vec | Undefined, *, position: Operand) -> Vec | Undefined:
    """A vector with a number in a place that Python knows; see `insert`. Raises TilefoldError (E5003) for another."""
    return insert(source, dest, [], [index(position)])


def extract_strided_slice(
    result: VectorType, vector: Vec, offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]
) -> Vec:
    """The elements of a vector from an offset on. Raises TilefoldError (E5002) for more than one dimension, and for
    strides other than 1.
    """
    (first,), (count,) = _one(offsets, strides), sizes
    return vector_of([vector[first + place] for place in range(count)], vector.dtype)


def insert_strided_slice(value_to_store: Vec, dest: Vec, offsets: Sequence[int], strides: Sequence[int]) -> Vec:
    """A vector with the elements of another one from an offset on. Raises TilefoldError (E5002) for more than one
    dimension, and for strides other than 1.
    """
    (first,) = _one(offsets, strides)
    members = [dest[place] for place in range(dest.shape[0])]
    count = value_to_store.shape[0]
    members[first : first + count] = [value_to_store[place] for place in range(count)]
    return vector_of(members, dest.dtype)


def _one(offsets: Sequence[int], strides: Sequence[int]) -> Sequence[int]:
    """The offsets of a slice of one dimension."""
    if len(offsets) != 1 or [*strides] != [1]:
        problem = f"a slice must have one offset and the stride 1, not {[*offsets]} and {[*strides]}"
        raise TilefoldError(Code.BUILD_VALUE, problem, "take the elements by cutlass.range_constexpr")
    return offsets
