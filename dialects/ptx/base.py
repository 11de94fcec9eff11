# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The base of the `ptx` dialect: its types, the sizes of the values that its instructions move, and the class of every
operation, with a mnemonic and the oldest target that executes it.
"""

from abc import ABC
from collections.abc import Mapping
from math import prod
from types import MappingProxyType
from typing import ClassVar, cast

from xdsl.dialects.builtin import IntegerType, VectorType
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, ParametrizedAttribute, SpacedOpaqueSyntaxAttribute, TypeAttribute
from xdsl.irdl import IRDLOperation, irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum

from ...base.parameters import POINTER, TENSOR_MAP, Pointer, TensorMapObject
from ...base.target import ADDRESS_SPACES, AddressSpace, TargetFamily, Targets
from ...layout.tma.recipe import MapRecipe
from ...layout.tma.recipe_text import parse_recipe, print_recipe
from ..cute import QuotedAttr
from ..element_types import FLOATS
from ..parameters import ParameterType

_ADDRESS_SPACES = {space.ptx: space for space in ADDRESS_SPACES}


class StateSpace(StrEnum):
    """The PTX state spaces that a kernel's memory operations address (PTX ISA, section State Spaces). `shared` is the
    shared memory of the own block, `shared_cluster` that of all blocks of the cluster.
    """

    Global = "global"
    Shared = "shared"
    Local = "local"
    SharedCluster = "shared_cluster"

    @property
    def address_space(self) -> AddressSpace:
        """The memory, as base.target has it."""
        return _ADDRESS_SPACES[self.value.replace("_", "::")]


@irdl_attr_definition
class StateSpaceAttr(EnumAttribute[StateSpace], SpacedOpaqueSyntaxAttribute):
    """A state space as an attribute: `global`, `shared`, `shared_cluster` or `local`."""

    name = "ptx.state_space"


@irdl_attr_definition
class PtrType(ParametrizedAttribute, TypeAttribute, ParameterType):
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

    def passed_as(self) -> Pointer | None:
        return POINTER if self.space.data is StateSpace.Global else None

    def requires(self) -> tuple[int, int]:
        """The oldest target that has such pointers: sm and ten times the PTX version."""
        return (90, 78) if self.space.data is StateSpace.SharedCluster else (0, 0)


@irdl_attr_definition
class TensorMapType(ParametrizedAttribute, TypeAttribute, ParameterType):
    """`!ptx.tensor_map`: the generic address of a tensor map (PTX ISA, section Tensors: Tensor-map)."""

    name = "ptx.tensor_map"

    def passed_as(self) -> TensorMapObject:
        return TENSOR_MAP


@irdl_attr_definition
class RecipeAttr(QuotedAttr[MapRecipe]):
    """How a launch makes a tensor map: `#ptx.recipe<"f16 A dims (64) box (64)">`."""

    name = "ptx.recipe"
    READ = staticmethod(parse_recipe)
    WRITE = staticmethod(print_recipe)


GLOBAL = PtrType(StateSpaceAttr(StateSpace.Global))
SHARED = PtrType(StateSpaceAttr(StateSpace.Shared))
MAP = TensorMapType()
SHARED_CLUSTER = PtrType(StateSpaceAttr(StateSpace.SharedCluster))
LOCAL = PtrType(StateSpaceAttr(StateSpace.Local))

REGISTER_LETTERS: Mapping[int, str] = MappingProxyType({16: "h", 32: "r", 64: "l"})
"""The constraints of registers in inline assembly by width in bits, those of f32 and f64 apart."""


def integer_bits(type: Attribute) -> int | None:
    """The width in bits of an integer type, or None for any other type (`index` too, which has no width yet)."""
    return cast("IntegerType", type).width.data if isinstance(type, IntegerType) else None


def float_bits(type: Attribute) -> int | None:
    """The width in bits of a floating-point type, or None for any other type."""
    element = FLOATS.get(type.__class__)
    return None if element is None else element.bits


def make_constraint(type: Attribute) -> str | None:
    """The letter for the register of a value: h, r and l for integers and others of 16, 32 and 64 bits, f and d for f32
    and f64; None for a type that fits no register (Inline PTX Assembly in CUDA, Constraints).
    """
    if type == MAP:
        return "l"
    if isinstance(type, PtrType):
        space = type.space.data
        return None if space is StateSpace.Local else REGISTER_LETTERS[space.address_space.bits]
    if (bits := float_bits(type)) in (32, 64):
        return "f" if bits == 32 else "d"
    return REGISTER_LETTERS.get(8 * (value_bytes(type) or 0))


def scalar_bits(type: Attribute) -> int | None:
    """The width in bits of an integer or floating-point type, or None for any other type."""
    bits = integer_bits(type)
    return float_bits(type) if bits is None else bits


def split_vector(type: Attribute) -> tuple[Attribute, int]:
    """The element type of a value and how many elements it has; 0 elements mean a scalar. 2-D vectors count in all."""
    if not isinstance(type, VectorType):
        return type, 0
    vector = cast("VectorType", type)
    return vector.element_type, prod(vector.get_shape())


def value_bytes(type: Attribute) -> int | None:
    """The bytes that a scalar or 1-D vector occupies in memory; None if it cannot be loaded or stored."""
    element, count = split_vector(type)
    if isinstance(type, VectorType) and len(cast("VectorType", type).get_shape()) != 1:
        return None
    bits = scalar_bits(element)
    if bits is None or bits % 8:
        return None
    return bits // 8 * max(count, 1)


def access_registers(type: Attribute) -> tuple[int, int]:
    """How a value is moved to or from memory: how many registers, and the bits of each.

    64-bit elements move in 64-bit registers; all others are packed into as few 32-bit ones as hold them, so that
    the instruction depends on the size of the access alone.
    """
    total = value_bytes(type)
    assert total is not None, "checked by the verifiers of loads and stores"
    element, _ = split_vector(type)
    size = 8 if scalar_bits(element) == 64 else min(total, 4)
    return total // size, size * 8


class PtxOp(IRDLOperation, ABC):
    """An operation that stands for one PTX instruction, or for none (address arithmetic, fragments).

    `SINCE` (for example 80 and 70: sm_80 and PTX ISA 7.0) says which target first has the instruction; the values are
    those of the "Target ISA Notes" of the instruction's section in the PTX ISA.
    """

    SINCE: ClassVar[tuple[int, int]] = 70, 60
    MNEMONIC: ClassVar[str | None] = None
    """The instruction, where it has no modifiers that depend on the operation's properties."""

    @property
    def targets(self) -> TargetFamily | Targets:
        """The targets that have the instruction with these operands, and pointers to the memory of these."""
        spaces = (value.type.requires() for value in self.operands if isinstance(value.type, PtrType))
        return TargetFamily(*max((self.requires(), *spaces)))

    def requires(self) -> tuple[int, int]:
        """The oldest target that has the instruction with these operands: sm and ten times the PTX version."""
        return self.SINCE

    def mnemonic(self) -> str | None:
        """The instruction with its modifiers as PTX spells it (`ld.global.v4.b32`), or None if none is emitted."""
        return self.MNEMONIC
