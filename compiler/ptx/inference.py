# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Facts about the untyped registers of a function: which hold addresses, of which memory, and which hold floats.

An address keeps the memory that it was computed from through additions, so that the simulator knows the allocation that
an access must stay in. A register holds an address if all instructions that write it make one of the same memory.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from xdsl.ir import Attribute

from ...dialects.element_types import FLOATS
from ...dialects.ptx.base import GLOBAL, LOCAL, SHARED, SHARED_CLUSTER, PtrType, TensorMapType
from .operands import has_result, registers_in
from .syntax import TYPE_BITS, Address, Function, Instruction, Operand, Register, Symbol, Vector

Pointer: TypeAlias = PtrType | TensorMapType
FLOAT_TYPES: Mapping[str, Attribute] = {
    element.ptx: type() for type, element in FLOATS.items() if element.bits >= 16 and element.ptx != "tf32"
}
"""The types of floats on which PTX has arithmetic, by their names in PTX."""
SPACES: Mapping[str, PtrType] = {
    "global": GLOBAL, "shared": SHARED, "shared::cta": SHARED, "shared::cluster": SHARED_CLUSTER, "local": LOCAL,
    "const": GLOBAL,
}  # fmt: skip
"""The types of addresses by the state spaces of variables and instructions."""

GENERIC_SHARED = 1 << 32
"""The generic addresses below it are those of shared memory, where `cvta` leaves them; those above of global memory."""
_SUMS = (("s32",), ("u32",), ("s64",), ("u64",))
"""The types of sums that addresses may be."""


def find_addresses(
    function: Function, of_symbol: Callable[[str], Pointer | None], of_parameter: Callable[[str], Pointer | None]
) -> dict[str, Pointer]:
    """The registers that hold addresses, with their types. `of_symbol` gives the type of a variable's address,
    `of_parameter` that of the address that a parameter is.
    """
    writes: dict[str, list[Instruction]] = {}
    for instruction in function.body or ():
        if isinstance(instruction, Instruction) and has_result(instruction) and instruction.operands:
            for register in registers_in(instruction.operands[0]):
                writes.setdefault(register.name, []).append(instruction)
    known: dict[str, Pointer | None] = {}  # None: a number; missing: not known yet

    def of(operand: Operand) -> Iterator[Pointer | None]:
        """The type of an operand; nothing while it is not known."""
        match operand:
            case Register(name) if name in writes:
                if name in known:
                    yield known[name]
            case Symbol(name):
                yield of_symbol(name)
            case _:
                yield None

    def made(instruction: Instruction) -> Iterator[Pointer | None]:
        operands, count = instruction.operands, len(instruction.operands)
        match instruction.opcode:
            case "mov" if count == 2 and not isinstance(operands[1], Vector):
                yield from of(operands[1])
            case "cvta" if count == 2:
                yield from of(operands[1])
            case "cvt" if count == 2 and instruction.modifiers in (("u32", "u64"), ("u64", "u32")):
                for pointer in of(operands[1]):
                    yield pointer if pointer in (SHARED, SHARED_CLUSTER, LOCAL) else None
            case "ld" if count == 2 and instruction.modifiers[:1] == ("param",) and isinstance(operands[1], Address):
                base = operands[1].base
                is_parameter = isinstance(base, Symbol) and operands[1].offset + base.offset == 0
                yield of_parameter(base.name) if is_parameter and isinstance(base, Symbol) else None
            case "add" | "sub" if count == 3 and instruction.modifiers[-1:] in _SUMS:
                first, second = list(of(operands[1])), list(of(operands[2]))
                yield from _sum(first, second, subtracts=instruction.opcode == "sub")
            case "mad" if count == 4 and instruction.modifiers[-1:] in _SUMS:
                yield from of(operands[3])
            case "selp" if count == 4:
                yield from of(operands[1])
                yield from of(operands[2])
            case "mapa":
                yield SHARED_CLUSTER if "shared::cluster" in instruction.modifiers else None
            case _:
                yield None

    changed = True
    while changed:
        changed = False
        for name, instructions in writes.items():
            found = {pointer for instruction in instructions for pointer in made(instruction)}
            if not found:
                continue
            (joined,) = found if len(found) == 1 else (None,)
            if (name not in known or known[name] != joined) and known.get(name, joined) is not None:
                known[name], changed = joined, True
    return {name: pointer for name, pointer in known.items() if pointer is not None}


def _sum(first: list[Pointer | None], second: list[Pointer | None], *, subtracts: bool) -> Iterator[Pointer | None]:
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

    def vote(operand: Operand, type: str) -> None:
        for register in registers_in(operand):
            votes.setdefault(register.name, set()).add(FLOAT_TYPES.get(type))

    for instruction in function.body or ():
        if not isinstance(instruction, Instruction) or not instruction.modifiers:
            continue
        operands, type = instruction.operands, instruction.modifiers[-1]
        match instruction.opcode:
            case "mov" | "ld" | "st" | "shfl" | "atom" | "red" | "bra" | "call" | "ldmatrix" | "stmatrix":
                pass
            case "mma" if len(instruction.modifiers) > 4:
                d, a, b, c = instruction.modifiers[-4:]
                for operand, of in zip(operands, (d, a, b, c), strict=False):
                    vote(operand, of if of in FLOAT_TYPES and TYPE_BITS[of] >= 32 else "b32")
            case "cvt" if len(instruction.modifiers) > 1 and operands:
                vote(operands[0], instruction.modifiers[-2])
                for operand in operands[1:]:
                    vote(operand, type)
            case "add" | "sub" | "fma" if instruction.modifiers[-2:-1] == ("f32",):  # of operands of two types
                for operand in operands[1:-1]:
                    vote(operand, type)
                for operand in (*operands[:1], *operands[-1:]):
                    vote(operand, "f32")
            case "setp":
                for operand in operands[1:3]:
                    vote(operand, type)
            case "selp":
                if type in FLOAT_TYPES:
                    for operand in operands[:3]:
                        vote(operand, type)
            case _:
                for operand in operands:
                    vote(operand, type)
    return {
        name: type
        for name, (type, *others) in ((name, tuple(types)) for name, types in votes.items())
        if type is not None and not others
    }
