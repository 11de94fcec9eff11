# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stack of a thread, which operations do not have: functions that call themselves, and `alloca` (PTX ISA, Parallel
Synchronization and Communication Instructions: call, ret; Stack Manipulation Instructions: alloca, stacksave,
stackrestore).

A function that may call itself is not inlined but stands once behind the kernel. A call saves the
registers that are read after it, and the caller's frame, in a variable in local memory, and says where to return to.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TypeGuard

from .operands import written_and_read
from .syntax import (
    TYPE_BITS,
    Address,
    Arguments,
    Instruction,
    Integer,
    Label,
    Module,
    Operand,
    Place,
    Register,
    Statement,
    Symbol,
    Variable,
    Vector,
)

STACK = "%stack"
"""The variable that is the stack of a thread."""
STACK_BYTES = 16384
"""Its size; beyond it, an access is out of bounds."""
SAVE, ENTER, RESTORE, LEAVE = "save", "enter", "restore", "leave"
"""Steps of calls, in place of instructions: of the call whose number is the operand; the last of a function."""
MANIPULATION = ("alloca", "stacksave", "stackrestore")
_BASE, _TOP, _FRAME = Register("%stack base"), Register("%stack top"), Register("%stack frame")
_ALIGN = 16
_HEADER = 8
"""The bytes that say where a function returns to, and where the caller's frame is."""


def entry_of(function: str) -> str:
    """The label at which a function that stands behind the kernel begins."""
    return f"entry of {function}"


def return_of(number: int) -> str:
    """The label to which a call's function returns."""
    return f"return {number}"


def step(opcode: str, like: Instruction, *operands: Operand) -> Instruction:
    """An instruction without a guard, or a step of a call, at the place of another instruction."""
    name, *modifiers = opcode.split(".")
    return replace(like, opcode=name, modifiers=tuple(modifiers), operands=operands, guard=None)


