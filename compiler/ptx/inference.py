# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Facts about the untyped registers of a function: which hold addresses, in which memory, and which hold floats.

An address keeps the memory that it was computed from through additions, so that the simulator knows the allocation that
an access must stay in. A register holds an address if all instructions that write it make one of the same memory.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Attribute

from ...base.spaces import LOCAL_WINDOW
from ...dialects.element_types import FLOATS
from ...dialects.ptx.base import GLOBAL, LOCAL, SHARED, SHARED_CLUSTER, PtrType, TensorMapType
from ...dialects.ptx.cluster import PEER_BIT
from .operands import has_result, registers_in
from .syntax import TYPE_BITS, Address, Function, Instruction, Integer, Operand, Register, Symbol, Vector

PointerType: TypeAlias = PtrType | TensorMapType
FLOAT_TYPES: Mapping[str, Attribute] = {
    element.ptx: type() for type, element in FLOATS.items() if element.bits >= 16 and element.ptx != "tf32"
}
"""The types of floats on which PTX has arithmetic, by their names in PTX."""
_BITS: Mapping[Attribute, int] = {type: TYPE_BITS[name] for name, type in FLOAT_TYPES.items()}
SPACES: Mapping[str, PtrType] = {
    "global": GLOBAL, "shared": SHARED, "shared::cta": SHARED, "shared::cluster": SHARED_CLUSTER, "local": LOCAL,
    "const": GLOBAL,
}  # fmt: skip
"""The types of addresses by the state spaces of variables and instructions."""

GENERIC: Mapping[PtrType, int] = {GLOBAL: 1 << 32, LOCAL: LOCAL_WINDOW, SHARED: 0}
"""Where the generic addresses of a memory begin; they end where those of the memory before it here begin."""
_SUMS = (("s32",), ("u32",), ("s64",), ("u64",))
"""The types of sums that addresses may be."""


_ALIGNED = 1024
"""A number greater than the lowest bits of an address that its alignment determines."""


def rounded_by(instruction: Instruction) -> int | None:
    """The lowest bits that an `and` clears, and no others, as for the aligned word that an address lies in; None for
    another mask.
    """
    last = instruction.operands[-1]
    if not isinstance(last, Integer):
        return None
    rest = ~last.value & ((1 << TYPE_BITS[instruction.modifiers[-1]]) - 1)
    return rest if 0 < rest <= _ALIGNED and not rest & (rest + 1) else None


def is_leader(instruction: Instruction) -> bool:
    """Whether an `and` of a number clears the bit of the odd block of a pair."""
    return aligned_by(instruction) is not None


def aligned_by(instruction: Instruction) -> int | None:
    """The lowest bits that an `and` clears beside that of the odd block of a pair, as compilers do where these are 0
    anyway; None for another mask.
    """
    last = instruction.operands[-1]
    if not isinstance(last, Integer):
        return None
    rest = (~last.value & 0xFFFF_FFFF) ^ PEER_BIT
    return rest if rest < _ALIGNED and not rest & (rest + 1) else None


def find_addresses(
    function: Function,
    of_symbol: Callable[[str], PointerType | None],
    of_parameter: Callable[[str], PointerType | None],
) -> dict[str, PointerType]:
    """The registers that hold addresses, with their types. `of_symbol` gives the type of a variable's address,
    `of_parameter` the type of the address that a parameter is.
    """
    writes: dict[str, list[Instruction]] = {}
    for instruction in function.body or ():
        if isinstance(instruction, Instruction) and has_result(instruction) and instruction.operands:
            for register in registers_in(instruction.operands[0]):
                writes.setdefault(register.name, []).append(instruction)
    known: dict[str, PointerType | None] = {}  # None: a number; missing: not known yet
    facts = _Facts(frozenset(writes), known, of_symbol, of_parameter)
    changed = True
    while changed:
        changed = False
        for name, instructions in writes.items():
            found = {pointer for instruction in instructions for pointer in facts.result(instruction)}
            if not found:
                continue
            (joined,) = found if len(found) == 1 else (None,)
            if name not in known or (known[name] is not None and known[name] != joined):
                known[name], changed = joined, True
    return {name: pointer for name, pointer in known.items() if pointer is not None}


