# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MMA atoms and tiled MMAs as attributes and types of the IR."""

from functools import lru_cache

from xdsl.dialects.builtin import i8
from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ...base.element_types import BY_PTX
from ...base.errors import Code, LayoutError, TilefoldError
from ...layout.algebra.core import Layout, rank
from ...layout.algebra.inttuple import leaves
from ...layout.atoms.mma_atom import MmaAtom
from ...layout.atoms.mma_table import mma_atom
from ...layout.text.layouts import to_text
from ...layout.tiling.tiled_mma import TiledMma, make_tiled_mma
from ..cute import LayoutAttr, TilerAttr
from ..definitions import parse_kind, raise_at, refusing
from ..element_types import ir_types
from .copy_types import parse_tiled


@irdl_attr_definition
class MmaAtomAttr(Data[MmaAtom]):
    """`#tile.mma_atom<"SM80_16x8x16_F32F16F16F32_TN">`: a matrix instruction, which text has by name."""

    name = "tile.mma_atom"

    @property
    def atom(self) -> MmaAtom:
        """The atom's record."""
        return self.data

    def element_types(self, operand: str) -> tuple[Attribute, ...]:
        """The element types that tensors of operand "D", "A", "B" or "C" can have, that of a new fragment first."""
        given = self.atom.operand(operand)
        element = BY_PTX[given.element]
        if self.atom.held_bits(given) == element.memory_bits:
            in_bytes = (i8,) if element.is_narrow_float else ()
            return (*ir_types(element), *in_bytes)
        return (i8,)  # an element of 4 bits, which takes a byte

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.atom.name)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> MmaAtom:
        with parser.in_angle_brackets():
            start = parser.pos
            name = parser.parse_str_literal()
            try:
                return mma_atom(name)
            except TilefoldError as error:
                raise_at(parser, error, start, start + len(name) + 2)


def parse_mma_atom(parser: AttrParser) -> MmaAtomAttr:
    """Parses an MMA atom; a ParseError names the expected text where something else stands."""
    return parse_kind(parser, MmaAtomAttr, 'an MMA atom, such as #tile.mma_atom<"SM80_16x8x16_F32F16F16F32_TN">')


@irdl_attr_definition
class TiledMmaType(ParametrizedAttribute, TypeAttribute):
    """`!tile.tiled_mma<#tile.mma_atom<...>, "(2,2,1):(1,2,4)", "(32,32,16)">`: an atom, and how it is repeated.

    The layout maps the position of an atom in (M,N,K) to the threads that execute it. The permutation gives, for each
    of M, N and K, the tile that all threads multiply at once: a size, a layout that reorders it, or `_` for the extent
    that the threads cover.
    """

    name = "tile.tiled_mma"
    atom: MmaAtomAttr
    atom_layout: LayoutAttr
    permutation: TilerAttr

    @property
    def tiled_mma(self) -> TiledMma:
        """The tiled MMA itself. `LayoutError` if atom, layout and permutation do not fit together."""
        return _tiled_mma(self)

    def verify(self) -> None:
        layout = self.atom_layout.data
        if not all(type(leaf) is int for leaf in leaves(layout.shape)):
            raise VerifyException(f"the atom layout {layout} of a tiled MMA is not static")
        with refusing():
            _ = self.tiled_mma

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.atom)
            printer.print_string(f', "{to_text(self.atom_layout.data)}", "{to_text(self.permutation.data)}"')

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        return parse_tiled(parser, parse_mma_atom)


@lru_cache(maxsize=256)
def _tiled_mma(type: TiledMmaType) -> TiledMma:
    """The tiled MMA of a type; kept, since each partition asks for it twice."""
    if not isinstance(type.atom_layout.data, Layout):
        raise LayoutError(
            Code.COMPOSED_UNSUPPORTED, "the atom layout of a tiled MMA is a plain layout, without a swizzle"
        )
    permutation = type.permutation.data
    if not isinstance(permutation, tuple) or len(permutation) != 3 or rank(type.atom_layout.data) != 3:
        raise LayoutError(Code.RANK_MISMATCH, "a tiled MMA has an atom layout and a permutation of M, N and K")
    return make_tiled_mma(type.atom.atom, type.atom_layout.data, permutation)
