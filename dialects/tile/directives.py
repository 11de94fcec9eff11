# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The directives of the `tile` dialect's assembly formats, beside xDSL's: operands whose types are those of their
definitions, coordinates, layouts in quotes, and types of results that Python may skip.

Where the type of a result cannot be inferred, the error marks the text that determines it: from the first operand or
atom on, or from where the format says `custom<Marked>()`.
"""

from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import DenseArrayBase, StringAttr, i64
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, VerificationContext
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    UniqueBaseAttributeVariable,
    VariadicOperandVariable,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ...base.errors import LayoutError
from ...layout.algebra.core import Layout
from ...layout.text.layouts import to_text
from ..cute import CoordAttr, parse_quoted
from ..cute.attributes import QuotedAttr
from ..cute.brackets import parameter
from ..definitions import raise_at
from ..operands import Defined, Operand, begin, parse_operand
from .assembly import parse_coordinate, print_coordinate, unwrap
from .coord_type import CoordTensorType
from .copy_types import TiledCopyType, parse_copy_atom
from .mma_types import TiledMmaType, parse_mma_atom
from .tma_types import TmaType
from .types import TensorType


@irdl_custom_directive
class Marked(CustomDirective):
    """Nothing: here the text begins that an error marks if no result follows from it."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        vars(state)["determined_from"] = parser.pos

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        return


class Tensor(Defined):
    """A tensor in memory."""

    KINDS = (TensorType,)
    EXPECTED = "a tensor"


class Tensors(Defined):
    """`%A, %B`: tensors in memory."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        parse_operand(parser, state, (self.operand, self.definition), (TensorType,), "a tensor", more=True)


class Viewed(Defined):
    """A tensor in memory or of coordinates."""

    KINDS = (TensorType, CoordTensorType)
    EXPECTED = "a tensor"


class Coordinates(Defined):
    """A tensor of coordinates."""

    KINDS = (CoordTensorType,)
    EXPECTED = "a coordinate tensor"


class TiledCopyValue(Defined):
    """A tiled copy."""

    KINDS = (TiledCopyType,)
    EXPECTED = "a tiled copy"


class TiledMmaValue(Defined):
    """A tiled MMA."""

    KINDS = (TiledMmaType,)
    EXPECTED = "a tiled MMA"


class TmaValue(Defined):
    """A tensor map."""

    KINDS = (TmaType,)
    EXPECTED = "a tensor map"


@irdl_custom_directive
class Coordinate(CustomDirective):
    """`(%m, (0, %k), _)`: a coordinate; operands of type `index` give its `?`."""

    coord: AttributeVariable
    operands: VariadicOperandVariable
    LINEAR: ClassVar[bool] = False

    def parse(self, parser: Parser, state: ParsingState) -> None:
        coord, operands = parse_coordinate(parser, self.LINEAR)
        self.coord.set(state, coord)
        self.operands.set(state, operands)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        coord = cast(CoordAttr, op.properties[self.coord.name])
        print_coordinate(printer, coord.data, getattr(op, self.operands.name))


class LinearCoordinate(Coordinate):
    """A coordinate, or an integer without parentheses that counts through all modes."""

    LINEAR = True


class Limits(Coordinate):
    """`(%m, 100)`: a bound for each integer of a coordinate, with parentheses only if the coordinate has them."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        super().parse(parser, state)
        tensor, coord = next(iter(state.operand_types[0] or ()), None), state.properties[self.coord.name]
        assert isinstance(tensor, CoordTensorType)
        assert isinstance(coord, CoordAttr)
        if not isinstance(tensor.start.data, tuple):
            state.properties[self.coord.name] = CoordAttr(unwrap(coord.data))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        coord = op.properties[self.coord.name]
        assert isinstance(coord, CoordAttr)
        bounds = coord.data if isinstance(coord.data, tuple) else (coord.data,)
        state.print_whitespace(printer)
        print_coordinate(printer, bounds, getattr(op, self.operands.name))


@irdl_custom_directive
class _OfProperty(CustomDirective):
    """Text that stands for a property."""

    value: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.value.set(state, self.read(parser, state))

    def read(self, parser: Parser, state: ParsingState) -> Attribute:
        """The property, from its text."""
        raise NotImplementedError

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        self.write(printer, op.properties[self.value.name])

    def write(self, printer: Printer, value: Attribute) -> None:
        """Prints the text that `read` reads."""
        printer.print_attribute(value)

    def is_present(self, op: IRDLOperation) -> bool:
        return self.value.is_present(op)

    def is_anchorable(self) -> bool:
        return self.value.is_anchorable()


class Quoted(_OfProperty):
    """`"(8,4):(1,8)"`: a layout, tiler, shape or coordinate in quotes."""

    def read(self, parser: Parser, state: ParsingState) -> QuotedAttr[Any]:
        kind = cast("type[QuotedAttr[Any]]", cast(UniqueBaseAttributeVariable, self.value).unique_base)
        return kind(parse_quoted(parser, kind.READ))

    def write(self, printer: Printer, value: Attribute) -> None:
        printer.print_string(f'"{to_text(cast("QuotedAttr[Any]", value).data)}"')


