# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C functions that host programs may call: `printf`, `atoi`, `getenv`. None reaches a file, a process or a network.

Each takes the values of the call and returns its result; the error of a wrong call names the problem.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.llvm import LLVMArrayType
from xdsl.ir import Attribute

from ...base.errors import Code
from ...dialects.ptx.base import integer_bits
from ...dialects.ptx.sync import conversions
from ..sim.values.printf import format_values


class PointerError(Exception):
    """A pointer that leads nowhere; the text says where it leads."""


@dataclass(frozen=True, slots=True)
class HostPointer:
    """A place in a constant: `offset` bytes into `data`, which is called `name` in messages."""

    data: bytes
    offset: int
    name: str

    def moved(self, distance: int) -> "HostPointer":
        """The place `distance` bytes further on, which may be anywhere until it is read."""
        return HostPointer(self.data, self.offset + distance, self.name)

    def string(self) -> bytes:
        """The bytes up to the next NUL, as C reads a string. Raises PointerError for one that does not end here."""
        end = self.data.find(b"\0", self.offset) if 0 <= self.offset < len(self.data) else -1
        if self is NULL or end < 0:
            where = f"{self.offset} bytes into {self.name} of {len(self.data)} bytes"
            raise PointerError("a null pointer" if not self.data else f"no string {where}")
        return self.data[self.offset : end]


NULL = HostPointer(b"", 0, "null")
"""The pointer that points nowhere."""


def byte_size(type: Attribute) -> int | None:
    """The bytes of an integer or of an array of them in memory; None for another type."""
    match type:
        case LLVMArrayType():
            element = byte_size(type.type)
            return None if element is None else element * type.size.data
        case _:
            bits = integer_bits(type)
            return None if bits is None else -(-bits // 8)


_NUMBER = re.compile(rb"[ \t\n\v\f\r]*([+-]?[0-9]{1,20})")


class CallError(Exception):
    """A call that a program may not make, or makes wrongly."""

    def __init__(self, code: Code, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


@dataclass(frozen=True, slots=True)
class World:
    """The world of the functions: the environment variables that may be read (None: allowed, but not set), and where
    text goes.
    """

    environment: Mapping[str, str | None]
    write: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Argument:
    """A value of a call: a number of `bits` bits, or a pointer."""

    value: Any
    bits: int = 0
    is_float: bool = False


def getenv(world: World, arguments: Sequence[Argument]) -> HostPointer:
    """The value of an environment variable, or null. CallError (E3402) unless the variable is allowed."""
    name = _string("getenv", arguments, 0).decode("utf-8", "replace")
    if name not in world.environment:
        known = ", ".join(sorted(world.environment)) or "none"
        raise CallError(
            Code.HOST_ENVIRONMENT,
            f"the program reads the environment variable '{name[:80]}', which is not allowed (allowed: {known})",
            f"tilefold run --allow-env {name[:80]}, or --allow-env {name[:80]}=VALUE",
        )
    value = world.environment[name]
    return NULL if value is None else HostPointer(value.encode() + b"\0", 0, f"the value of {name}")


def atoi(world: World, arguments: Sequence[Argument]) -> int:
    """The integer that a string begins with, or 0. CallError (E3401) for one that does not fit in 32 bits."""
    text = _string("atoi", arguments, 0)
    match = _NUMBER.match(text)
    number = int(match[1]) if match else 0
    if not -(1 << 31) <= number < 1 << 31:
        raise CallError(Code.HOST_CALL, f"atoi of '{text[:40].decode('utf-8', 'replace')}', which exceeds 32 bits")
    return number


def printf(world: World, arguments: Sequence[Argument]) -> int:
    """Prints; returns the number of bytes. CallError (E3401) where conversions and values do not fit together."""
    format = _string("printf", arguments, 0).decode("utf-8", "replace")
    values = arguments[1:]
    try:
        wanted = conversions(format, strings=True)
    except ValueError as error:
        raise CallError(Code.HOST_CALL, f"printf: {error}") from None
    if len(wanted) != len(values):
        raise CallError(Code.HOST_CALL, f"printf has {len(wanted)} conversions for {len(values)} values")
    shown: list[object] = []
    for index, (conversion, value) in enumerate(zip(wanted, values, strict=True)):
        if not _fits(conversion, value):
            raise CallError(Code.HOST_CALL, f"printf: conversion %{conversion} does not fit value {index}")
        is_text = conversion == "s"
        shown.append(_string("printf", arguments, index + 1).decode("utf-8", "replace") if is_text else value.value)
    text = format_values(format, shown, [max(value.bits, 32) for value in values])
    world.write(text)
    return len(text.encode())


def _fits(conversion: str, value: Argument) -> bool:
    if conversion == "s" or isinstance(value.value, HostPointer):
        return conversion == "s" and isinstance(value.value, HostPointer)
    if conversion in ("e", "f", "g") or value.is_float:
        return conversion in ("e", "f", "g") and value.is_float
    return conversion != "p" and conversion.startswith("ll") == (value.bits == 64)


def _string(function: str, arguments: Sequence[Argument], index: int) -> bytes:
    value = arguments[index].value if index < len(arguments) else None
    if not isinstance(value, HostPointer):
        raise CallError(Code.HOST_CALL, f"{function} takes a string as argument {index}")
    return value.string()


FUNCTIONS: Mapping[str, Callable[[World, Sequence[Argument]], Any]] = {"printf": printf, "atoi": atoi, "getenv": getenv}
"""The functions by name. There are no others."""
