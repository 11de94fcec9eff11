# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of functions and jumps through tables, which the operations do not have: calls are inlined, and `brx.idx`
becomes a chain of branches (PTX ISA, call, ret, brx.idx).

A parameter of a call is a register, of a structure one for each part, if all accesses name it and agree on the parts;
otherwise it is memory of the thread.
"""

from collections.abc import Mapping
from dataclasses import replace

from ...base.errors import Code
from .operands import CARRY
from .syntax import (
    TYPE_BITS,
    Address,
    Arguments,
    Function,
    Instruction,
    Integer,
    Label,
    Module,
    Not,
    Operand,
    Pair,
    Parameter,
    Pragma,
    PtxError,
    Register,
    Statement,
    Symbol,
    Table,
    Variable,
    Vector,
)

MAX_STATEMENTS = 500_000
"""The longest function after inlining."""
_FUNCTIONS = 0x00F0_0000_0000_0000
MAX_DEPTH = 100
"""How deep calls nest."""


def expanded(module: Module, function: Function, file: str) -> Function:
    """A function without calls of functions of the module, and without jumps through tables.

    PtxError (E1009) for recursion, for a call of a function that a register names, and for too much text.
    """
    statements = [s for s in function.body or () if isinstance(s, Instruction)]
    function = replace(function, registers={**function.registers, CARRY: "pred"})
    if not any(s.opcode in ("call", "brx") for s in statements):
        return replace(function, body=tuple(s for s in function.body or () if not isinstance(s, Table | Pragma)))
    return _Expansion(module, file).run(function)


def address_of_function(module: Module, name: str) -> int:
    """A number that stands for the address of a function, which nothing else has."""
    return _FUNCTIONS + 16 * list(module.functions).index(name)


def _addresses_in(module: Module) -> set[str]:
    """The functions whose addresses are taken."""
    taken = {s.name for variable in module.variables.values() for s in variable.addresses.values()}
    for function in module.functions.values():
        for statement in function.body or ():
            if isinstance(statement, Instruction) and statement.opcode == "mov":
                taken |= {s.name for s in _symbols(statement.operands)}
    return taken


class _Expansion:
    """The expansion of one function."""

    def __init__(self, module: Module, file: str) -> None:
        self.module, self.file = module, file
        self.statements: list[Statement] = []
        self.registers: dict[str, str] = {}
        self.variables: dict[str, Variable] = {}
        self.passed: dict[str, int] = {}
        """The sizes of parameters of inlined calls, in bytes."""
        self.count = 0

    def run(self, function: Function) -> Function:
        self._add(function, {}, "", ())
        body = _Parameters(self.passed, self.statements, self.registers, self.variables).resolved()
        variables = tuple(self.variables.values())
        return replace(function, body=tuple(body), registers=self.registers, variables=variables)

    def _add(self, function: Function, parameters: Mapping[str, str], prefix: str, callers: tuple[str, ...]) -> str:
        """Appends the body of a function whose parameters have these names here; the label behind it."""
        names = dict(parameters)
        self.registers[CARRY] = "pred"
        for name, type in function.registers.items():
            if name == CARRY:
                continue
            names.setdefault(name, prefix + name)
            self.registers[names[name]] = type
        for variable in function.variables:
            own = variable.space in ("local", "param")
            name = prefix + variable.name if own or not prefix else f"{function.name}::{variable.name}"
            names[variable.name] = name
            self.variables[name] = replace(variable, name=name)
        labels = {s.name: prefix + s.name for s in function.body or () if isinstance(s, Label)}
        tables = {s.name: s for s in function.body or () if isinstance(s, Table)}
        end = f"{prefix}end of {function.name}"
        for statement in function.body or ():
            if len(self.statements) > MAX_STATEMENTS:
                raise self._refusal(f"calls make more than {MAX_STATEMENTS} instructions of the function", statement)
            match statement:
                case Label():
                    self.statements.append(replace(statement, name=labels[statement.name]))
                case Table() | Pragma():
                    pass
                case _:
                    is_branch = statement.opcode == "bra"
                    renamed = _renamed(statement, {**names, **labels} if is_branch else names)
                    if statement.opcode == "ret" and callers:
                        self.statements.append(replace(renamed, opcode="bra", modifiers=(), operands=(Symbol(end),)))
                    elif statement.opcode == "brx":
                        self._jump(renamed, tables, labels)
                    elif statement.opcode == "call":
                        self._call(renamed, (*callers, function.name))
                    else:
                        self.statements.append(self._with_addresses(renamed, names))
        return end

    def _with_addresses(self, instruction: Instruction, names: Mapping[str, str]) -> Instruction:
        """An instruction with numbers for the addresses of functions."""
        if instruction.opcode != "mov":
            return instruction
        functions = self.module.functions
        operands = tuple(
            Integer(address_of_function(self.module, operand.name))
            if isinstance(operand, Symbol) and operand.name in functions and operand.name not in names
            else operand
            for operand in instruction.operands
        )
        return replace(instruction, operands=operands)

    def _refusal(self, problem: str, statement: Statement) -> PtxError:
        return PtxError(Code.PTX_UNSUPPORTED, problem, statement.place, file=self.file)

    def _around(self, instruction: Instruction) -> Label | None:
        """Appends a branch around a guarded instruction; the label to which it leads."""
        guard = instruction.guard
        if guard is None:
            return None
        self.count += 1
        label = Label(f"behind {self.count}", instruction.place)
        opposite = guard.register if isinstance(guard, Not) else Not(guard)
        branch = replace(instruction, opcode="bra", modifiers=(), operands=(Symbol(label.name),), guard=opposite)
        self.statements.append(branch)
        return label

    def _jump(self, jump: Instruction, tables: Mapping[str, Table], labels: Mapping[str, str]) -> None:
        """A jump through a table."""
        index, name = jump.operands if len(jump.operands) == 2 else (None, None)
        table = tables.get(name.name) if isinstance(name, Symbol) else None
        if jump.modifiers[:1] != ("idx",) or not isinstance(index, Register) or table is None:
            raise self._refusal("the form of brx is not supported", jump)
        for label in table.labels:
            if label not in labels:
                raise PtxError(Code.PTX_SYNTAX, f"the table names no label: {label}", table.place, "", self.file)
        behind = self._around(jump)
        plain = replace(jump, guard=None)
        for number, label in enumerate(table.labels):
            target = (Symbol(labels[label]),)
            if number == len(table.labels) - 1:
                self.statements.append(replace(plain, opcode="bra", modifiers=(), operands=target))
                break
            self.count += 1
            chosen = Register(f"chosen {self.count}")
            self.registers[chosen.name] = "pred"
            compared = (chosen, index, Integer(number))
            self.statements.append(replace(plain, opcode="setp", modifiers=("eq", "u32"), operands=compared))
            self.statements.append(replace(plain, opcode="bra", modifiers=(), operands=target, guard=chosen))
        if behind is not None:
            self.statements.append(behind)

    def _call(self, call: Instruction, callers: tuple[str, ...]) -> None:
        """A call: the body of the function, if the module has it."""
        lists = [operand.items for operand in call.operands if isinstance(operand, Arguments)]
        target = next((operand for operand in call.operands if not isinstance(operand, Arguments)), None)
        if isinstance(target, Register):
            self._choose(call, target, lists, callers)
            return
        if not isinstance(target, Symbol):
            raise self._refusal("the form of the call is not supported", call)
        function = self.module.functions.get(target.name)
        if function is None or function.body is None:
            self.statements.append(call)  # the device's own functions
            return
        if function.name in callers or len(callers) > MAX_DEPTH:
            raise self._refusal(f"{function.name} calls itself, which is not supported", call)
        given, results = list(lists[-1]) if lists and function.parameters else [], list(lists[0]) if lists else []
        if not function.results:
            results = []
        if len(given) != len(function.parameters) or len(results) != len(function.results):
            raise PtxError(
                Code.PTX_SYNTAX, f"the call does not fit {function.name}'s parameters", call.place, "", self.file
            )
        behind = self._around(call)
        self.count += 1
        prefix = f"{self.count}: "
        names: dict[str, str] = {}
        for parameter, operand in zip((*function.results, *function.parameters), (*results, *given), strict=True):
            names[parameter.name] = self._passed(parameter, operand, prefix, replace(call, guard=None))
        end = self._add(function, names, prefix, callers)
        self.statements.append(Label(end, call.place))
        if behind is not None:
            self.statements.append(behind)

    def _choose(
        self, call: Instruction, target: Register, lists: list[tuple[Operand, ...]], callers: tuple[str, ...]
    ) -> None:
        """A call of the function whose address a register holds: of each that it may be, behind a comparison."""
        behind, plain = self._around(call), replace(call, guard=None)
        self.count += 1
        end = Label(f"after choice {self.count}", call.place)
        taken = _addresses_in(self.module)
        for item in (item for items in lists for item in items if isinstance(item, Symbol)):
            self.passed.setdefault(item.name, self.variables[item.name].size)
        for name, function in self.module.functions.items():
            given = sum(map(len, lists))
            if name not in taken or given != len(function.parameters) + len(function.results):
                continue
            self.count += 1
            chosen, other = Register(f"chosen {self.count}"), Label(f"not {name} {self.count}", call.place)
            self.registers[chosen.name] = "pred"
            compared = (chosen, target, Integer(address_of_function(self.module, name)))
            self.statements.append(replace(plain, opcode="setp", modifiers=("eq", "s64"), operands=compared))
            to_other = (Symbol(other.name),)
            self.statements.append(replace(plain, opcode="bra", modifiers=(), operands=to_other, guard=Not(chosen)))
            symbol = Symbol(name)
            operands = tuple(symbol if operand == target else operand for operand in call.operands)
            self._call(replace(plain, operands=operands), callers)
            self.statements.append(replace(plain, opcode="bra", modifiers=(), operands=(Symbol(end.name),)))
            self.statements.append(other)
        self.statements += [replace(plain, opcode=end, modifiers=(), operands=()) for end in ("trap", "exit")]
        self.statements.append(end)
        if behind is not None:
            self.statements.append(behind)

    def _passed(self, parameter: Parameter, operand: Operand, prefix: str, call: Instruction) -> str:
        """The name of a parameter of a call here."""
        if isinstance(operand, Symbol):
            self.passed[operand.name] = parameter.size
            return operand.name
        if isinstance(operand, Register) and parameter.is_register:
            return operand.name
        name = prefix + parameter.name
        self.registers[name] = parameter.type
        if not parameter.is_register:
            raise self._refusal("an argument that is no variable is not supported", call)
        self.statements.append(
            replace(call, opcode="mov", modifiers=(parameter.type,), operands=(Register(name), operand))
        )
        return name


class _Parameters:
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

    def resolved(self) -> list[Statement]:
        in_memory = self._in_memory()
        for name in in_memory:
            known = self.variables.get(name)
            assert known is not None
            self.variables[name] = replace(known, space="local")
        resolved: list[Statement] = []
        for statement in self.statements:
            name = _accessed(statement)
            if isinstance(statement, Instruction) and name is not None and name in self.sizes:
                if name in in_memory:
                    resolved.append(replace(statement, modifiers=("local", *statement.modifiers[1:])))
                else:
                    resolved += self._moves(statement, name)
            else:
                resolved.append(statement)
        return resolved

    def _in_memory(self) -> set[str]:
        """Those that some instruction names otherwise than as the address of a part, or whose parts overlap."""
        found: set[str] = set()
        widths: dict[tuple[str, int], int] = {}
        for statement in self.statements:
            if not isinstance(statement, Instruction) or statement.opcode == "call":
                continue
            name = _accessed(statement)
            if name is None:
                found |= {s.name for s in _symbols(statement.operands) if s.name in self.sizes}
                continue
            for offset, width, _ in _parts(statement):
                if widths.setdefault((name, offset), width) != width:
                    found.add(name)
        for (name, offset), width in widths.items():
            if any((name, offset + inside) in widths for inside in range(1, width)):
                found.add(name)
        return found & set(self.sizes)

    def _moves(self, access: Instruction, name: str) -> list[Statement]:
        """An access to the parts of a parameter that are registers."""
        moves: list[Statement] = []
        for offset, width, item in _parts(access):
            part = Register(f"{name}+{offset}")
            type = "pred" if access.modifiers[-1] == "pred" else f"b{8 * width}"
            self.registers[part.name] = type
            if access.opcode == "ld" and isinstance(item, Register) and access.modifiers[-1][0] in "su":
                source = access.modifiers[-1]
                bits = TYPE_BITS[self.registers.get(item.name, source)]
                if bits > 8 * width:  # a load extends
                    kind = f"{source[0]}{bits}"
                    moves.append(replace(access, opcode="cvt", modifiers=(kind, source), operands=(item, part)))
                    continue
            operands = (item, part) if access.opcode == "ld" else (part, item)
            moves.append(replace(access, opcode="mov", modifiers=(type,), operands=operands))
        return moves


def _accessed(statement: Statement) -> str | None:
    """The parameter that an instruction loads or stores by its name."""
    if not isinstance(statement, Instruction) or statement.opcode not in ("ld", "st"):
        return None
    if statement.modifiers[:1] != ("param",) or len(statement.operands) != 2:
        return None
    where = statement.operands[1 if statement.opcode == "ld" else 0]
    return where.base.name if isinstance(where, Address) and isinstance(where.base, Symbol) else None


def _parts(access: Instruction) -> list[tuple[int, int, Operand]]:
    """The parts of a parameter that an instruction accesses: place and width in bytes, and the register."""
    where, item = access.operands[::-1] if access.opcode == "ld" else access.operands
    assert isinstance(where, Address)
    assert isinstance(where.base, Symbol)
    width = max(TYPE_BITS[access.modifiers[-1]] // 8, 1)
    items = item.items if isinstance(item, Vector) else (item,)
    first = where.offset + where.base.offset
    return [(first + index * width, width, part) for index, part in enumerate(items)]


def _symbols(operands: tuple[Operand, ...]) -> list[Symbol]:
    found: list[Symbol] = []
    for operand in operands:
        match operand:
            case Symbol():
                found.append(operand)
            case Address(base):
                found += [base] if isinstance(base, Symbol) else []
            case Vector(items) | Arguments(items):
                found += _symbols(items)
            case _:
                pass
    return found


def _renamed(instruction: Instruction, names: Mapping[str, str]) -> Instruction:
    """An instruction with other names."""

    def new(operand: Operand) -> Operand:
        match operand:
            case Register(name):
                return Register(names.get(name, name))
            case Symbol(name, offset):
                return Symbol(names.get(name, name), offset)
            case Not(register):
                return Not(Register(names.get(register.name, register.name)))
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
