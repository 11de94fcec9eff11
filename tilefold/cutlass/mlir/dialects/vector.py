# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vectors and their elements, in the form of MLIR's dialect vector."""

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import VectorType

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.tensors.fragments import Vec
from tilefold.builder.tensors.vectors import from_elements as vector_of

from .undefined import Undefined

__all__ = ["bitcast", "extract", "from_elements", "insert"]


def bitcast(result: VectorType, source: Vec) -> Vec:
    """The bits of a vector as elements of another type, that of `result`."""
    return source.bitcast(result.element_type)


def from_elements(result: VectorType, elements: Sequence[object]) -> Vec:
    """A vector of a type, made of its elements."""
    return vector_of(elements, result.element_type)


def extract(source: Any, dynamic_position: Sequence[object], static_position: Sequence[int]) -> Any:
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
        message = "a number goes to a static place of a vector"
        raise TilefoldError(Code.BUILD_VALUE, message, "loop over the places by cutlass.range_constexpr")
    if isinstance(dest, Undefined):
        changed = dest.with_member(static_position[0], value_to_store)
        return vector_of(changed.members, changed.type.element_type) if changed.is_complete else changed
    members = [dest[place] for place in range(dest.shape[0])]
    members[static_position[0]] = value_to_store
    return vector_of(members, dest.dtype)
