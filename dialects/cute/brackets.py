# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compile-time parameters in angle brackets after an operation's name, `cute.get<[0, 1]> (...)`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, UnitAttr, i32
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.printer import Printer

_LIMIT = 1 << 31


class Bracket(Protocol):
    """How the parameters of an operation are written."""

    def parse(self, parser: Parser) -> dict[str, Attribute]:
        """The properties that the text in brackets gives."""
        ...

    def print(self, printer: Printer, properties: Mapping[str, Attribute]) -> None:
        """Writes the properties as `parse` reads them."""
        ...


def _integer(parser: Parser) -> int:
    start = parser.pos
    value = parser.parse_integer(allow_boolean=False)
    if not -_LIMIT <= value < _LIMIT:
        parser.raise_error(f"{value} does not fit in 32 bits", start, parser.pos)
    return value


@dataclass(frozen=True, slots=True)
class Nothing:
    """No parameters."""

    def parse(self, parser: Parser) -> dict[str, Attribute]:
        return {}

    def print(self, printer: Printer, properties: Mapping[str, Attribute]) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Integers:
    """One or more 32-bit integers: `<0, 2> `."""

    names: tuple[str, ...]

    def parse(self, parser: Parser) -> dict[str, Attribute]:
        values: dict[str, Attribute] = {}
        with parser.in_angle_brackets():
            for name in self.names:
                if values:
                    parser.parse_punctuation(",")
                values[name] = IntegerAttr(_integer(parser), i32)
        return values

    def print(self, printer: Printer, properties: Mapping[str, Attribute]) -> None:
        numbers = [str(parameter(properties[name])) for name in self.names]
        printer.print_string(f"<{', '.join(numbers)}> ")


@dataclass(frozen=True, slots=True)
class Mode:
    """A list of mode indices, `<[0, 1]> `; may be left out if `optional`."""

    optional: bool

    def parse(self, parser: Parser) -> dict[str, Attribute]:
        if parser.parse_optional_punctuation("<") is None:
            if not self.optional:
                parser.raise_error("expected mode indices such as <[0, 1]>")
            return {}
        indices = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _integer(parser))
        parser.parse_punctuation(">")
        return {"mode": DenseArrayBase.from_list(i32, indices)}

    def print(self, printer: Printer, properties: Mapping[str, Attribute]) -> None:
        if "mode" in properties:
            indices = ", ".join(map(str, parameter(properties["mode"])))
            printer.print_string(f"<[{indices}]>")
        printer.print_string(" ")


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag: `<{only_dynamic}> `, or nothing."""

    name: str

    def parse(self, parser: Parser) -> dict[str, Attribute]:
        if parser.parse_optional_punctuation("<") is None:
            return {}
        parser.parse_punctuation("{")
        parser.parse_keyword(self.name)
        parser.parse_punctuation("}")
        parser.parse_punctuation(">")
        return {self.name: UnitAttr()}

    def print(self, printer: Printer, properties: Mapping[str, Attribute]) -> None:
        if self.name in properties:
            printer.print_string(f"<{{{self.name}}}>")
        printer.print_string(" ")


def parameter(attribute: Attribute) -> Any:
    """A property's value in Python: an integer, a tuple of integers, or True for a flag that is set."""
    match attribute:
        case IntegerAttr():
            return attribute.value.data
        case DenseArrayBase():
            return tuple(cast(DenseArrayBase[Any], attribute).get_values())
        case _:
            return True
