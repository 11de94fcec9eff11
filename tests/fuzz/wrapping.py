# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers of a type by integers of Python: what kernels compute with them, and what two types promote to."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tilefold.builder.scalars.operators import Arithmetic, Bitwise


class UndefinedError(Exception):
    """What has no result: the least integer divided by a value of -1."""


@dataclass(frozen=True)
class Type:
    """A type of integers, which converts numbers when it is called."""

    name: str
    bits: int
    unsigned: bool = False

    @property
    def least(self) -> int:
        """The least number."""
        return 0 if self.unsigned else -(1 << (self.bits - 1))

    def reduced(self, value: int) -> int:
        """The number of the type that is the same modulo the number of its numbers."""
        return int(value != 0) if self.bits == 1 else (value - self.least) % (1 << self.bits) + self.least

    def __call__(self, x: "Number | int") -> "Number":
        return Number(self.reduced(int(x)), self)


TYPES: Mapping[str, Type] = MappingProxyType({
    name: Type(name, bits, name[0] in "UB")
    for name, bits in (
        ("Int8", 8), ("Int16", 16), ("Int32", 32), ("Int64", 64), ("Uint8", 8), ("Uint16", 16), ("Uint32", 32),
        ("Uint64", 64), ("Index", 64), ("Boolean", 1),
    )
})  # fmt: skip
INTEGERS = tuple(name for name in TYPES if name != "Boolean")
_BINARY: Mapping[str, Callable[[int, int], int]] = MappingProxyType({
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "floordiv": lambda a, b: a // b,
    "ceildiv": lambda a, b: -(-a // b),
    "mod": lambda a, b: a % b, "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b, "shr": lambda a, b: a >> b, "min": min, "max": max,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
})  # fmt: skip


def promoted(a: str, b: str) -> str:
    """The type in which two are computed."""
    if "Boolean" in (a, b):
        return b if a == "Boolean" else a
    if "Index" in (a, b):
        return "Index"
    one, other = TYPES[a], TYPES[b]
    if one.bits == other.bits:
        return a if one.unsigned else b
    return a if one.bits > other.bits else b


def computed(name: str) -> str:
    """The type in which operators compute with a type, which is that of their result: C++ promotes small integers."""
    return "Int32" if 1 < TYPES[name].bits < 32 else name


class Number(Arithmetic, Bitwise):
    """An integer of a type."""

    __slots__ = ("type", "value")

    def __init__(self, value: int, type: Type) -> None:
        self.value, self.type = value, type

    def __bool__(self) -> bool:
        return self.value != 0

    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    def __pow__(self, exponent: int) -> "Number":
        return TYPES[computed(self.type.name)](self.value**exponent)

    def _binary(self, name: str, a: Any, b: Any) -> "Number":
        type = common(a, b)
        if type.name == "Boolean" and name not in ("and", "or", "xor"):
            type = TYPES["Int32"]
        if name not in ("min", "max"):
            type = TYPES[computed(type.name)]
        x, y = type.reduced(int(a)), type.reduced(int(b))
        if name in ("floordiv", "ceildiv", "mod") and x == type.least and y == -1 and isinstance(b, Number):
            raise UndefinedError(name)
        return type(_BINARY[name](x, y))

    def _compare(self, predicate: str, a: Any, b: Any) -> "Number":
        type = TYPES[computed(common(a, b).name)]
        return TYPES["Boolean"](_BINARY[predicate](type.reduced(int(a)), type.reduced(int(b))))

    def _unary(self, name: str) -> "Number":
        type = TYPES[computed(self.type.name)]
        if name == "not":
            return type(1 - self.value if type.bits == 1 else ~self.value)
        return type(-self.value if name == "neg" or self.value < 0 else self.value)


def common(*numbers: Number | int) -> Type:
    """The type in which numbers are computed; those of Python take that of the others."""
    names = [number.type.name for number in numbers if isinstance(number, Number)]
    found = names[0]
    for name in names[1:]:
        found = promoted(found, name)
    return TYPES[found]


def _where(condition: Number, a: Number | int, b: Number | int) -> Number:
    return common(a, b)(a if condition else b)


def _minimum(a: Number, b: Number) -> Number:
    return a._binary("min", a, b)  # pyright: ignore[reportPrivateUsage]


def _maximum(a: Number, b: Number) -> Number:
    return a._binary("max", a, b)  # pyright: ignore[reportPrivateUsage]


def _ceil_div(a: Number | int, b: Number | int) -> Number:
    one = a if isinstance(a, Number) else b
    assert isinstance(one, Number)
    return one._binary("ceildiv", a, b)  # pyright: ignore[reportPrivateUsage]


def _range(*bounds: Number | int) -> Iterator[Number]:
    return (TYPES["Index"](i) for i in range(*map(int, bounds)))


NAMES: Mapping[str, Any] = MappingProxyType(
    {**TYPES, "where": _where, "minimum": _minimum, "maximum": _maximum, "ceil_div": _ceil_div, "range": _range}
)
"""What the names in a generated text mean for these integers."""
