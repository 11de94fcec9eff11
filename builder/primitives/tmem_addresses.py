# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Addresses in tensor memory (PTX ISA, Tensor Memory): a pointer to elements, and a number of a lane and a column."""

from typing import Any

from xdsl.ir import SSAValue

from ...dialects import ptx
from ..scalars.dtypes import DType, Float32, Int32, as_dtype
from ..scalars.operators import Operand
from ..scalars.values import convert
from ..tracing.state import emit


class TmemPointer:
    """An address in tensor memory, of elements of a type. A sum with a number is this many columns further on."""

    __slots__ = ("dtype", "number")

    def __init__(self, number: Any, dtype: Any = Float32) -> None:
        self.number, self.dtype = convert(number, Int32), as_dtype(dtype)

    @property
    def ssa(self) -> SSAValue:
        """The address as instructions take it."""
        return emit(ptx.IntToPtrOp(self.number.ssa, 4, ptx.TENSOR)).results[0]

    def __add__(self, columns: Operand) -> "TmemPointer":
        return TmemPointer(self.number + convert(columns, Int32), self.dtype)

    subview = __add__

    def data_ptr(self) -> "TmemPointer":
        """Itself, for programs that have an array there."""
        return self

    def toint(self, dtype: DType = Int32) -> Operand:
        """The address as a number of a type."""
        return convert(self.number, dtype)


class TmemAddr:
    """An address in tensor memory as a number: the row, which is the lane, and the column."""

    __slots__ = ("number",)

    def __init__(self, number: Any) -> None:
        self.number = convert(number.number if isinstance(number, TmemPointer) else number, Int32)

    @staticmethod
    def from_row_col(row: Operand, col: Operand) -> "TmemAddr":
        """The address of a row and a column."""
        return TmemAddr(convert(row, Int32) << 16 | convert(col, Int32))

    @property
    def row_id(self) -> Operand:
        """The row."""
        return self.number >> 16

    @property
    def col_id(self) -> Operand:
        """The column."""
        return self.number & 0xFFFF

    def subview(self, columns: Operand) -> "TmemAddr":
        """The address some columns further on."""
        return TmemAddr(self.number + convert(columns, Int32))

    def as_ptr(self, dtype: object = Float32) -> TmemPointer:
        """The address as a pointer to elements."""
        return TmemPointer(self.number, dtype)
