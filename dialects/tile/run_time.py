# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Extents and strides at run time: what a tensor's are, and a tensor that is given them."""

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, Self

from xdsl.dialects.builtin import DenseArrayBase, IndexType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...base.errors import Code, LayoutError
from ...layout.algebra.core import Layout
from ...layout.algebra.inttuple import product
from ...layout.text.layouts import parse_layout, to_text
from ...layout.text.operations import mode_of
from ..cute import LayoutAttr, parse_quoted
from ..errors import refuse
from ..scalars import unknowns
from .assembly import (
    AnyTensor,
    parse_indices,
    parse_tensor,
    parse_viewed,
    tensor_type_of,
    viewed_type_of,
)
from .coord_type import CoordTensorType
from .results import parse_result, print_result, verify_result
from .types import TensorType


class _ModeOp(IRDLOperation, ABC):
    """An operation that asks for an integer of a mode of a tensor's layout."""

    tensor = operand_def(TensorType | CoordTensorType)
    modes = prop_def(DenseArrayBase.constr(i64))
    result = result_def(IndexType)
    traits = traits_def(Pure())

    @property
    def tensor_type(self) -> AnyTensor:
        """The type of the tensor."""
        return viewed_type_of(self.tensor)

    @abstractmethod
    def integer(self, layout: Any) -> Any:
        """The integer that is asked for, of the tensor's plain layout. Raises `LayoutError`."""

    def verify_(self) -> None:
        layout = self.tensor_type.layout.data
        if not isinstance(layout, Layout):
            layout = layout.inner
        try:
            self.integer(layout)
        except LayoutError as error:
            refuse(error)

    def mode(self, t: Any) -> Any:
        """The mode of a shape or a stride. Raises `LayoutError` (E0208) where there is none."""
        for index in self.modes.get_values():
            t = mode_of(t, index)
        return t

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        tensor = parse_viewed(parser)
        parser.parse_punctuation(",")

        def number() -> int:
            return parser.parse_integer(allow_boolean=False, allow_negative=False)

        modes = parser.parse_optional_comma_separated_list(Parser.Delimiter.SQUARE, number)
        return cls.build(
            operands=[tensor],
            properties={"modes": DenseArrayBase.from_list(i64, [number()] if modes is None else modes)},
            result_types=[IndexType()],
            attributes=parser.parse_optional_attr_dict(),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.tensor)
        modes = self.modes.get_values()
        text = ", ".join(map(str, modes))
        printer.print_string(f", {text}" if len(modes) == 1 else f", [{text}]")
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class DimOp(_ModeOp):
    """`%m = tile.dim %A, 0`: the size of a mode of a tensor; `tile.dim %A, [1, 0]` that of mode 0 of mode 1."""

    name = "tile.dim"

    def integer(self, layout: Any) -> Any:
        return product(self.mode(layout.shape))


@irdl_op_definition
class StrideOp(_ModeOp):
    """`%ld = tile.stride %A, 0`: the stride of a mode of a tensor, in elements; `tile.stride %A, [1, 0]` of a mode
    within a mode. The mode must have one stride.
    """

    name = "tile.stride"
    tensor = operand_def(TensorType)

    def integer(self, layout: Any) -> Any:
        stride = self.mode(layout.stride)
        if isinstance(stride, tuple):
            raise LayoutError(
                Code.BAD_ARGUMENT, f"the mode has the strides {to_text(stride)}, not one", "name a mode within it"
            )
        return stride


@irdl_op_definition
class GetScalarsOp(IRDLOperation):
    """`%m, %ld = tile.get_scalars %A`: the values of the `?` of a tensor's type, those of its shape, then those of its
    stride, from left to right.
    """

    name = "tile.get_scalars"
    tensor = operand_def(TensorType)
    scalars = var_result_def(IndexType)
    traits = traits_def(Pure())

    def __init__(self, tensor: SSAValue):
        super().__init__(operands=[tensor], result_types=[[IndexType() for _ in self._unknowns(tensor)]])

    @staticmethod
    def _unknowns(tensor: SSAValue) -> list[Any]:
        return list(unknowns(tensor_type_of(tensor).layout.data))

    def verify_(self) -> None:
        count = len(self._unknowns(self.tensor))
        if len(self.scalars) != count:
            raise VerifyException(f"the type {self.tensor.type} has {count} integers that are not static")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        op = cls(parse_tensor(parser))
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.tensor)
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class MakeTensorOp(IRDLOperation):
    """`%B = tile.make_tensor %A, "(?,?):(?{div=8},1)" (%m, %n, %ld)`: another layout from the pointer of a tensor on
    (CuTe's make_tensor).

    The operands are the values of the `?`, those of the shape first. Preconditions: they are positive and agree with
    the layout; the elements lie in the memory of the tensor.
    """

    name = "tile.make_tensor"
    source = operand_def(TensorType)
    scalars = var_operand_def(IndexType)
    layout = prop_def(LayoutAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    @property
    def source_type(self) -> TensorType:
        """The type of the tensor whose pointer is taken."""
        return tensor_type_of(self.source)

    @staticmethod
    def infer(source: TensorType, layout: LayoutAttr) -> TensorType:
        """The type of the new tensor. Raises `LayoutError` for swizzled tensors and layouts."""
        if source.is_swizzled or not isinstance(layout.data, Layout):
            raise LayoutError(
                Code.COMPOSED_UNSUPPORTED,
                "a tensor is made from a plain tensor's pointer, with a plain layout",
                "the offset within a swizzle belongs to its layout; take views of it",
            )
        return source.with_layout(layout.data)

    def verify_(self) -> None:
        verify_result(self.result, lambda: self.infer(self.source_type, self.layout))
        count = len(unknowns(self.layout.data))
        if len(self.scalars) != count:
            raise VerifyException(f"the layout has {count} integers that are not static, not {len(self.scalars)}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source = parse_tensor(parser)
        parser.parse_punctuation(",")
        start = parser.pos
        layout = LayoutAttr(parse_quoted(parser, parse_layout))
        scalars = parse_indices(parser)
        end = parser.pos
        attributes = parser.parse_optional_attr_dict()
        type = parse_result(parser, partial(cls.infer, tensor_type_of(source), layout), start, end)
        return cls.build(
            operands=[source, scalars], properties={"layout": layout}, result_types=[type], attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.source)
        printer.print_string(f', "{to_text(self.layout.data)}"')
        if self.scalars:
            printer.print_string(" ")
            with printer.in_parens():
                printer.print_list(self.scalars, printer.print_operand)
        print_result(printer, self)
