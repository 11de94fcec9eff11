# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The base of the `ptx` dialect: its types, the sizes of the values that its instructions move, and the class of every
operation, with a mnemonic and the oldest target that executes it.
"""

from abc import ABC
from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType
from typing import ClassVar, cast

from xdsl.dialects.builtin import IntegerType, VectorType
from xdsl.ir import Attribute, Data, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ...base.parameters import POINTER, TENSOR_MAP, PointerParameter, TensorMapObject
from ...base.spaces import DSMEM, GMEM, RMEM, SMEM, Allocation, Space, space_named, space_of_pointer, tensor_spaces
from ...base.target import TargetFamily, Targets
from ...layout.tma.recipe import MapRecipe
from ...layout.tma.recipe_text import parse_recipe, print_recipe
from ..cute import QuotedAttr
from ..definitions import RowBase, refusing
from ..element_types import FLOATS, NARROW_FLOATS
from ..kernel import ParameterType


@irdl_attr_definition
class SpaceAttr(Data[Space]):
    """A memory space as part of a type, by its row."""

    name = "ptx.space"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Space:
        with parser.in_angle_brackets():
            return parse_space(parser, space_named, Space.__str__)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.data.name)


def parse_space(parser: AttrParser, find: Callable[[str], Space | None], text: Callable[[Space], str]) -> Space:
    """The space that a word of a type names: `find` looks it up, `text` is its word, for the message."""
    position = parser.pos
    word = parser.parse_optional_identifier_or_str_literal()
    with refusing():
        space = None if word is None else find(word)
    if space is None:
        *known, last = [f"`{text(row)}`" for row in tensor_spaces()]
        parser.raise_error(f"Expected {', '.join(known)}, or {last}.", position, parser.pos)
    return space


def _keyword(space: Space) -> str:
    return space.keyword


@irdl_attr_definition
class PtrType(ParametrizedAttribute, TypeAttribute, ParameterType):
    """`!ptx.ptr<global>`: an untyped byte address in a PTX state space."""

    name = "ptx.ptr"
    space: SpaceAttr

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.space.data.keyword)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            return [SpaceAttr(parse_space(parser, space_of_pointer, _keyword))]

    def passed_as(self) -> PointerParameter | None:
        match self.space.data.allocation:
            case Allocation.PARAMETER:
                return POINTER
            case (
                Allocation.STATIC | Allocation.RUN_TIME | Allocation.COMPILER | Allocation.MAPPED | Allocation.CONSTANT
            ):
                return None

    def requires(self) -> tuple[int, int]:
        """The oldest target that has such pointers: sm and ten times the PTX version."""
        targets = self.space.data.targets
        return targets.min_sm, targets.min_ptx


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


GLOBAL = PtrType(SpaceAttr(GMEM))
SHARED = PtrType(SpaceAttr(SMEM))
MAP = TensorMapType()
MAP_BYTES = 128
"""The bytes of a tensor map in memory, and its alignment."""
SHARED_CLUSTER = PtrType(SpaceAttr(DSMEM))
LOCAL = PtrType(SpaceAttr(RMEM))


def pointer(value: SSAValue) -> SSAValue[PtrType]:
    """A value that the verifier of its user wants to be a pointer."""
    return cast("SSAValue[PtrType]", value)


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
        return None if space.allocation is Allocation.COMPILER else REGISTER_LETTERS[space.address_bits]
    if (bits := float_bits(type)) in (32, 64):
        return "f" if bits == 32 else "d"
    return REGISTER_LETTERS.get(8 * (value_bytes(type) or 0))


def scalar_bits(type: Attribute) -> int | None:
    """The width in bits of an integer or floating-point type, a byte for a float of 6 bits, or None for any other
    type.
    """
    if (narrow := NARROW_FLOATS.get(type.__class__)) is not None:
        return narrow.memory_bits
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


class PtxOp(RowBase, ABC):
    """An operation that stands for one PTX instruction, or for none (address arithmetic, fragments).

    `SINCE` (for example 80 and 70: sm_80 and PTX ISA 7.0) says which target first has the instruction; the values are
    those of the "Target ISA Notes" of the instruction's section in the PTX ISA.
    """

    SINCE: ClassVar[tuple[int, int]] = 70, 60
    TARGETS: ClassVar[Targets | None] = None
    """The targets of an instruction, in place of `SINCE`, where the contracts of atoms say them."""
    MNEMONIC: ClassVar[str | None] = None
    """The instruction, where it has no modifiers that depend on the operation's properties."""

    @property
    def targets(self) -> TargetFamily | Targets:
        """The targets that have the instruction with these operands, and pointers to the memory of these."""
        if self.TARGETS is not None:
            return self.TARGETS
        spaces = (value.type.requires() for value in self.operands if isinstance(value.type, PtrType))
        return TargetFamily(*max((self.requires(), *spaces)))

    def requires(self) -> tuple[int, int]:
        """The oldest target that has the instruction with these operands: sm and ten times the PTX version."""
        return self.SINCE

    def mnemonic(self) -> str | None:
        """The instruction with its modifiers as PTX spells it (`ld.global.v4.b32`), or None if none is emitted."""
        return self.MNEMONIC
