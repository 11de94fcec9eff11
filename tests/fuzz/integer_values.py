# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random lines of integer arithmetic as kernel text, and what they compute by Python's integers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from types import MappingProxyType
from typing import Any, TypeAlias

from numpy.typing import NDArray

from tests.passes.expressions import BY_CONSTANT, OPERATIONS, SHIFTS, signed, unsigned

WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}
ARITHMETIC = ("i8", "i8", "i16", "i16", "i32", "i32", "i32", "i64", "index", "index", "i1")
ELEMENTS = 64
"""Elements of each tensor that is read."""
OWN = 32
"""Elements of a tensor that each thread has for itself."""
COMPARISONS: Mapping[str, Callable[[int, int, int], bool]] = MappingProxyType({
    "eq": lambda a, b, n: a == b, "ne": lambda a, b, n: a != b, "slt": lambda a, b, n: a < b,
    "sle": lambda a, b, n: a <= b, "sgt": lambda a, b, n: a > b, "sge": lambda a, b, n: a >= b,
    "ult": lambda a, b, n: unsigned(a, n) < unsigned(b, n), "ule": lambda a, b, n: unsigned(a, n) <= unsigned(b, n),
    "ugt": lambda a, b, n: unsigned(a, n) > unsigned(b, n), "uge": lambda a, b, n: unsigned(a, n) >= unsigned(b, n),
})  # fmt: skip
SIGNED_DIVISIONS = ("divsi", "remsi", "floordivsi", "ceildivsi")
WRAPPING = ("addi", "subi", "muli")

Values: TypeAlias = dict[str, int]
"""What each name is in a thread, as a signed integer of its type."""
Step: TypeAlias = Callable[[Values], None]


class UndefinedError(Exception):
    """A program that does what has no result: a quotient that does not fit, a promise that is not kept."""


@dataclass
class Block:
    """Lines of text, what they do, and the values that they can use."""

    lines: list[str] = field(default_factory=list[str])
    steps: list[Step] = field(default_factory=list[Step])
    scope: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def inner(self, *more: tuple[str, str]) -> "Block":
        """An empty block within this one, which has more values."""
        return Block(scope=[*self.scope, *more])

    def run(self, values: Values) -> None:
        """Executes it for a thread."""
        for step in self.steps:
            step(values)


