# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The types of the `ptx` dialect, and the sizes of the values that its instructions move."""

from enum import auto

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IntegerType, VectorType
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, ParametrizedAttribute, SpacedOpaqueSyntaxAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum


class StateSpace(StrEnum):
    """The PTX state spaces that a kernel's memory operations address (PTX ISA, section State Spaces)."""

    Global = auto()
    Shared = auto()
    Local = auto()


@irdl_attr_definition
class StateSpaceAttr(EnumAttribute[StateSpace], SpacedOpaqueSyntaxAttribute):
    """A state space as an attribute: `global`, `shared` or `local`."""

    name = "ptx.state_space"


@irdl_attr_definition
class PtrType(ParametrizedAttribute, TypeAttribute):
    """`!ptx.ptr<global>`: an untyped byte address in a PTX state space."""

    name = "ptx.ptr"
    space: StateSpaceAttr

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.space.data.value)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            return [StateSpaceAttr(parser.parse_str_enum(StateSpace))]


GLOBAL = PtrType(StateSpaceAttr(StateSpace.Global))
SHARED = PtrType(StateSpaceAttr(StateSpace.Shared))
LOCAL = PtrType(StateSpaceAttr(StateSpace.Local))


def scalar_bits(type: Attribute) -> int | None:
    """The width in bits of an integer or floating-point type, or None for any other type."""
    if isinstance(type, IntegerType):
        return type.width.data
    if isinstance(type, Float16Type | BFloat16Type):
        return 16
    if isinstance(type, Float32Type):
        return 32
    if isinstance(type, Float64Type):
        return 64
    return None


def value_bytes(type: Attribute) -> int | None:
    """The bytes that a scalar or 1-D vector occupies in memory; None where it cannot be loaded or stored."""
    count = 1
    if isinstance(type, VectorType):
        if len(type.get_shape()) != 1:
            return None
        (count,) = type.get_shape()
        type = type.element_type
    bits = scalar_bits(type)
    if bits is None or bits % 8 or count < 1:
        return None
    return bits // 8 * count


def access_registers(type: Attribute) -> tuple[int, int]:
    """How a value is moved to or from memory: how many registers, and the bits of each.

    64-bit elements move in 64-bit registers; all others are packed into as few 32-bit ones as hold them, so that
    the instruction depends on the size of the access alone.
    """
    total = value_bytes(type)
    assert total is not None, "checked by the verifiers of loads and stores"
    element = type.element_type if isinstance(type, VectorType) else type
    size = 8 if scalar_bits(element) == 64 else min(total, 4)
    return total // size, size * 8
