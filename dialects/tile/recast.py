# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The same memory as elements of another type (CuTe's recast)."""

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute
from xdsl.irdl import prop_def, result_def, traits_def
from xdsl.traits import Pure

from ...base.errors import Code, LayoutError
from ...layout.algebra.core import ComposedLayout, LayoutLike, flat_modes, plain_layout
from ...layout.algebra.integers import divisor
from ...layout.algebra.inttuple import leaves
from ...layout.algebra.recast import recast_layout
from ...layout.text.layouts import to_text
from ..cute import LayoutAttr
from ..definitions import irdl_op_definition, typed_operand
from ..ptx.base import scalar_bits
from .results import InferringOp
from .types import TensorType


@irdl_op_definition
class RecastOp(InferringOp):
    """`%u = tile.recast %t, i32`: the tensor's memory as elements of another type.

    Elements that become wider must be adjacent, begin at multiples of the new width and fill whole new elements;
    elements that become narrower need a mode of stride 1.
    """

    name = "tile.recast"
    source = typed_operand(TensorType)
    element_type = prop_def()
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "custom<Tensor>($source, type($source)) `,` custom<ElementType>($element_type) "
        "attr-dict custom<Inferred>(type($result))"
    )

    def relayout(self, layout: LayoutLike) -> LayoutLike:
        """The layout of the new elements. Raises `LayoutError`."""
        return recast_layout(layout, self.source.type.element_bits, _bits(self.element_type))

    @classmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Sequence[Attribute]:
        (source,), element = operand_types, properties["element_type"]
        assert isinstance(source, TensorType)
        new, old = _bits(element), source.element_bits
        if source.is_predicate or element == i1:
            text = "predicates (i1) cannot be viewed as other elements, or other elements as predicates"
            raise LayoutError(Code.BAD_ARGUMENT, text)
        if new > old:
            _check_groups(source.layout.data, new // old)
        if new < old and 1 not in leaves(plain_layout(source.layout.data).stride):
            raise LayoutError(
                Code.NO_ADJACENT_ELEMENTS,
                f"the elements of {to_text(source.layout.data)} cannot be split: no mode has the static stride 1",
                "take a view in which a mode of stride 1 is static",
            )
        if 8 * source.align.data % max(new, 8):
            raise LayoutError(
                Code.ATOM_MISALIGNED,
                f"elements of {new // 8} bytes need addresses aligned to that size, but the tensor's pointer is "
                f"only known to be aligned to {source.align.data}",
                "raise the tensor's alignment, or take a view that begins at a multiple",
            )
        layout = recast_layout(source.layout.data, old, new)
        return [TensorType(element, source.space, source.align, LayoutAttr(layout))]


def _bits(element: Attribute) -> int:
    bits = scalar_bits(element)
    if bits is None:
        raise LayoutError(Code.BAD_ARGUMENT, f"elements are integers or floats, not {element}")
    return bits


def _check_groups(layout: LayoutLike, count: int) -> None:
    """`LayoutError` unless the elements form groups of `count` adjacent ones, each beginning at a multiple of that. A
    dynamic extent is rounded up, as CuTe does.
    """
    if isinstance(layout, ComposedLayout) and divisor(layout.offset) % count:
        raise LayoutError(
            Code.STRIDE_DIVISIBILITY,
            f"{to_text(layout)} does not begin at a multiple of {count} elements, which become one",
        )
    for extent, stride in flat_modes(layout):
        step = divisor(stride)
        inside = isinstance(stride, int) and 0 < stride < count
        if (not inside and step % count) or (inside and isinstance(extent, int) and extent * step % count):
            raise LayoutError(
                Code.STRIDE_DIVISIBILITY,
                f"the mode {extent}:{stride} of {to_text(layout)} does not fall into groups of {count} elements, which "
                "become one",
            )
