# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The base of the operations of the `cute` dialect: their assembly, and types that follow from those of the operands.

Most operations are one function of the layout algebra, `evaluate`. Called with the values of the operands' types it
infers the types of the results; the same function folds static operations and is expanded into integer arithmetic.
"""

from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any, ClassVar, Self

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, VerificationContext, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import ParseError, VerifyException

from ...layout.algebra.core import ComposedLayout, Layout, flat_modes
from ...layout.algebra.inttuple import unflatten
from ..definitions import refuse, refusing
from .attributes import parse_quoted
from .brackets import Bracket, Nothing, parameter
from .types import ComposedLayoutType, CuteType, LayoutType, type_of
from .values import AnyValue, undefined_error


class Signature(Enum):
    """How the types are written after the colon."""

    FUNCTION = "(A, B) -> R"
    ARROW = "A -> R"
    OPERANDS = "A, B"
    """The results' types are left out: they are inferred."""


class CuteOp(IRDLOperation, ABC):
    """`cute.name<parameters> (%a, %b) {attributes} : types`.

    `SHORT` names the operands and results whose types are written without the name of their only kind, `<"4:1">`.
    """

    BRACKET: ClassVar[Bracket] = Nothing()
    SIGNATURE: ClassVar[Signature] = Signature.FUNCTION
    SHORT: ClassVar[Mapping[str, type[CuteType]]] = MappingProxyType({})

    @classmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> list[Attribute]:
        """The types of the results where they are not written. Raises `LayoutError` if they do not exist."""
        raise NotImplementedError

    @classmethod
    def check_parsed(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> None:
        """Raises `LayoutError` for operands without a possible result; never where nothing is inferred."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties = cls.BRACKET.parse(parser)
        operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        start = parser.pos
        types, results = cls._parse_types(parser, len(operands), properties)
        values = parser.resolve_operands(operands, types, start)
        if cls.SIGNATURE is Signature.OPERANDS:
            cls._check_operands(types)
            results = cls.infer(types, properties)
        return cls.create(operands=values, result_types=results, properties=properties, attributes=attributes)

    @classmethod
    def _parse_types(
        cls, parser: Parser, count: int, properties: Mapping[str, Attribute]
    ) -> tuple[list[Attribute], list[Attribute]]:
        names = [name for name, _ in cls.get_irdl_definition().operands]
        names += [names[-1]] * (count - len(names)) if names else []

        def listed() -> list[Attribute]:
            types: list[Attribute] = []
            for index in range(count):
                if index:
                    parser.parse_punctuation(",")
                types.append(cls._parse_type(parser, names[index]))
            return types

        if cls.SIGNATURE is Signature.FUNCTION:
            parser.parse_punctuation("(")
            types = listed()
            parser.parse_punctuation(")")
        else:
            types = listed()
        if cls.SIGNATURE is Signature.OPERANDS:
            return types, []
        parser.parse_punctuation("->")
        try:
            return types, [cls._parse_type(parser, cls.get_irdl_definition().results[0][0])]
        except ParseError:
            cls.check_parsed(types, properties)  # an error of the operands comes first
            raise

    @classmethod
    def _parse_type(cls, parser: Parser, name: str) -> Attribute:
        if name in cls.SHORT and (parsed := _parse_short(parser, cls.SHORT[name])) is not None:
            return parsed
        return parser.parse_type()

    @classmethod
    def _check_operands(cls, types: Sequence[Attribute]) -> None:
        definitions = cls.get_irdl_definition().operands
        if len(types) != len(definitions):
            raise undefined_error(f"expected {len(definitions)} operands, not {len(types)}")
        for (name, definition), type in zip(definitions, types, strict=True):
            try:
                definition.constr.verify((type,), VerificationContext())
            except VerifyException as error:
                raise undefined_error(f"operand '{name}' cannot be of type {type}") from error

    def print(self, printer: Printer) -> None:
        self.BRACKET.print(printer, self.properties)
        with printer.in_parens():
            printer.print_list(self.operands, printer.print_ssa_value)
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        names = [name for name, _ in self.get_irdl_definition().operands]
        if self.SIGNATURE is Signature.FUNCTION:
            with printer.in_parens():
                self._print_types(printer, self.operands, names)
        else:
            self._print_types(printer, self.operands, names)
        if self.SIGNATURE is not Signature.OPERANDS:
            printer.print_string(" -> ")
            self._print_types(printer, self.results, [name for name, _ in self.get_irdl_definition().results])

    def _print_types(self, printer: Printer, values: Sequence[SSAValue], names: list[str]) -> None:
        for index, value in enumerate(values):
            if index:
                printer.print_string(", ")
            if names[min(index, len(names) - 1)] in self.SHORT and isinstance(value.type, CuteType):
                value.type.print_parameter(printer)
            else:
                printer.print_attribute(value.type)


def _parse_short(parser: Parser, kind: type[CuteType]) -> CuteType | None:
    """A type whose name is left out, from its `<"...">`; None if the name comes next."""
    if parser.parse_optional_punctuation("<") is None:
        return None
    value = parse_quoted(parser, kind.READ)
    parser.parse_punctuation(">")
    return kind(value)


class AlgebraOp(CuteOp):
    """An operation whose results follow from its operands by a function of the layout algebra."""

    KIND: ClassVar[type[CuteType] | None] = None
    """The kind of the result; None for that of the first operand. Layouts and composed layouts count as one kind."""
    FUNCTION: ClassVar[Callable[..., Any]]
    """The function of the algebra that `evaluate` calls, where it does nothing else."""

    @classmethod
    def evaluate(cls, *values: Any, **parameters: Any) -> AnyValue:
        """The value of the result for the operands' values. Raises `LayoutError` if the operation is not defined.

        Integers of the values are static, `Unknown` or a pass's SSA values.
        """
        return cls.FUNCTION(*values, **parameters)

    @classmethod
    def results_of(cls, value: object, operand_types: Sequence[Attribute]) -> list[Attribute]:
        """The types of the results of `evaluate`."""
        first = operand_types[0]
        assert isinstance(first, CuteType)
        return [type_of(value, cls.KIND or type(first))]

    @classmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> list[Attribute]:
        declared = cls.get_irdl_definition().properties
        parameters = {name: parameter(value) for name, value in properties.items() if name in declared}
        values = [type.data for type in operand_types if isinstance(type, CuteType)]
        return cls.results_of(cls.evaluate(*values, **parameters), operand_types)

    @classmethod
    def check_parsed(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> None:
        cls._check_operands(operand_types)
        cls.infer(operand_types, properties)

    def verify_(self) -> None:
        with refusing():
            expected = self.infer(self.operand_types, self.properties)
        if list(map(_canonical_strides, self.result_types)) != list(map(_canonical_strides, expected)):
            should, written = (", ".join(map(str, types)) for types in (expected, self.result_types))
            refuse(undefined_error(f"the result is of type {should}, but the text says {written}"))


class PureOp(AlgebraOp):
    """An operation of the algebra that may run, or be left out, wherever its operands are."""

    traits = traits_def(Pure())


def _canonical_strides(kind: Attribute) -> Attribute:
    """A type with stride 0 for static extents of 1, whose strides no coordinate ever meets.

    Types that differ only in these count as equal: implementations of CuTe disagree on them.
    """
    match kind:
        case LayoutType():
            return LayoutType(_canonical_layout(kind.data))
        case ComposedLayoutType():
            outer = _canonical_layout(kind.data.outer)
            return ComposedLayoutType(ComposedLayout(kind.data.inner, kind.data.offset, outer))
        case _:
            return kind


def _canonical_layout(layout: Layout) -> Layout:
    strides = [0 if type(s) is int and s == 1 else d for s, d in flat_modes(layout)]
    return Layout(layout.shape, unflatten(strides, layout.shape))
