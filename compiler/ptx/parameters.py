# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parameters of inlined calls, as registers or as memory of the thread; and the names of inlined functions (PTX
ISA, call, Function Declarations and Definitions).
"""

from collections.abc import Mapping
from dataclasses import replace

from .syntax import (
    TYPE_BITS,
    Address,
    Arguments,
    Instruction,
    Integer,
    Not,
    Operand,
    Pair,
    Register,
    Statement,
    Subword,
    Symbol,
    Variable,
    Vector,
)


class Parameters:
    """The parameters of inlined calls: as registers, or as memory of the thread."""

    def __init__(
        self,
        sizes: Mapping[str, int],
        statements: list[Statement],
        registers: dict[str, str],
        variables: dict[str, Variable],
    ) -> None:
        self.sizes, self.statements = sizes, statements
        self.registers, self.variables = registers, variables
        self.widths: dict[tuple[str, int], int] = {}
        """The bytes of the parts that are registers, by the name of the parameter and their place."""

    def resolved(self) -> list[Statement]:
        in_memory = self._in_memory()
        for name in in_memory:
            known = self.variables.get(name)
            assert known is not None
            self.variables[name] = replace(known, space="local")
        resolved: list[Statement] = []
        for statement in self.statements:
            name = accessed_parameter(statement)
            if isinstance(statement, Instruction) and name is not None and name in self.sizes:
                if name in in_memory:
                    resolved.append(replace(statement, modifiers=("local", *statement.modifiers[1:])))
                else:
                    resolved += self._moves(statement, name)
            else:
                resolved.append(statement)
        return resolved

    def _in_memory(self) -> set[str]:
        """Those that some instruction names otherwise than as the address of a part, or whose parts overlap; a load may
        take the lowest bytes of a part.
        """
        found: set[str] = set()
        loaded: dict[tuple[str, int], set[int]] = {}
        for statement in self.statements:
            if not isinstance(statement, Instruction) or statement.opcode == "call":
                continue
            name = accessed_parameter(statement)
            if name is None:
                found |= {s.name for s in symbols_in(statement.operands) if s.name in self.sizes}
                continue
            for offset, width, _ in parts_of(statement):
                part = name, offset
                if statement.opcode == "ld":
                    loaded.setdefault(part, set()).add(width)
                elif self.widths.setdefault(part, width) != width:
                    found.add(name)
        for part, widths in loaded.items():
            whole = self.widths.setdefault(part, max(widths))
            if max(widths) > whole or (whole > 8 and min(widths) < whole):
                found.add(part[0])
        for (name, offset), width in self.widths.items():
            if any((name, offset + inside) in self.widths for inside in range(1, width)):
                found.add(name)
        return found & set(self.sizes)

    def _moves(self, access: Instruction, name: str) -> list[Statement]:
        """An access to the parts of a parameter that are registers."""
        moves: list[Statement] = []
        for offset, width, item in parts_of(access):
            part, whole = Register(f"{name}+{offset}"), 8 * self.widths[name, offset]
            type = "pred" if access.modifiers[-1] == "pred" else f"b{whole}"
            self.registers[part.name] = type
            if access.opcode == "ld" and isinstance(item, Register):
                source = access.modifiers[-1]
                bits = TYPE_BITS[self.registers.get(item.name, source)]
                kinds: tuple[str, str] | None = None
                if source[0] in "su" and bits > 8 * width:  # a load extends
                    kinds = f"{source[0]}{bits}", source
                elif whole > 8 * width:
                    kinds = f"u{8 * width}", f"u{whole}"
                if kinds is not None:
                    moves.append(replace(access, opcode="cvt", modifiers=kinds, operands=(item, part)))
                    continue
            operands = (item, part) if access.opcode == "ld" else (part, item)
            moves.append(replace(access, opcode="mov", modifiers=(type,), operands=operands))
        return moves


def accessed_parameter(statement: Statement) -> str | None:
    """The parameter that an instruction loads or stores by its name."""
    if not isinstance(statement, Instruction) or statement.opcode not in ("ld", "st"):
        return None
    if statement.modifiers[:1] != ("param",) or len(statement.operands) != 2:
        return None
    where = statement.operands[1 if statement.opcode == "ld" else 0]
    return where.base.name if isinstance(where, Address) and isinstance(where.base, Symbol) else None


def parts_of(access: Instruction) -> list[tuple[int, int, Operand]]:
    """The parts of a parameter that an instruction accesses: place and width in bytes, and the register."""
    where, item = access.operands[::-1] if access.opcode == "ld" else access.operands
    assert isinstance(where, Address)
    assert isinstance(where.base, Symbol)
    width = max(TYPE_BITS[access.modifiers[-1]] // 8, 1)
    items = item.items if isinstance(item, Vector) else (item,)
    first = where.offset + where.base.offset
    return [(first + index * width, width, part) for index, part in enumerate(items)]


def symbols_in(operands: tuple[Operand, ...]) -> list[Symbol]:
    found: list[Symbol] = []
    for operand in operands:
        match operand:
            case Symbol():
                found.append(operand)
            case Address(base):
                found += [base] if isinstance(base, Symbol) else []
            case Vector(items) | Arguments(items):
                found += symbols_in(items)
            case _:
                pass
    return found


def renamed(instruction: Instruction, names: Mapping[str, str]) -> Instruction:
    """An instruction with other names."""

    def new(operand: Operand) -> Operand:
        match operand:
            case Register(name):
                return Register(names.get(name, name))
            case Symbol(name, offset):
                return Symbol(names.get(name, name), offset)
            case Not(register):
                return Not(Register(names.get(register.name, register.name)))
            case Subword(register):
                return replace(operand, register=Register(names.get(register.name, register.name)))
            case Pair(first, second):
                return Pair(Register(names.get(first.name, first.name)), Register(names.get(second.name, second.name)))
            case Vector(items):
                return Vector(tuple(map(new, items)))
            case Arguments(items):
                return Arguments(tuple(map(new, items)))
            case Address(base, offset, coordinates):
                renamed = base if isinstance(base, Integer) else new(base)
                assert isinstance(renamed, Register | Symbol | Integer)
                return Address(renamed, offset, tuple(map(new, coordinates)))
            case _:
                return operand

    guard = None if instruction.guard is None else new(instruction.guard)
    assert guard is None or isinstance(guard, Register | Not)
    return replace(instruction, operands=tuple(map(new, instruction.operands)), guard=guard)
