# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random functions on integers of all types, as text that means the same in a kernel and for integers of Python."""

from dataclasses import dataclass, field
from random import Random

from tests.fuzz.wrapping import INTEGERS, TYPES, computed, promoted


@dataclass
class _Writer:
    random: Random
    variables: dict[str, str] = field(default_factory=dict[str, str])
    fixed: dict[str, None] = field(default_factory=dict[str, None])
    names: int = 0

    def number(self, type: str) -> int:
        """A number of a type, often at an edge."""
        r, own = self.random, TYPES[type]
        power = 1 << r.randrange(own.bits)
        edge = r.choice([0, 1, 2, 3, 5, 7, 10, 31, power, power - 1, power + 1, r.getrandbits(own.bits)])
        edge = r.choice([edge, edge, edge, -edge])
        return (edge - own.least) % (1 << own.bits) + own.least

    def divisor(self, type: str) -> int:
        """A number other than 0."""
        return self.number(type) or self.random.choice([1, 3, 8])

    def literal(self, value: int) -> str:
        """A number as text."""
        return f"({value})" if value < 0 else str(value)

    def expression(self, depth: int) -> tuple[str, str]:
        """An expression, and its type."""
        r = self.random
        if depth == 0 or r.random() < 0.15:
            name = r.choice(list(self.variables)[-10:] if r.random() < 0.5 else list(self.variables))
            return name, self.variables[name]
        a, own = self.expression(depth - 1)
        kind = r.randrange(20)
        if kind < 3:
            target = r.choice(INTEGERS)
            return f"{target}({a})", target
        if own == "Boolean" and kind < 19:
            return (f"~({a})" if kind < 6 else f"Int32({a})"), "Boolean" if kind < 6 else "Int32"
        if kind < 10:
            return self._by_number(a, own)
        if kind < 11:
            return r.choice([f"(-{a})", f"(~{a})", f"abs({a})"]), computed(own)
        b, other = self.expression(depth - 1)
        type = promoted(own, other)
        if kind < 12:
            return self._divided(a, b, type, other)
        if kind < 13:
            return self._shifted(a, b, type)
        if kind < 14:
            return f"{r.choice(['minimum', 'maximum'])}({a}, {b})", type
        if kind < 16:
            c, last = self.condition(depth - 1), r.random() < 0.2
            return f"where({c}, {a}, {self.literal(self.number(own)) if last else b})", own if last else type
        if kind == 19:
            return self.condition(depth - 1), "Boolean"
        type = "Int32" if type == "Boolean" else type
        return (
            f"({a} {r.choice(['+', '-', '*', '*', '&', '|', '^'])} {b})",
            computed(type) if own != other or own != "Boolean" else "Boolean",
        )

    def _by_number(self, a: str, own: str) -> tuple[str, str]:
        r, bits = self.random, TYPES[own].bits
        op = r.choice(["+", "-", "*", "//", "%", "//", "%", "<<", ">>", "&", "|", "^", "**"])
        if op in ("<<", ">>"):
            return f"({a} {op} {r.randrange(bits)})", computed(own)
        if op == "**":
            return f"({a} ** {r.choice([2, 3])})", computed(own)
        if op in ("//", "%"):
            if r.random() < 0.3:
                word = r.choice(["divmod({}, {})[0]", "divmod({}, {})[1]", "ceil_div({}, {})"])
                return word.format(a, self.literal(self.divisor(own))), computed(own)
            return f"({a} {op} {self.literal(self.divisor(own))})", computed(own)
        number = self.literal(self.number(own))
        return (f"({a} {op} {number})" if r.random() < 0.7 else f"({number} {op} {a})"), computed(own)

    def _divided(self, a: str, b: str, type: str, other: str) -> tuple[str, str]:
        op = self.random.choice(["//", "%", "ceil_div"])
        divisor = f"Int32({b})" if other == "Boolean" else b
        type = computed(promoted(type, "Int32") if other == "Boolean" else type)
        return f"({a} {op} ({divisor} | 1))" if op != "ceil_div" else f"ceil_div({a}, {divisor} | 1)", type

    def _shifted(self, a: str, b: str, type: str) -> tuple[str, str]:
        type = "Int32" if type == "Boolean" else type
        op = self.random.choice(["<<", ">>"])
        return f"({type}({a}) {op} ({type}({b}) & {TYPES[type].bits - 1}))", computed(type)

    def condition(self, depth: int) -> str:
        """A comparison."""
        r = self.random
        a, own = self.expression(depth)
        op = r.choice(["<", "<=", ">", ">=", "==", "!="])
        if own == "Boolean":
            return a
        b = self.literal(self.number(own)) if r.random() < 0.5 else self.expression(depth)[0]
        return f"({a} {op} {b})"

    def assignment(self) -> list[str]:
        """A new variable, or another value of one that is there."""
        r = self.random
        text, type = self.expression(r.randint(1, 3))
        old = [name for name in self.variables if name not in self.fixed and self.variables[name] != "Boolean"]
        if old and r.random() < 0.4:
            name = r.choice(old)
            return [f"{name} = {self.variables[name]}({text})"]
        self.names += 1
        self.variables[f"v{self.names}"] = type
        return [f"v{self.names} = {text}"]

    def changes(self, depth: int) -> list[str]:
        """Statements of a block: what is new there is not known outside it."""
        before = dict(self.variables), dict(self.fixed)
        lines = [line for _ in range(self.random.randint(1, 4)) for line in self.statement(depth)]
        self.variables, self.fixed = before
        return [f"    {line}" for line in lines]

    def statement(self, depth: int) -> list[str]:
        """An assignment, a branch or a loop."""
        r = self.random
        kind = r.randrange(10)
        if depth == 0 or kind < 6:
            return self.assignment()
        if kind < 8:
            lines = [f"if {self.condition(1)}:", *self.changes(depth - 1)]
            return lines + (["else:", *self.changes(depth - 1)] if r.random() < 0.5 else [])
        self.names += 1
        counter = f"i{self.names}"
        hashed = [name for name in self.variables if name not in self.fixed and self.variables[name] in INTEGERS]
        grown: list[str] = []
        if hashed and r.random() < 0.8:
            name = r.choice(hashed)
            type = self.variables[name]
            grown = [f"{name} = {type}({r.choice(_GROWING).format(name=name, other=r.choice(list(self.fixed)))})"]
        if kind == 8:
            bounds = r.choice(["4", "1, 12, 3", "Int32(t) & 3", "3, -2, -1", "b, b + 3", "n & 7"])
            self.variables[counter] = "Index"
            self.fixed[counter] = None
            lines = [f"for x{counter} in range({bounds}):", f"    {counter} = Index(x{counter})"]
            lines += [*(f"    {line}" for line in grown), *self.changes(depth - 1)]
            del self.variables[counter]
            del self.fixed[counter]
            return lines
        kind_of_counter, start, step = r.choice([("Int32", 0, 1), ("Int8", 120, 3), ("Uint8", 250, 2), ("Index", 0, 5)])
        self.variables[counter] = kind_of_counter
        self.fixed[counter] = None
        self.names += 1
        test = f"w{self.names}"
        lines = [f"{counter} = {kind_of_counter}({start})", f"{test} = Int32(0)", f"while {test} < {r.randint(0, 5)}:"]
        lines += [f"    {test} = {test} + 1", f"    {counter} = {kind_of_counter}({counter} + {step})"]
        lines += [f"    {line}" for line in grown]
        return lines + self.changes(depth - 1)