@dataclass(frozen=True, slots=True)
class _Facts:
    """The types of addresses found so far, by the registers that the function writes."""

    written: frozenset[str]
    known: Mapping[str, PointerType | None]
    of_symbol: Callable[[str], PointerType | None]
    of_parameter: Callable[[str], PointerType | None]

    def operand(self, operand: Operand) -> Iterator[PointerType | None]:
        """The type of an operand; nothing while it is not known."""
        match operand:
            case Register(name) if name in self.written:
                if name in self.known:
                    yield self.known[name]
            case Symbol(name):
                yield self.of_symbol(name)
            case _:
                yield None

    def result(self, instruction: Instruction) -> Iterator[PointerType | None]:
        """The types that the result of an instruction may have; nothing while they are not known."""
        operands, count = instruction.operands, len(instruction.operands)
        match instruction.opcode:
            case "mov" if count == 2 and not isinstance(operands[1], Vector):
                yield from self.operand(operands[1])
            case "cvta" if count == 2:
                yield from self.operand(operands[1])
            case "cvt" if count == 2 and instruction.modifiers in (("u32", "u64"), ("u64", "u32")):
                for pointer in self.operand(operands[1]):
                    yield pointer if pointer in (SHARED, SHARED_CLUSTER, LOCAL) else None
            case "ld" if count == 2 and instruction.modifiers[:1] == ("param",):
                yield self._loaded(operands[1])
            case "add" | "sub" if count == 3 and instruction.modifiers[-1:] in _SUMS:
                first, second = list(self.operand(operands[1])), list(self.operand(operands[2]))
                yield from _sum(first, second, subtracts=instruction.opcode == "sub")
            case "mad" if count == 4 and instruction.modifiers[-1:] in _SUMS:
                yield from self.operand(operands[3])
            case "selp" if count == 4:
                yield from self.operand(operands[1])
                yield from self.operand(operands[2])
            case "and" if is_leader(instruction):
                for pointer in self.operand(operands[1]):
                    yield SHARED_CLUSTER if pointer == SHARED else None
            case "and" if count == 3 and rounded_by(instruction) is not None:
                for pointer in self.operand(operands[1]):
                    yield pointer if isinstance(pointer, PtrType) else None
            case "mapa":
                yield SHARED_CLUSTER if "shared::cluster" in instruction.modifiers else None
            case _:
                yield None

    def _loaded(self, place: Operand) -> PointerType | None:
        """The type of a parameter that is loaded as a whole."""
        match place:
            case Address(Symbol(name, offset), further) if offset + further == 0:
                return self.of_parameter(name)
            case _:
                return None


def _sum(
    first: list[PointerType | None], second: list[PointerType | None], *, subtracts: bool
) -> Iterator[PointerType | None]:
    """The type of a sum, if enough of the operands is known."""
    if not first or (not second and first == [None]):
        return
    if first == [None]:
        yield None if subtracts else second[0]
    elif not second or second == [None]:
        yield first[0]  # an address and a number, or one that will turn out to be
    else:
        yield None


def find_floats(function: Function) -> dict[str, Attribute]:
    """The registers without a type of their own that only instructions on floats of one type name, besides moves."""
    votes: dict[str, set[Attribute | None]] = {}
    for instruction in function.body or ():
        if isinstance(instruction, Instruction) and instruction.modifiers:
            for operand, type in _types(instruction):
                for register in registers_in(operand):
                    votes.setdefault(register.name, set()).add(FLOAT_TYPES.get(type))
    return {
        name: type
        for name, (type, *others) in ((name, tuple(types)) for name, types in votes.items())
        if type is not None
        and not others
        and (declared := function.registers.get(name, ""))[:1] == "b"
        and TYPE_BITS[declared] == _BITS[type]
    }


def _types(instruction: Instruction) -> Iterator[tuple[Operand, str]]:
    """The operands whose types an instruction tells, with the names of the types in PTX."""
    operands, type = instruction.operands, instruction.modifiers[-1]
    match instruction.opcode:
        case "mov" | "ld" | "st" | "shfl" | "atom" | "red" | "bra" | "call" | "ldmatrix" | "stmatrix" | "wmma":
            pass
        case "mma" if len(instruction.modifiers) > 4:
            types = [word for word in instruction.modifiers if word != "satfinite"]
            types = types[:-1] if "block_scale" in types else types
            for operand, of in zip(operands, types[-4:], strict=False):
                yield operand, of if of in FLOAT_TYPES and TYPE_BITS[of] >= 32 else "b32"
        case "cvt" if len(instruction.modifiers) > 1 and operands:
            yield operands[0], instruction.modifiers[-2]
            yield from ((operand, type) for operand in operands[1:])
        case "add" | "sub" | "fma" if instruction.modifiers[-2:-1] == ("f32",):  # of operands of two types
            yield from ((operand, type) for operand in operands[1:-1])
            yield from ((operand, "f32") for operand in (*operands[:1], *operands[-1:]))
        case "setp":
            yield from ((operand, type) for operand in operands[1:3])
        case "selp":
            if type in FLOAT_TYPES:
                yield from ((operand, type) for operand in operands[:3])
        case _:
            yield from ((operand, type) for operand in operands)
