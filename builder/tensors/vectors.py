# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vectors: fragments made of elements, and elements of 4 bits, two in a byte, which become numbers when they are
converted. The last mode of a vector is the fastest in memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as coordinates

from ...base.errors import Code, TilefoldError
from ...dialects.tile import RecastOp
from ...layout.algebra.coalesce import coalesce
from ...layout.algebra.core import Layout
from ...layout.algebra.inttuple import is_fully_static, product, wrap
from ..scalars.dtypes import DTYPES, Boolean, DType, Float32, Int32, Uint32, as_dtype
from ..scalars.operators import Operand
from ..scalars.values import Value, convert
from ..tracing.state import emit
from .coordinates import as_tuple, tuples
from .expressions import Shape
from .fragments import Vec, full, load
from .tensor_base import Elements, registers, tensor_type


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


def create_mask(shape: Sequence[int], mask_dim_sizes: Sequence[Operand]) -> Vec:
    """A vector of predicates of one mode, of which the first `mask_dim_sizes[0]` are true (MLIR, vector.create_mask).
    Raises TilefoldError (E5002) for more modes.
    """
    if len(shape) != 1 or len(mask_dim_sizes) != 1:
        raise TilefoldError(Code.BUILD_VALUE, f"a mask has one mode, not {len(shape)}", "make one for each mode")
    return from_elements([convert(mask_dim_sizes[0], Int32) > place for place in range(shape[0])], Boolean)


class Vector(Vec):
    """A fragment, by the name of programs that make it of elements. `Vector(x)` is the fragment `x` as one mode, its
    elements counted colexicographically.
    """

    __slots__ = ()

    def __init__(self, source: Vec, dtype: object = None) -> None:
        super().__init__(source, source.size, dtype)

    from_elements = staticmethod(from_elements)


def broadcast_to(vector: Vec, shape: object) -> Vec:
    """A vector repeated to a shape, as NumPy broadcasts."""
    missing = len(as_tuple(tuples(shape))) - len(vector.shape)
    return vector.reshape((*(1,) * missing, *vector.shape)).broadcast_to(shape)


def outerproduct(a: Vec, b: Vec) -> Vec:
    """The products of the elements of two vectors: (M,N)."""
    (m,), (n,) = a.shape, b.shape
    return a.reshape((m, 1)) * b.reshape((1, n))


def row_major(vector: Vec) -> Vec:
    """The elements of a vector in the order of memory, the last mode the fastest: (size,)."""
    if vector.rank == 1:
        return vector
    extents = [product(extent) for extent in vector.shape]
    return from_elements([vector[place] for place in coordinates(*map(range, extents))], vector.dtype)


__all__ = ["Vector", "broadcast_to", "from_elements", "full", "outerproduct", "row_major"]


@dataclass(frozen=True)
class Packed:
    """Elements of 4 bits by the bytes that hold two of them each. They have no arithmetic: `to` makes numbers of
    them.
    """

    bytes: Vec
    shape: Shape
    dtype: DType

    def to(self, dtype: object) -> Vec:
        """The elements as numbers of a type, a fragment of their shape."""
        count = self.bytes.size
        codes = self.bytes.to(Uint32).reshape((1, count)) >> from_elements([0, 4], Uint32).reshape((2, 1))
        if self.dtype.is_integer:
            numbers = codes & 15 if self.dtype.unsigned else ((codes & 15) ^ 8).bitcast(Int32) - 8
            return numbers.reshape(self.shape).to(as_dtype(dtype))
        # a number of E2M1 has the bits of one of f32 that is smaller by the ratio of the least numbers
        bits = ((codes & 8) << 28) | ((codes & 7) << 22)
        return (bits.bitcast(Float32) * 2.0**126).reshape(self.shape).to(as_dtype(dtype))


def load_packed(tensor: Elements) -> Packed:
    """The elements of a tensor of 4 bits each that lie one after the other. TilefoldError (E0319) for others."""
    type = tensor_type(tensor)
    layout = type.layout.data
    flat = coalesce(layout) if isinstance(layout, Layout) and is_fully_static(layout.shape) else None
    if flat is None or flat.stride != 1 or flat.shape % 2:
        type.check_single_elements()
    byte = DTYPES["Uint8"]
    recast = emit(RecastOp.inferred([tensor.ssa], {"element_type": byte.in_memory})).results[0]
    return Packed(load(Elements(recast, byte)), wrap(layout.shape), tensor.element_type)
