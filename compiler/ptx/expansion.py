# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of functions and jumps through tables, which the operations do not have: calls are inlined, and `brx.idx`
becomes a chain of branches (PTX ISA, call, ret, brx.idx).

A parameter of a call is a register, or one for each part of a structure, if all accesses name it and agree on the
parts; otherwise it is memory of the thread.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...base.errors import Code
from .operands import CARRY
from .parameters import Parameters, accessed_parameter, parts_of, renamed, symbols_in
from .stack import ENTER, LEAVE, MANIPULATION, RESTORE, SAVE, Stack, entry_of, recursive_functions, step
from .syntax import (
    Address,
    Arguments,
    Function,
    Instruction,
    Integer,
    Label,
    Module,
    Not,
    Operand,
    Parameter,
    Place,
    Pragma,
    PtxError,
    Register,
    Statement,
    Symbol,
    Table,
    Variable,
)

MAX_STATEMENTS = 500_000
"""The longest function after inlining."""
_FUNCTIONS = 0x00F0_0000_0000_0000
MAX_DEPTH = 100
"""How deep calls nest."""


def expanded(module: Module, function: Function, file: str) -> Function:
    """A function without calls of functions of the module, and without jumps through tables.

    PtxError (E1009) for a call whose form is not supported, and for too much text.
    """
    statements = [s for s in function.body or () if isinstance(s, Instruction)]
    function = replace(function, registers={**function.registers, CARRY: "pred"})
    if not any(s.opcode in ("call", "brx", *MANIPULATION) for s in statements):
        return replace(function, body=tuple(s for s in function.body or () if not isinstance(s, Table | Pragma)))
    return _Expansion(module, file).run(function)


def address_of_function(module: Module, name: str) -> int:
    """A number that stands for the address of a function, which nothing else has."""
    return _FUNCTIONS + 16 * list(module.functions).index(module.aliases.get(name, name))


