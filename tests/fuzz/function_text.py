# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random functions of Python as text: typed scalars and fragments, and all control flow that a kernel may have.

Each variable keeps its type. Values of different types meet by way of conversions alone, so that NumPy's rules of
promotion, which are not a kernel's, do not count.
"""

from dataclasses import dataclass
from random import Random

INTEGERS = ("Int8", "Int16", "Int32", "Int64", "Uint8", "Uint16", "Uint32", "Uint64")
SMALL = ("Int8", "Int16", "Uint8", "Uint16")
FLOATS = ("Float16", "BFloat16", "Float32", "Float64")
EIGHT_BITS = ("Float8E4M3FN", "Float8E5M2")
COMPUTED = (*INTEGERS, *FLOATS, "Boolean")
TYPES = (*COMPUTED, *EIGHT_BITS)


@dataclass(frozen=True)
class Variable:
    """What a name, or a place such as `p[0]`, holds: values of one type, a fragment if `whole`."""

    name: str
    type: str
    whole: bool = False


@dataclass(frozen=True)
class Function:
    """The text of `generated(t, n, xs, fs)`, and what it takes and gives: the types of `xs` and `fs`, whose fragments
    have the shape `shape`, and the variables that it returns.
    """

    text: str
    scalars: tuple[str, ...]
    fragments: tuple[str, ...]
    shape: tuple[int, ...]
    returned: tuple[Variable, ...]


def bits_of(type: str) -> int:
    """The width of an integer type."""
    return int(type.lstrip("IntUi"))


class Expressions:
    """Writes expressions of a given type on the variables at hand."""

    def __init__(self, rng: Random, shape: tuple[int, ...]) -> None:
        self.rng = rng
        self.shape = shape
        self.variables: list[Variable] = []

    def one_of(self, *choices: str) -> str:
        """One of some texts."""
        return self.rng.choice(choices)

    def known(self, type: str, whole: bool) -> list[str]:
        """The names that hold what is asked for."""
        return [each.name for each in self.variables if each.type == type and each.whole == whole]

    def literal(self, type: str) -> str:
        """A number as a value of a type."""
        if type == "Boolean":
            return f"to({self.one_of('True', 'False')}, Boolean)"
        if type in FLOATS:
            number = self.one_of("0.0", "1.0", "-2.5", "0.3", "100.0", "-0.0", "1e-4", "65504.0")
        else:
            number = self.one_of("0", "1", "3", "7", "100", *(("-1", "-20") if type.startswith("I") else ()))
        return f"to({number}, {type})"

    def leaf(self, type: str, whole: bool) -> str:
        """A variable, or a number, or another variable converted."""
        known = self.known(type, whole)
        if known and self.rng.random() < 0.7:
            return self.rng.choice(known)
        others = [each for each in self.variables if each.whole == whole and each.type != type]
        if whole and not others:
            return self.rng.choice(known)
        if others and (whole or self.rng.random() < 0.8):
            other = self.rng.choice(others)
            return f"to({other.name}, {type})"
        if not whole and type not in EIGHT_BITS and self.rng.random() < 0.2:
            return f"to({self.one_of('t', 'n')}, {type})"
        return f"to({self.literal('Float32')}, {type})" if type in EIGHT_BITS else self.literal(type)

    def value(self, type: str, depth: int, whole: bool = False) -> str:
        """An expression of a type: a scalar, or a fragment."""
        if depth <= 0 or self.rng.random() < 0.15:
            return self.leaf(type, whole)
        if self.rng.random() < 0.15:
            other = self.rng.choice([each for each in TYPES if each != type])
            return f"to({self.value(other, depth - 1, whole)}, {type})"
        if self.rng.random() < 0.15:
            return f"where({self.condition(depth - 1, whole)}, {self.pair(type, depth - 1, whole)})"
        if whole and type not in EIGHT_BITS and self.rng.random() < 0.1:
            return self.reduction(type, depth - 1, keepdims=True)
        if not whole and type not in EIGHT_BITS and self.known(type, True) and self.rng.random() < 0.2:
            if self.rng.random() < 0.5:
                return self.reduction(type, depth - 1)
            return f"{self.rng.choice(self.known(type, True))}[{self.coordinate()}]"
        if type in EIGHT_BITS:
            return self.leaf(type, whole)
        if type == "Boolean":
            return self.condition(depth, whole)
        return self.number(type, depth, whole)

    def coordinate(self) -> str:
        """The place of an element of a fragment."""
        return ", ".join(str(self.rng.randrange(size)) for size in self.shape)

    def pair(self, type: str, depth: int, whole: bool) -> str:
        """Two operands, of which one may be a scalar that meets a fragment."""
        sides = [whole, whole and self.rng.random() < 0.7]
        self.rng.shuffle(sides)
        return ", ".join(self.value(type, depth, side) for side in sides)

    def number(self, type: str, depth: int, whole: bool) -> str:
        """Arithmetic of integers or floats; kernels promote integers of less than 32 bits, unlike NumPy."""
        if type in SMALL:
            return f"to({self.number('Int32', depth, whole)}, {type})"
        a, b = self.pair(type, depth - 1, whole), self.value(type, depth - 1, whole)
        left, right = f"({self.value(type, depth - 1, whole)})", f"({b})"
        if type in FLOATS:
            return self.one_of(
                f"{left} + {right}", f"{left} - {right}", f"{left} * {right}", f"{left} / {right}", f"-{right}",
                f"abs({b})", f"maximum({a})", f"minimum({a})", f"fma({b}, {a})", f"{left} + {self.literal(type)}",
            )  # fmt: skip
        width = bits_of(type)
        count, divisor = self.rng.randrange(width), self.rng.choice((1, 2, 3, 5, 7, 8, 10, 16, 100))
        small = f"(({b}) & {self.one_of('1', '3', '7')})"
        return self.one_of(
            f"{left} + {right}", f"{left} - {right}", f"{left} * {right}", f"{left} & {right}", f"{left} | {right}",
            f"{left} ^ {right}", f"{left} // {divisor}", f"{left} % {divisor}", f"{left} // ({small} + 1)",
            f"{left} % ({small} + 1)", f"{left} << {count}", f"{left} >> {count}", f"{left} >> {small}",
            f"{left} << {small}", f"-{right}", f"~{right}", f"maximum({a})", f"minimum({a})",
            f"{left} + {self.rng.randrange(100)}", f"{self.rng.randrange(100)} - {right}",
            *((f"abs({b})",) if type.startswith("I") else ()),
        )  # fmt: skip

    def reduction(self, type: str, depth: int, keepdims: bool = False) -> str:
        """A fragment combined over all modes, or, in the same rank, over one."""
        x = self.value(type, depth, True)
        if type == "Boolean":
            op = self.one_of("AND", "OR", "XOR")
        else:
            op = self.one_of("ADD", "MUL", "MAX", "MIN", *(("AND", "OR", "XOR") if type in INTEGERS else ()))
        init = self.one_of("None", self.literal(type))
        if not keepdims:
            return f"reduce({x}, {op}, {init})"
        mode = self.rng.randrange(len(self.shape))
        profile = tuple(1 if each == mode else None for each in range(len(self.shape)))
        inside = f"reduce({x}, {op}, {init}, {self.rng.choice([profile, 0])}, True)"
        both = f"({inside} {'^' if type == 'Boolean' else '+'} {self.leaf(type, True)})"
        return f"to({both}, {type})" if type in SMALL else both

    def condition(self, depth: int, whole: bool = False) -> str:
        """A comparison, or predicates combined."""
        if depth > 0 and self.rng.random() < 0.3:
            left, right = (f"({self.condition(depth - 1, whole)})" for _ in range(2))
            return self.one_of(f"{left} & {right}", f"{left} | {right}", f"{left} ^ {right}", f"~{left}")
        known = self.known("Boolean", whole)
        if known and self.rng.random() < 0.3:
            return self.rng.choice(known)
        type = self.rng.choice([*INTEGERS, *FLOATS])
        operator = self.one_of("<", "<=", ">", ">=", "==", "!=")
        return f"({self.value(type, depth - 1, whole)}) {operator} ({self.value(type, depth - 1, whole)})"

    def test(self, depth: int = 1) -> str:
        """What decides a branch or a loop: with `and`, `or`, `not` and chains, too."""
        one = self.condition(depth)
        match self.rng.randrange(6):
            case 0:
                return f"({one}) {self.one_of('and', 'or')} ({self.condition(depth)})"
            case 1:
                return f"not ({one})"
            case 2:
                type = self.rng.choice(INTEGERS)
                low, high = self.literal(type), self.literal(type)
                return f"{low} {self.one_of('<', '<=')} {self.leaf(type, False)} {self.one_of('<', '<=')} {high}"
            case _:
                return one


class Statements(Expressions):
    """Writes statements, each on lines of its own."""

    def __init__(self, rng: Random, shape: tuple[int, ...]) -> None:
        super().__init__(rng, shape)
        self.left = 14  # statements that may still be written
        self.count = 0
        self.returned: tuple[Variable, ...] = ()
        self.inside = False  # a function of its own, whose variables are not those of the outer one

    def block(self, depth: int, in_loop: bool) -> list[str]:
        """One to three statements."""
        found: list[str] = []
        for _ in range(self.rng.randint(1, 3)):
            found += self.statement(depth, in_loop)
        return found

    def indented(self, depth: int, in_loop: bool) -> list[str]:
        """A block, one level deeper."""
        return [f"    {line}" for line in self.block(depth, in_loop)]

    def assigned(self) -> Variable:
        """A variable that a statement changes."""
        return self.rng.choice([each for each in self.variables if each.name not in ("t", "n")])

    def assignment(self) -> list[str]:
        """A variable's new value, in one of the forms that Python has."""
        target = self.assigned()
        value = self.value(target.type, 3, target.whole)
        match self.rng.randrange(7):  # the rest of the numbers is the plain form
            case 0 if target.type in (*INTEGERS, *FLOATS):
                return [f"{target.name} {self.one_of('+', '-', '*')}= {self.value(target.type, 2, target.whole)}"]
            case 1 if not target.whole:
                return [f"{target.name} = ({value}) if {self.test()} else ({self.leaf(target.type, False)})"]
            case 2:
                other = self.assigned()
                if other.name != target.name:
                    return [f"{target.name}, {other.name} = {value}, {self.value(other.type, 2, other.whole)}"]
            case _:
                pass
        return [f"{target.name} = {value}"]

    def statement(self, depth: int, in_loop: bool) -> list[str]:
        """A statement, with blocks in it while `depth` is positive."""
        self.left -= 1
        kinds = ["assign"] * 4 + ["show"]
        if depth > 0 and self.left > 0:
            kinds += ["if", "if", "for", "for", "unrolled", "while", "while", "match", "nested"]
        if in_loop:
            kinds.append("leave")
        if depth < 2 and not self.inside:
            kinds.append("return")
        kind = self.rng.choice(kinds)
        inner = in_loop or kind in ("for", "unrolled", "while")
        match kind:
            case "assign":
                return self.assignment()
            case "show":
                shown = [each.name for each in self.variables if not each.whole and each.type not in EIGHT_BITS]
                return [f"show({self.rng.choice(shown)})"] if shown else ["pass"]
            case "leave":
                return [f"if {self.test()}:", f"    {self.one_of('break', 'continue')}"]
            case "return":
                return [f"if {self.test()}:", f"    return {self.results()}"]
            case "if":
                return self.branch(depth, inner)
            case "match":
                name = self.leaf("Int32", False)
                lines = [f"match ({name}) % 4:", "    case 0 | 3:", *self.deeper(depth, inner)]
                lines += [f"    case {self.one_of('1', '2', 'k')} if {self.test()}:", *self.deeper(depth, inner)]
                return lines + (["    case _:", *self.deeper(depth, inner)] if self.rng.random() < 0.7 else [])
            case "nested":
                return self.nested(depth)
            case _:
                return self.loop(kind, depth)

    def deeper(self, depth: int, in_loop: bool) -> list[str]:
        """A block, two levels deeper."""
        return [f"    {line}" for line in self.indented(depth - 1, in_loop)]

    def branch(self, depth: int, in_loop: bool) -> list[str]:
        """An if with or without its other parts."""
        lines = [f"if {self.test()}:", *self.indented(depth - 1, in_loop)]
        if self.rng.random() < 0.4:
            lines += [f"elif {self.test()}:", *self.indented(depth - 1, in_loop)]
        return lines + (["else:", *self.indented(depth - 1, in_loop)] if self.rng.random() < 0.5 else [])

    def loop(self, kind: str, depth: int) -> list[str]:
        """A loop over numbers that Python or the kernel knows, or one that counts its turns."""
        self.count += 1
        name = f"i{self.count}"
        if kind == "while":
            test = f"{name} < {self.rng.randint(1, 3)} and ({self.test()})"
            lines = [f"{name} = 0", f"while {test}:", f"    {name} = {name} + 1"]
        elif kind == "for":
            shadowed = self.known("Int64", False)
            if shadowed and self.rng.random() < 0.3 and "[" not in (chosen := self.rng.choice(shadowed)):
                name = chosen  # a loop's variable is one of the function's
            bound = self.one_of("n", "t % 3", f"to({self.leaf('Int32', False)}, Int32) % 3", "n + 1")
            lines = [f"for {name} in range({bound}):"]
        else:
            lines = [f"for {name} in range({self.rng.randint(1, 2)}):"]
        before = list(self.variables)
        if kind == "for" and name not in [each.name for each in before]:
            target = self.assigned()
            if not target.whole and target.type in (*INTEGERS, *FLOATS):
                lines.append(f"    {target.name} += to({name}, {target.type})")
        lines += self.indented(depth - 1, True)
        self.variables = before
        if self.rng.random() < 0.2:
            lines += ["else:", *self.indented(depth - 1, False)]
        return lines

    def nested(self, depth: int) -> list[str]:
        """A function within the function, whose parameters may have the names of variables outside, and a call."""
        self.count += 1
        name = f"g{self.count}"
        target = self.assigned()
        outside = self.variables
        plain = [each for each in outside if each.name.isidentifier()]
        shadowed = self.rng.sample(plain, min(2, len(plain)))
        types = [self.rng.choice(COMPUTED) for _ in shadowed]
        parameters = [Variable(each.name, type) for each, type in zip(shadowed, types, strict=True)]
        arguments = [self.value(each.type, 1) for each in parameters]
        hidden = {each.name for each in parameters}
        self.variables = parameters + [each for each in plain if each.name not in hidden and not each.whole]
        was, self.inside = self.inside, True
        kept, self.variables = self.variables, list(parameters)
        changes = [line for _ in range(self.rng.randint(0, 2)) for line in self.assignment()] if parameters else []
        if parameters and depth > 1 and self.rng.random() < 0.5:
            changes += self.branch(1, False)
        self.variables = kept
        result = self.value(target.type, 2) if not target.whole else self.leaf(target.type, False)
        early = [f"if {self.test()}:", f"    return {self.leaf(target.type, False)}"] if self.rng.random() < 0.4 else []
        self.variables, self.inside = outside, was
        body = [f"    {line}" for line in (*changes, *early, f"return {result}")]
        call = f"{name}({', '.join(arguments)})"
        if target.whole:
            call = f"where({self.condition(1, True)}, {call}, {self.leaf(target.type, True)})"
        return [f"def {name}({', '.join(each.name for each in parameters)}):", *body, f"{target.name} = {call}"]

    def results(self) -> str:
        """What a `return` gives: each variable that counts, or something of its type."""
        return ", ".join(
            each.name if self.rng.random() < 0.7 else self.value(each.type, 1, each.whole) for each in self.returned
        )

    def function(self) -> Function:
        """The whole function."""
        rng = self.rng
        scalars = tuple(rng.sample(TYPES, rng.randint(3, 6)))
        if rng.random() < 0.5 and "Int32" not in scalars:
            scalars += ("Int32",)
        fragments = tuple(rng.sample(TYPES, rng.choice((0, 0, 1, 2))))
        names = [f"a{index}" for index in range(len(scalars))]
        wholes = [f"f{index}" for index in range(len(fragments))]
        values = [Variable(name, type) for name, type in zip(names, scalars, strict=True)]
        values += [Variable(name, type, True) for name, type in zip(wholes, fragments, strict=True)]
        lines = [f"{', '.join(names)}, = xs"] + ([f"{', '.join(wholes)}, = fs"] if wholes else [])
        self.variables = list(values)
        if rng.random() < 0.4:
            first, second = rng.choice(COMPUTED), rng.choice(COMPUTED)
            lines.append(f"p = [{self.value(first, 2)}, {self.value(second, 2)}]")
            values += [Variable("p[0]", first), Variable("p[1]", second)]
            self.variables = list(values)
        self.returned = tuple(values)
        lines += self.block(3, False)
        lines += self.block(2, False)
        lines.append(f"return {', '.join(each.name for each in values)},")
        text = "\n".join(["def generated(t, n, xs, fs):", *(f"    {line}" for line in lines), ""])
        return Function(text, scalars, fragments, self.shape, self.returned)


def random_function(rng: Random) -> Function:
    """A function of the numbers that are drawn."""
    return Statements(rng, rng.choice(((4,), (2, 4), (3, 2), (2, 2, 2)))).function()
