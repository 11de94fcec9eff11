# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random integer arithmetic as kernel text, with its value computed by Python integers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from hypothesis import strategies as st


def signed(value: int, bits: int) -> int:
    """`value` modulo 2**bits, as a signed integer."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def unsigned(value: int, bits: int) -> int:
    """`value` modulo 2**bits, as an unsigned integer."""
    return value & ((1 << bits) - 1)


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


Operation = Callable[[int, int, int], int]

OPERATIONS: Mapping[str, Operation] = MappingProxyType({
    "addi": lambda a, b, n: a + b,
    "subi": lambda a, b, n: a - b,
    "muli": lambda a, b, n: a * b,
    "andi": lambda a, b, n: a & b,
    "ori": lambda a, b, n: a | b,
    "xori": lambda a, b, n: a ^ b,
    "minsi": lambda a, b, n: min(a, b),
    "maxsi": lambda a, b, n: max(a, b),
    "minui": lambda a, b, n: min(unsigned(a, n), unsigned(b, n)),
    "maxui": lambda a, b, n: max(unsigned(a, n), unsigned(b, n)),
})  # fmt: skip
"""Operations on any two values; the result is taken modulo 2**n."""

BY_CONSTANT: Mapping[str, Operation] = MappingProxyType({
    "divui": lambda a, b, n: unsigned(a, n) // unsigned(b, n),
    "remui": lambda a, b, n: unsigned(a, n) % unsigned(b, n),
    "divsi": lambda a, b, n: _truncated(a, b),
    "remsi": lambda a, b, n: a - _truncated(a, b) * b,
    "floordivsi": lambda a, b, n: a // b,
    "ceildivsi": lambda a, b, n: -(-a // b),
    "ceildivui": lambda a, b, n: -(-unsigned(a, n) // unsigned(b, n)),
})  # fmt: skip
"""Operations that have no result for some operands; the right one is a positive constant here."""

SHIFTS: Mapping[str, Operation] = MappingProxyType({
    "shli": lambda a, b, n: a << b,
    "shrui": lambda a, b, n: unsigned(a, n) >> b,
    "shrsi": lambda a, b, n: a >> b,
})  # fmt: skip
"""Operations whose right operand is a constant less than n here."""

CONSTANTS = st.sampled_from(
    [0, 1, 2, 3, 4, 7, 8, 16, 31, 32, 100, 127, 128, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 40, -1, -8]
)


@dataclass
class Arithmetic:
    """Lines of operations of one type, and a function for each of their results that computes it from the inputs."""

    type: str
    bits: int
    lines: list[str] = field(default_factory=list[str])
    values: dict[str, Callable[[Mapping[str, int]], int]] = field(
        default_factory=dict[str, Callable[[Mapping[str, int]], int]]
    )

    def input(self, name: str) -> None:
        """A value defined elsewhere; whoever asks for results gives it."""
        self.values[name] = lambda inputs: inputs[name]

    def constant(self, value: int) -> str:
        """A constant; its name."""
        value = signed(value, self.bits)
        name = f"%e{len(self.values)}"
        self.lines.append(f"{name} = arith.constant {value} : {self.type}")
        self.values[name] = lambda inputs: value
        return name

    def apply(self, op: str, function: Operation, left: str, right: str) -> str:
        """An operation; its result's name."""
        name = f"%e{len(self.values)}"
        self.lines.append(f"{name} = arith.{op} {left}, {right} : {self.type}")
        a, b, bits = self.values[left], self.values[right], self.bits
        self.values[name] = lambda inputs: signed(function(a(inputs), b(inputs), bits), bits)
        return name


@st.composite
def arithmetic(draw: Any, type: str, bits: int, inputs: list[str], most: int = 10) -> Arithmetic:
    """Up to `most` operations on the inputs, on constants and on each other."""
    made = Arithmetic(type, bits)
    for name in inputs:
        made.input(name)
    for _ in range(draw(st.integers(1, most))):
        left = draw(st.sampled_from(list(made.values)))
        if draw(st.integers(0, 4)) == 0:
            left = made.constant(draw(CONSTANTS))
        family = draw(st.integers(0, 5))
        if family == 0:
            op = draw(st.sampled_from(list(SHIFTS)))
            made.apply(op, SHIFTS[op], left, made.constant(draw(st.integers(0, bits - 1))))
        elif family <= 2:
            op = draw(st.sampled_from(list(BY_CONSTANT)))
            divisor = draw(CONSTANTS.filter(lambda c: 0 < c < 1 << (bits - 1)))
            made.apply(op, BY_CONSTANT[op], left, made.constant(divisor))
        else:
            op = draw(st.sampled_from(list(OPERATIONS)))
            right = draw(st.sampled_from(list(made.values))) if draw(st.booleans()) else made.constant(draw(CONSTANTS))
            sides = (left, right) if draw(st.booleans()) else (right, left)
            made.apply(op, OPERATIONS[op], *sides)
    return made
