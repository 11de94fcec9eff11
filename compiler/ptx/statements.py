# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the statements of a function: declarations, labels, instructions and their operands."""

import re
from dataclasses import dataclass, field, replace

from .constants import MAX_DEPTH
from .syntax import (
    Address,
    Arguments,
    Instruction,
    Integer,
    Label,
    Location,
    Not,
    Operand,
    Pair,
    Parameter,
    Pragma,
    Register,
    Statement,
    Subword,
    Symbol,
    Table,
    Variable,
    Vector,
)
from .tokens import Text
from .variables import VariableParser

_PART = re.compile(r"(.+)\.([bh][0-7]{1,4})")
MAX_REGISTERS = 1 << 20
"""How many registers of one name there may be: `%r<1048576>`."""


@dataclass
class _Scope:
    """The names of a block in braces, as the function knows them."""

    number: int
    ranges: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    """How many registers a prefix has, and their type."""
    names: dict[str, str] = field(default_factory=dict[str, str])
    vectors: dict[str, Vector] = field(default_factory=dict[str, Vector])
    """The elements of registers that are vectors."""

    def own(self, name: str) -> str:
        """The name by which the function knows a name of this scope."""
        return name if self.number == 0 else f"{name}@{self.number}"


class StatementParser(VariableParser):
    """A parser of function bodies."""

    def __init__(self, text: Text) -> None:
        super().__init__(text)
        self.of_module: dict[str, Variable] = {}
        """The variables of the module that have been read."""

    def body(
        self, parameters: tuple[Parameter, ...] = ()
    ) -> tuple[tuple[Statement, ...], dict[str, str], tuple[Variable, ...]]:
        """The body of a function: instructions and labels in order, the types of registers, and the variables."""
        self._scopes: list[_Scope] = []
        self._count = 0
        self._registers: dict[str, str] = {p.name: p.type for p in parameters if p.is_register}
        self._given = dict(self._registers)
        self._variables: list[Variable] = []
        self._statements: list[Statement] = []
        self._location: Location | None = None
        self._calls: dict[tuple[int, int, int], Location] = {}
        self._labels: dict[int, set[str]] = {}
        self._jumps: list[tuple[int, tuple[int, ...]]] = []
        self._block()
        for index, chain in self._jumps:
            self._statements[index] = self._resolved(self._statements[index], chain)
        return tuple(self._statements), self._registers, tuple(self._variables)

    def _resolved(self, statement: Statement, chain: tuple[int, ...]) -> Statement:
        """A branch, or a table of labels, whose labels have the names that the function knows them by."""
        if isinstance(statement, Table):
            return replace(statement, labels=tuple(self._label(name, chain) for name in statement.labels))
        assert isinstance(statement, Instruction)
        operands: list[Operand] = []
        for operand in statement.operands:
            if isinstance(operand, Symbol):
                operand = Symbol(self._label(operand.name, chain), operand.offset)
            operands.append(operand)
        return replace(statement, operands=tuple(operands))

    def _label(self, name: str, chain: tuple[int, ...]) -> str:
        scope = next((number for number in chain if name in self._labels.get(number, ())), 0)
        return _Scope(scope).own(name)

    def _block(self) -> None:
        self.expect("{")
        if len(self._scopes) >= MAX_DEPTH:
            self.fail(f"scopes nest more than {MAX_DEPTH} deep")
        self._scopes.append(_Scope(self._count))
        if self._count == 0:
            self._scopes[0].names.update({name: name for name in self._given})
        self._count += 1
        while not self.accept("}"):
            self._statement()
        self._scopes.pop()

    def _statement(self) -> None:
        token = self.token
        if token.text == "{":
            self._block()
        elif token.text == ";":
            self.advance()
        elif token.kind == "directive":
            self._declaration(token.text)
        elif token.kind == "word" or token.text == "@":
            self._instruction()
        else:
            self.fail(f"expected a statement, got '{token.text[:40]}'")

    def _declaration(self, word: str) -> None:
        if word == ".reg":
            self.advance()
            lanes = self.advance().text[2:] if self.token.text in (".v2", ".v4") else ""
            type = self.advance().text[1:]
            if not self.is_type(type):
                self.fail(f"unknown type '.{type}' of registers")
            while True:
                if lanes:
                    self._declare_vector(type, int(lanes))
                else:
                    self._declare_registers(type)
                if not self.accept(","):
                    break
            self.expect(";")
        elif word == ".loc":
            self.advance()
            key, call, function = (self.integer(), self.integer(), self.integer()), None, ""
            while self.accept(","):  # of a function that is inlined
                if self.word("function_name or inlined_at") == "function_name":
                    function = f"{self.word('a label')}+{self.offset()}"
                else:
                    at = self.integer(), self.integer(), self.integer()
                    call = self._calls.get(at) or Location(*at)
            if key[1]:  # line 0 stands for code that the compiler made: it counts as of the line before it
                self._location = self._calls[key] = Location(*key, call, function)
        elif word == ".pragma":
            self._keep("")
        else:
            scope = self._scopes[-1]
            for variable in self.variables():
                own = scope.own(variable.name)
                scope.names[variable.name] = own
                self._variables.append(replace(variable, name=own))

    def _declare_registers(self, type: str) -> None:
        name, scope = self.word("the name of a register"), self._scopes[-1]
        if self.accept("<"):
            count = self.integer()
            if not 0 <= count <= MAX_REGISTERS:
                self.fail(f"{count} registers of one name; at most {MAX_REGISTERS} are possible")
            scope.ranges[name] = count, type
            self.expect(">")
        else:
            own = scope.own(name)
            scope.names[name], self._registers[own] = own, type

    def _declare_vector(self, type: str, lanes: int) -> None:
        """A register that is a vector: one for each element, `v.x` or `v.r` (PTX ISA, Vectors)."""
        name, scope = self.word("the name of a register"), self._scopes[-1]
        parts = [f"{name}__{letter}" for letter in "xyzw"[:lanes]]
        for part, *letters in zip(parts, "xyzw", "rgba", strict=False):
            own = scope.own(part)
            self._registers[own] = type
            scope.names |= {part: own, **{f"{name}.{letter}": own for letter in letters}}
        scope.vectors[name] = Vector(tuple(Register(scope.own(part)) for part in parts))

    def _vector(self, name: str) -> Vector | None:
        return next((scope.vectors[name] for scope in reversed(self._scopes) if name in scope.vectors), None)

    def _register(self, name: str) -> Register | None:
        """The register of a name; None if it is that of something else."""
        prefix = name.rstrip("0123456789")
        digits = name[len(prefix) :]
        for scope in reversed(self._scopes):
            if (own := scope.names.get(name)) is not None:
                return Register(own) if own in self._registers else None
            if digits and prefix in scope.ranges and (digits == "0" or digits[0] != "0"):
                count, type = scope.ranges[prefix]
                if int(digits) < count:
                    own = scope.own(name)
                    self._registers[own] = type
                    return Register(own)
        return Register(name) if name.startswith("%") and name not in self.of_module else None  # a special register

    def _instruction(self) -> None:
        place, guard = self.place(), None
        if self.accept("@"):
            negated = self.accept("!")
            register = self._register(name := self.word("a predicate"))
            if register is None:
                self.fail(f"'{name}' is not a register")
            guard = Not(register) if negated else register
            place = self.place()
        name = self.word("an instruction")
        if self.accept(":"):
            scope = self._scopes[-1]
            self._labels.setdefault(scope.number, set()).add(name)
            if self.accept(".branchtargets"):
                labels = [self.word("a label")]
                while self.accept(","):
                    labels.append(self.word("a label"))
                self.expect(";")
                self._remember()
                self._statements.append(Table(scope.own(name), tuple(labels), place))
                return
            if self.token.text in (".callprototype", ".calltargets"):
                self._keep(f"{name}: ")
                return
            self._statements.append(Label(scope.own(name), place))
            return
        opcode, *modifiers = name.split(".")
        while self.token.kind == "directive":  # after a space
            modifiers.append(self.advance().text[1:])
        operands = self._until_end()
        if opcode in ("bra", "brx"):
            self._remember()
        self._statements.append(Instruction(place, opcode, tuple(modifiers), operands, guard, self._location))

    def _until_end(self) -> tuple[Operand, ...]:
        """The operands up to the end of the statement."""
        operands: list[Operand] = []
        while not self.accept(";"):
            if operands:
                self.expect(",")
            operands.append(self._operand(0))
        return tuple(operands)

    def _keep(self, before: str) -> None:
        """Keeps a directive as it is."""
        place, at = self.place(), self.token.at
        self.skip_statement()
        self._statements.append(Pragma(before + " ".join(self.text_from(at).split()), place))

    def _remember(self) -> None:
        """Notes the labels of the next statement, which get names when all are known."""
        self._jumps.append((len(self._statements), tuple(s.number for s in reversed(self._scopes))))

    def _operand(self, depth: int) -> Operand:
        if depth > MAX_DEPTH:
            self.fail(f"operands nest more than {MAX_DEPTH} deep")
        if self.token.text == "{":
            return Vector(self._list("{", "}", depth))
        if self.token.text == "(":
            return Arguments(self._list("(", ")", depth))
        if self.accept("["):
            return self._address(depth)
        if self.accept("!"):
            register = self._register(name := self.word("a predicate"))
            if register is None:
                self.fail(f"'{name}' is not a register")
            return Not(register)
        if self.accept("-"):
            part = self._part(negated=True) if self.token.kind == "word" else None
            return part or self.constant(-1)
        if self.token.kind != "word":
            return self.constant()
        if (part := self._part()) is not None:
            return part
        if (whole := self._vector(self.token.text)) is not None:
            self.advance()
            return whole
        operand = self._named(self.advance().text)
        if isinstance(operand, Symbol) and self.token.text in ("+", "-"):
            return Symbol(operand.name, self.offset())
        if (isinstance(operand, Register) or operand == Symbol("_")) and self.accept("|"):
            second = self._register(name := self.word("a register"))
            if second is None and name != "_":
                self.fail(f"'{name}' is not a register")
            return Pair(Register(operand.name), second or Register("_"))
        return operand

    def _part(self, *, negated: bool = False) -> Subword | None:
        """A part of a register, or the opposite of a whole one, which only video instructions have."""
        match = _PART.fullmatch(self.token.text)
        if match is None and not negated:
            return None
        register = self._register(self.token.text if match is None else match[1])
        if register is None or register.name not in self._registers:
            return None
        self.advance()
        return Subword(register, "" if match is None else match[2], negated)

    def _list(self, first: str, last: str, depth: int) -> tuple[Operand, ...]:
        self.expect(first)
        items: list[Operand] = []
        while not self.accept(last):
            if items:
                self.expect(",")
            items.append(self._operand(depth + 1))
        return tuple(items)

    def _named(self, name: str) -> Register | Symbol:
        register = self._register(name)
        if register is not None:
            return register
        for scope in reversed(self._scopes):
            if name in scope.names:
                return Symbol(scope.names[name])
        return Symbol(name)

    def _address(self, depth: int) -> Address:
        base: Register | Symbol | Integer
        base = self._named(self.advance().text) if self.token.kind == "word" else Integer(self.product())
        offset = self.offset()
        coordinates: tuple[Operand, ...] = ()
        if self.accept(","):
            coordinates = self._list("{", "}", depth)
        self.expect("]")
        return Address(base, offset, coordinates)
