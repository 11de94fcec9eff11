# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The type of a coordinate tensor: a layout whose indices are coordinates, from a coordinate on (CuTe's ArithTuple
tensors).
"""

from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ...layout.algebra.core import Layout
from ...layout.algebra.integers import AnyTuple, ScaledBasis, add
from ...layout.algebra.inttuple import leaves
from ...layout.text.layouts import parse_coord_tensor, to_text
from ..cute import CoordAttr, LayoutAttr, parse_quoted


@irdl_attr_definition
class CoordTensorType(ParametrizedAttribute, TypeAttribute):
    """`!tile.coord_tensor<"(?{div=128},0) o (128,64):(1@0,1@1)">`: a tensor whose elements are coordinates.

    Its element at a coordinate is the start, `(?{div=128},0)`, plus the index in the layout, whose strides are steps
    along the axes of the start. It takes no memory: at run time it is the `?` of its type. A start of zeros may be
    left out.
    """

    name = "tile.coord_tensor"
    start: CoordAttr
    layout: LayoutAttr

    @property
    def plain_layout(self) -> Layout:
        """The layout, which is a plain one."""
        assert isinstance(self.layout.data, Layout)
        return self.layout.data

    def moved(self, layout: Layout, distance: object) -> "CoordTensorType":
        """The type of a view with another layout, which starts `distance`, a coordinate, further on."""
        return CoordTensorType(CoordAttr(add(self.start.data, distance)), LayoutAttr(layout))

    def verify(self) -> None:
        start, layout = self.start.data, self.plain_layout
        if any(leaf is None or (type(leaf) is int and leaf < 0) for leaf in leaves(start)):
            raise VerifyException(f"the start {to_text(start)} is not a coordinate of integers from 0 on")
        for stride in leaves(layout.stride):
            if not _is_along(stride, start):
                raise VerifyException(f"the stride {to_text(stride)} is not a step along an axis of {to_text(start)}")

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f'"{to_text(self.start.data)} o {to_text(self.layout.data)}"')

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            start, layout = parse_quoted(parser, parse_coord_tensor)
            return [CoordAttr(start), LayoutAttr(layout)]


def _is_along(stride: object, start: object) -> bool:
    """Whether a stride moves along one axis of `start`, and not backwards; a stride of 0 moves nowhere."""
    if stride == 0:
        return True
    path, value = (stride.path, stride.value) if isinstance(stride, ScaledBasis) else ((), stride)
    for mode in path:
        parts = _modes(start)
        if mode >= len(parts):
            return False
        start = parts[mode]
    return not isinstance(start, tuple) and not (type(value) is int and value < 0)


def _modes(t: object) -> tuple[AnyTuple, ...]:
    return t if isinstance(t, tuple) else ()  # pyright: ignore[reportUnknownVariableType]
