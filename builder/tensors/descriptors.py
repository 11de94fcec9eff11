# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fragments of matrices that an instruction finds in shared memory by their descriptors (CuTe's
mma_traits_sm90_gmma.hpp and mma_traits_sm100.hpp).
"""

from typing import Self

from xdsl.ir import SSAValue

from ...layout.algebra.core import Layout, plain_layout
from ...layout.algebra.modes import replace
from ...layout.algebra.recast import recast_layout
from ..scalars.dtypes import DType
from .tensors import Tensor

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
