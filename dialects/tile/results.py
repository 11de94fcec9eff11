# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Result types that operands and properties determine: the verifier compares them, and the text may leave them out."""

from collections.abc import Callable

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ...base.errors import LayoutError
from ..errors import raise_at, refuse


def verify_result(result: SSAValue, infer: Callable[[], Attribute]) -> None:
    """VerifyException unless `result` has the type that `infer` returns; also for a `LayoutError` from it."""
    try:
        expected = infer()
    except LayoutError as error:
        refuse(error)
    if result.type != expected:
        raise VerifyException(f"the result is {expected}, but {result.type} is written")


def parse_result(
    parser: Parser,
    infer: Callable[[], Attribute],
    start: int,
    end: int,
    parse_type: Callable[[Parser], Attribute] = Parser.parse_type,
) -> Attribute:
    """Parses `: type`, or else returns what `infer` returns; a `LayoutError` from it is one of the text from `start`
    to `end`.
    """
    if parser.parse_optional_punctuation(":") is not None:
        return parse_type(parser)
    try:
        return infer()
    except LayoutError as error:
        raise_at(parser, error, start, end)


def print_result(printer: Printer, op: IRDLOperation) -> None:
    """Prints the attributes of an operation and `: type` of its result, the end of its text."""
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(op.results[0].type)
