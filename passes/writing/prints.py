# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Printing of tensors, as calls of the device's printf."""

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, f32, i32, i64
from xdsl.ir import SSAValue

from ...base.errors import Code
from ...dialects.ptx import PrintfOp
from ...dialects.tile import PrintOp, PrintTensorOp, TensorType
from ...dialects.tile.types import MAX_ELEMENTS, MAX_VALUES, elements_in_print_order, tensor_header
from ..errors import LoweringError
from .addresses import Address, Addresses
from .emitter import Emitter


def lower_print(emitter: Emitter, op: PrintOp, tensor: Address) -> None:
    """Replaces `tile.print` by one printf."""
    _header(emitter, op.text.data, _tensor_type(op), tensor, "\n")
    emitter.replace()


def lower_print_tensor(emitter: Emitter, op: PrintTensorOp, tensor: Address, addresses: Addresses) -> None:
    """Replaces `tile.print_tensor` by a printf for the header and one or more for each row."""
    type = _tensor_type(op)
    rows = elements_in_print_order(type.layout.data)
    count = sum(map(len, rows))
    if count > MAX_ELEMENTS:
        raise LoweringError(
            Code.PRINT_TOO_LARGE,
            f"the tensor has {count} elements; at most {MAX_ELEMENTS} can be printed",
            op,
            "slice it",
        )
    _header(emitter, op.text.data, type, tensor, ":\n")
    for row in rows:
        for start in range(0, len(row), MAX_VALUES):
            piece = row[start : start + MAX_VALUES]
            values = [_element(emitter, type, tensor, addresses, coord) for coord in piece]
            end = "\n" if start + MAX_VALUES >= len(row) else ""
            emitter.insert(PrintfOp("".join(f"  {_conversion(type)}" for _ in piece) + end, values))
    emitter.replace()


def _tensor_type(op: PrintOp | PrintTensorOp) -> TensorType:
    assert isinstance(op.tensor.type, TensorType)
    return op.tensor.type


def _header(emitter: Emitter, text: str, type: TensorType, tensor: Address, end: str) -> None:
    header = tensor_header(text, type, "\0", ["\1" for _ in tensor.scalars])
    header = header.replace("%", "%%").replace("\0", "%p").replace("\1", "%lld")
    scalars = [emitter.value(arith.IndexCastOp(scalar, i64)) for scalar in tensor.scalars]
    emitter.insert(PrintfOp(header + end, [tensor.pointer, *scalars]))


def _conversion(type: TensorType) -> str:
    if isinstance(type.element_type, IntegerType):
        return "%lld" if type.element_bits == 64 else "%d"
    return "%g"


def _element(emitter: Emitter, type: TensorType, tensor: Address, addresses: Addresses, coord: object) -> SSAValue:
    """The element at a static coordinate, widened to a type that printf takes."""
    pointer = addresses.element(emitter, tensor, type, coord, [])
    value = emitter.element(pointer, type)
    if type.element_bits >= 32:
        return value
    if not isinstance(type.element_type, IntegerType):
        return emitter.value(arith.ExtFOp(value, f32))
    return emitter.value((arith.ExtUIOp if type.is_predicate else arith.ExtSIOp)(value, i32))
