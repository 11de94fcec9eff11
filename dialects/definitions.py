# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Definitions of operations: their decorators, typed operands, the operations of a dialect, and how an error of the
layout algebra becomes one of the IR.

An operation may be a row of a table: the fields of its class, with their types, make its constructor.

    @row
    class BulkWaitGroupOp(PtxOp):
        name = "ptx.cp.async.bulk.wait_group"
        n: IntegerAttr[I64] = prop(converter=number)
        read: UnitAttr | None = optional_prop(converter=flag, default=False)

is called as `BulkWaitGroupOp(1, read=True)`. The types of results follow from the definition: each is one type, or that
of an operand. Fields without a type are no arguments.

The `TilefoldError` stays reachable as the `__cause__` of an exception of the parser or verifier, so that a diagnostic
can show its stable code and its hint.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast, dataclass_transform

from xdsl import irdl
from xdsl.dialects.builtin import I64, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import (
    EqAttrConstraint,
    IRDLOperation,
    OpDef,
    VarConstraint,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
)
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

from ..base.errors import TilefoldError

T = TypeVar("T", bound=Attribute)
Op = TypeVar("Op", bound=irdl.IRDLOperation)


def irdl_op_definition(cls: type[Op]) -> type[Op]:
    """xDSL's decorator of this name, which parses the assembly format when it is needed first.

    xDSL parses each format when the class is made. That took a tenth of `import tilefold.cute`, and a program has few
    of the operations. Raises ParseError for a wrong format when the first of these operations is parsed or printed.
    """
    text = cls.assembly_format
    if text is None:
        return irdl.irdl_op_definition(cls)
    cls.assembly_format = None
    irdl.irdl_op_definition(cls)
    definition = cls.get_irdl_definition()
    cls.assembly_format = definition.assembly_format = text

    @cache
    def program() -> FormatProgram:
        return FormatProgram.from_str(text, definition)

    def parse(cls: type[Op], parser: Parser) -> Op:
        return program().parse(parser, cls)

    def write(self: Op, printer: Printer) -> None:
        program().print(printer, self)

    for name, method in (("parse", classmethod(parse)), ("print", write)):
        setattr(cls, name, method)
    return cls


def typed_operand(kind: type[T]) -> SSAValue[T]:
    """`operand_def(kind)`, with a `.type` that the type checker knows."""
    return cast("SSAValue[T]", operand_def(kind))


def find_operations(*modules: ModuleType) -> list[type[Operation]]:
    """The operations that modules define, in the order of their definitions; classes without a name are bases.

    `issubclass` would ask all operations that there are, for every class that is not one.
    """
    classes = [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]
    return [cast("type[Operation]", kind) for kind in classes if Operation in kind.__mro__ and "name" in vars(kind)]


def number(value: int) -> IntegerAttr[I64]:
    """An integer as a property."""
    return IntegerAttr(value, i64)


def some_number(value: int | None) -> IntegerAttr[I64] | None:
    """An integer as a property that may be missing."""
    return None if value is None else IntegerAttr(value, i64)


def text(value: str) -> StringAttr:
    """A text as a property."""
    return StringAttr(value)


def some_text(value: str | None) -> StringAttr | None:
    """A text as a property that may be missing, as it is where the text is empty."""
    return StringAttr(value) if value else None


def flag(value: bool) -> UnitAttr | None:
    """A property that is present or absent."""
    return UnitAttr() if value else None


_CONSTRAINTS: Mapping[Any, Any] = MappingProxyType(
    {number: IntegerAttr[I64], some_number: IntegerAttr[I64], text: StringAttr, some_text: StringAttr, flag: UnitAttr}
)
_REQUIRED = object()


@dataclass(frozen=True, slots=True)
class _Argument:
    """The conversion that a constructor applies to the argument of a field."""

    converter: Callable[[Any], Any] | None
    default: object
    kw_only: bool


def _recorded(definition: Any, converter: Callable[[Any], Any] | None, default: object, kw_only: bool = False) -> Any:
    """A definition of xDSL that remembers its argument."""
    definition.row = _Argument(converter, default, kw_only)
    return definition


def operand(constraint: Any = Attribute, *, converter: Callable[[Any], object] | None = None) -> Any:
    """The field of an operand; a `converter` tells the type checker which types the constructor takes."""
    return _recorded(operand_def(constraint), None, _REQUIRED)


def optional_operand(constraint: Any = Attribute, *, default: None) -> Any:
    """The field of an operand that may be missing."""
    return _recorded(opt_operand_def(constraint), None, default)


def prop(*, converter: Callable[[Any], object], default: object = _REQUIRED) -> Any:
    """The field of a property, which `converter` makes of an argument."""
    return _recorded(prop_def(_CONSTRAINTS[converter]), converter, default)


def optional_prop(*, converter: Callable[[Any], object], default: object = _REQUIRED, kw_only: bool = False) -> Any:
    """The field of a property that may be missing."""
    return _recorded(opt_prop_def(_CONSTRAINTS[converter]), converter, default, kw_only)


