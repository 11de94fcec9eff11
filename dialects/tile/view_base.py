# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views: operations that look at a tensor's elements through another layout, and touch none of them.

Each view is a new layout of the whole tensor (`relayout`), then a slice at a coordinate. Type inference, the verifier,
folding and the simulator all use these two steps; they differ only in what stands for a run-time coordinate.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import gcd
from typing import Any, ClassVar, Self

from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, opt_prop_def, result_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from ...base.errors import Code, LayoutError
from ...layout.algebra.core import Layout, LayoutLike, Tiler, plain_layout
from ...layout.algebra.integers import Coord
from ...layout.algebra.promises import check_promises
from ...layout.algebra.slicing import check_within, slice_and_offset
from ...layout.algebra.unknown import Unknown, divisor
from ..cute.values import integers
from ..scalars import unknowns, with_scalars
from .assembly import AnyTensor, parse_viewed, parse_viewed_type, viewed_type_of
from .coord_type import CoordTensorType
from .divisibility import check_tiles
from .results import parse_result, print_result, verify_result
from .types import TensorType


def viewed_type(source: AnyTensor, layout: LayoutLike, distance: Any) -> AnyTensor:
    """The type of a view of `source` with `layout`, which starts `distance` further on: elements of a tensor, a
    coordinate of a coordinate tensor.
    """
    if isinstance(source, CoordTensorType):
        assert isinstance(layout, Layout), "views of plain layouts are plain"
        return source.moved(layout, distance)
    return shifted_type(source, layout, distance)


def shifted_type(tensor: TensorType, layout: LayoutLike, offset: Any) -> TensorType:
    """The type of `tensor` seen through `layout` from `offset` elements on.

    `offset` is an integer or `Unknown`. The pointer of a plain tensor moves by the offset, which may lower its
    alignment; that of a swizzled tensor stays, because its layout holds the offset. Raises `LayoutError` (E0319) where
    packed elements would begin within a byte.
    """
    align = tensor.align.data
    step = divisor(offset)
    if step:
        bits = gcd(8 * align, step * tensor.element_bits)
        if bits % 8:
            raise LayoutError(
                Code.PACKED_ELEMENTS,
                f"the view begins at a multiple of {step} elements of {tensor.element_bits} bits, within a byte",
                f"let it begin at a multiple of {tensor.per_byte} elements",
            )
        align = bits // 8
    return tensor.with_layout(layout, align)