def _addresses_in(module: Module) -> set[str]:
    """The functions whose addresses are taken."""
    taken = {s.name for variable in module.variables.values() for s in variable.addresses.values()}
    for function in module.functions.values():
        for statement in function.body or ():
            if isinstance(statement, Instruction) and statement.opcode == "mov":
                taken |= {s.name for s in symbols_in(statement.operands)}
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
        self.recursive = recursive_functions(module, frozenset(_addresses_in(module)))
        self.behind: list[str] = []
        """The functions that are emitted after the kernel, since they may call themselves."""
        self.transfers: set[str] = set()
        """The variables by which these take parameters and return results."""
        self.passes: list[tuple[int, Instruction, str, str, str]] = []
        """The copies of parameters: where they stand, and from which variable to which, with the parts of a third."""

    def run(self, function: Function) -> Function:
        self._add(function, {}, "", ())
        end = Instruction(function.place, "ret", (), ())
        self.statements += [end] if self.behind else []
        for name in self.behind:  # which grows
            self._stand_behind(self.module.functions[name], end)
        self._pass_parts()
        body = Parameters(self.passed, self.statements, self.registers, self.variables).resolved()
        if self.behind or any(isinstance(s, Instruction) and s.opcode in MANIPULATION for s in body):
            body = Stack(body, self.behind, self.registers, self.variables, self.transfers, function.place).resolved()
        variables = tuple(self.variables.values())
        return replace(function, body=tuple(body), registers=self.registers, variables=variables)

    def _add(self, function: Function, parameters: Mapping[str, str], prefix: str, callers: tuple[str, ...]) -> str:
        """Appends the body of a function whose parameters have these names here; the label after it."""
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
                    own = renamed(statement, {**names, **labels} if is_branch else names)
                    if statement.opcode == "ret" and callers:
                        self.statements.append(replace(own, opcode="bra", modifiers=(), operands=(Symbol(end),)))
                    elif statement.opcode == "brx":
                        self._jump(own, tables, labels)
                    elif statement.opcode == "call":
                        self._call(own, (*callers, function.name))
                    else:
                        self.statements.append(self._with_addresses(own, names))
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
        function = self.module.function(target.name)
        if function is None or function.body is None:
            self.statements.append(call)  # the device's own functions
            return
        if len(callers) > MAX_DEPTH:
            raise self._refusal(f"calls nest more than {MAX_DEPTH} deep", call)
        given, results = list(lists[-1]) if lists and function.parameters else [], list(lists[0]) if lists else []
        if not function.results:
            results = []
        if len(given) != len(function.parameters) or len(results) != len(function.results):
            raise PtxError(
                Code.PTX_SYNTAX, f"the call does not fit {function.name}'s parameters", call.place, "", self.file
            )
        behind = self._around(call)
        if function.name in self.recursive:
            self._enter(replace(call, guard=None), function, results, given)
            self.statements += [] if behind is None else [behind]
            return
        self.count += 1
        prefix = f"{self.count}: "
        names: dict[str, str] = {}
        for parameter, operand in zip((*function.results, *function.parameters), (*results, *given), strict=True):
            names[parameter.name] = self._passed(parameter, operand, prefix, replace(call, guard=None))
        end = self._add(function, names, prefix, callers)
        self.statements.append(Label(end, call.place))
        if behind is not None:
            self.statements.append(behind)

    def _enter(
        self, call: Instruction, function: Function, results: Sequence[Operand], given: Sequence[Operand]
    ) -> None:
        """A call of a function that is emitted after the kernel."""
        self.count += 1
        number = Integer(self.count)
        if function.name not in self.behind:
            self.behind.append(function.name)
        self.statements.append(step(SAVE, call, number))
        for parameter, operand in zip(function.parameters, given, strict=True):
            self._transfer(call, function, parameter, operand, returns=False)
        self.statements.append(step(ENTER, call, number, Symbol(function.name)))
        for parameter, operand in zip(function.results, results, strict=True):
            self._transfer(call, function, parameter, operand, returns=True)
        self.statements.append(step(RESTORE, call, number))

    def _transfer(
        self, call: Instruction, function: Function, parameter: Parameter, operand: Operand, *, returns: bool
    ) -> None:
        """Passes an argument to a function emitted after the kernel, or a result from it."""
        own = f"{function.name}: {parameter.name}"
        transfer = self._transfer_of(own, parameter)
        if parameter.is_register:
            to, source = (operand, Register(transfer)) if returns else (Register(transfer), operand)
            self.statements.append(step(f"mov.{parameter.type}", call, to, source))
        elif isinstance(operand, Symbol):
            self.passed[operand.name] = parameter.size
            source, to = (transfer, operand.name) if returns else (operand.name, transfer)
            self.passes.append((len(self.statements), call, source, to, own))
        else:
            raise self._refusal("only variables are supported as arguments", call)

    def _transfer_of(self, own: str, parameter: Parameter) -> str:
        """The variable or register by which a parameter of a function emitted after the kernel is passed."""
        transfer = f"passed {own}"
        self.transfers.add(transfer)
        if parameter.is_register:
            self.registers[transfer] = parameter.type
            return transfer
        for name in (own, transfer):
            self.passed[name] = parameter.size
            self.variables[name] = Variable(name, "param", parameter.size, parameter.align, None, Place(1, 1))
        return transfer

    def _stand_behind(self, function: Function, like: Instruction) -> None:
        """Appends a function that may call itself, from its entry to its return."""
        prefix = f"{function.name}: "
        self.statements.append(Label(entry_of(function.name), function.place))
        end, names = "", dict[str, str]()
        for parameters in (function.parameters, function.results):
            for parameter in parameters:
                own = names[parameter.name] = prefix + parameter.name
                transfer = self._transfer_of(own, parameter)
                to, source = (transfer, own) if parameters is function.results else (own, transfer)
                if parameter.is_register:
                    move = step(f"mov.{parameter.type}", like, Register(to), Register(source))
                    self.registers[own] = parameter.type
                    self.statements.append(move)
                else:
                    self.passes.append((len(self.statements), like, source, to, own))
            if parameters is function.parameters:
                names |= {result.name: prefix + result.name for result in function.results}
                for result in function.results:
                    self._transfer_of(prefix + result.name, result)
                end = self._add(function, names, prefix, (function.name,))
                self.statements.append(Label(end, function.place))
        self.statements.append(step(LEAVE, like))

    def _pass_parts(self) -> None:
        """Puts the copies of parameters where they stand: of those parts by which the function behind the kernel uses
        its own, or of all bytes.
        """
        parts: dict[str, dict[int, int]] = {}
        others = set[str]()
        for statement in self.statements:
            if not isinstance(statement, Instruction) or statement.opcode == "call":
                continue
            name = accessed_parameter(statement)
            if name is None:
                others |= {s.name for s in symbols_in(statement.operands)}
            for offset, width, _ in () if name is None else parts_of(statement):
                known = parts.setdefault(name or "", {})
                others |= {name or ""} if known.setdefault(offset, width) != width else set()
        for at, call, source, to, own in reversed(self.passes):
            known = parts.get(own, {})
            if own in others:
                known = {offset: 1 for offset in range(self.passed[own])}
            copies: list[Statement] = []
            for offset, width in known.items():
                self.count += 1
                part = Register(f"passed {self.count}")
                self.registers[part.name] = f"b{max(8 * width, 16)}"
                copies.append(step(f"ld.param.b{8 * width}", call, part, Address(Symbol(source), offset)))
                copies.append(step(f"st.param.b{8 * width}", call, Address(Symbol(to), offset), part))
            self.statements[at:at] = copies

    def _choose(
        self, call: Instruction, target: Register, lists: list[tuple[Operand, ...]], callers: tuple[str, ...]
    ) -> None:
        """A call of the function whose address a register holds: a comparison and a call for each that it may be."""
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
            raise self._refusal("only variables are supported as arguments", call)
        self.statements.append(
            replace(call, opcode="mov", modifiers=(parameter.type,), operands=(Register(name), operand))
        )
        return name
