# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fragments of matrices that an instruction finds in shared memory by their descriptors (CuTe's
mma_traits_sm90_gmma.hpp and mma_traits_sm100.hpp).
"""

from dataclasses import dataclass
from typing import Self

from xdsl.ir import SSAValue

from ...base.errors import Code, TilefoldError
from ...base.spaces import SMEM
from ...dialects.ptx import TensorDescriptorOp
from ...layout.algebra.core import Layout, plain_layout
from ...layout.algebra.modes import compose_parts, replace
from ...layout.algebra.recast import recast_layout
from ...layout.atoms.umma_descriptors import ABSOLUTE, FIELD, LEADING, UNIT
from ...layout.atoms.umma_smem import circular_descriptor, make_umma_descriptor, swizzling_of
from ..scalars.dtypes import DType, Int64
from ..scalars.values import Int, convert, wrap
from ..tracing.state import checked, emit
from .coordinates import as_layout
from .tensors import Pointer, Tensor

_UNIT_BITS = 128
"""The units in which descriptors count addresses (PTX ISA, Shared memory descriptor)."""


class Descriptors(Tensor):
    """A part of an operand in shared memory, (MMA,MMA_MN,MMA_K,...), as descriptors: its `layout` counts units of 16
    bytes, and has one descriptor, 1:0, in place of the elements of an instruction's matrix.
    """

    __slots__ = ("_matrix",)

    def __init__(self, ssa: SSAValue, dtype: DType | None = None, matrix: object = None) -> None:
        super().__init__(ssa, dtype)
        self._matrix = self.ir_type.layout.data.shape[0] if matrix is None else matrix

    def like(self, ssa: SSAValue) -> Self:
        return type(self)(ssa, self._dtype, self._matrix)

    def _with_values(self) -> Layout:
        layout = plain_layout(self.ir_type.layout.data)
        units: Layout = recast_layout(layout, self.ir_type.element_bits, _UNIT_BITS)
        begins_with_matrix = isinstance(layout.shape, tuple) and layout.shape[0] == self._matrix
        return replace(units, 0, Layout(1, 0)) if begins_with_matrix else units


@dataclass(frozen=True, slots=True)
class MatrixDescriptor:
    """The descriptor of one operand of tcgen05.mma in shared memory, a number of 64 bits."""

    number: Int


def make_umma_smem_desc(src: Pointer, layout: object, major: str, next_src: Pointer | None = None) -> MatrixDescriptor:
    """The descriptor of one operand of tcgen05.mma that begins at `src` in shared memory, by its layout (MN,K);
    `major` is "k" or "mn". With `next_src` rows of 48 bytes, those of K = 96, go on there where their buffer ends
    (PTX ISA, Shared memory descriptor; CuTe's mma_traits_sm100.hpp, SM103::mma_unpack).

    Raises `LayoutError` (E0315) if no descriptor describes the layout, TilefoldError (E5002) for other memory.
    """
    for pointer in (src,) if next_src is None else (src, next_src):
        if pointer.memspace.name != SMEM.name:
            text = f"descriptors of tcgen05.mma are of shared memory, and this is {pointer.memspace.name}"
            raise TilefoldError(Code.BUILD_VALUE, text, "write t.iterator of a tensor in shared memory")
    outer = plain_layout(as_layout(layout))
    while len(outer) == 1 and isinstance(outer.shape, tuple):
        outer = outer[0]  # the only mode
    form = swizzling_of(compose_parts(src.type.swizzle_type, 0, Layout(1, 0)), 8)  # that of addresses
    with checked():
        if next_src is None:
            fields = make_umma_descriptor(outer, form, src.dtype.bits, major.upper(), 0)
        else:
            fields = circular_descriptor(outer, form, src.dtype.bits)
    start = src.tensor.ptr().ssa
    number = wrap(emit(TensorDescriptorOp(start, fields.leading, fields.stride, form.value)).results[0])
    if next_src is not None:
        following = convert(next_src.tensor.ptr().number(), Int64) >> UNIT.bit_length() - 1 & FIELD
        number = number | following << LEADING | 1 << ABSOLUTE
    assert isinstance(number, Int)
    return MatrixDescriptor(number)
