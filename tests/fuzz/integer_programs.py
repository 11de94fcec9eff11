# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random integer programs as kernel text, with what each thread computes by Python's integers.

All widths, both signs, constants and run-time values, casts, branches, loops that carry what wraps, and elements at
coordinates that have wrapped.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tests.passes.expressions import BY_CONSTANT, OPERATIONS, SHIFTS, signed, unsigned

WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}
ARITHMETIC = ("i8", "i8", "i16", "i16", "i32", "i32", "i32", "i64", "index", "index", "i1")
ELEMENTS = 64
"""Elements of each tensor that is read."""
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


@dataclass(frozen=True)
class Problem:
    """A kernel `@k`, its arguments in their order, and what each thread writes: a row of `expected`."""

    text: str
    grid: int
    threads: int
    arguments: Mapping[str, Any]
    expected: NDArray[np.int64]


class _Generator:
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
        if family == 0 and bits > 1:
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

    def branch(self, block: Block, depth: int) -> None:
        """An `scf.if` with results."""
        condition = self.comparison(block)
        types = [self.random.choice(ARITHMETIC) for _ in range(self.random.randint(1, 2))]
        sides = [block.inner(), block.inner()]
        ends: list[list[str]] = []
        for side in sides:
            self.statements(side, self.random.randint(1, 4), depth + 1)
            ends.append([self.pick(side, type) for type in types])
        names = [self.name() for _ in types]
        listed = ", ".join(types)
        block.lines.append(f"{', '.join(names)} = scf.if {condition} -> ({listed}) {{")
        for side, end, closing in zip(sides, ends, ("} else {", "}"), strict=True):
            block.lines += [*side.lines, f"scf.yield {', '.join(end)} : {listed}", closing]

        def step(values: Values) -> None:
            which = 0 if values[condition] else 1
            sides[which].run(values)
            for name, end in zip(names, ends[which], strict=True):
                values[name] = values[end]

        block.steps.append(step)
        block.scope += zip(names, types, strict=True)

    def counted(self, block: Block, depth: int) -> None:
        """An `scf.for` that carries values, whose bounds may be near the end of their type."""
        r = self.random
        type = r.choice(["index", "index", "i32", "i8", "i64"])
        bits = WIDTHS[type]
        trips, by = r.randint(0, 5), r.choice([1, 1, 2, 3, 7])
        last = (1 << (bits - 1)) - 1
        first = r.choice([0, 0, 1, self.number(bits), last - trips * by, last - trips * by + r.randrange(by)])
        first = min(first, last - max(trips - 1, 0) * by)
        if r.random() < 0.3:
            low = self.low(block, type, 7)
            if first > 0 and r.random() < 0.3:
                low = self.apply(block, type, "subi", self.constant(block, type, last), low)
                high = self.constant(block, type, last)
            else:
                high = self.apply(block, type, "addi", low, self.constant(block, type, trips * by))
        else:
            low, high = self.constant(block, type, first), self.constant(block, type, min(first + trips * by, last))
        step = self.constant(block, type, by)
        types = [r.choice(ARITHMETIC) for _ in range(r.randint(1, 3))]
        starts = [self.pick(block, each) for each in types]
        counter, carried, names = self.name(), [self.name() for _ in types], [self.name() for _ in types]
        body = block.inner((counter, type), *zip(carried, types, strict=True))
        self.statements(body, r.randint(1, 5), depth + 1)
        ends = [self.grown(body, name, each) for name, each in zip(carried, types, strict=True)]
        pairs, listed = ", ".join(f"{c} = {s}" for c, s in zip(carried, starts, strict=True)), ", ".join(types)
        head = f"scf.for {counter} = {low} to {high} step {step} iter_args({pairs}) -> ({listed})"
        kind = "" if type == "index" else f" : {type}"
        unroll = " {unroll}" if trips and not block.scope and r.random() < 0.2 else ""
        block.lines += [f"{', '.join(names)} = {head}{kind} {{", *body.lines]
        block.lines += [f"scf.yield {', '.join(ends)} : {listed}", "}" + unroll]

        def run(values: Values) -> None:
            now = [values[start] for start in starts]
            for number in range(values[low], values[high], values[step]):
                values[counter] = number
                values.update(zip(carried, now, strict=True))
                body.run(values)
                now = [values[end] for end in ends]
            values.update(zip(names, now, strict=True))

        block.steps.append(run)
        block.scope += zip(names, types, strict=True)

    def grown(self, body: Block, carried: str, type: str) -> str:
        """What follows a carried value: a hash of it, a count, a ring, or anything."""
        r = self.random
        if WIDTHS[type] == 1 or r.random() < 0.3:
            return self.pick(body, type)
        kind = r.randrange(4)
        if kind == 0:
            product = self.apply(body, type, "muli", carried, self.constant(body, type, r.choice([31, 33, 2, -3, 5])))
            return self.apply(body, type, r.choice(["addi", "xori"]), product, self.pick(body, type))
        if kind == 1:
            return self.apply(body, type, r.choice(["addi", "subi"]), carried, self.pick(body, type, 0.6))
        more = self.apply(body, type, "addi", carried, self.constant(body, type, 1))
        limit = r.choice([3, 4, 7])
        if kind == 2:
            return self.apply(body, type, r.choice(["remui", "remsi"]), more, self.constant(body, type, limit))
        last, zero = self.constant(body, type, limit), self.constant(body, type, 0)
        predicate = r.choice(["eq", "sge", "uge", "ult", "slt"])
        function, bits = COMPARISONS[predicate], WIDTHS[type]
        condition = self.define(
            body, "i1", f"arith.cmpi {predicate}, {more}, {last} : {type}",
            lambda values: function(values[more], values[last], bits),
        )  # fmt: skip
        a, b = (more, zero) if predicate in ("ult", "slt") else (zero, more)
        return self.define(
            body, type, f"arith.select {condition}, {a}, {b} : {type}",
            lambda values: values[a] if values[condition] else values[b],
        )  # fmt: skip

    def statements(self, block: Block, count: int, depth: int = 0) -> None:
        """So many statements."""
        for _ in range(count):
            choice = self.random.randrange(24)
            if choice < 12:
                self.binary(block)
            elif choice < 14:
                self.comparison(block)
            elif choice < 16:
                self.selection(block)
            elif choice < 17:
                self.absolute(block)
            elif choice < 20:
                self.cast(block, *self.random.choice(block.scope), self.random.choice(ARITHMETIC))
            elif choice < 21:
                self.load(block, self.tensors)
            elif depth < 2 and choice < 23:
                self.branch(block, depth)
            elif depth < 2:
                self.counted(block, depth)

    tensors: Mapping[str, NDArray[Any]] = MappingProxyType({})


