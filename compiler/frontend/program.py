# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parses text to a verified module whose operations know their source lines, and back to text.

xDSL's parser drops source positions and stops in many ways on bad input; here every operation gets the line
and column of its name (unless its text says `loc(...)`, as that of a saved stage does), and every fault
becomes a `ProgramError`.
"""

import re
from difflib import get_close_matches
from io import StringIO
from math import prod
from struct import error as struct_error
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import (
    FileLineColLoc,
    IndexType,
    IntAttr,
    IntegerAttr,
    ModuleOp,
    ShapedType,
    StringAttr,
    UnknownLoc,
    i64,
)
from xdsl.ir import Attribute, BlockArgument, Operation, TypeAttribute
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ...base.errors import Code, TilefoldError
from ...base.limits import check_deadline
from .diagnostics import Diagnostic, Place, ProgramError, Severity
from .file_format import HEADER, check_format
from .source import MAX_OPERATIONS, Source
from .syntax_errors import close_names, did_you_mean, explain, missing_operand
from .verify import MAX_REPORTED, verify_program

MAX_NESTING = 48
"""Deepest nesting of operations in regions."""

MAX_VECTOR = 1 << 16
"""Most elements of a vector or a constant array, which the parser and the simulator write out."""
_SMALLER = "keep the elements in a !tile.tensor, which a loop or run.arg fills, and use a vector for each part"

# Exceptions, besides ParseError, that xDSL's parser and the constructors that it calls raise on malformed text.
_PARSER_FAULTS = (
    VerifyException, ValueError, TypeError, LookupError, ArithmeticError, NotImplementedError, struct_error,
)  # fmt: skip

_RESULTS = re.compile(r"%[^=\n]*=\s*")
_EARLY = re.compile(r"(%\S+) is not defined before this use")
_NAMES = re.compile(r"%[\w$.-]+")
_TYPE = re.compile(r"index|(?:[su]?i|f|bf|tf)\d+")
_UNDEFINED = re.compile(r"values used but not defined: \[(.*)\]", re.DOTALL)

MAX_DIGITS = 1000
"""Most digits of a number; those of 64 bits have 20."""
_LITERALS = re.compile(
    r'//[^\n]*|"(?:(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+)(?P<close>"?)'
    rf"|(?P<digits>(?<!\d)\d{{{MAX_DIGITS + 1},}}+|0x[0-9A-Fa-f]{{{MAX_DIGITS + 1},}}+)"
)
_UNREADABLE = frozenset({"scf.execute_region"})
"""Operations that xDSL prints in a syntax that it does not read: without an empty `scf.yield`, and with attributes."""


class _TooLargeError(ParseError):
    """More operations, elements, or deeper nesting than accepted; `hint` suggests an alternative."""

    def __init__(self, at: Span, message: str, hint: str = "") -> None:
        super().__init__(at, message)
        self.hint = hint


class _UnknownOperationError(ParseError):
    """An operation that no registered dialect has."""


class _LocatingParser(Parser):
    """xDSL's parser, which also gives each operation the line and column of its name."""

    def __init__(self, context: Context, source: Source) -> None:
        super().__init__(context, source.expanded, source.name)
        self._source = source
        self._file = StringAttr(source.name)
        self._count = 0
        self._name_at = 0  # of the operation that was begun last
        self._depth = 0

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        if self._current_token.kind is MLIRTokenKind.EOF:
            return ModuleOp([])
        return super().parse_module(allow_implicit_module)

    def parse_operation(self) -> Operation:
        start = self.pos
        results = _RESULTS.match(self._source.expanded, start)
        name_at = results.end() if results else start
        self._count += 1
        self._depth += 1
        if self._count > MAX_OPERATIONS:
            raise _TooLargeError(self._span(name_at), f"the program has more than {MAX_OPERATIONS} operations")
        if self._depth > MAX_NESTING:
            raise _TooLargeError(self._span(name_at), f"operations nest deeper than {MAX_NESTING} levels")
        self._name_at = name_at
        try:
            check_deadline()
            op = super().parse_operation()
        except (TilefoldError, *_PARSER_FAULTS) as error:
            raise ParseError(self._span(name_at), _words(error)) from _cause(error)
        self._depth -= 1
        if isinstance(op.location, UnknownLoc):
            line, column = self._source.locate(name_at)
            op.location = FileLineColLoc(self._file, IntAttr(line), IntAttr(column))
        for region in op.regions:
            for block in region.blocks:  # a terminator that the text leaves out stands where its operation does
                if block.last_op is not None and isinstance(block.last_op.location, UnknownLoc):
                    block.last_op.location = op.location
        return op

    def parse_optional_attribute(self) -> Attribute | None:
        start = self.pos
        try:
            return super().parse_optional_attribute()
        except (TilefoldError, *_PARSER_FAULTS) as error:
            raise ParseError(self._from(start), _words(error)) from _cause(error)

    def parse_optional_type(self) -> TypeAttribute | None:
        start = self.pos
        try:
            type = super().parse_optional_type()
            count = prod(type.get_shape()) if isinstance(type, ShapedType) else 1
            if count > MAX_VECTOR:
                message = f"{type} has {count} elements; at most {MAX_VECTOR} are accepted"
                raise _TooLargeError(self._from(start), message, _SMALLER)
            return type
        except (TilefoldError, *_PARSER_FAULTS) as error:
            raise ParseError(self._from(start), _words(error)) from _cause(error)

    def parse_optional_builtin_int_or_float_attr(self) -> Any:
        start = self.pos
        attribute = super().parse_optional_builtin_int_or_float_attr()
        if isinstance(attribute, IntegerAttr) and isinstance(attribute.type, IndexType):
            try:
                i64.verify_value(attribute.value.data)
            except VerifyException as error:  # xDSL takes an index of any size
                raise ParseError(self._from(start), str(error).replace("i64", "index")) from error
        return attribute

    def _get_op_by_name(self, name: str) -> type[Operation]:
        try:
            return super()._get_op_by_name(name)
        except ParseError as error:
            start = self._source.expanded.rfind(name, 0, error.span.start)
            if start < 0:  # a name in quotes, with escapes
                raise _UnknownOperationError(self._span(self._name_at), name[:80]) from None
            raise _UnknownOperationError(Span(start, start + len(name), self._input), name) from None

    @property
    def _input(self) -> Input[str]:
        return Input(self._source.expanded, self._source.name)

    def _from(self, start: int) -> Span:
        return Span(start, max(self.pos, start + 1), self._input)

    def _span(self, at: int) -> Span:
        text = self._source.expanded
        end = at
        while end < len(text) and (text[end].isalnum() or text[end] in '_.$"'):
            end += 1
        return Span(at, max(end, at + 1), self._input)


