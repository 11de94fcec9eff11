# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements of 4 bits, two in a byte, as `t.load()` gives them: numbers once they are converted."""

from dataclasses import dataclass

from ...dialects.tile import RecastOp
from ...layout.algebra.coalesce import coalesce
from ...layout.algebra.core import Layout
from ...layout.algebra.inttuple import is_fully_static, wrap
from ..scalars.dtypes import DTYPES, DType, Float32, Int32, Uint32, as_dtype
from ..tracing.state import emit
from .expressions import Shape
from .fragments import Vec, load
from .tensor_base import Elements, tensor_type
from .vectors import from_elements


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
    """The elements of a tensor of 4 bits each that lie one behind the other. TilefoldError (E0319) for others."""
    type = tensor_type(tensor)
    layout = type.layout.data
    flat = coalesce(layout) if isinstance(layout, Layout) and is_fully_static(layout.shape) else None
    if flat is None or flat.stride != 1 or flat.shape % 2:
        type.check_single_elements()
    byte = DTYPES["Uint8"]
    recast = emit(RecastOp.inferred([tensor.ssa], {"element_type": byte.in_memory})).results[0]
    return Packed(load(Elements(recast, byte)), wrap(layout.shape), tensor.element_type)
