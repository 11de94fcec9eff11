# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copy atoms and tiled copies as attributes and types of the IR."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ...base.errors import LayoutError, TilefoldError
from ...layout.algebra.core import Layout
from ...layout.atoms.cache_hints import with_hints
from ...layout.atoms.copy_atom import CopyAtom
from ...layout.atoms.copy_names import copy_atom
from ...layout.atoms.numbers import Transposed
from ...layout.text.layouts import parse_layout, parse_tiler, to_text
from ...layout.tiling.tiled_copy import TiledCopy
from ..cute import LayoutAttr, TilerAttr, parse_quoted
from ..definitions import parse_kind, raise_at, refusing
from ..element_types import PACKED_TYPES
from ..ptx.base import scalar_bits


@dataclass(frozen=True, slots=True)
class TypedCopy:
    """A copy atom in bits, the type of the elements that it moves, and the cache hints of its load and its store."""

    record: CopyAtom
    value_type: Attribute
    load: str
    store: str


@irdl_attr_definition
class CopyAtomAttr(Data[TypedCopy]):
    """`#tile.copy_atom<"SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", f16>`: a copy instruction by name, and the elements
    that it moves.

    `#tile.copy_atom<"UniversalCopy<uint128_t>", f16, load "nc.L1::no_allocate", store "cs">` has cache hints for its
    load and its store of global memory, in PTX's words; a cp.async takes `load "L2::128B"`.
    """

    name = "tile.copy_atom"

    @staticmethod
    def of(record: CopyAtom, value_type: Attribute, load: str = "", store: str = "") -> "CopyAtomAttr":
        """The attribute of an atom for elements of a type, with cache hints."""
        return CopyAtomAttr(TypedCopy(record, value_type, load, store))

    @property
    def atom(self) -> CopyAtom:
        """The atom's record, in values of this type. `LayoutError` if the atom cannot move such values."""
        return _in_values(self.data)

    @property
    def atom_name(self) -> str:
        """The name of the atom."""
        return self.data.record.name

    @property
    def value_type(self) -> Attribute:
        """The type of the elements."""
        return self.data.value_type

    @property
    def load(self) -> str:
        """The cache hint of the load; empty without one."""
        return self.data.load

    @property
    def store(self) -> str:
        """The cache hint of the store; empty without one."""
        return self.data.store

    def verify(self) -> None:
        bits = scalar_bits(self.value_type)
        if bits is None or (bits % 8 and self.value_type not in PACKED_TYPES):
            raise VerifyException(
                f"an atom moves integers or floats of whole bytes, i4, si4, ui4 or ui1, not {self.value_type}"
            )
        with refusing():
            self.atom.check_executable()
        if bits != 16 and isinstance(self.atom.contract.numbers, Transposed):
            raise VerifyException(f"movmatrix transposes matrices of 16-bit elements, not of {self.value_type}")

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.atom_name)
            printer.print_string(", ")
            printer.print_attribute(self.value_type)
            for word, hint in (("load", self.load), ("store", self.store)):
                if hint:
                    printer.print_string(f", {word} ")
                    printer.print_string_literal(hint)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TypedCopy:
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
            return TypedCopy(atom, value, hints["load"], hints["store"])


@lru_cache(maxsize=256)
def _in_values(typed: TypedCopy) -> CopyAtom:
    """The record in values of its type; kept, since each operation on the atom asks for it."""
    bits = scalar_bits(typed.value_type)
    assert bits is not None
    atom = typed.record.with_value_bits(bits)
    return with_hints(atom, typed.load, typed.store) if typed.load or typed.store else atom


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
        return parse_tiled(parser, parse_copy_atom)


def parse_tiled(parser: AttrParser, parse_atom: Callable[[AttrParser], Attribute]) -> list[Attribute]:
    """Parses the parameters of the type of a tiled copy or MMA: the atom, a layout and a tiler, in angle brackets."""
    with parser.in_angle_brackets():
        atom = parse_atom(parser)
        parser.parse_punctuation(",")
        layout = LayoutAttr(parse_quoted(parser, parse_layout))
        parser.parse_punctuation(",")
        return [atom, layout, TilerAttr(parse_quoted(parser, parse_tiler))]


@lru_cache(maxsize=256)
def _tiled_copy(type: TiledCopyType) -> TiledCopy:
    """The tiled copy of a type; kept, since each partition asks for it twice and it takes longer than a partition."""
    assert isinstance(type.layout_tv.data, Layout)
    return TiledCopy(type.atom.atom, type.layout_tv.data, type.tiler.data)
