# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Printing from a kernel, and assertions that each thread checks."""

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.cf import AssertOp
from xdsl.ir import SSAValue

from ...base.errors import Code, TilefoldError
from ...dialects.ptx import PrintfOp
from ...dialects.ptx.sync import conversions
from ...dialects.tile import PrintOp, PrintTensorOp
from ...dialects.tile.types import MAX_ELEMENTS, MAX_VALUES, elements_in_print_order
from ...layout.algebra.core import Layout, size
from ...layout.algebra.inttuple import leaves
from ...layout.text.printing import plain_style, print_layout_lines
from ..scalars.dtypes import Boolean, DType, Float32, Float64, Int32, Int64
from ..scalars.operators import Operand
from ..scalars.values import Scalar, Value, as_value, convert, is_scalar
from ..tensors.address_space import AddressSpace
from ..tensors.coordinates import check_static, show_layout
from ..tensors.fragments import Vec
from ..tensors.raw_pointers import Address
from ..tensors.tensor_base import tensor_type
from ..tensors.tensors import CoordTensor, Pointer, Tensor, address_of
from ..tracing.state import emit, host, is_building


def print_tensor(tensor: Tensor | Vec | CoordTensor, text: str = "tensor", *, verbose: bool = False) -> None:
    """Each executing thread prints the tensor or fragment after a text, then its elements, a row of mode 0
    a line. `verbose` changes nothing: the type and the layout are always printed. Raises TilefoldError (E2005) for more
    elements than can be printed.
    """
    if isinstance(tensor, CoordTensor):
        _print_coordinates(tensor, text)
        return
    elements = tensor.materialize() if isinstance(tensor, Vec) else tensor
    tensor_type(elements)
    op = PrintTensorOp.build(operands=[elements.ssa], properties={"text": StringAttr(text)})
    if (side := host()) is not None:
        side.effect(op)  # which has the function executed as a kernel, where extents are static
    emit(op)


def _print_coordinates(tensor: CoordTensor, text: str) -> None:
    check_static(tensor.shape, "the shape of a printed tensor must be static, but this is")
    layout = tensor.ir_type.layout.data
    count = size(layout)
    if count > MAX_ELEMENTS:
        message = f"the tensor has {count} elements; at most {MAX_ELEMENTS} can be printed"
        raise TilefoldError(Code.PRINT_TOO_LARGE, message, "slice it")
    printf(f"{text}: {{}} o {{}}:", tensor[0], show_layout(layout))
    piece = max(MAX_VALUES // len(list(leaves(tensor.ir_type.start.data))), 1)
    for row in elements_in_print_order(layout):
        for start in range(0, len(row), piece):
            printed: list[object] = []
            texts = [f"  {_format_part(tensor[coord], printed)}" for coord in row[start : start + piece]]
            end = "\n" if start + piece >= len(row) else ""
            _emit_printf("".join(texts) + end, printed)


def pretty_str(x: object) -> str:
    """The text that `print` shows for a layout, a tensor, a tiled copy or another object."""
    return str(x)


def print_layout(tensor: "Tensor | Layout", text: str = "tensor") -> None:
    """Each executing thread prints the text, then the tensor's address and layout.

    For a layout itself, Python prints the table of its indices when it is called, in kernels and outside (CuTe's
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


def printf(format: object, *values: object, end: str = "\n") -> None:
    """Each executing thread prints values, like C's printf: `printf("t = %d: %f\\n", t, x)`.

    `{}` stands for a value by the conversion that fits it, for a layout, a tuple or a tensor as `print` shows it, with
    the numbers that its values have. The line ends with `end`, with or without `\\n` at the end of the format; values
    without a format are printed by `{}`, each after the other. Conversions are %d %i %u %x %lld %llu %llx %f %e %g.
    """
    if not isinstance(format, str):
        format, values = " ".join("{}" for _ in range(1 + len(values))), (format, *values)
    given = list(values)
    if "{}" in format:
        parts = format.replace("%", "%%").split("{}")
        if len(parts) != len(given) + 1:
            raise TilefoldError(
                Code.BUILD_VALUE, f"the format has {len(parts) - 1} {{}}, but {len(given)} values follow"
            )
        printed: list[object] = []
        texts = [_format_part(value, printed) for value in given]
        format = "".join(part + text for part, text in zip(parts, [*texts, ""], strict=True))
        given = printed
    _emit_printf(format.removesuffix("\n") + end.replace("%", "%%"), given)


def _emit_printf(format: str, given: Sequence[Any]) -> None:
    given = [as_value(value) if is_scalar(value) else value for value in given]
    try:
        specifiers = conversions(format)
    except ValueError as error:
        raise TilefoldError(Code.BUILD_VALUE, str(error)) from None
    args = [_widen_for_print(value, specifier) for value, specifier in zip(given, specifiers, strict=False)]
    emit(PrintfOp(format, [*args, *(as_value(value).ssa for value in given[len(args) :])]))


def _format_part(x: object, printed: list[object], nested: bool = False) -> str:
    """A thing in a format: its text, with conversions for its values, which go to `printed`."""
    if isinstance(x, Value) or (is_scalar(x) and not nested):
        value = as_value(x)
        printed.append(value)
        return _conversion(value.dtype)
    if isinstance(x, tuple | list):
        parts: list[str] = [_format_part(part, printed, True) for part in cast("Sequence[Any]", x)]
        return f"({','.join(parts)})"
    if isinstance(x, Layout):
        return f"{_format_part(x.shape, printed, True)}:{_format_part(x.stride, printed, True)}"
    if isinstance(x, Tensor):
        return f"{_format_part(x.iterator, printed)} o {_format_part(x.layout, printed, True)}"
    if isinstance(x, Pointer) and x.memspace is not AddressSpace.rmem and host() is None:
        printed.append(address_of(x))
        return f"{x!r}".replace("%", "%%") + "(%p)"
    return str(x).replace("%", "%%")


def _conversion(dtype: DType) -> str:
    """The conversion that `{}` stands for."""
    if dtype.kind == "float":
        return "%f"
    letter = "u" if dtype.kind == "int" and dtype.unsigned else "d"
    return f"%ll{letter}" if dtype.bits == 64 and dtype.name != "Index" else f"%{letter}"


def _widen_for_print(value: Scalar, conversion: str) -> SSAValue:
    """A value in the width that a conversion takes."""
    if isinstance(value, Address):
        return value.ssa
    value = as_value(value)
    return _in_width(value, conversion).ssa


def _in_width(value: Operand, conversion: str) -> Operand:
    if value.dtype.kind == "float":
        return value if value.dtype == Float64 else convert(value, Float32)
    return convert(value, Int64 if conversion.startswith("ll") else Int32)


def assert_(condition: Scalar, message: str = "") -> None:
    """Checks a condition in each thread that gets here: `assert_(i < n, "i is beyond the end")`.

    The simulator stops with E3213 where it does not hold. On a GPU the message and its place are printed and the launch
    fails, where the kernel is compiled with `cute.EnableAssertions`; without it nothing is left of the assertion. In a
    host function the condition is checked in each call. Raises TilefoldError: E5002 for a condition that is no
    number or a message that is not a text, E3213 for a condition that is false where Python runs the call outside both.
    """
    if not isinstance(message, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TilefoldError(Code.BUILD_VALUE, f"expected a message as text, got {type(message).__name__}")
    if is_building():
        emit(AssertOp(convert(condition, Boolean).ssa, message))
    elif not condition:
        raise TilefoldError(Code.SIM_ASSERT, f"assertion failed: {message}")
