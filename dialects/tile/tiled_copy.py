# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiled copies, in all the ways in which CuTe makes them (copy_atom.hpp)."""

from typing import Self

from xdsl.dialects.builtin import IndexType, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...layout.algebra.core import Layout
from ...layout.atoms.copy_atom import CopyAtom
from ...layout.text.layouts import parse_layout, parse_tiler, to_text
from ...layout.tiling.cotiled_copy import make_cotiled_copy
from ...layout.tiling.tiled_copy import BY_COPY, TiledCopy, make_tiled_copy
from ...layout.tiling.tiled_copy_mma import BY_MMA
from ..cute import LayoutAttr, TilerAttr, parse_quoted
from .assembly import parse_defined
from .copy_types import CopyAtomAttr, TiledCopyType
from .mma_types import TiledMmaType
from .results import parse_result, print_result, verify_result

BY_LAYOUTS = (("thr", "val"), ("tv", "tiler"), ("cotiled", "data"))
"""The ways that take two layouts, or a layout and a tiler, by the words before them."""

_EXPECTED = (
    'expected thr "..." val "...", tv "..." tiler "...", cotiled "..." data "...", one of A, B, C and C_atom with a '
    "tiled MMA, or S or D with a tiled copy"
)


@irdl_op_definition
class TiledCopyOp(IRDLOperation):
    """A tiled copy: an atom, spread over threads and values.

    `tile.tiled_copy #tile.copy_atom<"SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", f16> thr "(8,4):(1,8)" val "8:1"`: the
    layouts map positions in the tile to threads, and to the values of a thread (CuTe's make_tiled_copy).
    `... tv "((16,8),8):((64,1),8)" tiler "(8,128)"`: the layout maps (thread, value) to a position in the tile.
    `... cotiled "(32,8):(8,1)" data "(16,16):(16,1)"`: the layout maps (thread, value) to an index into the data layout
    (make_cotiled_copy).
    `... A %mma`, `B %mma`, `C %mma`, `C_atom %mma`: the parts of an operand that the threads of a tiled MMA hold;
    `C_atom` takes only as many values of C in each thread as the atom moves. `... S %copy`, `D %copy`:
    the elements that another tiled copy reads, or writes.
    """

    name = "tile.tiled_copy"
    atom = prop_def(CopyAtomAttr)
    thr = opt_prop_def(LayoutAttr)
    val = opt_prop_def(LayoutAttr)
    tv = opt_prop_def(LayoutAttr)
    tiler = opt_prop_def(TilerAttr)
    cotiled = opt_prop_def(LayoutAttr)
    data = opt_prop_def(LayoutAttr)
    role = opt_prop_def(StringAttr)
    like = opt_operand_def(TiledMmaType | TiledCopyType)
    result = result_def(TiledCopyType)
    traits = traits_def(Pure())

    def infer(self) -> TiledCopyType:
        """The type of the tiled copy that the properties describe. Raises `LayoutError`."""
        made = self._made(self.atom.atom)
        return TiledCopyType(self.atom, LayoutAttr(made.layout_tv), TilerAttr(made.tiler))

    def _made(self, atom: CopyAtom) -> TiledCopy:
        if self.role is not None and self.like is not None:
            role, like = self.role.data, self.like.type
            if isinstance(like, TiledMmaType):
                return BY_MMA[role](atom, like.tiled_mma)
            assert isinstance(like, TiledCopyType)
            return BY_COPY[role](atom, like.tiled_copy)
        if self.tv is not None and self.tiler is not None:
            return TiledCopy(atom, _plain(self.tv), self.tiler.data)
        if self.cotiled is not None and self.data is not None:
            return make_cotiled_copy(atom, _plain(self.cotiled), _plain(self.data))
        assert self.thr is not None
        assert self.val is not None
        return make_tiled_copy(atom, _plain(self.thr), _plain(self.val))

    def verify_(self) -> None:
        given = [name for names in BY_LAYOUTS for name in names if name in self.properties]
        by_layouts = any(given == list(names) for names in BY_LAYOUTS) and self.role is None and self.like is None
        by_like = not given and self.role is not None and self.like is not None
        if not by_layouts and not by_like:
            raise VerifyException(f"a tiled copy is made in one way: {_EXPECTED}")
        for layout in (self.thr, self.val, self.tv, self.cotiled, self.data):
            if layout is not None and not isinstance(layout.data, Layout):
                raise VerifyException("the layouts of a tiled copy are plain ones, without a swizzle")
        if self.role is not None and self.like is not None:
            allowed = BY_MMA if isinstance(self.like.type, TiledMmaType) else BY_COPY
            if self.role.data not in allowed:
                raise VerifyException(f"the part is '{self.role.data}'; {self.like.type} has {', '.join(allowed)}")
        verify_result(self.result, self.infer)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        atom = parser.parse_attribute()
        if not isinstance(atom, CopyAtomAttr):
            parser.raise_error(
                'expected a copy atom, such as #tile.copy_atom<"UniversalCopy<uint128_t>", f16>', start, parser.pos
            )
        properties, like = cls._parse_way(parser)
        properties["atom"] = atom
        end = parser.pos
        attributes = parser.parse_optional_attr_dict()
        operands = [like]
        draft = cls.build(operands=operands, properties=properties, result_types=[IndexType()])
        try:
            type = parse_result(parser, draft.infer, start, end)
        finally:
            draft.erase()
        return cls.build(operands=operands, result_types=[type], properties=properties, attributes=attributes)

    @classmethod
    def _parse_way(cls, parser: Parser) -> tuple[dict[str, Attribute], SSAValue | None]:
        for first, second in BY_LAYOUTS:
            if parser.parse_optional_keyword(first) is not None:
                one = cls._parse_plain(parser)
                parser.parse_keyword(second)
                if second == "tiler":
                    return {first: one, second: TilerAttr(parse_quoted(parser, parse_tiler))}, None
                return {first: one, second: cls._parse_plain(parser)}, None
        for role, type, what in (
            *((role, TiledMmaType, "a tiled MMA") for role in BY_MMA),
            *((role, TiledCopyType, "a tiled copy") for role in BY_COPY),
        ):
            if parser.parse_optional_keyword(role) is not None:
                at = parser.pos
                like = parse_defined(parser)
                if not isinstance(like.type, type):
                    parser.raise_error(f"expected {what}, got a value of type {like.type}", at, parser.pos)
                return {"role": StringAttr(role)}, like
        parser.raise_error(_EXPECTED)

    @staticmethod
    def _parse_plain(parser: Parser) -> LayoutAttr:
        start = parser.pos
        layout = parse_quoted(parser, parse_layout)
        if not isinstance(layout, Layout):
            parser.raise_error("expected a plain layout, without a swizzle", start, parser.pos)
        return LayoutAttr(layout)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.atom)
        for name in (name for names in BY_LAYOUTS for name in names):
            value = self.properties.get(name)
            if isinstance(value, LayoutAttr | TilerAttr):
                printer.print_string(f' {name} "{to_text(value.data)}"')
        if self.role is not None and self.like is not None:
            printer.print_string(f" {self.role.data} ")
            printer.print_operand(self.like)
        print_result(printer, self)


def _plain(layout: LayoutAttr) -> Layout:
    assert isinstance(layout.data, Layout), "the verifier checks this"
    return layout.data
