# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels of `.float_kernels`, and numbers for them. LLVM changes more of what is used once, so that only some
results are stored.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import numpy as np

from tests.emit.float_kernels import (
    BINARY,
    COMPUTED,
    INTEGERS,
    NARROW,
    PREDICATES,
    UNARY,
    WHOLE,
    WIDTHS,
    Kernel,
    Values,
    resizes_to,
)
from tests.emit.numbers import FORMATS, decoded, rounded, wrap

SPECIAL = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, -0.3, 0.3, 1.5, 2.5, -2.5, 0.49999997, 3.0, 1e6, -100.0, 127.5, 255.0, -128.5),
    *(65504.0, 65519.9, 65520.0, 448.0, 464.0, 57344.0, 2.0**24 + 1, 2.0**31, -(2.0**31), 2.0**63, 3.4e38, -3.39e38),
    *(2.0**-126, 2.0**-133, 2.0**-134, 3 * 2.0**-135, 2.0**-149, 2.0**-24, 2.0**-25, 6e-8, 1e-40, 2.0**-14, 1e300),
    *(1 + 2.0**-8, 1 + 3 * 2.0**-9, 1 + 2.0**-11, 1 + 2.0**-8 + 2.0**-30, np.inf, -np.inf, np.nan, 8388607.5, 5e-324),
    *(-(2.0**-67), 3 * 2.0**-68, 2.0**-60, 1e-4),
)
"""Zeros, halves, ties, limits of each type and of integers, subnormal numbers, and their neighbours."""
EDGES = (0, 1, -1, 2, 255, 65519, 65520, 1 << 24, (1 << 24) + 1, (1 << 30) + (1 << 22) + 1, (1 << 62) + (1 << 54) + 1)


def numbers(random: Random, type: str, count: int) -> Values:
    """Values of a type: special ones, any bit patterns, and ordinary ones."""
    if type in WIDTHS:
        bits = WIDTHS[type]
        edges = (*EDGES, (1 << bits - 1) - 1, -(1 << bits - 1))
        choices = [(random.choice(edges), random.getrandbits(bits), random.randint(-9, 9)) for _ in range(count)]
        found = np.array([random.choice(each) & 2**64 - 1 for each in choices], np.uint64)
        return wrap(found.view(np.int64), bits)
    specials = rounded(np.array([random.choice(SPECIAL) for _ in range(count)]), type)
    patterns = np.array([random.getrandbits(FORMATS[type].bits) for _ in range(count)], np.uint64)
    ordinary = rounded(np.array([random.gauss(0, 10.0 ** random.randint(-3, 4)) for _ in range(count)]), type)
    pick = np.array([random.randrange(4) for _ in range(count)])
    return np.where(pick == 0, decoded(patterns, type), np.where(pick == 1, ordinary, specials))


