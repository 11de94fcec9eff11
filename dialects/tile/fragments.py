# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fragments: registers laid out for a part of a tensor (CuTe's make_fragment_A and make_fragment_like)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, result_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from ...layout.algebra.core import Layout, make_layout
from ...layout.algebra.product import make_fragment_like
from ..cute import LayoutAttr
from .assembly import parse_tensor, parse_tensor_type, parse_viewed, tensor_type_of
from .coord_type import CoordTensorType
from .memory import check_allocation
from .mma_types import TiledMmaType
from .results import parse_result, print_result, verify_result
from .tiled_mma import parse_tiled_mma
from .types import Space, SpaceAttr, TensorType

FRAGMENT_ALIGN = 16
"""The alignment of a fragment in bytes: that of the widest access."""


class FragmentOp(IRDLOperation, ABC):
    """The base of operations that allocate a fragment, contents undefined, whose type is inferred."""

    result = result_def(TensorType)

    @property
    def tensor_type(self) -> TensorType:
        """The type of the fragment."""
        return tensor_type_of(self.result)

    @abstractmethod
    def element_and_layout(self) -> tuple[Attribute, Layout]:
        """What the fragment's elements are, and its layout."""

    def inferred_type(self) -> TensorType:
        """The type that the fragment must have. Raises `LayoutError`."""
        element, layout = self.element_and_layout()
        return TensorType(element, SpaceAttr(Space.Rmem), IntAttr(FRAGMENT_ALIGN), LayoutAttr(layout))

    def verify_(self) -> None:
        verify_result(self.result, self.inferred_type)
        check_allocation(self.tensor_type)

    @classmethod
    def parse_type(
        cls, parser: Parser, start: int, operands: Sequence[SSAValue], properties: dict[str, Attribute]
    ) -> Self:
        """Parses attributes and the type, which may be left out, and builds the operation, whose text begins at
        `start`.
        """
        end = parser.pos
        attributes = parser.parse_optional_attr_dict()
        draft = cls.create(operands=operands, result_types=[operands[-1].type], properties=properties)
        try:
            type = parse_result(parser, draft.inferred_type, start, end, parse_tensor_type)
        finally:
            draft.erase()
        return cls.create(operands=operands, result_types=[type], properties=properties, attributes=attributes)


@irdl_op_definition
class MakeFragmentLikeOp(FragmentOp):
    """`%r = tile.make_fragment_like %t as f32`: registers for the elements of `%t`, in compact order.

    The first mode is contiguous, the others keep their order; a mode of stride 0 within the first keeps it, and other
    modes of equal strides, which make one element of several coordinates in `%t`, may do so in the fragment (CuTe's
    make_fragment_like). Without `as` the elements are those of `%t`.
    """

    name = "tile.make_fragment_like"
    part = operand_def(TensorType)
    element = opt_prop_def(Attribute)

    def element_and_layout(self) -> tuple[Attribute, Layout]:
        part = tensor_type_of(self.part)
        return self.element or part.element_type, make_fragment_like(part.layout.data)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        part = parse_tensor(parser)
        properties: dict[str, Attribute] = {}
        if parser.parse_optional_keyword("as") is not None:
            properties["element"] = parser.parse_type()
        return cls.parse_type(parser, start, [part], properties)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.part)
        if self.element is not None:
            printer.print_string(" as ")
            printer.print_attribute(self.element)
        print_result(printer, self)


class _OperandFragmentOp(FragmentOp):
    """A fragment for a thread's part of an operand of a tiled MMA: `tile.xyz %mma, %part`.

    The elements are those of the part, if the instruction takes them, else those that it takes. Of a part of a
    coordinate tensor only the shape counts.
    """

    OPERAND: ClassVar[str]
    tiled_mma = operand_def(TiledMmaType)
    part = operand_def(TensorType | CoordTensorType)

    def element_and_layout(self) -> tuple[Attribute, Layout]:
        assert isinstance(self.tiled_mma.type, TiledMmaType)
        mma, part = self.tiled_mma.type, self.part.type
        allowed = mma.atom.element_types(self.OPERAND)
        if isinstance(part, CoordTensorType):
            return allowed[0], mma.tiled_mma.make_fragment(self.OPERAND, make_layout(part.plain_layout.shape))
        assert isinstance(part, TensorType)
        element = part.element_type if part.element_type in allowed else allowed[0]
        return element, mma.tiled_mma.make_fragment(self.OPERAND, part.layout.data)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        return cls.parse_type(parser, start, [parse_tiled_mma(parser), parse_viewed(parser)], {})

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list([self.tiled_mma, self.part], printer.print_operand)
        print_result(printer, self)


@irdl_op_definition
class MakeFragmentAOp(_OperandFragmentOp):
    """`%r = tile.make_fragment_A %mma, %tAgA`: registers for a thread's part of A, (MMA,MMA_M,MMA_K,...)."""

    name = "tile.make_fragment_A"
    OPERAND: ClassVar[str] = "A"


@irdl_op_definition
class MakeFragmentBOp(_OperandFragmentOp):
    """`%r = tile.make_fragment_B %mma, %tBgB`: registers for a thread's part of B, (MMA,MMA_N,MMA_K,...)."""

    name = "tile.make_fragment_B"
    OPERAND: ClassVar[str] = "B"


@irdl_op_definition
class MakeFragmentCOp(_OperandFragmentOp):
    """`%r = tile.make_fragment_C %mma, %tCgC`: the accumulator for a thread's part of C, (MMA,MMA_M,MMA_N,...).

    It has the element type of the instruction, whatever C has.
    """

    name = "tile.make_fragment_C"
    OPERAND: ClassVar[str] = "C"
