# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiled copies, and a thread's part of a tensor under one (CuTe's copy_atom.hpp)."""

from collections.abc import Sequence
from typing import Any, Self

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...layout.core import Layout, LayoutLike
from ...layout.errors import LayoutError
from ...layout.integers import Coord
from ...layout.text import parse_layout, parse_tiler, to_text
from ...layout.tiled_copy import TiledCopy, make_tiled_copy
from ..cute import LayoutAttr, TilerAttr, parse_quoted
from ..errors import raise_at, refuse
from .assembly import parse_defined, parse_viewed
from .types import CopyAtomAttr, TiledCopyType
from .view_base import TilingViewOp


@irdl_op_definition
class TiledCopyOp(IRDLOperation):
    """A tiled copy, by thread and value layouts or by thread-value layout and tiler (CuTe's make_tiled_copy).

    `tile.tiled_copy #tile.copy_atom<"SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", f16> thr "(8,4):(1,8)" val "8:1"`: the
    layouts map places of the tile to threads, and to the values of a thread. `... tv "((16,8),8):((64,1),8)" tiler
    "(8,128)"`: the layout maps (thread, value) to a place of the tile.
    """

    name = "tile.tiled_copy"
    atom = prop_def(CopyAtomAttr)
    thr = opt_prop_def(LayoutAttr)
    val = opt_prop_def(LayoutAttr)
    tv = opt_prop_def(LayoutAttr)
    tiler = opt_prop_def(TilerAttr)
    result = result_def(TiledCopyType)
    traits = traits_def(Pure())

    @staticmethod
    def infer(properties: dict[str, Attribute]) -> TiledCopyType:
        """The type of the tiled copy that the properties describe. Raises `LayoutError`."""
        atom = properties["atom"]
        assert isinstance(atom, CopyAtomAttr)
        thr, val, tv, tiler = (properties.get(name) for name in ("thr", "val", "tv", "tiler"))
        if isinstance(tv, LayoutAttr) and isinstance(tiler, TilerAttr):
            assert isinstance(tv.data, Layout)
            _ = TiledCopy(atom.atom, tv.data, tiler.data)  # the LayoutError, where they do not fit
            return TiledCopyType(atom, tv, tiler)
        assert isinstance(thr, LayoutAttr)
        assert isinstance(val, LayoutAttr)
        assert isinstance(thr.data, Layout)
        assert isinstance(val.data, Layout)
        made = make_tiled_copy(atom.atom, thr.data, val.data)
        return TiledCopyType(atom, LayoutAttr(made.layout_tv), TilerAttr(made.tiler))

    def verify_(self) -> None:
        by_layouts = self.thr is not None and self.val is not None and self.tv is None and self.tiler is None
        by_tv = self.tv is not None and self.tiler is not None and self.thr is None and self.val is None
        if not by_layouts and not by_tv:
            raise VerifyException(
                "a tiled copy needs thread and value layouts (thr, val), or a layout and a tiler (tv, tiler)"
            )
        for layout in (self.thr, self.val, self.tv):
            if layout is not None and not isinstance(layout.data, Layout):
                raise VerifyException("the layouts of a tiled copy are plain ones, without a swizzle")
        try:
            expected = self.infer(self.properties)
        except LayoutError as error:
            refuse(error)
        if self.result.type != expected:
            raise VerifyException(f"the result is {expected}, but {self.result.type} is written")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        atom = parser.parse_attribute()
        if not isinstance(atom, CopyAtomAttr):
            parser.raise_error(
                'expected a copy atom, such as #tile.copy_atom<"UniversalCopy<uint128_t>", f16>', start, parser.pos
            )
        properties: dict[str, Attribute] = {"atom": atom}
        for first, second in (("thr", "val"), ("tv", "tiler")):
            if parser.parse_optional_keyword(first) is not None:
                properties[first] = cls._plain(parser)
                parser.parse_keyword(second)
                if second == "tiler":
                    properties[second] = TilerAttr(parse_quoted(parser, parse_tiler))
                else:
                    properties[second] = cls._plain(parser)
                break
        else:
            parser.raise_error('expected thr "..." val "...", or tv "..." tiler "..."')
        end = parser.pos
        attributes = parser.parse_optional_attr_dict()
        if parser.parse_optional_punctuation(":") is not None:
            type: Attribute = parser.parse_type()
        else:
            try:
                type = cls.infer(properties)
            except LayoutError as error:
                raise_at(parser, error, start, end)
        return cls.create(result_types=[type], properties=properties, attributes=attributes)

    @staticmethod
    def _plain(parser: Parser) -> LayoutAttr:
        start = parser.pos
        layout = parse_quoted(parser, parse_layout)
        if not isinstance(layout, Layout):
            parser.raise_error("expected a plain layout, without a swizzle", start, parser.pos)
        return LayoutAttr(layout)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.atom)
        for name, value in (("thr", self.thr), ("val", self.val), ("tv", self.tv), ("tiler", self.tiler)):
            if value is not None:
                printer.print_string(f' {name} "{to_text(value.data)}"')
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


class _PartitionOp(TilingViewOp):
    """A view through a tiled copy: `tile.xyz %copy, %tensor, %thread : type`."""

    tiled_copy = operand_def(TiledCopyType)

    @property
    def copy(self) -> TiledCopy:
        """The tiled copy."""
        assert isinstance(self.tiled_copy.type, TiledCopyType)
        return self.tiled_copy.type.tiled_copy

    def verify_(self) -> None:
        if len(self.coords) != 1:
            raise VerifyException("a partition needs one thread index")
        super().verify_()

    def coordinate(self, layout: LayoutLike, values: Sequence[Any]) -> Coord:
        (thread,) = values
        modes = len(self.source_type.layout.data)
        return (thread, None, (None,) * modes if modes > 1 else None)

    @classmethod
    def parse_operands(cls, parser: Parser) -> list[SSAValue | Sequence[SSAValue]]:
        at = parser.pos
        copy = parse_defined(parser)
        if not isinstance(copy.type, TiledCopyType):
            parser.raise_error(f"expected a tiled copy, got a value of type {copy.type}", at, parser.pos)
        parser.parse_punctuation(",")
        return [copy, parse_viewed(parser)]

    @classmethod
    def parse_body(cls, parser: Parser) -> tuple[list[SSAValue], dict[str, Attribute]]:
        return [parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())], {}

    def print_body(self, printer: Printer) -> None:
        printer.print_string(", ")
        printer.print_operand(self.coords[0])


@irdl_op_definition
class PartitionSOp(_PartitionOp):
    """`tile.partition_S %copy, %tensor, %thread`: what the thread reads: (CPY,CPY_M,CPY_N,...).

    The first mode holds the values of one execution of the tiled copy, split by the atom: ((AtomV,RestV),...).
    """

    name = "tile.partition_S"

    def relayout(self, layout: LayoutLike) -> LayoutLike:
        self.check_tiles(layout, self.copy.tiler)
        return self.copy.tidfrg_S(layout)


@irdl_op_definition
class PartitionDOp(_PartitionOp):
    """`tile.partition_D %copy, %tensor, %thread`: what the thread writes: (CPY,CPY_M,CPY_N,...)."""

    name = "tile.partition_D"

    def relayout(self, layout: LayoutLike) -> LayoutLike:
        self.check_tiles(layout, self.copy.tiler)
        return self.copy.tidfrg_D(layout)