def _words(error: Exception) -> str:
    if isinstance(error, TilefoldError):
        return error.message
    if isinstance(error, struct_error):
        return "an integer is out of range for type index"
    if isinstance(error, KeyError):
        return f"{error} is not known here"
    return " ".join(map(str, error.args)) or f"malformed ({type(error).__name__})"


def _cause(error: Exception) -> BaseException:
    return error.__cause__ or error


def parse_program(source: Source, context: Context) -> ModuleOp:
    """The verified module that a source's text describes; each operation has a location.

    Raises ProgramError: the first fault of the syntax, or every fault that the verifiers find; also where the time of a
    `deadline` has passed.
    """
    check_format(source.text, source.name)
    _check_literals(source)
    parser = None
    try:
        parser = _LocatingParser(context, source)  # reads the first token already
        module = parser.parse_module()
    except _UnknownOperationError as error:
        raise ProgramError([_explain_unknown_operation(error, source, context)]) from error
    except ParseError as error:
        raise ProgramError(_syntax_errors(error, source)) from error
    except (TilefoldError, *_PARSER_FAULTS) as error:
        raise ProgramError([_at(ParseError(_here(parser, source), ""), source, _words(error))]) from error
    except RecursionError:
        message = "types, attributes or operations nest too deeply"
        raise ProgramError([_at(_TooLargeError(_here(parser, source), ""), source, message)]) from None
    if isinstance(module.location, UnknownLoc):
        module.location = FileLineColLoc(StringAttr(source.name), IntAttr(1), IntAttr(1))
    verify_program(module, source)
    return module