@dataclass
class _Author:
    """Who writes a kernel at random."""

    random: Random
    kernel: Kernel

    def input(self, type: str) -> None:
        self.kernel.input(type, numbers(self.random, type, self.kernel.elements))

    def pick(self, *types: str) -> tuple[str, str]:
        """Any value of one of these types, or a constant where there is none: its name and type."""
        values, random = self.kernel.values, self.random
        found = [name for name, (type, _) in values.items() if type in types]
        if not found or random.random() < 0.1:
            type = random.choice(types)
            found = [self.kernel.constant(type, numbers(random, type, 1)[0])]
        elif random.random() < 0.6:
            found = found[-6:]  # long chains
        name = random.choice(found)
        return name, values[name][0]

    def like(self, type: str) -> str:
        """A value of one type."""
        return self.pick(type)[0]

    def known_floats(self) -> tuple[str, ...]:
        """The types of numbers; 8-bit ones, which only some targets have, where the kernel has them."""
        narrow = {type for type, _ in self.kernel.values.values()} & set(NARROW)
        return (*COMPUTED, *(NARROW if narrow else ()))

    def binary(self) -> None:
        name, type = self.pick(*COMPUTED)
        self.kernel.binary(self.random.choice(sorted(BINARY)), name, self.like(type))

    def unary(self) -> None:
        self.kernel.unary(self.random.choice(sorted(UNARY)), self.pick(*COMPUTED)[0])

    def copysign(self) -> None:
        name, type = self.pick(*COMPUTED)
        self.kernel.copysign(name, self.kernel.ordered(self.like(type)))

    def fma(self) -> None:
        name, type = self.pick(*COMPUTED)
        self.kernel.fma(name, self.like(type), self.like(type))

    def compare(self) -> None:
        name, type = self.pick(*COMPUTED)
        predicate = self.random.choice("ou") + self.random.choice(sorted(PREDICATES))
        self.kernel.compare(predicate, name, self.like(type))

    def select(self) -> None:
        name, type = self.pick(*COMPUTED, *INTEGERS, "i1")
        self.kernel.select(self.like("i1"), name, self.like(type))

    def resize(self) -> None:
        floats = self.known_floats()
        name, type = self.pick(*floats)
        self.kernel.resize(name, self.random.choice(resizes_to(type, *floats)))

    def rounded_operation(self) -> None:
        """An operation on extended numbers, rounded: what LLVM likes to do in the narrow type."""
        k, random = self.kernel, self.random
        wide = random.choice(("f32", "f32", "f64"))
        operands = [self.pick("f16", "bf16", *(("f32",) if wide == "f64" else ()))[0] for _ in range(2)]
        a, b = (k.resize(name, wide) for name in operands)
        if random.random() < 0.2:
            b = k.constant(wide, numbers(random, random.choice(("f16", "bf16")), 1)[0])
        result = k.binary(random.choice(sorted(BINARY)), a, b)
        if random.random() < 0.2:
            result = k.select(self.like("i1"), result, self.like(wide))
        k.resize(result, random.choice(resizes_to(wide, *COMPUTED[:3])))

    def from_integer(self) -> None:
        name, _ = self.pick(*INTEGERS, "i1", "i1")
        result = self.kernel.from_integer(self.random.choice(("sitofp", "uitofp")), name, self.random.choice(COMPUTED))
        if self.random.random() < 0.4:
            type, _ = self.kernel.values[result]
            self.kernel.resize(result, self.random.choice(resizes_to(type, *COMPUTED)))

    def clamped(self) -> None:
        """Minima and maxima of constants, one after the other."""
        k, random = self.kernel, self.random
        name, type = self.pick(*COMPUTED)
        for _ in range(random.randint(2, 3)):
            op = random.choice(("arith.maxnumf", "arith.minnumf", "arith.maximumf", "arith.minimumf"))
            operands = [name, k.constant(type, numbers(random, type, 1)[0])]
            random.shuffle(operands)
            name = k.binary(op, *operands)

    def compared_integer(self) -> None:
        """An integer as a float, compared with a constant: what LLVM likes to do with integers."""
        k, random = self.kernel, self.random
        name, _ = self.pick(*INTEGERS, "i1")
        type = random.choice(COMPUTED)
        number = k.from_integer(random.choice(("sitofp", "uitofp")), name, type)
        limit = k.constant(type, numbers(random, type, 1)[0])
        k.compare(random.choice("ou") + random.choice(sorted(PREDICATES)), number, limit)

    def combined_integers(self) -> None:
        """Arithmetic of integers as floats, which LLVM likes to do before their conversion."""
        k, random = self.kernel, self.random
        type = random.choice(COMPUTED)
        both = [
            k.from_integer(random.choice(("sitofp", "uitofp")), self.pick(*INTEGERS, "i1")[0], type) for _ in range(2)
        ]
        k.binary(random.choice(("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.maxnumf")), *both)

    def to_integer(self) -> None:
        name, _ = self.pick(*COMPUTED)
        result = self.random.choice((*INTEGERS, "i1"))
        self.kernel.to_integer(self.random.choice(("fptosi", "fptoui")), name, result)

    def whole(self) -> None:
        name, type = self.pick(*INTEGERS, "i1")
        self.kernel.whole(self.random.choice(sorted(WHOLE)), name, self.like(type))

    def whole_compare(self) -> None:
        name, type = self.pick(*INTEGERS, "i1")
        predicate = self.random.choice(sorted(PREDICATES))
        sign = "" if predicate in ("eq", "ne") else self.random.choice("su")
        self.kernel.compare(f"{sign}{predicate}", name, self.like(type))

    def whole_resize(self) -> None:
        name, type = self.pick(*INTEGERS, "i1", "i1")
        result = self.random.choice([t for t, width in WIDTHS.items() if width != WIDTHS[type]])
        op = "trunci" if WIDTHS[result] < WIDTHS[type] else self.random.choice(("extsi", "extui"))
        self.kernel.whole_resize(op, name, result)

    def negated(self) -> None:
        """0 - p, as a Boolean of Python is negated, often as a float."""
        k, type = self.kernel, self.random.choice(INTEGERS)
        wide = k.whole_resize("extui", self.like("i1"), type)
        result = k.whole("subi", k.constant(type, 0), wide)
        if self.random.random() < 0.5:
            k.from_integer("sitofp", result, self.random.choice(COMPUTED))

    def bits(self) -> None:
        """A number's bits, or the number of some bits."""
        name, type = self.pick(*COMPUTED, "i16", "i32", "i64")
        if type in FORMATS:
            self.kernel.bits(self.kernel.ordered(name), f"i{FORMATS[type].bits}")
        else:
            same = [t for t in COMPUTED if FORMATS[t].bits == WIDTHS[type]]
            self.kernel.bits(name, self.random.choice(same))


_STATEMENTS: tuple[Callable[[_Author], None], ...] = (
    *(_Author.binary,) * 4, *(_Author.rounded_operation,) * 4, *(_Author.resize,) * 4, *(_Author.from_integer,) * 3,
    *(_Author.to_integer,) * 2, *(_Author.unary,) * 2, *(_Author.select,) * 2, _Author.copysign, _Author.fma,
    _Author.compare, _Author.clamped, _Author.compared_integer, _Author.combined_integers, _Author.whole,
    _Author.whole_compare, _Author.whole_resize, _Author.negated, _Author.bits,
)  # fmt: skip


def generate(seed: int, most: int = 20) -> tuple[Kernel, list[str]]:
    """A kernel of up to `most` statements, and the values that it stores: those that nothing uses, and a few more."""
    random = Random(seed)
    author = _Author(random, kernel := Kernel())
    for _ in range(random.randint(2, 4)):
        author.input(random.choice((*COMPUTED, *COMPUTED, *INTEGERS, "i1")))
    if random.random() < 0.25:
        author.input(random.choice(NARROW))
    with np.errstate(all="ignore"):
        for _ in range(random.randint(1, most)):
            random.choice(_STATEMENTS)(author)
    used = [name for name in kernel.values if name in kernel.used and name not in kernel.inputs]
    extra = random.sample(used, min(len(used), random.randint(0, 2)))
    ends = [name for name in kernel.values if name not in kernel.used and name not in kernel.inputs]
    return kernel, [*ends, *extra]