@dataclass
class Stack:
    """The lowering of steps of calls, and of the instructions of the stack, to accesses of a variable.

    `statements` are those of the kernel and of each of the functions, `transfers` the variables by which calls pass
    parameters, which no frame has.
    """

    statements: Sequence[Statement]
    functions: Sequence[str]
    registers: dict[str, str]
    variables: dict[str, Variable]
    transfers: set[str]
    place: Place
    made: list[Statement] = field(default_factory=list[Statement])
    count: int = 0

    def resolved(self) -> list[Statement]:
        """The statements without steps of calls."""
        entries = {entry_of(name): name for name in self.functions}
        owner, parts = "", dict[str, list[Statement]]()
        for statement in self.statements:
            owner = entries.get(statement.name, owner) if isinstance(statement, Label) else owner
            parts.setdefault(owner, []).append(statement)
        self.align = max([_ALIGN, *(_alignment(s) for s in self.statements)])
        self.variables[STACK] = Variable(STACK, "local", STACK_BYTES, self.align, None, self.place)
        self.registers |= {register.name: "b64" for register in (_BASE, _TOP, _FRAME)}
        begin = Instruction(self.place, "mov", ("u64",), (_BASE, Symbol(STACK)))
        self.made = [begin, step("mov.u64", begin, _TOP, _BASE), step("mov.u64", begin, _FRAME, _BASE)]
        calls = [s for s in self.statements if isinstance(s, Instruction) and s.opcode == ENTER]
        frames = {name: self._frame(parts[name]) for name in self.functions}
        self.sizes = {name: self._rounded(size) for name, (_, size) in frames.items()}
        for name, own in parts.items():
            places = frames[name][0] if name else {}
            saved = self._saved(name, own)
            for statement in own:
                if isinstance(statement, Instruction):
                    self._step(statement, saved, calls, name, places)
                else:
                    self.made.append(statement)
        return self.made

    def _rounded(self, size: int) -> int:
        return -(-size // self.align) * self.align

    def _add(self, opcode: str, like: Instruction, *operands: Operand) -> None:
        self.made.append(step(opcode, like, *operands))

    def _new(self, type: str) -> Register:
        self.count += 1
        register = Register(f"stack {self.count}")
        self.registers[register.name] = type
        return register

    def _frame(self, statements: Sequence[Statement]) -> tuple[dict[str, int], int]:
        """The places of a function's variables in its frame, and their bytes."""
        places: dict[str, int] = {}
        end = 0
        for statement in statements:
            for name in _symbols(statement) if isinstance(statement, Instruction) else ():
                known = self.variables.get(name)
                if known is not None and known.space == "local" and name not in self.transfers and name not in places:
                    places[name] = -(-end // max(known.align, 1)) * max(known.align, 1)
                    end = places[name] + known.size
        return places, end

    def _saved(self, function: str, statements: Sequence[Statement]) -> dict[int, list[tuple[str, int]]]:
        """The registers that are read after each call, with their places behind the top of the stack; the empty name
        stands for the bytes of them all with the header. Functions leave the kernel's own registers as they are.
        """
        found: dict[int, list[tuple[str, int]]] = {}
        live = _live(statements) if function else [set[str]() for _ in statements]
        for index, statement in enumerate(statements):
            if not isinstance(statement, Instruction) or statement.opcode != RESTORE:
                continue
            number = _number(statement)
            passed = list(takewhile(lambda s: s.opcode != ENTER, filter(_is_instruction, reversed(statements[:index]))))
            results = {name for instruction in passed for name in written_and_read(instruction)[0]}
            names = sorted((live[index] - results) & self.registers.keys())
            names = [name for name in names if name.partition("+")[0] not in self.transfers]
            names.sort(key=lambda name: -self._bytes(name))
            at, places = 0, list[tuple[str, int]]()
            for name in names:
                places.append((name, at))
                at += self._bytes(name)
            found[number] = [*places, ("", self._rounded(at + _HEADER))]
        return found

    def _bytes(self, name: str) -> int:
        return 4 if self.registers[name] == "pred" else TYPE_BITS[self.registers[name]] // 8

    def _step(
        self,
        i: Instruction,
        saved: Mapping[int, list[tuple[str, int]]],
        calls: Sequence[Instruction],
        function: str,
        places: Mapping[str, int],
    ) -> None:
        match i.opcode:
            case "save":
                self._save(i, saved[_number(i)][:-1])
            case "enter":
                self._enter(i, saved[_number(i)][-1][1])
            case "restore":
                self._restore(i, saved[_number(i)][:-1])
            case "leave":
                target = self._new("b32")
                self._add("ld.local.u32", i, target, Address(_FRAME, -_HEADER))
                for call in (call for call in calls if call.operands[1] == Symbol(function)):
                    chosen = self._new("pred")
                    self._add("setp.eq.u32", i, chosen, target, Integer(_number(call)))
                    self.made.append(replace(step("bra", i, Symbol(return_of(_number(call)))), guard=chosen))
                self._add("trap", i)
                self._add("exit", i)
            case "alloca" | "stacksave" | "stackrestore" if i.modifiers == ("u64",):
                self._manipulate(i)
            case _:
                self.made.append(self._in_frame(i, places))

    def _save(self, i: Instruction, registers: Sequence[tuple[str, int]]) -> None:
        for name, at in registers:
            value = Register(name)
            if self.registers[name] == "pred":
                value = self._new("b32")
                self._add("selp.u32", i, value, Integer(1), Integer(0), Register(name))
            self._add(f"st.local.b{8 * self._bytes(name)}", i, Address(_TOP, at), value)

    def _enter(self, i: Instruction, size: int) -> None:
        number, target = _number(i), i.operands[1]
        assert isinstance(target, Symbol)
        distance, short = self._new("b64"), self._new("b32")
        self._add("sub.s64", i, distance, _FRAME, _BASE)
        self._add("cvt.u32.u64", i, short, distance)
        self._add("st.local.u32", i, Address(_TOP, size - _HEADER), Integer(number))
        self._add("st.local.u32", i, Address(_TOP, size - _HEADER + 4), short)
        self._add("add.s64", i, _TOP, _TOP, Integer(size))
        self._add("mov.u64", i, _FRAME, _TOP)
        self._add("add.s64", i, _TOP, _TOP, Integer(self.sizes[target.name]))
        self._add("bra", i, Symbol(entry_of(target.name)))
        self.made.append(Label(return_of(number), i.place))
        distance, short = self._new("b64"), self._new("b32")
        self._add("sub.s64", i, _TOP, _FRAME, Integer(size))
        self._add("ld.local.u32", i, short, Address(_FRAME, 4 - _HEADER))
        self._add("cvt.u64.u32", i, distance, short)
        self._add("add.s64", i, _FRAME, _BASE, distance)

    def _restore(self, i: Instruction, registers: Sequence[tuple[str, int]]) -> None:
        for name, at in registers:
            where, bits = Address(_TOP, at), 8 * self._bytes(name)
            if self.registers[name] != "pred":
                self._add(f"ld.local.b{bits}", i, Register(name), where)
                continue
            value = self._new("b32")
            self._add("ld.local.b32", i, value, where)
            self._add("setp.ne.u32", i, Register(name), value, Integer(0))

    def _manipulate(self, i: Instruction) -> None:
        """alloca, stacksave and stackrestore."""
        begin = len(self.made)
        if i.opcode == "alloca":
            size = self._new("b64")
            self._add("add.s64", i, size, i.operands[1], Integer(self.align - 1))
            self._add("and.b64", i, size, size, Integer(-self.align))
            self._add("mov.u64", i, i.operands[0], _TOP)
            self._add("add.s64", i, _TOP, _TOP, size)
        elif i.opcode == "stacksave":
            self._add("mov.u64", i, i.operands[0], _TOP)
        else:
            self._add("mov.u64", i, _TOP, i.operands[0])
        made = [s for s in self.made[begin:] if isinstance(s, Instruction)]
        self.made[begin:] = [replace(each, guard=i.guard) for each in made]

    def _in_frame(self, i: Instruction, places: Mapping[str, int]) -> Instruction:
        """An instruction with addresses in the frame for the names of variables there."""
        operands: list[Operand] = []
        for operand in i.operands:
            match operand:
                case Address(Symbol(name, further), offset) if name in places:
                    operand = replace(operand, base=_FRAME, offset=places[name] + further + offset)
                case Symbol(name, offset) if name in places:
                    operand = self._new("b64")
                    self._add("add.s64", i, operand, _FRAME, Integer(places[name] + offset))
                case _:
                    pass
            operands.append(operand)
        return replace(i, operands=tuple(operands))


def _number(step: Instruction) -> int:
    number = step.operands[0]
    assert isinstance(number, Integer)
    return number.value


def _is_instruction(statement: Statement) -> TypeGuard[Instruction]:
    return isinstance(statement, Instruction)


def _alignment(statement: Statement) -> int:
    """The alignment that an alloca asks for."""
    if not isinstance(statement, Instruction) or statement.opcode != "alloca" or len(statement.operands) < 3:
        return 1
    return operand.value if isinstance(operand := statement.operands[2], Integer) else 1


def _symbols(instruction: Instruction) -> Iterator[str]:
    for operand in instruction.operands:
        items = operand.items if isinstance(operand, Vector) else (operand,)
        for item in items:
            base = item.base if isinstance(item, Address) else item
            if isinstance(base, Symbol):
                yield base.name


def _live(statements: Sequence[Statement]) -> list[set[str]]:
    """The registers that may be read from each statement on; a call goes on behind itself."""
    labels = {s.name: index for index, s in enumerate(statements) if isinstance(s, Label)}
    facts = [written_and_read(s) if isinstance(s, Instruction) else ((), ()) for s in statements]
    live: list[set[str]] = [set() for _ in statements]
    changed = True
    while changed:
        changed = False
        for index in range(len(statements) - 1, -1, -1):
            statement = statements[index]
            follows = live[index + 1] if index + 1 < len(statements) else set[str]()
            if isinstance(statement, Instruction) and statement.opcode in ("bra", "exit", "ret", LEAVE):
                target = statement.operands[-1] if statement.opcode == "bra" and statement.operands else None
                there = (
                    live[labels[target.name]] if isinstance(target, Symbol) and target.name in labels else set[str]()
                )
                follows = there | follows if statement.guard is not None else there
            written, read = facts[index]
            now = follows.difference(written).union(read)
            if now != live[index]:
                live[index], changed = now, True
    return live


def recursive_functions(module: Module, taken: frozenset[str]) -> frozenset[str]:
    """The functions from which calls may lead back to them; a call by a register leads to each function in `taken` with
    as many parameters.
    """
    calls = {name: tuple(_called(module, name, taken)) for name in module.functions}
    found: set[str] = set()
    numbers, lowest, path, open = dict[str, int](), dict[str, int](), list[str](), set[str]()
    for start in calls:  # Tarjan, Depth-First Search and Linear Graph Algorithms, 1972
        work = [] if start in numbers else [(start, iter(calls[start]))]
        while work:
            name, rest = work[-1]
            if name not in numbers:
                numbers[name] = lowest[name] = len(numbers)
                path.append(name)
                open.add(name)
            target = next(rest, None)
            if target is None:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[name])
                if lowest[name] == numbers[name]:
                    part = path[path.index(name) :]
                    del path[-len(part) :]
                    open -= set(part)
                    if len(part) > 1 or name in calls[name]:
                        found |= set(part)
            elif target not in numbers:
                work.append((target, iter(calls[target])))
            elif target in open:
                lowest[name] = min(lowest[name], numbers[target])
    return frozenset(found)


def _called(module: Module, name: str, taken: frozenset[str]) -> Iterator[str]:
    """The functions that a function may call."""
    for call in module.functions[name].body or ():
        if not isinstance(call, Instruction) or call.opcode != "call":
            continue
        for operand in call.operands:
            if isinstance(operand, Symbol) and (function := module.function(operand.name)) is not None:
                yield function.name
            elif isinstance(operand, Register):
                given = sum(len(o.items) for o in call.operands if isinstance(o, Arguments))
                for other in taken & module.functions.keys():
                    if len(module.functions[other].parameters) + len(module.functions[other].results) == given:
                        yield other