def _check_literals(source: Source) -> None:
    """Refuses string literals that do not end, as xDSL's lexer takes time exponential in their length, and numbers of
    many digits, as Python takes time quadratic in their length.
    """
    for match in _LITERALS.finditer(source.expanded):
        if match["digits"]:
            at = Span(match.start(), match.end(), Input(source.expanded, source.name))
            message = f"a number of {len(match['digits'])} digits; it has at most {MAX_DIGITS}"
            raise ProgramError([_at(ParseError(at, ""), source, message)])
        if match["close"] == "":
            end = match.end()
            bad_escape = source.expanded[end : end + 1] == "\\"
            at = (
                Span(end, end + 2, Input(source.expanded, source.name))
                if bad_escape
                else Span(match.start(), end, Input(source.expanded, source.name))
            )
            message = (
                "unknown escape in a string literal" if bad_escape else "the string literal does not end on its line"
            )
            hint = 'known escapes: \\n \\t \\\\ \\" and two hexadecimal digits' if bad_escape else ""
            raise ProgramError([_at(ParseError(at, ""), source, message, hint=hint)])


def _here(parser: Parser | None, source: Source) -> Span:
    at = parser.pos if parser is not None else 0
    return Span(at, at + 1, Input(source.expanded, source.name))


def _at(error: ParseError, source: Source, message: str, code: Code = Code.IR_SYNTAX, hint: str = "") -> Diagnostic:
    """The diagnostic of a parse error: at its span, with the code and hint of the error that caused it, if typed."""
    start = source.origin(error.span.start)
    last = max(error.span.end - 1, error.span.start)
    while last > error.span.start and source.expanded[last : last + 1].isspace():
        last -= 1  # a span that was measured by the parser's position ends where the next token begins
    line, column = source.position(start)
    end_line, end_column = source.position(source.origin(last))  # the last character, perhaps that which ends the line
    place = Place(source.name, line, column, end_column + 1 if end_line == line else 0, source.line(line))
    if isinstance(error, _TooLargeError):
        code, hint = Code.IR_TOO_LARGE, error.hint
    if isinstance(cause := error.__cause__, TilefoldError):
        code, hint = cause.code, cause.hint
    elif isinstance(cause, VerifyException):
        code = Code.IR_VERIFY
    return Diagnostic(Severity.ERROR, message, place, code, hint)


def _syntax_errors(error: ParseError, source: Source) -> list[Diagnostic]:
    undefined = _UNDEFINED.fullmatch(error.msg)
    if undefined is None:
        return [_make_syntax_error(error, source)]
    problems: list[Diagnostic] = []
    for name in undefined[1].split(", ")[:MAX_REPORTED]:
        use = re.search(re.escape(name) + r"(?![\w$.-])", source.expanded)
        at = use.span() if use else (error.span.start, error.span.end)
        problems.append(_undefined_error(name, at, source))
    return problems


def _make_syntax_error(error: ParseError, source: Source) -> Diagnostic:
    if isinstance(error, _TooLargeError) or isinstance(error.__cause__, TilefoldError):  # in words of ours
        return _at(error, source, error.msg)
    if (name := _EARLY.fullmatch(error.msg)) is not None:
        wording = missing_operand(error.span.start, source)
        if wording is None:
            return _undefined_error(name[1], (error.span.start, error.span.end), source, error.msg)
    else:
        wording = explain(error.msg, error.span.start, error.span.end, source)
    at = ParseError(Span(wording.start, wording.end, Input(source.expanded, source.name)), wording.message)
    at.__cause__ = error.__cause__
    return _at(at, source, wording.message, wording.code, wording.hint)


def _undefined_error(name: str, at: tuple[int, int], source: Source, message: str = "") -> Diagnostic:
    close = close_names(name, _NAMES.findall(source.expanded))
    message = message or f"{name} is used but never defined"
    span = Span(*at, Input(source.expanded, source.name))
    return _at(ParseError(span, message), source, message, Code.IR_USE_BEFORE_DEFINITION, did_you_mean(close))