_GROWING = (
    "{name} * 31 + {other}", "{name} * 33 ^ {other}", "({name} + 1) % 3", "{name} + 7", "{name} - 1", "{name} << 1",
    "({name} ^ 1) // 3", "{name} + {name}", "({name} * 5 + 1) % 7", "where({name} == 2, 0, {name} + 1)",
)  # fmt: skip

PARAMETERS = {
    "t": "Int32", "b": "Int32", "n": "Int32", "m": "Int64", "u": "Uint32", "a8": "Int8", "a16": "Int16",
    "a32": "Int32", "a64": "Int64", "u8": "Uint8", "u16": "Uint16", "u32": "Uint32", "u64": "Uint64",
}  # fmt: skip
"""What a function takes: the thread, the block, scalars, and an element of each type."""


def text_of(seed: int) -> str:
    """The text of a function `generated`, which returns a tuple of results."""
    random = Random(seed)
    writer = _Writer(random, dict(PARAMETERS), dict.fromkeys(PARAMETERS))
    lines = [line for _ in range(random.randint(6, 16)) for line in writer.statement(2)]
    results = [name for name in writer.variables if name not in PARAMETERS][-12:] or ["t"]
    listed = ", ".join(f"Int64({name})" for name in results)
    head = f"def generated({', '.join(PARAMETERS)}):"
    return "\n".join([head, *(f"    {line}" for line in lines), f"    return ({listed},)", ""])