class LayoutViewOp(IRDLOperation, ABC):
    """The base of all views: `%result = tile.xyz %source, ... : type`. The type can be left out: it is inferred."""

    HAS_BODY: ClassVar[bool] = True
    SELECTS: ClassVar[str] = "the tensor"
    """What the coordinate selects from, in words."""
    source = operand_def(TensorType | CoordTensorType)
    coords = var_operand_def(IndexType)
    result = result_def(TensorType | CoordTensorType)
    traits = traits_def(Pure())

    @property
    def source_type(self) -> AnyTensor:
        """The type of the tensor that is looked at."""
        return viewed_type_of(self.source)

    @property
    def result_type(self) -> AnyTensor:
        """The type of the view."""
        return viewed_type_of(self.result)

    @abstractmethod
    def relayout(self, layout: LayoutLike) -> LayoutLike:
        """The layout of the whole source in the order of the view, before slicing. Raises `LayoutError`."""

    def coordinate(self, layout: LayoutLike, values: Sequence[Any]) -> Coord:
        """Where `relayout(...)`, given as `layout`, is sliced; None keeps everything.

        `values` stand for the operands `coords`, in order.
        """
        return None

    def view(self, layout: LayoutLike, values: Sequence[Any]) -> tuple[LayoutLike, Any]:
        """The layout of the view of a tensor with `layout`, and the distance in elements at which it starts.

        `values` stand for the run-time coordinates: any integers of the algebra. For a swizzled layout the distance is
        within the layout, and 0 is returned. Raises `LayoutError`, (E0215) for a static coordinate outside of its mode.
        """
        whole = self.relayout(layout)
        coord = self.coordinate(whole, values)
        if coord is None:
            return whole, 0
        view = slice_and_offset(coord, whole)
        check_within(*self.selection(coord, whole.shape), self.SELECTS)
        return view

    def selection(self, coord: Coord, shape: Any) -> tuple[Any, Any]:
        """Of a coordinate and the shape that it slices, what messages show."""
        return coord, shape

    def inferred_type(self) -> AnyTensor:
        """The type that the result must have. Raises `LayoutError`, also for values of the `?` that make it wrong."""
        source = self.source_type
        layout, offset = self.view(source.layout.data, [Unknown() for _ in self.coords])
        plain = plain_layout(source.layout.data)
        if extents := [x for x in integers(plain.shape) if isinstance(x, Unknown)]:
            strides = unknowns(source.layout.data)[len(extents) :]
            check_promises(extents, strides, lambda values: self.relayout(with_scalars(source.layout.data, values)))
        return viewed_type(source, layout, offset)

    def verify_(self) -> None:
        verify_result(self.result, self.inferred_type)

    @classmethod
    def parse_body(cls, parser: Parser) -> tuple[list[SSAValue], dict[str, Attribute]]:
        """Parses what follows the operands and a comma: coordinates and properties."""
        return [], {}

    def print_body(self, printer: Printer) -> None:
        """Prints what `parse_body` parses, with the comma before it."""

    @classmethod
    def parse_notes(cls, parser: Parser) -> dict[str, Attribute]:
        """Parses the words after the body, such as `ragged`."""
        return {}

    def print_notes(self, printer: Printer) -> None:
        """Prints what `parse_notes` parses."""

    @classmethod
    def parse_operands(cls, parser: Parser) -> list[SSAValue | Sequence[SSAValue]]:
        """Parses the operands before the coordinates, in the order of their definition."""
        return [parse_viewed(parser)]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        operands = cls.parse_operands(parser)
        coords: list[SSAValue] = []
        properties: dict[str, Attribute] = {}
        if cls.HAS_BODY:
            parser.parse_punctuation(",")
            if len(operands) == 1:  # a fault is in how the tensor is looked at; of a partition, in the tensor too
                start = parser.pos
            coords, properties = cls.parse_body(parser)
        properties |= cls.parse_notes(parser)
        end = parser.pos
        attributes = parser.parse_optional_attr_dict()
        operands.append(coords)
        tensor = next(
            o.type for o in operands if isinstance(o, SSAValue) and isinstance(o.type, TensorType | CoordTensorType)
        )
        draft = cls.build(operands=operands, result_types=[tensor], properties=properties)
        try:
            type = parse_result(parser, draft.inferred_type, start, end, parse_viewed_type)
        finally:
            draft.erase()
        return cls.build(operands=operands, result_types=[type], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list([o for o in self.operands if o not in self.coords], printer.print_operand)
        self.print_body(printer)
        self.print_notes(printer)
        print_result(printer, self)


class TilingViewOp(LayoutViewOp):
    """The base of views that divide a tensor into tiles, which must cover it exactly unless the view is `ragged`.

    The last tiles of a ragged view reach beyond the tensor, as CuTe has it: their elements there must not be accessed.
    """

    ragged = opt_prop_def(UnitAttr)

    def check_tiles(self, layout: LayoutLike, tiler: Tiler) -> None:
        """Raises `LayoutError` (E0314) unless tiles of `tiler` cover `layout` exactly, or the view is ragged."""
        if self.ragged is None:
            check_tiles(layout, tiler)

    @classmethod
    def parse_notes(cls, parser: Parser) -> dict[str, Attribute]:
        return {"ragged": UnitAttr()} if parser.parse_optional_keyword("ragged") is not None else {}

    def print_notes(self, printer: Printer) -> None:
        if self.ragged is not None:
            printer.print_string(" ragged")