class Writer:
    """Writes operations on values that are there, and elements at coordinates that have wrapped."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.names = 0

    def name(self) -> str:
        self.names += 1
        return f"%v{self.names}"

    def number(self, bits: int) -> int:
        """A number of so many bits, often at an edge."""
        r = self.random
        power = 1 << r.randrange(bits)
        edge = r.choice([0, 1, 2, 3, 5, 7, 10, 100, power, power - 1, power + 1, 1 << (bits - 1), r.getrandbits(bits)])
        return signed(-edge if r.random() < 0.3 else edge, bits)

    def define(self, block: Block, type: str, text: str, compute: Callable[[Values], int]) -> str:
        """A line that defines a value."""
        name, bits = self.name(), WIDTHS[type]
        block.lines.append(f"{name} = {text}")

        def step(values: Values) -> None:
            values[name] = signed(compute(values), bits)

        block.steps.append(step)
        block.scope.append((name, type))
        return name

    def constant(self, block: Block, type: str, value: int) -> str:
        """A constant."""
        value = signed(value, WIDTHS[type])
        text = ("true" if value else "false") if type == "i1" else f"{value} : {type}"
        return self.define(block, type, f"arith.constant {text}", lambda values: value)

    def pick(self, block: Block, type: str, constants: float = 0.25) -> str:
        """A value of a type: one that is there, mostly of the last, a constant, or one of another type, converted."""
        r = self.random
        found = [name for name, own in block.scope if own == type]
        if r.random() < constants or not block.scope:
            return self.constant(block, type, self.number(WIDTHS[type]))
        if found and r.random() < 0.8:
            return r.choice(found[-4:] if r.random() < 0.6 else found)
        return self.cast(block, *r.choice(block.scope), type)

    def cast(self, block: Block, value: str, source: str, target: str) -> str:
        """A value in another type, by each of the ways there are."""
        old, new = WIDTHS[source], WIDTHS[target]
        if source == target:
            return value
        if "index" in (source, target):
            op, read = "index_cast", signed
        elif new < old:
            op, read = "trunci", signed
        else:
            op, read = self.random.choice([("extsi", signed), ("extui", unsigned)])
        return self.define(
            block, target, f"arith.{op} {value} : {source} to {target}", lambda values: read(values[value], old)
        )

    def apply(self, block: Block, type: str, op: str, a: str, b: str, flags: str = "") -> str:
        """A binary operation."""
        bits = WIDTHS[type]
        function = {**OPERATIONS, **BY_CONSTANT, **SHIFTS}[op]

        def compute(values: Values) -> int:
            x, y = values[a], values[b]
            if op in SHIFTS and not 0 <= y < bits:
                raise UndefinedError(op)
            if op in ("divui", "remui", "ceildivui"):
                y = unsigned(y, bits)
            if op in BY_CONSTANT and (y == 0 or (op in SIGNED_DIVISIONS and y == -1 and x == -(1 << (bits - 1)))):
                raise UndefinedError(op)
            found = function(x, y, bits)
            if flags and found != signed(found, bits):
                raise UndefinedError(flags)
            return found

        return self.define(block, type, f"arith.{op} {a}, {b}{flags} : {type}", compute)

    def binary(self, block: Block) -> None:
        """An operation with operands for which it has a result, as far as one can say."""
        r = self.random
        type = r.choice(ARITHMETIC)
        bits, left = WIDTHS[type], self.pick(block, type)
        family = r.randrange(8)
        if bits == 1 and family < 3:
            self.apply(block, type, r.choice(["divui", "remui", "ceildivui"]), left, self.constant(block, type, 1))
        elif family == 0 and bits > 1:
            shift = r.choice(list(SHIFTS))
            by = self.constant(block, type, r.randrange(bits)) if r.random() < 0.7 else self.low(block, type, bits - 1)
            self.apply(block, type, shift, left, by)
        elif family in (1, 2, 3) and bits > 1:
            op = r.choice(list(BY_CONSTANT))
            divisor = self.number(bits) or 1
            if divisor == -1 and r.random() < 0.8:
                divisor = -2
            by = self.constant(block, type, divisor) if r.random() < 0.75 else self.odd(block, type)
            self.apply(block, type, op, left, by)
        elif family == 4 and bits > 1:
            a, b = self.low(block, type, 7), self.low(block, type, 7)
            self.apply(block, type, r.choice(WRAPPING), a, b, " overflow<nsw>")
        else:
            self.apply(block, type, r.choice(list(OPERATIONS)), left, self.pick(block, type, 0.5))

    def low(self, block: Block, type: str, mask: int) -> str:
        """A value without the bits that a mask has not."""
        return self.apply(block, type, "andi", self.pick(block, type, 0), self.constant(block, type, mask))

    def odd(self, block: Block, type: str) -> str:
        """A value that is not 0."""
        return self.apply(block, type, "ori", self.pick(block, type, 0), self.constant(block, type, 1))

    def comparison(self, block: Block) -> str:
        """A predicate."""
        type = self.random.choice(ARITHMETIC)
        a, b = self.pick(block, type), self.pick(block, type, 0.5)
        predicate, bits = self.random.choice(list(COMPARISONS)), WIDTHS[type]
        function = COMPARISONS[predicate]
        return self.define(
            block, "i1", f"arith.cmpi {predicate}, {a}, {b} : {type}",
            lambda values: function(values[a], values[b], bits),
        )  # fmt: skip

    def selection(self, block: Block) -> None:
        """One of two values."""
        type = self.random.choice(ARITHMETIC)
        condition = self.pick(block, "i1", 0.1) if self.random.random() < 0.4 else self.comparison(block)
        a, b = self.pick(block, type), self.pick(block, type)
        self.define(
            block, type, f"arith.select {condition}, {a}, {b} : {type}",
            lambda values: values[a] if values[condition] else values[b],
        )  # fmt: skip

    def absolute(self, block: Block) -> None:
        """An absolute value, which of the least integer is the least integer."""
        type = self.random.choice(ARITHMETIC[:-1])
        a = self.pick(block, type, 0.1)
        self.define(block, type, f"math.absi {a} : {type}", lambda values: abs(values[a]))

    def load(self, block: Block, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Adjacent elements at a coordinate that has wrapped."""
        r = self.random
        name = r.choice(list(tensors))
        array, narrow = tensors[name], r.choice(["i8", "i16", "i32", "index"])
        count = r.choice([1, 2, 4])
        step = r.choice([1, count, 2 * count])
        low = self.low(block, narrow, ELEMENTS // (2 * step) - 1)
        place = self.apply(block, narrow, "muli", low, self.constant(block, narrow, step))
        for number in range(count):
            at = self.apply(block, narrow, "addi", place, self.constant(block, narrow, number)) if number else place
            coordinate = self.cast(block, at, narrow, "index")
            self.define(
                block, f"i{array.itemsize * 8}",
                f"tile.load {name}({coordinate})",
                lambda values, coordinate=coordinate: int(array[values[coordinate]]),
            )  # fmt: skip

    def memory(self, block: Block) -> None:
        """Stores to memory of the thread at coordinates that wrap, which may be equal, and loads of what is there."""
        r = self.random
        narrow = r.choice(["i8", "i8", "i16", "i32", "index"])
        tensor, first = r.choice(list(self.own.items()))
        place = self.pick(block, narrow, 0)
        places = [place]
        for number in r.sample([1, 2, 3, self.number(WIDTHS[narrow]), 128, 16], 3):
            places.append(self.apply(block, narrow, r.choice(WRAPPING), place, self.constant(block, narrow, number)))
        mask = self.constant(block, narrow, OWN - 1)
        at = ""
        for each in places:
            inside = self.apply(block, narrow, "andi", each, mask)
            at = self.apply(block, "index", "addi", first, self.cast(block, inside, narrow, "index"))
            stored = self.pick(block, "i32")
            block.lines.append(f"tile.store {stored}, {tensor}({at})")

            def store(values: Values, at: str = at, stored: str = stored) -> None:
                values[f"{tensor}{values[at]}"] = values[stored]

            block.steps.append(store)
        if tensor == "%C" and r.random() < 0.5:  # which is 0 where nothing was stored
            at = self.apply(block, "index", "addi", first, self.constant(block, "index", r.randrange(OWN)))
        self.define(block, "i32", f"tile.load {tensor}({at})", lambda values: values.get(f"{tensor}{values[at]}", 0))

    own: Mapping[str, str] = MappingProxyType({})
    """The tensors of which each thread has a part for itself, and where that begins."""
