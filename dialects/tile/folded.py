# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is left of views when the static part of the layout algebra has been folded: an index and a shifted view."""

from collections.abc import Sequence
from typing import Any, Self

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...base.errors import LayoutError
from ...layout.algebra.core import Layout, LayoutLike
from ...layout.algebra.slicing import fixed_modes
from ...layout.algebra.unknown import Unknown
from ...layout.text.layouts import parse_layout, to_text
from ..cute import CoordAttr, LayoutAttr, parse_quoted
from ..errors import refuse
from ..scalars import unknowns, with_scalars
from .assembly import (
    check_operands,
    fill_coordinate,
    parse_coordinate,
    parse_indices,
    parse_tensor,
    parse_tensor_type,
    print_coordinate,
    tensor_type_of,
    unwrapped,
)
from .results import print_result
from .types import TensorType


@irdl_op_definition
class Crd2IdxOp(IRDLOperation):
    """`%o = tile.crd2idx (%m, 0) in "(8,32):(128,32768)"`: the index of a run-time coordinate in a layout.

    `... in "(?,32):(1,?)" with (%n, %ld)` gives the values of the `?`, those of the shape first. Preconditions: the
    coordinate is within the layout's shape. The result, in elements, is less than the layout's cosize.
    """

    name = "tile.crd2idx"
    coords = var_operand_def(IndexType)
    scalars = var_operand_def(IndexType)
    coord = prop_def(CoordAttr)
    layout = prop_def(LayoutAttr)
    result = result_def(IndexType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self, coord: CoordAttr, coords: Sequence[SSAValue], layout: LayoutAttr, scalars: Sequence[SSAValue] = ()
    ):
        super().__init__(
            operands=[coords, scalars], properties={"coord": coord, "layout": layout}, result_types=[IndexType()]
        )

    @property
    def plain_layout(self) -> Layout:
        """The layout, which is a plain one."""
        assert isinstance(self.layout.data, Layout)
        return self.layout.data

    def fixed(self, values: Sequence[Any], scalars: Sequence[Any]) -> list[tuple[Any, Any]]:
        """The integers of the coordinate, each with the extent of its mode, for values of the operands."""
        shape = with_scalars(self.plain_layout, scalars).shape
        return list(fixed_modes(unwrapped(fill_coordinate(self.coord.data, values)), shape))

    def verify_(self) -> None:
        if not isinstance(self.layout.data, Layout):
            raise VerifyException("the layout of crd2idx is a plain one, without a swizzle")
        check_operands(self.coord.data, self.coords)
        _check_scalars(self.layout.data, self.scalars)
        try:
            self.layout.data(unwrapped(fill_coordinate(self.coord.data, [Unknown() for _ in self.coords])))
        except LayoutError as error:
            refuse(error)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        coord, coords = parse_coordinate(parser)
        parser.parse_keyword("in")
        layout = LayoutAttr(parse_quoted(parser, parse_layout))
        op = cls(coord, coords, layout, _parse_scalars(parser))
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_coordinate(printer, self.coord.data, self.coords)
        printer.print_string(f' in "{to_text(self.layout.data)}"')
        _print_scalars(printer, self.scalars)
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class ViewOp(IRDLOperation):
    """`%v = tile.view %t at %o : T2`: the tensor `%o` elements further on, with the layout of T2.

    The pointer of a plain tensor moves; a swizzled tensor keeps its pointer, and its offset grows. Without `at` only
    the layout changes, and perhaps the element type. `with (%m, %ld)` gives the values of the `?` of T2, those of its
    shape first. T2 has the space of the tensor; the folding pass guarantees that its elements are the tensor's.
    """

    name = "tile.view"
    source = operand_def(TensorType)
    offset = opt_operand_def(IndexType)
    scalars = var_operand_def(IndexType)
    result = result_def(TensorType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        source: SSAValue | Operation,
        offset: SSAValue | None,
        type: TensorType,
        scalars: Sequence[SSAValue] = (),
    ):
        super().__init__(operands=[source, offset, scalars], result_types=[type])

    @property
    def source_type(self) -> TensorType:
        """The type of the tensor that is looked at."""
        return tensor_type_of(self.source)

    @property
    def result_type(self) -> TensorType:
        """The type of the view."""
        return tensor_type_of(self.result)

    def verify_(self) -> None:
        source, result = self.source_type, self.result_type
        recast = source.element_type != result.element_type
        if (recast and self.offset is not None) or source.space != result.space:
            raise VerifyException(f"a view keeps element type and space; {source} became {result}")
        _check_scalars(result.layout.data, self.scalars)
        if source.is_swizzled != result.is_swizzled:
            raise VerifyException(f"a view keeps the swizzle; {source} became {result}")
        if result.align.data > source.align.data:
            raise VerifyException(
                f"the view promises alignment {result.align.data}, the tensor only {source.align.data}"
            )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source = parse_tensor(parser)
        offset = None
        if parser.parse_optional_keyword("at") is not None:
            offset = parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())
        scalars = _parse_scalars(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        op = cls(source, offset, parse_tensor_type(parser), scalars)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.source)
        if self.offset is not None:
            printer.print_string(" at ")
            printer.print_operand(self.offset)
        _print_scalars(printer, self.scalars)
        print_result(printer, self)


def _check_scalars(layout: LayoutLike, scalars: Sequence[SSAValue]) -> None:
    """VerifyException unless each `?` of the layout has an operand."""
    count = len(unknowns(layout))
    if len(scalars) != count:
        raise VerifyException(f"the layout has {count} integers that are not static, and {len(scalars)} are given")


def _parse_scalars(parser: Parser) -> list[SSAValue]:
    return parse_indices(parser) if parser.parse_optional_keyword("with") is not None else []


def _print_scalars(printer: Printer, scalars: Sequence[SSAValue]) -> None:
    if scalars:
        printer.print_string(" with ")
        with printer.in_parens():
            printer.print_list(scalars, printer.print_operand)
