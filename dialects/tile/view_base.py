# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views: operations that look at a tensor's elements through another layout, and touch none of them.

Each view is a new layout of the whole tensor (`relayout`), then a slice at a coordinate. Type inference, the verifier,
folding and the simulator all use these two steps; they differ only in the form of a run-time coordinate.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from math import gcd
from types import SimpleNamespace
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure

from ...base.errors import Code, LayoutError
from ...layout.algebra.coordinates import check_within
from ...layout.algebra.core import Layout, LayoutLike, Tiler, plain_layout
from ...layout.algebra.integers import AnyTuple, Coord, Unknown, divisor
from ...layout.algebra.modes import slice_and_offset
from ...layout.algebra.promises import check_promises
from ..cute.attributes import QuotedAttr
from ..cute.brackets import parameter
from ..cute.values import integers, unknowns, with_scalars
from .assembly import AnyTensor
from .coord_type import CoordTensorType
from .copy_types import TiledCopyType
from .divisibility import check_tiles
from .mma_types import TiledMmaType
from .results import InferringOp
from .tma_types import TmaType
from .types import TensorType


def viewed_type(source: AnyTensor, layout: LayoutLike, distance: object) -> AnyTensor:
    """The type of a view of `source` with `layout`, which starts `distance` further on: elements of a tensor, a
    coordinate of a coordinate tensor.
    """
    if isinstance(source, CoordTensorType):
        assert isinstance(layout, Layout), "views of plain layouts are plain"
        return source.moved(layout, distance)
    return infer_shifted_type(source, layout, distance)


def infer_shifted_type(tensor: TensorType, layout: LayoutLike, offset: object) -> TensorType:
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


class LayoutViewOp(InferringOp):
    """The base of all views: `%result = tile.xyz %source, ... : type`. The type can be left out: it is inferred."""

    SELECTS: ClassVar[str] = "the tensor"
    """The operand of the coordinate, as messages name it."""
    source = cast("SSAValue[AnyTensor]", operand_def(AnyTensor))
    result = result_def(AnyTensor)
    traits = traits_def(Pure())

    @property
    def coords(self) -> Sequence[SSAValue]:
        """The operands of a coordinate at which the view is sliced."""
        return ()

    @classmethod
    @abstractmethod
    def layout_by(cls, given: object, layout: LayoutLike) -> LayoutLike:
        """The layout of a whole source in the order of the view, before slicing. Raises `LayoutError`.

        `given` has the operation's properties as Python values, None for one that is left out; the tiled copy, MMA or
        TMA copies of an operand as `tiling`; and the number `modes_of_source`.
        """

    @classmethod
    def coordinate_by(cls, given: object, layout: LayoutLike, values: Sequence[object]) -> Coord:
        """Where `layout_by(...)`, given as `layout`, is sliced; None keeps everything.

        `values` stand for the operands `coords`, in order.
        """
        return None

    @classmethod
    def selection(cls, coord: Coord, shape: object) -> tuple[AnyTuple, AnyTuple]:
        """A coordinate and the shape that it slices, as messages show them."""
        return coord, shape

    @classmethod
    def check_selection(cls, given: object, coord: Coord, shape: object) -> None:
        """Raises `LayoutError` (E0215) for a static coordinate out of range."""
        check_within(*cls.selection(coord, shape), cls.SELECTS)

    @classmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Sequence[Attribute]:
        source = _source(operand_types)
        given, layout = cls.given(operand_types, properties), source.layout.data
        whole = cls.layout_by(given, layout)
        values = [Unknown() for type in operand_types if isinstance(type, IndexType)]
        coord, offset = cls.coordinate_by(given, whole, values), 0
        view = whole
        if coord is not None:
            view, offset = slice_and_offset(coord, whole)
            cls.check_selection(given, coord, whole.shape)
        if extents := [x for x in integers(plain_layout(layout).shape) if isinstance(x, Unknown)]:
            strides = unknowns(layout)[len(extents) :]
            check_promises(extents, strides, lambda values: cls.layout_by(given, with_scalars(layout, values)))
        return [viewed_type(source, view, offset)]

    @classmethod
    def given(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Any:
        """The parts of an operation that `layout_by` and `coordinate_by` read."""
        values = {name: _value(properties.get(name)) for name in cls.get_irdl_definition().properties}
        first = operand_types[0]
        tiling = None
        if isinstance(first, TiledCopyType):
            tiling = first.tiled_copy
        elif isinstance(first, TmaType):
            tiling = first.tma_copy
        elif isinstance(first, TiledMmaType):
            tiling = first.tiled_mma
        return SimpleNamespace(**values, tiling=tiling, modes_of_source=len(_source(operand_types).layout.data))

    def relayout(self, layout: LayoutLike) -> LayoutLike:
        """The layout of the whole source in the order of this view, before slicing. Raises `LayoutError`."""
        return self.layout_by(self.given(self.operand_types, self.properties), layout)

    def coordinate(self, layout: LayoutLike, values: Sequence[object]) -> Coord:
        """Where `relayout(...)`, given as `layout`, is sliced at `values` of the operands; None keeps everything."""
        return self.coordinate_by(self.given(self.operand_types, self.properties), layout, values)


def _source(operand_types: Sequence[Attribute]) -> AnyTensor:
    return next(type for type in operand_types if isinstance(type, TensorType | CoordTensorType))


def _value(attribute: Attribute | None) -> Any:
    """A property of a view as a Python value."""
    if isinstance(attribute, QuotedAttr):
        return cast("QuotedAttr[Any]", attribute).data
    return None if attribute is None else parameter(attribute)


class SlicedViewOp(LayoutViewOp):
    """The base of views that are sliced at a coordinate."""

    source = cast("SSAValue[AnyTensor]", operand_def(AnyTensor))  # again, since it comes before the coordinate
    coords = var_operand_def(IndexType)  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]


class TilingViewOp(LayoutViewOp):
    """The base of views that divide a tensor into tiles, which must cover it exactly unless the view is `ragged`.

    The last tiles of a ragged view reach beyond the tensor, as in CuTe: their elements there must not be accessed.
    """

    ragged = opt_prop_def(UnitAttr)

    @staticmethod
    def check_tiles(given: Any, layout: LayoutLike, tiler: Tiler) -> None:
        """Raises `LayoutError` (E0314) unless tiles of `tiler` cover `layout` exactly, or the view is ragged."""
        if given.ragged is None:
            check_tiles(layout, tiler)

    def misfit(self, layout: LayoutLike) -> LayoutError | None:
        """Why the tiles do not cover a source of a layout exactly; None if they do."""
        properties = {name: value for name, value in self.properties.items() if name != "ragged"}
        try:
            self.layout_by(self.given(self.operand_types, properties), layout)
        except LayoutError as error:
            return error if error.code == Code.TILE_NOT_DIVIDING else None
        return None


VIEWED = "custom<Viewed>($source, type($source))"
RESULT = "attr-dict custom<Inferred>(type($result))"
"""The beginning and the end of the formats of views."""
