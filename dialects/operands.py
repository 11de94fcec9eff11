# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Directives of assembly formats for operands without a type after them: it is that of the operand's definition, or
the only one that the operand can have.
"""

from typing import ClassVar, cast

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    CustomDirective,
    OperandDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    VariableDirective,
    irdl_custom_directive,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer


def definition_of(parser: Parser, operand: UnresolvedOperand, at: int) -> SSAValue:
    """The value that an operand names, which stands at `at`; a ParseError unless a value is defined before it."""
    values = parser.ssa_values.get(operand.operand_name)
    if values is None or operand.index >= len(values):
        parser.raise_error(f"%{operand.operand_name} is not defined before this use", at, parser.pos)
    return values[operand.index]


def begin(state: ParsingState, at: int) -> None:
    """Notes where the text begins that determines the results, unless it is noted; xDSL has no place for it."""
    vars(state).setdefault("determined_from", at)


def parse_operand(
    parser: Parser,
    state: ParsingState,
    of: tuple[OperandDirective, TypeDirective],
    kinds: tuple[type[Attribute], ...],
    expected: str,
    more: bool = False,
) -> None:
    """Parses an operand that is defined before and has a type of one of `kinds`, or `more` of them with commas between;
    a ParseError names the `expected` text.
    """
    start = parser.pos
    operands: list[UnresolvedOperand] = []
    types: list[Attribute] = []
    while not operands or (more and parser.parse_optional_punctuation(",")):
        at = parser.pos
        operands.append(parser.parse_unresolved_operand())
        types.append(definition_of(parser, operands[-1], at).type)
        if not isinstance(types[-1], kinds):
            parser.raise_error(f"expected {expected}, got a value of type {types[-1]}", at, parser.pos)
    state.operands[cast(VariableDirective, of[0]).index] = operands
    of[1].set(state, types)
    begin(state, start)


@irdl_custom_directive
class Operand(CustomDirective):
    """`%value`, which cannot be left out, of the only type that it can have."""

    operand: OperandDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        state.operands[cast(VariableDirective, self.operand).index] = (parser.parse_unresolved_operand(),)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.operand.print(printer, state, op)

    def is_present(self, op: IRDLOperation) -> bool:
        return self.operand.is_present(op)

    def is_anchorable(self) -> bool:
        return self.operand.is_anchorable()

    def set_empty(self, state: ParsingState) -> None:
        self.operand.set_empty(state)


@irdl_custom_directive
class Defined(Operand):
    """`%value`, whose type is that of its definition, which stands before it."""

    operand: OperandDirective
    definition: TypeDirective
    KINDS: ClassVar[tuple[type[Attribute], ...]] = (Attribute,)
    EXPECTED: ClassVar[str] = "a value"

    def parse(self, parser: Parser, state: ParsingState) -> None:
        parse_operand(parser, state, (self.operand, self.definition), self.KINDS, self.EXPECTED)

    def set_empty(self, state: ParsingState) -> None:
        super().set_empty(state)
        self.definition.set_empty(state)