if TYPE_CHECKING:
    from xdsl.dialects.builtin import LocationAttr
    from xdsl.ir import Block, OpResult, Region
    from xdsl.ir.core import SSAValues, Use

    @dataclass(init=False, repr=False, eq=False)
    class RowBase(IRDLOperation):
        """For the type checker, which takes the attributes of an operation for arguments of its constructor."""

        _operands: SSAValues = field(init=False)
        _operand_uses: tuple[Use, ...] = field(init=False)
        results: SSAValues[OpResult] = field(init=False)
        _successors: tuple[Block, ...] = field(init=False)
        _successor_uses: tuple[Use, ...] = field(init=False)
        properties: dict[str, Attribute] = field(init=False)
        attributes: dict[str, Attribute] = field(init=False)
        location: LocationAttr = field(init=False)
        regions: tuple[Region, ...] = field(init=False)
        parent: Block | None = field(init=False)
        _next_op: Operation | None = field(init=False)
        _prev_op: Operation | None = field(init=False)
else:
    RowBase = IRDLOperation


@dataclass_transform(field_specifiers=(operand, optional_operand, prop, optional_prop), eq_default=False)
def fields(cls: type[Op]) -> type[Op]:
    """For a base class of rows: it has fields, but is not a row itself."""
    return cls


@dataclass_transform(field_specifiers=(operand, optional_operand, prop, optional_prop), eq_default=False)
def row(cls: type[Op]) -> type[Op]:
    """Defines an operation, as `irdl_op_definition` does, with the constructor that its fields make.

    AssertionError for a result whose type does not follow from the definition.
    """
    given: dict[str, _Argument] = {}
    for base in reversed(cls.__mro__):
        typed = [name for name in vars(base).get("__annotations__", ()) if hasattr(vars(base).get(name), "row")]
        given |= {name: vars(base)[name].row for name in typed}
    cls = irdl_op_definition(cls)
    definition = cls.get_irdl_definition()
    operands, types = [name for name, _ in definition.operands], _types_of_results(definition)
    required = frozenset(name for name, field in given.items() if field.default is _REQUIRED)
    defaults = {name: field.default for name, field in given.items() if field.default is not _REQUIRED}
    properties = {name: field.converter for name, field in given.items() if field.converter is not None}
    places = [name for name, field in given.items() if not field.kw_only]

    def init(self: IRDLOperation, *arguments: object, **named: object) -> None:
        values: dict[str, Any] = defaults | dict(zip(places, arguments, strict=False)) | named
        if len(arguments) > len(places) or not required <= values.keys() or not values.keys() <= given.keys():
            raise TypeError(f"{cls.__name__} takes the arguments {', '.join(given)}")
        IRDLOperation.__init__(
            self,
            operands=[values[name] for name in operands],
            properties={name: converter(values[name]) for name, converter in properties.items()},
            result_types=[SSAValue.get(values[x]).type if isinstance(x, str) else x for x in types],
        )

    cls.__init__ = init
    return cls


def _types_of_results(definition: OpDef) -> list[Attribute | str]:
    """The type of each result, or the operand that has the same."""
    variables = {_single(operand): name for name, operand in reversed(definition.operands)}
    found: list[Attribute | str] = []
    for name, result in definition.results:
        constraint = _single(result)
        of: Attribute | str | None = None
        if isinstance(constraint, EqAttrConstraint):
            of = cast("EqAttrConstraint[Attribute]", constraint).attr
        elif isinstance(constraint, VarConstraint):
            of = variables.get(constraint)
        assert of is not None, f"the type of the result {name} of {definition.name} does not follow from its operands"
        found.append(of)
    return found


def _single(definition: Any) -> Any:
    """The constraint of one operand or result."""
    constraint = definition.constr
    return getattr(constraint, "constraint", constraint).constr


def raise_at(parser: AttrParser, error: TilefoldError, start: int, end: int) -> NoReturn:
    """Raises a ParseError at characters `start` to `end` of the parsed text, caused by `error`."""
    try:
        parser.raise_error(error.message, start, end)
    except ParseError as parse_error:
        raise parse_error from error


def parse_kind(parser: AttrParser, kind: type[T], expected: str) -> T:
    """Parses an attribute of a kind; a ParseError names the `expected` text where something else stands."""
    at = parser.pos
    attribute = parser.parse_optional_attribute()
    if not isinstance(attribute, kind):
        parser.raise_error(f"expected {expected}", at, parser.pos)
    return attribute


def refuse(error: TilefoldError) -> NoReturn:
    """Raises a VerifyException for the operation that is being verified, caused by `error`."""
    raise VerifyException(error.message) from error


@contextmanager
def refusing() -> Generator[None, None, None]:
    """Within it, a TilefoldError refuses the operation or attribute that is being verified."""
    try:
        yield
    except TilefoldError as error:
        refuse(error)


def outer_operands(op: Operation) -> Iterator[SSAValue]:
    """The values that an operation reads: its operands, and those values of its block that are operands of operations
    in its regions.
    """
    yield from op.operands
    for region in op.regions:
        for inner in region.walk():
            for value in inner.operands:
                owner = value.owner
                if (owner if isinstance(owner, Block) else owner.parent) is op.parent:
                    yield value
