# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random integer programs as kernel text, with what each thread computes by Python's integers.

All widths, both signs, constants and run-time values, casts, branches, loops that carry what wraps, and elements at
coordinates that have wrapped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.fuzz.integer_values import (
    ARITHMETIC,
    COMPARISONS,
    ELEMENTS,
    OWN,
    WIDTHS,
    Block,
    UndefinedError,
    Values,
    Writer,
)
from tests.passes.expressions import signed


@dataclass(frozen=True)
class Problem:
    """A kernel `@k`, its arguments in their order, and what each thread writes: a row of `expected`."""

    text: str
    grid: int
    threads: int
    arguments: Mapping[str, NDArray[Any] | np.generic]
    expected: NDArray[np.int64]


class _Generator(Writer):
    """Writes branches and loops, too."""

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
        is_static = r.random() < 0.6
        if not is_static:
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
        unroll = " {unroll}" if is_static and r.random() < 0.2 else ""
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

    def conditional(self, block: Block, depth: int) -> None:
        """An `scf.while` that carries values, and a count that ends it."""
        r = self.random
        types = ["i32", *(r.choice(ARITHMETIC) for _ in range(r.randint(1, 2)))]
        starts = [self.constant(block, "i32", r.randint(0, 5)), *(self.pick(block, each) for each in types[1:])]
        before, after, names = ([self.name() for _ in types] for _ in range(3))
        test = block.inner(*zip(before, types, strict=True))
        self.statements(test, r.randint(0, 2), 2)
        zero = self.constant(test, "i32", 0)
        more = self.define(
            test, "i1", f"arith.cmpi sgt, {before[0]}, {zero} : i32", lambda values: values[before[0]] > 0
        )
        if r.random() < 0.5:
            more = self.apply(test, "i1", "andi", more, self.comparison(test))
        passed = [before[0], *(self.pick(test, each) for each in types[1:])]
        body = block.inner(*zip(after, types, strict=True))
        self.statements(body, r.randint(1, 3), depth + 1)
        ends = [self.apply(body, "i32", "addi", after[0], self.constant(body, "i32", -1))]
        ends += [self.grown(body, name, each) for name, each in zip(after[1:], types[1:], strict=True)]
        pairs, listed = ", ".join(f"{b} = {s}" for b, s in zip(before, starts, strict=True)), ", ".join(types)
        block.lines += [f"{', '.join(names)} = scf.while ({pairs}) : ({listed}) -> ({listed}) {{", *test.lines]
        block.lines += [f"scf.condition({more}) {', '.join(passed)} : {listed}", "} do {"]
        block.lines += [f"^bb0({', '.join(f'{a}: {t}' for a, t in zip(after, types, strict=True))}):", *body.lines]
        block.lines += [f"scf.yield {', '.join(ends)} : {listed}", "}"]

        def run(values: Values) -> None:
            now = [values[start] for start in starts]
            while True:
                values.update(zip(before, now, strict=True))
                test.run(values)
                now = [values[each] for each in passed]
                if not values[more]:
                    break
                values.update(zip(after, now, strict=True))
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
            choice = self.random.randrange(25)
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
            elif choice < 22:
                self.memory(block)
            elif depth < 2:
                self.random.choice([self.branch, self.branch, self.counted, self.counted, self.conditional])(
                    block, depth
                )

    tensors: Mapping[str, NDArray[Any]] = MappingProxyType({})


def _arrays(random: Random) -> dict[str, NDArray[Any]]:
    """The tensors that are read, by their names."""
    made: dict[str, NDArray[Any]] = {}
    for bits in (8, 16, 32, 64):
        edges = [0, 1, -1, (1 << (bits - 1)) - 1, -(1 << (bits - 1)), 7]
        numbers = [random.choice([*edges, signed(random.getrandbits(bits), bits)]) for _ in range(ELEMENTS)]
        made[f"%A{bits}"] = np.array(numbers, f"i{bits // 8}")
    return made


def generate(seed: int, length: int = 24) -> Problem | None:
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
    row = made.apply(block, "index", "muli", "%b", "%d")
    thread = made.apply(block, "index", "addi", row, "%t")
    size = made.constant(block, "index", OWN)
    made.own = {
        "%C": made.apply(block, "index", "muli", thread, size),
        "%S": made.apply(block, "index", "muli", "%t", size),
    }
    made.statements(block, random.randint(length // 2, length))
    outputs = random.sample(block.scope, min(len(block.scope), 20))
    lines = _stores(made, block, outputs, grid * threads * len(outputs))
    kinds = [f'{name}: !tile.tensor<i{a.itemsize * 8}, gmem, align<16>, "{ELEMENTS}:1">' for name, a in arrays.items()]
    out = f'!tile.tensor<i64, gmem, align<16>, "{grid * threads * len(outputs)}:1">'
    own = f'!tile.tensor<i32, gmem, align<16>, "{grid * threads * OWN}:1">'
    head = f"tile.kernel @k({', '.join(kinds)}, %n: i32, %m: i64, %C: {own}, %B: {out}) threads({threads}) {{"
    registers = ["%t = gpu.thread_id x", "%b = gpu.block_id x", "%d = gpu.block_dim x"]
    registers.append(f'%S = tile.alloc : !tile.tensor<i32, smem, align<16>, "{threads * OWN}:1">')
    text = "\n".join(["gpu.module @m {", head, *registers, *lines, "return", "}", "}", ""])
    rows: list[list[int]] = []
    try:
        for number in range(grid * threads):
            values = {"%t": number % threads, "%b": number // threads, "%d": threads, **scalars}
            block.run(values)
            rows.append([values[name] for name, _ in outputs])
    except UndefinedError:
        return None
    arguments: dict[str, NDArray[Any] | np.generic] = {name[1:]: value for name, value in arrays.items()}
    arguments |= {"n": np.int32(scalars["%n"]), "m": np.int64(scalars["%m"])}
    arguments["C"] = np.zeros(grid * threads * OWN, np.int32)
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
