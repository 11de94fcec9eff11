# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vectors and their elements, in the form of MLIR's dialect vector."""

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import VectorType

from tilefold.builder.tensors.allocation import make_rmem_tensor
from tilefold.builder.tensors.fragments import Vec, load
from tilefold.builder.tensors.pointers import recast_tensor
from tilefold.builder.tensors.vectors import from_elements as vector_of
from tilefold.layout.algebra.core import Layout

__all__ = ["bitcast", "extract", "from_elements"]


def bitcast(result: VectorType, source: Vec) -> Vec:
    """The bits of a vector as elements of another type, that of `result`."""
    elements = make_rmem_tensor(Layout(source.size, 1), source.dtype)
    for place in range(source.size):
        elements[place] = source[place]
    return load(recast_tensor(elements, result.element_type))


def from_elements(result: VectorType, elements: Sequence[Any]) -> Vec:
    """A vector of a type, made of its elements."""
    return vector_of(elements, result.element_type)


def extract(source: Any, dynamic_position: Sequence[Any], static_position: Sequence[int]) -> Any:
    """The element of a vector at a place: static, or a value; exactly one of the two is given."""
    (place,) = (*dynamic_position, *static_position)
    return source[place]
