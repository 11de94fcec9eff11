# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types, constants and strings as LLVM IR spells them (LLVM Language Reference, Type System and Constants)."""

import re
import struct
from typing import cast

from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, FloatAttr, IntAttr, IntegerAttr, VectorType
from xdsl.ir import Attribute, Operation

from ...base.element_types import VALUES
from ...base.errors import Code
from ...dialects.element_types import FLOATS, NARROW_FLOATS
from ...dialects.ptx.base import MAP, PtrType, integer_bits
from ...passes.errors import LoweringError

MAX_VECTOR = 256
"""The elements a vector value can have: LLVM takes vectors apart, so a huge one would make a huge program."""

_SUFFIXES = {element.llvm: element.mlir for element in FLOATS.values() if element.bits > 8}
_INTEGERS = (1, 8, 16, 32, 64)


def llvm_type(type: Attribute, op: Operation) -> str:
    """The LLVM type of a value's type. LoweringError, placed at `op`, for a type without one."""
    if (bits := integer_bits(type)) in _INTEGERS:
        return f"i{bits}"
    if isinstance(type, PtrType):
        return type.space.data.llvm_pointer
    if (element := FLOATS.get(type.__class__)) is not None:
        return element.llvm
    if (narrow := NARROW_FLOATS.get(type.__class__)) is not None and narrow.memory_bits == 8:
        return "i8"
    if type == MAP:
        return "ptr"
    if isinstance(type, VectorType):
        vector = cast("VectorType", type)
        shape = vector.get_shape()
        if len(shape) == 1 and 1 <= shape[0] <= MAX_VECTOR and not any(vector.get_scalable_dims()):
            return f"<{shape[0]} x {llvm_type(vector.element_type, op)}>"
    if type.name.startswith("llvm.") and (text := _find_own_type(cast("Attribute", type), op)) is not None:
        return text
    raise LoweringError(
        Code.EMIT_UNSUPPORTED,
        f"'{op.name}' has a value of type {str(cast(Attribute, type))[:80]}, which PTX registers cannot hold",
        op,
        f"use {VALUES}, !ptx.ptr, or a 1-D vector of at most {MAX_VECTOR}",
    )


def _find_own_type(type: Attribute, op: Operation) -> str | None:
    """The text of a type of the dialect `llvm`, which takes long to import and few kernels need."""
    from xdsl.dialects.llvm import LLVMArrayType, LLVMPointerType, LLVMStructType

    match type:
        case LLVMStructType():
            return f"{{ {', '.join(llvm_type(part, op) for part in type.types)} }}"
        case LLVMPointerType():
            space = type.addr_space
            return f"ptr addrspace({space.data})" if isinstance(space, IntAttr) and space.data else "ptr"
        case LLVMArrayType() if type.size.data <= MAX_VECTOR:
            return f"[{type.size.data} x {llvm_type(type.type, op)}]"
        case _:
            return None


def overload(llvm: str) -> str:
    """How an intrinsic's name spells the LLVM type it is overloaded on: `v4f32` for `<4 x float>`."""
    if llvm.startswith("<"):
        count, _, element = llvm[1:-1].split(" ", 2)
        return f"v{count}{overload(element)}"
    return _SUFFIXES.get(llvm, llvm)


def constant(value: Attribute, op: Operation) -> str:
    """The LLVM text of an integer, float or dense vector constant, without its type."""
    if isinstance(value, IntegerAttr):
        integer = cast("IntegerAttr", value)
        return _integer(integer.value.data, integer.type)
    if isinstance(value, FloatAttr):
        number = cast("FloatAttr", value)
        return _float(number.value.data, number.type, op)
    if isinstance(value, DenseIntOrFPElementsAttr):
        dense = cast("DenseIntOrFPElementsAttr", value)
        element = dense.get_element_type()
        name = llvm_type(element, op)
        items = dense.get_values()
        texts = [_integer(x, element) if isinstance(x, int) else _float(cast(float, x), element, op) for x in items]
        return f"<{', '.join(f'{name} {text}' for text in texts)}>"
    raise LoweringError(Code.EMIT_UNSUPPORTED, f"the constant {str(value)[:80]} cannot be written in PTX", op)


def float_text(value: float) -> str:
    """The LLVM text of a number rounded to f32, without its type."""
    (rounded,) = struct.unpack("<f", struct.pack("<f", value))
    (bits,) = struct.unpack("<Q", struct.pack("<d", rounded))
    return f"0x{bits:016X}"


def _integer(value: int, type: Attribute) -> str:
    # i1 is 0 or -1 in MLIR, and LLVM accepts both spellings of it only where they fit in one bit.
    return str(value & 1) if integer_bits(type) == 1 else str(value)


def _float(value: float, type: Attribute, op: Operation) -> str:
    """Hexadecimal forms, which lose nothing: 0xH for half, 0xR for bfloat, the 64-bit pattern for float and double; the
    byte of an 8-bit float, which is an i8.
    """
    element = FLOATS.get(type.__class__)
    if element is None:
        raise LoweringError(Code.EMIT_UNSUPPORTED, f"a constant of type {type} cannot be written in PTX", op)
    pattern = int.from_bytes(cast("AnyFloat", type).pack([value]), "little")
    match element.llvm:
        case "half":
            return f"0xH{pattern:04X}"
        case "bfloat":
            return f"0xR{pattern:04X}"
        case "float":
            return float_text(value)
        case "double":
            return f"0x{pattern:016X}"
        case _:
            return str(pattern)


_SPECIAL = re.compile(rb"[^A-Za-z0-9_.,:;/ =()\[\]%+*#-]")


def escape(data: bytes) -> str:
    r"""The inside of an LLVM string: letters, digits and harmless punctuation as they are, other bytes as `\xx`."""
    return _SPECIAL.sub(lambda match: b"\\%02X" % match[0][0], data).decode("ascii")


def quote(text: str) -> str:
    """A quoted LLVM string of the text's UTF-8 bytes."""
    return f'"{escape(text.encode("utf-8", "replace"))}"'


def c_string(text: str) -> tuple[str, int]:
    """The text as an LLVM character array that ends with a zero byte, and the array's length in bytes."""
    data = text.encode("utf-8", "replace") + b"\0"
    return f'c"{escape(data)}"', len(data)
