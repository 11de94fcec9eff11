# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vectors: fragments made of elements. The last mode of a vector is the fastest in memory."""

from collections.abc import Sequence
from itertools import product as coordinates

from ...base.errors import Code, TilefoldError
from ...layout.algebra.core import Layout
from ...layout.algebra.inttuple import product
from ..scalars.dtypes import as_dtype
from ..scalars.values import Value
from .fragments import Vec, full, load
from .tensor_base import registers


def from_elements(elements: Sequence[object], dtype: object = None) -> Vec:
    """A vector of numbers and values, of their common type or of `dtype`."""
    values = list(elements)
    element = dtype or next((value.dtype for value in values if isinstance(value, Value)), None)
    if element is None or not values:
        hint = "write from_elements((1.0, 2.0), cute.Float32)"
        raise TilefoldError(Code.BUILD_VALUE, "a vector has elements, and numbers have no type of their own", hint)
    made = registers(as_dtype(element), Layout(len(values), 1))
    for index, value in enumerate(values):
        made.write(index, value)
    return load(made)


class Vector(Vec):
    """A fragment, by the name of programs that make it of elements."""

    __slots__ = ()
    from_elements = staticmethod(from_elements)


def broadcast_to(vector: Vec, shape: object) -> Vec:
    """A vector repeated to a shape, as NumPy broadcasts."""
    return vector.broadcast_to(shape)


def outerproduct(a: Vec, b: Vec) -> Vec:
    """The products of the elements of two vectors: (M,N)."""
    (m,), (n,) = a.shape, b.shape
    return a.reshape((m, 1)) * b.reshape((1, n))


def row_major(vector: Vec) -> Vec:
    """The elements of a vector as memory has them, the last mode the fastest: (size,)."""
    if vector.rank == 1:
        return vector
    extents = [product(extent) for extent in vector.shape]
    return from_elements([vector[place] for place in coordinates(*map(range, extents))], vector.dtype)


__all__ = ["Vector", "broadcast_to", "from_elements", "full", "outerproduct", "row_major"]
