# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vectors and their elements, in the form of MLIR's dialect vector."""

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import VectorType

from tilefold.builder.tensors.fragments import Vec
from tilefold.builder.tensors.vectors import from_elements as vector_of

__all__ = ["bitcast", "extract", "from_elements"]


def bitcast(result: VectorType, source: Vec) -> Vec:
    """The bits of a vector as elements of another type, that of `result`."""
    return source.bitcast(result.element_type)


def from_elements(result: VectorType, elements: Sequence[object]) -> Vec:
    """A vector of a type, made of its elements."""
    return vector_of(elements, result.element_type)


def extract(source: Any, dynamic_position: Sequence[Any], static_position: Sequence[int]) -> Any:
    """The element of a vector at a place: static, or a value; exactly one of the two is given."""
    (place,) = (*dynamic_position, *static_position)
    return source[place]
