# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Addresses: a pointer and a distance, with the bounds of the coordinates that it was computed from; addresses as
numbers.
"""

from collections.abc import Sequence
from typing import Any, Self, TypeAlias

from xdsl.dialects.builtin import I32, I64, IndexType, IntegerAttr, IntegerType, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.irdl.declarative_assembly_format import ParsingState, VariableDirective
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...base.spaces import Allocation
from ...layout.algebra.integers import Unknown
from ...layout.algebra.inttuple import leaves
from ..cute import CoordAttr
from ..definitions import irdl_op_definition, typed_operand
from ..operands import Defined
from .base import SHARED, SHARED_CLUSTER, PtrType, PtxOp, integer_bits

Fixed: TypeAlias = Sequence[tuple[Any, Any]]
"""Integers of a coordinate, each with the extent of the mode that it fixes; SSA values or static."""


@irdl_op_definition
class PtrAddOp(PtxOp):
    """`%q = ptx.ptr_add %p, %bytes`: the address `bytes` bytes after `p`. No instruction of its own.

    `%q = ptx.ptr_add %p, %bytes within (%m < 8, %k < %n : i64)` names the coordinates of the address and the extents of
    their modes, as wide as the program has them; without a type they have that of the offset. If a coordinate is
    outside its mode, the address must not be accessed. The simulator checks this; the instructions are the same.

    Preconditions: the offset is an integer (i32 is sign-extended) and the sum stays in the allocation or one past it,
    if something is accessed there.
    """

    name = "ptx.ptr_add"
    ptr = typed_operand(PtrType)
    offset = operand_def(I32 | I64 | IndexType)
    bounds = var_operand_def(I32 | I64 | IndexType)
    within = opt_prop_def(CoordAttr)
    result = result_def(PtrType)
    traits = traits_def(Pure())

    def __init__(self, ptr: SSAValue | Operation, offset: SSAValue | Operation, fixed: Fixed = ()):
        ptr = SSAValue.get(ptr)
        within, bounds = _split(fixed)
        super().__init__(operands=[ptr, offset, bounds], properties={"within": within}, result_types=[ptr.type])

    @property
    def fixed(self) -> Fixed:
        """The integers of coordinates and the extents of their modes, from `within`."""
        return fixed_pairs(self.within, self.bounds)

    def verify_(self) -> None:
        if self.ptr.type != self.result.type:
            raise VerifyException("the result must be a pointer into the same state space as the operand")
        pairs = () if self.within is None else self.within.data
        if not isinstance(pairs, tuple) or not all(isinstance(p, tuple) and len(p) == 2 for p in pairs):
            raise VerifyException("`within` lists pairs of an integer and an extent")
        given = list(leaves(pairs))
        if None in given or len(self.bounds) != sum(isinstance(x, Unknown) for x in given):
            raise VerifyException("each integer and each extent of `within` is static or has an operand")
        if len({value.type for value in self.bounds}) > 1:
            raise VerifyException("the integers and extents of `within` have one type")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        pointer = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        offset = parser.parse_unresolved_operand()
        pairs = []
        bounds_type: Attribute | None = None
        if parser.parse_optional_keyword("within") is not None:
            with parser.in_parens():
                pairs = parser.parse_comma_separated_list(Parser.Delimiter.NONE, lambda: _parse_pair(parser))
                bounds_type = parser.parse_type() if parser.parse_optional_punctuation(":") is not None else None
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        parser.parse_punctuation(",")
        width = parser.parse_type()
        parser.parse_punctuation("->")
        result = parser.parse_type()

        def resolved(x: object) -> Any:
            return parser.resolve_operand(x, bounds_type or width) if isinstance(x, UnresolvedOperand) else x

        operands = [parser.resolve_operand(pointer, type), parser.resolve_operand(offset, width)]
        within, bounds = _split([(resolved(integer), resolved(extent)) for integer, extent in pairs])
        properties = {} if within is None else {"within": within}
        return cls.build(
            operands=[*operands, bounds], properties=properties, attributes=attributes, result_types=[result]
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list((self.ptr, self.offset), printer.print_operand)
        if self.within is not None:
            printer.print_string(" within ")
            with printer.in_parens():
                printer.print_list(self.fixed, lambda pair: _print_pair(printer, *pair))
                if any(value.type != self.offset.type for value in self.bounds):
                    printer.print_string(" : ")
                    printer.print_attribute(self.bounds[0].type)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list((self.ptr.type, self.offset.type), printer.print_attribute)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)


class _NumberOp(PtxOp):
    """A conversion between an address and a number, without an instruction of its own: an i64 in global memory and in
    that of a thread, where it is the generic address, an i32 in the shared memory of a block.
    """

    traits = traits_def(Pure())

    def _check(self, ptr: SSAValue, number: SSAValue) -> None:
        """VerifyException if a pointer and a number are not of one size."""
        assert isinstance(ptr.type, PtrType)
        match ptr.type.space.data.allocation:
            case (
                Allocation.PARAMETER | Allocation.STATIC | Allocation.MAPPED | Allocation.RUN_TIME | Allocation.COMPILER
            ):
                pass
            case Allocation.CONSTANT:
                raise VerifyException(f"an address in global, shared or local memory is a number, not a {ptr.type}")
        bits = ptr.type.space.data.address_bits
        if integer_bits(number.type) != bits:
            raise VerifyException(f"the number of a {ptr.type} is an i{bits}, not {number.type}")


@irdl_op_definition
class IntToPtrOp(_NumberOp):
    """`%p = ptx.inttoptr %n align 16 : i64 -> !ptx.ptr<global>`: the address that is a number. No instruction of its
    own.

    Preconditions: the number is a multiple of `align`. Accesses there are to memory of the launch: of an argument, or
    an array whose address the host has registered. The simulator checks this.
    """

    name = "ptx.inttoptr"
    number = operand_def(I32 | I64)
    align = prop_def(IntegerAttr[I64])
    result = result_def(PtrType)
    assembly_format = "$number `align` $align attr-dict `:` type($number) `->` type($result)"

    def __init__(self, number: SSAValue | Operation, align: int, type: PtrType):
        super().__init__(operands=[number], properties={"align": IntegerAttr(align, i64)}, result_types=[type])

    def verify_(self) -> None:
        self._check(self.result, self.number)
        align = self.align.value.data
        if align < 1 or align & (align - 1):
            raise VerifyException(f"the alignment is {align}, and must be a power of two")


@irdl_op_definition
class PtrToIntOp(_NumberOp):
    """`%n = ptx.ptrtoint %p : !ptx.ptr<global> -> i64`: an address as a number. No instruction of its own."""

    name = "ptx.ptrtoint"
    ptr = typed_operand(PtrType)
    result = result_def(I32 | I64)
    assembly_format = "$ptr attr-dict `:` type($ptr) `->` type($result)"

    def __init__(self, ptr: SSAValue | Operation):
        ptr = SSAValue.get(ptr)
        assert isinstance(ptr.type, PtrType)
        super().__init__(operands=[ptr], result_types=[IntegerType(ptr.type.space.data.address_bits)])

    def verify_(self) -> None:
        self._check(self.ptr, self.result)


def _split(fixed: Fixed) -> tuple[CoordAttr | None, list[SSAValue]]:
    """`fixed` as the property `within` and its operands."""
    within = tuple([tuple([Unknown() if isinstance(x, SSAValue) else x for x in pair]) for pair in fixed])
    return CoordAttr(within) if fixed else None, [x for pair in fixed for x in pair if isinstance(x, SSAValue)]


def fixed_pairs(within: CoordAttr | None, values: Sequence[object]) -> Fixed:
    """The bounds of `within`, with `values` for its operands."""
    rest = iter(values)
    pairs: Any = () if within is None else within.data
    return [tuple([next(rest) if isinstance(x, Unknown) else x for x in pair]) for pair in pairs]


def _parse_pair(parser: Parser) -> tuple[int | UnresolvedOperand, int | UnresolvedOperand]:
    integer = _parse_integer(parser)
    parser.parse_punctuation("<")
    return integer, _parse_integer(parser)


def _parse_integer(parser: Parser) -> int | UnresolvedOperand:
    operand = parser.parse_optional_unresolved_operand()
    return parser.parse_integer(allow_boolean=False, allow_negative=False) if operand is None else operand


def _print_pair(printer: Printer, integer: Any, extent: Any) -> None:
    _print_integer(printer, integer)
    printer.print_string(" < ")
    _print_integer(printer, extent)


def _print_integer(printer: Printer, x: int | SSAValue) -> None:
    if isinstance(x, int):
        printer.print_string(str(x))
    else:
        printer.print_operand(x)


class MbarrierAddress(Defined):
    """The address of an mbarrier of the own block or, from `ptx.mapa`, of one of the cluster."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        at = parser.pos
        super().parse(parser, state)
        assert isinstance(self.operand, VariableDirective)
        type = next(iter(state.operand_types[self.operand.index] or ()))
        if type not in (SHARED, SHARED_CLUSTER):
            parser.raise_error(expected_shared(type), at, parser.pos)


def expected_shared(type: Attribute) -> str:
    """The error for the address of an mbarrier of another type."""
    return f"expected an address in shared memory, got a value of type {type}"
