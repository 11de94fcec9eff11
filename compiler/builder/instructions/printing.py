# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Printing from a kernel."""

from typing import Any

from xdsl.dialects.builtin import StringAttr

from ....base.errors import Code, TilefoldError
from ....dialects.ptx import PrintfOp
from ....dialects.ptx.sync import conversions
from ....dialects.tile import PrintOp, PrintTensorOp
from ....layout.algebra.core import Layout
from ....layout.text.printing import plain_style, print_layout_lines
from ..scalars.dtypes import DType, Float32, Float64, Int32, Int64
from ..scalars.values import Scalar, as_value, convert
from ..tensors.coordinates import check_static
from ..tensors.tensor_base import tensor_type
from ..tensors.tensors import Tensor
from ..tracing.state import emit


def print_tensor(tensor: Tensor, text: str = "tensor") -> None:
    """Each thread that gets here prints the tensor after a text, then its elements, a row of mode 0 a line."""
    tensor_type(tensor)
    emit(PrintTensorOp.build(operands=[tensor.ssa], properties={"text": StringAttr(text)}))


def print_layout(tensor: "Tensor | Layout", text: str = "tensor") -> None:
    """Each thread that gets here prints the text, then where the tensor is and its layout.

    Of a layout itself Python prints the table of its indices, where it is called, in kernels and outside (CuTe's
    print_layout). Raises TilefoldError (E0202) unless it has two modes, and E5003 unless it is static.
    """
    if isinstance(tensor, Layout):
        check_static(tensor, "the layout of a table must be static, but this is")
        if len(tensor) != 2:
            raise TilefoldError(Code.RANK_MISMATCH, f"a table needs two modes, but the layout is {tensor}")
        print("\n".join(print_layout_lines(tensor, plain_style)))
        return
    tensor_type(tensor)
    emit(PrintOp.build(operands=[tensor.ssa], properties={"text": StringAttr(text)}))


def printf(format: str, *values: Scalar) -> None:
    """Each thread that gets here prints values, as C's printf does: `printf("t = %d: %f\\n", t, x)`.

    `{}` stands for the conversion that fits a value; a format with it ends its line, with or without `\\n` at its end.
    Conversions are %d %i %u %x %lld %llu %llx %f %e %g.
    """
    if not isinstance(format, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        given = type(format).__name__
        raise TilefoldError(Code.BUILD_VALUE, f"expected a format, got {given}", 'write cute.printf("{}", x)')
    given = [as_value(value) for value in values]
    if "{}" in format:
        parts = format.removesuffix("\n").replace("%", "%%").split("{}")
        if len(parts) != len(given) + 1:
            raise TilefoldError(
                Code.BUILD_VALUE, f"the format has {len(parts) - 1} {{}}, but {len(given)} values follow"
            )
        wanted = [_conversion(value.dtype) for value in given]
        format = "".join(part + conversion for part, conversion in zip(parts, [*wanted, "\n"], strict=True))
    try:
        specifiers = conversions(format)
    except ValueError as error:
        raise TilefoldError(Code.BUILD_VALUE, str(error)) from None
    args = [_printed(value, specifier).ssa for value, specifier in zip(given, specifiers, strict=False)]
    emit(PrintfOp(format, [*args, *(value.ssa for value in given[len(args) :])]))


def _conversion(dtype: DType) -> str:
    """The conversion that `{}` stands for."""
    if dtype.kind == "float":
        return "%f"
    letter = "u" if dtype.kind == "int" and dtype.unsigned else "d"
    return f"%ll{letter}" if dtype.bits == 64 and dtype.name != "Index" else f"%{letter}"


def _printed(value: Any, conversion: str) -> Any:
    """A value in the width that a conversion takes."""
    if value.dtype.kind == "float":
        return value if value.dtype == Float64 else convert(value, Float32)
    return convert(value, Int64 if conversion.startswith("ll") else Int32)
