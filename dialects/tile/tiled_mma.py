# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiled MMAs, and a thread's part of the operands under one (CuTe's mma_atom.hpp)."""

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Self, cast

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from ...base.errors import Code, LayoutError
from ...layout.algebra.core import Layout, LayoutLike, Tiler
from ...layout.algebra.integers import Coord
from ...layout.algebra.inttuple import rank
from ...layout.text.layouts import parse_layout, parse_tiler, to_text
from ...layout.tiling.tiled_mma import TiledMma, make_tiled_mma
from ...layout.tiling.tiler import check_tiler
from ..cute import LayoutAttr, TilerAttr, parse_quoted
from .assembly import parse_defined, parse_viewed
from .mma_types import MmaAtomAttr, TiledMmaType, parse_mma_atom
from .results import parse_result, print_result, verify_result
from .threads import ThreadViewOp


@irdl_op_definition
class TiledMmaOp(IRDLOperation):
    """A tiled MMA: an atom repeated over threads, and over values as far as the permutation says (CuTe's
    make_tiled_mma).

    `tile.tiled_mma #tile.mma_atom<"SM80_16x8x16_F32F16F16F32_TN"> atoms "(2,2,1):(1,2,4)" permute "(32,32,16)"`: four
    warps multiply tiles of 32 x 32 x 16. Without `atoms` there is one atom, without `permute` the tile is what the
    threads cover. An entry of the permutation is a size, a layout or `_`: `"[(8,2,2):(1,16,8);_;_]"`.
    """

    name = "tile.tiled_mma"
    atom = prop_def(MmaAtomAttr)
    atoms = opt_prop_def(LayoutAttr)
    permute = opt_prop_def(TilerAttr)
    result = result_def(TiledMmaType)
    traits = traits_def(Pure())

    @staticmethod
    def infer(properties: dict[str, Attribute]) -> TiledMmaType:
        """The type of the tiled MMA that the properties describe. Raises `LayoutError`."""
        atom, atoms, permute = (properties.get(name) for name in ("atom", "atoms", "permute"))
        assert isinstance(atom, MmaAtomAttr)
        layout = atoms.data if isinstance(atoms, LayoutAttr) else None
        if layout is not None and not isinstance(layout, Layout):
            raise LayoutError(Code.COMPOSED_UNSUPPORTED, "the atom layout is a plain layout, without a swizzle")
        tile: Tiler = ()
        if isinstance(permute, TilerAttr):
            tile = permute.data
            check_tiler(tile, "the permutation of a tiled MMA")
        made = make_tiled_mma(atom.atom, layout, cast("Sequence[Tiler]", tile) if isinstance(tile, tuple) else (tile,))
        return TiledMmaType(atom, LayoutAttr(made.atom_layout), TilerAttr(made.permutation))

    def verify_(self) -> None:
        verify_result(self.result, lambda: self.infer(self.properties))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties: dict[str, Attribute] = {"atom": parse_mma_atom(parser)}
        start = parser.pos
        if parser.parse_optional_keyword("atoms") is not None:
            properties["atoms"] = LayoutAttr(parse_quoted(parser, parse_layout))
        if parser.parse_optional_keyword("permute") is not None:
            properties["permute"] = TilerAttr(parse_quoted(parser, parse_tiler))
        end = parser.pos
        attributes = parser.parse_optional_attr_dict()
        type = parse_result(parser, partial(cls.infer, properties), start, end)
        return cls.create(result_types=[type], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.atom)
        for name, value in (("atoms", self.atoms), ("permute", self.permute)):
            if value is not None:
                printer.print_string(f' {name} "{to_text(value.data)}"')
        print_result(printer, self)


def parse_tiled_mma(parser: Parser) -> SSAValue:
    """Parses an operand that is a tiled MMA, and the comma after it."""
    at = parser.pos
    mma = parse_defined(parser)
    if not isinstance(mma.type, TiledMmaType):
        parser.raise_error(f"expected a tiled MMA, got a value of type {mma.type}", at, parser.pos)
    parser.parse_punctuation(",")
    return mma


class _PartitionOp(ThreadViewOp):
    """A view through a tiled MMA: `tile.xyz %mma, %tensor, %thread : type`."""

    OPERAND: ClassVar[str]
    tiled_mma = operand_def(TiledMmaType)

    @property
    def mma(self) -> TiledMma:
        """The tiled MMA."""
        assert isinstance(self.tiled_mma.type, TiledMmaType)
        return self.tiled_mma.type.tiled_mma

    @property
    def sharing(self) -> int | None:
        return self.mma.threads

    def relayout(self, layout: LayoutLike) -> LayoutLike:
        mma = self.mma
        self.check_tiles(layout, mma.tiler(self.OPERAND))
        return mma.tidfrg(self.OPERAND, layout)

    def coordinate(self, layout: LayoutLike, values: Sequence[Any]) -> Coord:
        (thread,) = values
        return (thread, (None, (None,) * rank(layout[1][1].shape)))

    @classmethod
    def parse_operands(cls, parser: Parser) -> list[SSAValue | Sequence[SSAValue]]:
        return [parse_tiled_mma(parser), parse_viewed(parser)]


@irdl_op_definition
class PartitionAOp(_PartitionOp):
    """`tile.partition_A %mma, %tensor, %thread`: the thread's part of A (M,K,...): (MMA,MMA_M,MMA_K,...).

    The first mode holds the values of one execution of the atom, the others the executions.
    """

    name = "tile.partition_A"
    OPERAND: ClassVar[str] = "A"


@irdl_op_definition
class PartitionBOp(_PartitionOp):
    """`tile.partition_B %mma, %tensor, %thread`: the thread's part of B (N,K,...): (MMA,MMA_N,MMA_K,...)."""

    name = "tile.partition_B"
    OPERAND: ClassVar[str] = "B"


@irdl_op_definition
class PartitionCOp(_PartitionOp):
    """`tile.partition_C %mma, %tensor, %thread`: the thread's part of C (M,N,...): (MMA,MMA_M,MMA_N,...)."""

    name = "tile.partition_C"
    OPERAND: ClassVar[str] = "C"