def _explain_unknown_operation(error: _UnknownOperationError, source: Source, context: Context) -> Diagnostic:
    name = error.msg
    dialect = name.partition(".")[0]
    if "." in name and dialect not in context.registered_dialect_names:
        known = ", ".join(sorted(context.registered_dialect_names))
        message, hint = f"unknown dialect '{dialect}'", f"dialects: {known}"
    else:
        close = get_close_matches(name, [op.name for op in context.loaded_ops], n=3, cutoff=0.6)
        message = f"unknown operation '{name}'"
        hint = did_you_mean(close) or ("" if "." in name else "operations begin with their dialect, as arith.addi does")
        if _TYPE.fullmatch(name):
            message, hint = f"expected an operation, found the type '{name}'", "a type follows ':'"
    return _at(error, source, message, Code.IR_UNKNOWN_OPERATION, hint)


class ProgramPrinter(Printer):
    """Prints as MLIR does, several results of an operation as one name (`%a:2`, used as `%a#1`), and no location for
    block arguments: not every custom syntax has a place for them."""

    _unprefixed: str = ""

    def print_op(self, op: Operation) -> None:
        parent = op.parent_op()
        if op.name in ("func.call", "func.return") and parent is not None and not self.print_generic_format:
            self._unprefixed = op.name  # in a function, MLIR prints the operations of its dialect without its name
        generic = self.print_generic_format
        self.print_generic_format = generic or op.name in _UNREADABLE
        super().print_op(op)
        self.print_generic_format = generic

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        if self._unprefixed and text == self._unprefixed:
            text, self._unprefixed = text.removeprefix("func."), ""
        if self.stream is None or "\n" in text:
            super().print_string(text, indent=indent)
        else:  # as xDSL does, but without Python's `print`, which takes a sixth of the time that a module takes
            self._current_column += len(text)
            self.stream.write(text)

    def print_operation_type(self, op: Operation) -> None:
        if self.print_generic_format or type(op).print is Operation.print:
            super().print_operation_type(op)
        else:  # a custom syntax goes on after the type, and its location stands at its end
            self.print_function_type(op.operand_types, op.result_types)

    def _print_results(self, op: Operation) -> None:
        if len(op.results) < 2:
            return super()._print_results(op)
        name = self.print_ssa_value(op.results[0])
        self.print_string(f":{len(op.results)} = ")
        for index, result in enumerate(op.results):
            self._ssa_values[result] = f"{name}#{index}"

    def print_attribute(self, attribute: Attribute) -> None:
        if attribute.name != "llvm.struct":  # compared by name: xDSL's llvm dialect takes long to import
            super().print_attribute(attribute)
            return
        from xdsl.dialects.llvm import LLVMStructType

        if isinstance(attribute, LLVMStructType) and not attribute.struct_name.data:
            self.print_string("!llvm.")
        self._print_struct(attribute)

    def _print_struct(self, attribute: Attribute) -> None:
        """An LLVM structure, those inside it without their dialect's name: `struct<(i32, struct<()>)>`."""
        from xdsl.dialects.llvm import LLVMStructType

        if not isinstance(attribute, LLVMStructType) or attribute.struct_name.data:
            super().print_attribute(attribute)
            return
        self.print_string("struct<(")
        self.print_list(attribute.types.data, self._print_struct)
        self.print_string(")>")

    def print_block_argument(self, arg: BlockArgument, print_type: bool = True) -> None:
        shown, self.print_debuginfo = self.print_debuginfo, False
        super().print_block_argument(arg, print_type)
        self.print_debuginfo = shown


def print_program(module: Operation, *, generic: bool = False, locations: bool = False, header: bool = False) -> str:
    """The text of a module, ending with a newline.

    With `locations`, reading it back keeps the original source lines; with `header`, which files have, it says the
    version of the format.
    """
    stream = StringIO()
    if header:
        stream.write(HEADER)
    ProgramPrinter(stream=stream, print_generic_format=generic, print_debuginfo=locations).print_op(module)
    return stream.getvalue() + "\n"
