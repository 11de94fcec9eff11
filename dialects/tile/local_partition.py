# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A thread's part of a tensor by a layout of threads alone (CuTe's local_partition)."""

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ...layout.algebra.core import Layout, LayoutLike
from ...layout.algebra.divide import zipped_divide
from ...layout.algebra.integers import Coord
from ...layout.algebra.inttuple import product_each
from ...layout.algebra.slicing import dice
from ...layout.text.layouts import parse_coord, parse_layout, to_text
from ...layout.tiling.partition import everything, padded, thread_coordinate
from ...layout.tiling.tiler import check_tiler
from ..cute import CoordAttr, LayoutAttr, parse_quoted
from .threads import ThreadViewOp


@irdl_op_definition
class LocalPartitionOp(ThreadViewOp):
    """`tile.local_partition %t, "(8,4):(1,8)", %thread`: the elements at the thread's coordinate in every tile of the
    threads' shape (CuTe's local_partition): (RestM,RestN,...).

    The layout maps coordinates to thread indices. With `proj "(1,_)"` only the modes marked 1 of it are used. Tiles
    must cover the tensor exactly, unless `ragged` follows.
    """

    name = "tile.local_partition"
    threads = prop_def(LayoutAttr)
    proj = opt_prop_def(CoordAttr)

    def _layout(self) -> Layout:
        """The threads' layout, as projected."""
        threads = self.threads.data
        assert isinstance(threads, Layout), "the verifier checks this"
        return threads if self.proj is None else dice(self.proj.data, threads)

    def relayout(self, layout: LayoutLike) -> LayoutLike:
        threads = self._layout()
        check_tiler(threads, "the layout of threads")
        sizes = product_each(threads.shape)
        self.check_tiles(layout, sizes)
        return zipped_divide(layout, sizes)

    def coordinate(self, layout: LayoutLike, values: Sequence[Any]) -> Coord:
        (thread,) = values
        return padded(thread_coordinate(self._layout(), thread), layout[0].shape), everything(layout[1].shape)

    def verify_(self) -> None:
        if not isinstance(self.threads.data, Layout):
            raise VerifyException("the layout of threads is a plain one, without a swizzle")
        super().verify_()

    @classmethod
    def parse_body(cls, parser: Parser) -> tuple[list[SSAValue], dict[str, Attribute]]:
        start = parser.pos
        threads = parse_quoted(parser, parse_layout)
        if not isinstance(threads, Layout):
            parser.raise_error("expected a plain layout, without a swizzle", start, parser.pos)
        properties: dict[str, Attribute] = {"threads": LayoutAttr(threads)}
        parser.parse_punctuation(",")
        index = parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())
        if parser.parse_optional_keyword("proj") is not None:
            properties["proj"] = CoordAttr(parse_quoted(parser, parse_coord))
        return [index], properties

    def print_body(self, printer: Printer) -> None:
        printer.print_string(f', "{to_text(self.threads.data)}", ')
        printer.print_operand(self.coords[0])
        if self.proj is not None:
            printer.print_string(f' proj "{to_text(self.proj.data)}"')
