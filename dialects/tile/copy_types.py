# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copy atoms and tiled copies as attributes and types of the IR."""

from functools import lru_cache

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ...base.errors import LayoutError, TilefoldError
from ...layout.algebra.core import Layout
from ...layout.atoms.cache_hints import with_hints
from ...layout.atoms.copy_atom import CopyAtom
from ...layout.atoms.copy_names import copy_atom
from ...layout.atoms.instructions import AutoMove, BulkCopy, MovMatrix
from ...layout.text.layouts import parse_layout, parse_tiler, to_text
from ...layout.tiling.tiled_copy import TiledCopy
from ..cute import LayoutAttr, TilerAttr, parse_quoted
from ..element_types import PACKED_TYPES
from ..errors import parse_kind, raise_at, refusing
from ..ptx.base import scalar_bits


@irdl_attr_definition
class CopyAtomAttr(ParametrizedAttribute):
    """`#tile.copy_atom<"SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", f16>`: a copy instruction by name, and the elements
    that it moves.

    `#tile.copy_atom<"UniversalCopy<uint128_t>", f16, load "nc.L1::no_allocate", store "cs">` has cache hints for its
    load and its store of global memory, in PTX's words; a cp.async takes `load "L2::128B"`.
    """

    name = "tile.copy_atom"
    atom_name: StringAttr
    value_type: Attribute
    load: StringAttr
    store: StringAttr

    def __init__(
        self,
        atom_name: StringAttr,
        value_type: Attribute,
        load: StringAttr | None = None,
        store: StringAttr | None = None,
    ) -> None:
        super().__init__(atom_name, value_type, load or StringAttr(""), store or StringAttr(""))

    @property
    def atom(self) -> CopyAtom:
        """The atom's record, in values of this type. `LayoutError` if there is none."""
        bits = scalar_bits(self.value_type)
        assert bits is not None
        atom = copy_atom(self.atom_name.data, bits)
        load, store = self.load.data, self.store.data
        return with_hints(atom, load, store) if load or store else atom

    @property
    def auto_bits(self) -> int | None:
        """The widest access in bits of an atom that leaves the width to the compiler; None for an instruction."""
        atom = self.atom
        return atom.instruction.max_bits or atom.val_bits if isinstance(atom.instruction, AutoMove) else None

    @property
    def is_bulk(self) -> bool:
        """Whether the instruction is a bulk copy."""
        return isinstance(self.atom.instruction, BulkCopy)

    def verify(self) -> None:
        bits = scalar_bits(self.value_type)
        if bits is None or (bits % 8 and self.value_type not in PACKED_TYPES):
            raise VerifyException(
                f"an atom moves integers or floats of whole bytes, i4, si4, ui4 or ui1, not {self.value_type}"
            )
        with refusing():
            self.atom.check_executable()
        if bits != 16 and isinstance(self.atom.instruction, MovMatrix):
            raise VerifyException(f"movmatrix transposes matrices of 16-bit elements, not of {self.value_type}")

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.atom_name.data)
            printer.print_string(", ")
            printer.print_attribute(self.value_type)
            for word, hint in (("load", self.load.data), ("store", self.store.data)):
                if hint:
                    printer.print_string(f", {word} ")
                    printer.print_string_literal(hint)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            start = parser.pos
            name = parser.parse_str_literal()
            parser.parse_punctuation(",")
            try:
                atom = copy_atom(name)
            except TilefoldError as error:
                raise_at(parser, error, start, start + len(name) + 2)
            value = parser.parse_type()
            hints = {"load": "", "store": ""}
            while parser.parse_optional_punctuation(",") is not None:
                word = "store" if parser.parse_optional_keyword("store") is not None else "load"
                if word == "load":
                    parser.parse_keyword("load", ", or store: a cache hint")
                start = parser.pos
                hints[word] = parser.parse_str_literal()
                try:
                    _ = with_hints(atom, **{word: hints[word]})
                except LayoutError as error:
                    raise_at(parser, error, start, start + len(hints[word]) + 2)
            return [StringAttr(name), value, *(StringAttr(hint) for hint in hints.values())]


def parse_copy_atom(parser: AttrParser) -> CopyAtomAttr:
    """Parses a copy atom; a ParseError for anything else."""
    return parse_kind(parser, CopyAtomAttr, 'a copy atom, such as #tile.copy_atom<"UniversalCopy<uint128_t>", f16>')


@irdl_attr_definition
class TiledCopyType(ParametrizedAttribute, TypeAttribute):
    """`!tile.tiled_copy<#tile.copy_atom<...>, "(32,8):(8,1)", "(64,4)">`: an atom, a thread-value layout and a tiler.

    The layout maps (thread, value) to a position in the tile; the tiler gives the place of the tile in a tensor.
    """

    name = "tile.tiled_copy"
    atom: CopyAtomAttr
    layout_tv: LayoutAttr
    tiler: TilerAttr

    @property
    def tiled_copy(self) -> TiledCopy:
        """The tiled copy itself. `LayoutError` if atom, layout and tiler do not fit together."""
        return _tiled_copy(self)

    def verify(self) -> None:
        if not isinstance(self.layout_tv.data, Layout):
            raise VerifyException("the thread-value layout of a tiled copy is a plain layout")
        with refusing():
            _ = self.tiled_copy

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.atom)
            printer.print_string(f', "{to_text(self.layout_tv.data)}", "{to_text(self.tiler.data)}"')

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            atom = parse_copy_atom(parser)
            parser.parse_punctuation(",")
            layout = LayoutAttr(parse_quoted(parser, parse_layout))
            parser.parse_punctuation(",")
            return [atom, layout, TilerAttr(parse_quoted(parser, parse_tiler))]


@lru_cache(maxsize=256)
def _tiled_copy(type: TiledCopyType) -> TiledCopy:
    """The tiled copy of a type; kept, since each partition asks for it twice and it takes longer than a partition."""
    assert isinstance(type.layout_tv.data, Layout)
    return TiledCopy(type.atom.atom, type.layout_tv.data, type.tiler.data)
