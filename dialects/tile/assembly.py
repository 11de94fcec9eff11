# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The shared parts of the `tile` dialect's assembly: coordinates, and view types that Python may skip."""

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.ir import SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ...layout.algebra.integers import AnyTuple, Coord, Unknown
from ..cute import CoordAttr
from ..operands import definition_of
from .coord_type import CoordTensorType
from .types import TensorType

AnyTensor: TypeAlias = TensorType | CoordTensorType
"""The types that views apply to: elements in memory, or coordinates."""


MAX_COORD_DEPTH = 32
"""How deep the parentheses of a coordinate may nest."""


def parse_coordinate(parser: Parser, linear: bool = False) -> tuple[CoordAttr, list[UnresolvedOperand]]:
    """Parses `(%m, (0, %k), _)`: the coordinate with `?` for each operand, and the operands in order.

    Where it may be `linear`, an integer without parentheses counts through all modes. `_` without them is everything.
    """
    operands: list[UnresolvedOperand] = []

    def visit(depth: int) -> AnyTuple:
        if depth > MAX_COORD_DEPTH:
            parser.raise_error(f"a coordinate nests at most {MAX_COORD_DEPTH} deep")
        if (operand := parser.parse_optional_unresolved_operand()) is not None:
            operands.append(operand)
            return Unknown()
        if parser.parse_optional_keyword("_") is not None:
            return None
        if (number := parser.parse_optional_integer(allow_boolean=False, allow_negative=False)) is not None:
            return number
        return many(depth + 1)

    def many(depth: int) -> tuple[AnyTuple, ...]:
        return tuple(
            parser.parse_comma_separated_list(Parser.Delimiter.PAREN, lambda: visit(depth), " in a coordinate")
        )

    coord = None
    if linear or parser.parse_optional_keyword("_") is None:
        coord = visit(0) if linear else many(1)
    return CoordAttr(coord), operands


def print_coordinate(printer: Printer, coord: Coord, operands: Sequence[SSAValue]) -> None:
    """Prints a coordinate as `parse_coordinate` reads it."""
    rest = iter(operands)

    def visit(part: AnyTuple) -> None:
        if isinstance(part, tuple):
            printer.print_string("(")
            for index, element in enumerate(part):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
                if index:
                    printer.print_string(", ")
                visit(element)
            printer.print_string(")")
        elif part is None:
            printer.print_string("_")
        elif isinstance(part, Unknown):
            printer.print_operand(next(rest))
        else:
            printer.print_string(str(part))

    visit(coord)


def fill_coordinate(coord: Coord, values: Sequence[object]) -> AnyTuple:
    """`coord` with its `?` leaves replaced by `values` in order."""
    rest = iter(values)

    def visit(part: AnyTuple) -> AnyTuple:
        if isinstance(part, tuple):
            return tuple([visit(element) for element in part])  # pyright: ignore[reportUnknownVariableType]
        return next(rest) if isinstance(part, Unknown) else part

    return visit(coord)


def unwrap(coord: object) -> AnyTuple:
    """The only integer of a coordinate, which indexes a whole layout; any other coordinate itself."""
    return coord[0] if isinstance(coord, tuple) and len(coord) == 1 and not isinstance(coord[0], tuple) else coord  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def check_operands(coord: Coord, operands: Sequence[SSAValue], subject: str = "coordinate") -> None:
    """VerifyException unless the number of `?` in `coord` is that of the operands."""
    count = count_operands(coord)
    if count != len(operands):
        raise VerifyException(f"the {subject} names {count} operands, not {len(operands)}")


def count_operands(coord: Coord) -> int:
    """How many leaves of `coord` an operand gives."""
    if isinstance(coord, tuple):
        return sum(map(count_operands, coord))
    return int(isinstance(coord, Unknown))


def parse_defined(parser: Parser) -> SSAValue:
    """Parses an operand whose definition stands before it, so that its type need not be repeated."""
    at = parser.pos
    return definition_of(parser, parser.parse_unresolved_operand(), at)


def parse_tensor(parser: Parser) -> SSAValue:
    """Parses an operand that is a tensor; a ParseError says so where it is not."""
    at = parser.pos
    operand = parse_defined(parser)
    if not isinstance(operand.type, TensorType):
        parser.raise_error(f"expected a tensor, got a value of type {operand.type}", at, parser.pos)
    return operand
