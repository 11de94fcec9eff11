# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The remains of views once the static part of the layout algebra is folded: an index and a shifted view."""

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, opt_operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...layout.algebra.coordinates import fixed_modes
from ...layout.algebra.core import Layout, LayoutLike
from ...layout.algebra.integers import Unknown
from ..cute import CoordAttr, LayoutAttr
from ..cute.values import unknowns, with_scalars
from ..definitions import irdl_op_definition, refusing, typed_operand
from .assembly import check_operands, fill_coordinate, unwrap
from .directives import TileOp
from .types import TensorType


@irdl_op_definition
class Crd2IdxOp(TileOp):
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
    assembly_format = (
        "custom<Coordinate>($coord, $coords) `in` custom<Quoted>($layout) (`with` ` ` `(` $scalars^ `)`)? attr-dict"
    )

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

    def fixed(self, values: Sequence[object], scalars: Sequence[object]) -> list[tuple[Any, Any]]:
        """The integers of the coordinate, each with the extent of its mode, for values of the operands."""
        shape = with_scalars(self.plain_layout, scalars).shape
        return list(fixed_modes(unwrap(fill_coordinate(self.coord.data, values)), shape))

    def verify_(self) -> None:
        if not isinstance(self.layout.data, Layout):
            raise VerifyException("the layout of crd2idx is a plain one, without a swizzle")
        check_operands(self.coord.data, self.coords)
        _check_scalars(self.layout.data, self.scalars)
        with refusing():
            self.layout.data(unwrap(fill_coordinate(self.coord.data, [Unknown() for _ in self.coords])))


@irdl_op_definition
class ViewOp(TileOp):
    """`%v = tile.view %t at %o : T2`: the tensor `%o` elements further on, with the layout of T2.

    The pointer of a plain tensor moves; a swizzled tensor keeps its pointer, and its offset grows. Without `at` only
    the layout changes, and perhaps the element type. `with (%m, %ld)` gives the values of the `?` of T2, those of its
    shape first. A view of other elements promises that they begin at multiples of their size. T2 has the space of the
    tensor; the folding pass guarantees that its elements are the tensor's.
    """

    name = "tile.view"
    source = typed_operand(TensorType)
    offset = opt_operand_def(IndexType)
    scalars = var_operand_def(IndexType)
    result = result_def(TensorType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())
    assembly_format = (
        "custom<Tensor>($source, type($source)) (`at` custom<Operand>($offset)^)? (`with` ` ` `(` $scalars^ `)`)? "
        "attr-dict custom<Written>(type($result))"
    )

    def __init__(
        self, source: SSAValue | Operation, offset: SSAValue | None, type: TensorType, scalars: Sequence[SSAValue] = ()
    ):
        super().__init__(operands=[source, offset, scalars], result_types=[type])

    def verify_(self) -> None:
        source, result = self.source.type, self.result.type
        recast = source.element_type != result.element_type
        if (recast and self.offset is not None) or source.space != result.space:
            raise VerifyException(f"a view keeps element type and space; {source} became {result}")
        _check_scalars(result.layout.data, self.scalars)
        if source.is_swizzled != result.is_swizzled:
            raise VerifyException(f"a view keeps the swizzle; {source} became {result}")
        known = max(source.align.data, result.element_bits // 8) if recast else source.align.data
        if result.align.data > known:
            raise VerifyException(
                f"the view promises alignment {result.align.data}, the tensor only {source.align.data}"
            )


def _check_scalars(layout: LayoutLike, scalars: Sequence[SSAValue]) -> None:
    """VerifyException unless each `?` of the layout has an operand."""
    count = len(unknowns(layout))
    if len(scalars) != count:
        raise VerifyException(f"the layout has {count} dynamic integers, but {len(scalars)} are given")
