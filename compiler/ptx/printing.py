# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A PTX module as text, which assembles to the same machine code as the text that was read (PTX ISA, Syntax).

Names of inner scopes are those by which the function knows them. Places in sources stay; debugging information does
not.
"""

import re
import struct
from collections.abc import Iterator

from .syntax import (
    Address,
    Arguments,
    Float,
    Function,
    Instruction,
    Integer,
    Label,
    Location,
    Module,
    Not,
    Operand,
    Pair,
    Parameter,
    Pragma,
    Register,
    Subword,
    Symbol,
    Table,
    Variable,
    Vector,
)

_SCOPED = re.compile(r"@(\d+)$")


def print_ptx(module: Module) -> str:
    """The text of a module."""
    # ptxas refuses `.target debug` without the information that it announces (PTX ISA, .target)
    targets = ", ".join((module.target, *(option for option in module.options if option != "debug")))
    lines = [f".version {module.version}", f".target {targets}", ".address_size 64", ""]
    lines += [f'.file {number} "{name}"' for number, name in module.files.items()]
    # a function is declared before others call it, and before variables that hold its address
    lines += [f"{_head(function)};" for function in module.functions.values() if not function.is_entry]
    lines += [f"{_variable(variable)};" for variable in module.variables.values()]
    for function in module.functions.values():
        if function.body is not None:
            lines += ["", *_function(function)]
    lines += [f".alias {name}, {other};" for name, other in module.aliases.items()]
    return "\n".join(lines) + "\n"


def _name(name: str) -> str:
    """A name of an inner scope as one of the function."""
    return _SCOPED.sub(r"__scope\1", name)


def _variable(variable: Variable) -> str:
    linkage = f"{variable.linkage} " if variable.linkage else ""
    attribute = f" {variable.attribute}" if variable.attribute else ""
    head = f"{linkage}.{variable.space}{attribute} .align {max(variable.align, 1)}"
    if variable.scalar and variable.initial is None:
        return f"{head} .{variable.scalar} {_name(variable.name)}"
    if variable.addresses:
        words = [
            _operand(variable.addresses[at]) if at in variable.addresses else str(_word(variable.initial or b"", at))
            for at in range(0, variable.size, 8)
        ]
        return f"{head} .u64 {_name(variable.name)}[{len(words)}] = {{{', '.join(words)}}}"
    size = str(variable.size) if variable.size or variable.initial is not None else ""
    value = "" if variable.initial is None else f" = {{{', '.join(map(str, variable.initial))}}}"
    return f"{head} .b8 {_name(variable.name)}[{size}]{value}"


def _word(initial: bytes, at: int) -> int:
    return int.from_bytes(initial[at : at + 8], "little")


def _parameter(parameter: Parameter) -> str:
    kind = ".reg" if parameter.is_register else ".param"
    size = ""
    if parameter.is_structure:
        size = f"[{parameter.size if parameter.size else ''}]"
    return f"{kind} {parameter.attributes} {parameter.name}{size}"


def _head(function: Function) -> str:
    linkage, behind = function.directives
    results = f" ({', '.join(map(_parameter, function.results))})" if function.results else ""
    parameters = f"({', '.join(map(_parameter, function.parameters))})"
    kind = ".entry" if function.is_entry else ".func"
    return " ".join(part for part in (linkage, f"{kind}{results}", f"{function.name}{parameters}", behind) if part)


def _function(function: Function) -> Iterator[str]:
    yield _head(function)
    yield "{"
    given = {p.name for p in (*function.parameters, *function.results) if p.is_register}
    for name, type in function.registers.items():
        if name not in given:
            yield f"    .reg .{type} {_name(name)};"
    for variable in function.variables:
        yield f"    {_variable(variable)};"
    location: Location | None = None
    for statement in function.body or ():
        match statement:
            case Label():
                yield f"{_name(statement.name)}:"
            case Table():
                yield f"{_name(statement.name)}: .branchtargets {', '.join(map(_name, statement.labels))};"
            case Pragma(text):
                yield f"    {text}"
            case Instruction():
                if statement.location is not None and statement.location != location:
                    location = statement.location
                    yield f"    .loc {location.file} {location.line} {location.column}"
                yield f"    {_instruction(statement)};"
    yield "}"


def _instruction(instruction: Instruction) -> str:
    guard = "" if instruction.guard is None else f"@{_operand(instruction.guard)} "
    operands = ", ".join(map(_operand, instruction.operands))
    return f"{guard}{instruction.name} {operands}".rstrip()


def _operand(operand: Operand) -> str:
    match operand:
        case Register(name):
            return _name(name)
        case Integer(value):
            return f"{value}U" if value >= 1 << 63 else str(value)
        case Float(value, bits):
            code, prefix = ("<f", "0f") if bits == 32 else ("<d", "0d")
            return prefix + struct.pack(code, value)[::-1].hex().upper()
        case Symbol(name, offset):
            return _name(name) + _offset(offset)
        case Not(register):
            return f"!{_name(register.name)}"
        case Subword(register, parts, is_negated):
            return f"{'-' if is_negated else ''}{_name(register.name)}{f'.{parts}' if parts else ''}"
        case Pair(first, second):
            return f"{_name(first.name)}|{_name(second.name)}"
        case Vector(items):
            return f"{{{', '.join(map(_operand, items))}}}"
        case Arguments(items):
            return f"({', '.join(map(_operand, items))})"
        case Address(base, offset, coordinates):
            inner = _operand(base) + _offset(offset)
            if coordinates:
                inner += f", {{{', '.join(map(_operand, coordinates))}}}"
            return f"[{inner}]"


def _offset(offset: int) -> str:
    return f"+{offset}" if offset > 0 else f"+-{-offset}" if offset else ""