def _arrays(random: Random) -> dict[str, NDArray[Any]]:
    """The tensors that are read, by their names."""
    made: dict[str, NDArray[Any]] = {}
    for bits in (8, 16, 32, 64):
        edges = [0, 1, -1, (1 << (bits - 1)) - 1, -(1 << (bits - 1)), 7]
        numbers = [random.choice([*edges, signed(random.getrandbits(bits), bits)]) for _ in range(ELEMENTS)]
        made[f"%A{bits}"] = np.array(numbers, f"i{bits // 8}")
    return made


def generate(seed: int, size: int = 24) -> Problem | None:
    """The program of a seed; None where it is not defined."""
    random = Random(seed)
    made, block = _Generator(random), Block()
    arrays = _arrays(random)
    made.tensors = arrays
    grid, threads = random.randint(1, 3), random.choice([1, 3, 8, 33])
    scalars = {"%n": made.number(32), "%m": made.number(64)}
    block.scope += [("%t", "index"), ("%b", "index"), ("%n", "i32"), ("%m", "i64"), ("%d", "index")]
    if random.random() < 0.7:
        narrow = random.choice(["i8", "i16", "i32"])
        made.cast(block, "%t", "index", narrow)
    made.statements(block, random.randint(size // 2, size))
    outputs = random.sample(block.scope, min(len(block.scope), 20))
    lines = _stores(made, block, outputs, grid * threads * len(outputs))
    kinds = [f'{name}: !tile.tensor<i{a.itemsize * 8}, gmem, align<16>, "{ELEMENTS}:1">' for name, a in arrays.items()]
    out = f'!tile.tensor<i64, gmem, align<16>, "{grid * threads * len(outputs)}:1">'
    head = f"tile.kernel @k({', '.join(kinds)}, %n: i32, %m: i64, %B: {out}) threads({threads}) {{"
    registers = ["%t = gpu.thread_id x", "%b = gpu.block_id x", "%d = gpu.block_dim x"]
    text = "\n".join(["gpu.module @m {", head, *registers, *lines, "return", "}", "}", ""])
    rows: list[list[int]] = []
    try:
        for number in range(grid * threads):
            values = {"%t": number % threads, "%b": number // threads, "%d": threads, **scalars}
            block.run(values)
            rows.append([values[name] for name, _ in outputs])
    except UndefinedError:
        return None
    arguments = {name[1:]: value for name, value in arrays.items()}
    arguments |= {"n": np.int32(scalars["%n"]), "m": np.int64(scalars["%m"])}
    return Problem(text, grid, threads, arguments, np.array(rows, np.int64))


def _stores(made: _Generator, block: Block, outputs: Sequence[tuple[str, str]], size: int) -> list[str]:
    """The lines of the block, and those that store the outputs of a thread, as i64 with their sign."""
    count = len(outputs)
    lines = [*block.lines, f"%count = arith.constant {count} : index"]
    lines += ["%row = arith.muli %b, %d : index", "%thread = arith.addi %row, %t : index"]
    lines += ["%first = arith.muli %thread, %count : index"]
    for number, (name, type) in enumerate(outputs):
        cast = "index_cast" if type == "index" else "extsi"
        if type != "i64":
            lines.append(f"%w{number} = arith.{cast} {name} : {type} to i64")
        lines.append(f"%c{number} = arith.constant {number} : index")
        lines.append(f"%at{number} = arith.addi %first, %c{number} : index")
        lines.append(f"tile.store {name if type == 'i64' else f'%w{number}'}, %B(%at{number})")
    return lines