class Plain(Quoted):
    """A layout without a swizzle, in quotes."""

    def read(self, parser: Parser, state: ParsingState) -> QuotedAttr[Any]:
        start = parser.pos
        layout = super().read(parser, state)
        if not isinstance(layout.data, Layout):
            parser.raise_error("expected a plain layout, without a swizzle", start, parser.pos)
        return layout


class Modes(_OfProperty):
    """`[1, 0]`: numbers of modes."""

    def read(self, parser: Parser, state: ParsingState) -> Attribute:
        return DenseArrayBase.from_list(i64, self.numbers(parser))

    def numbers(self, parser: Parser) -> list[int]:
        """The numbers, from their text."""
        return parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, lambda: _number(parser))

    def write(self, printer: Printer, value: Attribute) -> None:
        printer.print_string(f"[{', '.join(map(str, parameter(value)))}]")


class Path(Modes):
    """`1` or `[1, 0]`: a mode, or one within a mode."""

    def numbers(self, parser: Parser) -> list[int]:
        modes = parser.parse_optional_comma_separated_list(Parser.Delimiter.SQUARE, lambda: _number(parser))
        return [_number(parser)] if modes is None else modes

    def write(self, printer: Printer, value: Attribute) -> None:
        numbers = parameter(value)
        if len(numbers) == 1:
            printer.print_string(str(numbers[0]))
        else:
            super().write(printer, value)


def _number(parser: Parser) -> int:
    return parser.parse_integer(allow_boolean=False, allow_negative=False)


class Text(_OfProperty):
    """`"text"`: text in quotes."""

    def read(self, parser: Parser, state: ParsingState) -> Attribute:
        return StringAttr(parser.parse_str_literal())


class ElementType(_OfProperty):
    """`f16`: a element type."""

    def read(self, parser: Parser, state: ParsingState) -> Attribute:
        return parser.parse_type()


class CopyAtom(_OfProperty):
    """`#tile.copy_atom<...>`: a copy atom."""

    def read(self, parser: Parser, state: ParsingState) -> Attribute:
        begin(state, parser.pos)
        return parse_copy_atom(parser)


class MmaAtom(_OfProperty):
    """`#tile.mma_atom<...>`: an MMA atom."""

    def read(self, parser: Parser, state: ParsingState) -> Attribute:
        begin(state, parser.pos)
        return parse_mma_atom(parser)


@irdl_custom_directive
class Implied(CustomDirective):
    """Nothing: the types of results that are always inferred."""

    results: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        types: list[Attribute] = []
        operands = state.op_type.get_irdl_definition().operands
        for (_, definition), values, given in zip(operands, state.operands, state.operand_types, strict=True):
            if given is None:
                given = definition.constr.infer(VerificationContext(), length=len(values or ()))
            types += given
        try:
            self.results.set(state, cast(Any, state.op_type).inferred_types(types, state.properties))
        except LayoutError as error:
            raise_at(parser, error, vars(state)["determined_from"], parser.pos)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        return


class Written(Implied):
    """`: type`: the type of a tensor."""

    EXPECTED = "a tensor type"

    def parse(self, parser: Parser, state: ParsingState) -> None:
        parser.parse_punctuation(":")
        at = parser.pos
        type = parser.parse_type()
        ((_, result),) = state.op_type.get_irdl_definition().results
        try:
            result.constr.verify((type,), VerificationContext())
        except VerifyException:
            parser.raise_error(f"expected {self.EXPECTED}, got {type}", at, parser.pos)
        self.results.set(state, (type,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        printer.print_string(" : ")
        printer.print_attribute(op.results[0].type)


class Inferred(Written):
    """`: type`: the type of a tensor, which is inferred where it is left out."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        text = parser.lexer.input.content
        if text.startswith(":", parser.pos):
            super().parse(parser, state)
        else:
            Implied.parse(self, parser, state)


class InferredTiling(Inferred):
    """`: type`: the type of a tiled copy, a tiled MMA or a tensor map, which is inferred where it is left out."""

    EXPECTED = "the type of a tiled copy, a tiled MMA or a tensor map"


DIRECTIVES = (
    Marked, Operand, Defined, Tensor, Tensors, Viewed, Coordinates, TiledCopyValue, TiledMmaValue, TmaValue, Coordinate,
    LinearCoordinate, Limits, Quoted, Plain, Modes, Path, Text, ElementType, CopyAtom, MmaAtom, Implied, Written,
    Inferred, InferredTiling,
)  # fmt: skip
"""The directives, by which formats name them."""


class TileOp(IRDLOperation):
    """The base of the operations of the dialect whose formats have these directives."""

    custom_directives = DIRECTIVES
