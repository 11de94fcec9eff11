# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A thread's part of a tensor under a tiled copy (CuTe's copy_atom.hpp)."""

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def
from xdsl.parser import Parser

from ...base.errors import Code, LayoutError
from ...layout.algebra.core import LayoutLike, size
from ...layout.algebra.integers import Coord
from ...layout.tiling.tiled_copy import TiledCopy
from .assembly import parse_defined, parse_viewed
from .copy_types import TiledCopyType
from .threads import ThreadViewOp
from .view_base import LayoutViewOp


def _parse_copy(parser: Parser) -> SSAValue:
    """Parses an operand that is a tiled copy, and the comma after it."""
    at = parser.pos
    copy = parse_defined(parser)
    if not isinstance(copy.type, TiledCopyType):
        parser.raise_error(f"expected a tiled copy, got a value of type {copy.type}", at, parser.pos)
    parser.parse_punctuation(",")
    return copy


def _tiled_copy(value: SSAValue) -> TiledCopy:
    assert isinstance(value.type, TiledCopyType)
    return value.type.tiled_copy


class _PartitionOp(ThreadViewOp):
    """A view through a tiled copy: `tile.xyz %copy, %tensor, %thread : type`."""

    tiled_copy = operand_def(TiledCopyType)

    @property
    def copy(self) -> TiledCopy:
        """The tiled copy."""
        return _tiled_copy(self.tiled_copy)

    @property
    def sharing(self) -> int | None:
        return self.copy.threads

    def coordinate(self, layout: LayoutLike, values: Sequence[Any]) -> Coord:
        (thread,) = values
        modes = len(self.source_type.layout.data)
        return (thread, None, (None,) * modes if modes > 1 else None)

    @classmethod
    def parse_operands(cls, parser: Parser) -> list[SSAValue | Sequence[SSAValue]]:
        return [_parse_copy(parser), parse_viewed(parser)]


@irdl_op_definition
class PartitionSOp(_PartitionOp):
    """`tile.partition_S %copy, %tensor, %thread`: the elements that the thread reads: (CPY,CPY_M,CPY_N,...).

    The first mode holds the values of one execution of the tiled copy, split by the atom: ((AtomV,RestV),...).
    """

    name = "tile.partition_S"

    def relayout(self, layout: LayoutLike) -> LayoutLike:
        self.check_tiles(layout, self.copy.tiler)
        return self.copy.tidfrg_S(layout)


@irdl_op_definition
class PartitionDOp(_PartitionOp):
    """`tile.partition_D %copy, %tensor, %thread`: the elements that the thread writes: (CPY,CPY_M,CPY_N,...)."""

    name = "tile.partition_D"

    def relayout(self, layout: LayoutLike) -> LayoutLike:
        self.check_tiles(layout, self.copy.tiler)
        return self.copy.tidfrg_D(layout)


class _RetileOp(LayoutViewOp):
    """A view of a fragment in the profile of a tiled copy: `tile.xyz %copy, %fragment : type`."""

    HAS_BODY: ClassVar[bool] = False
    tiled_copy = operand_def(TiledCopyType)

    def relayout(self, layout: LayoutLike) -> LayoutLike:
        tiled = _tiled_copy(self.tiled_copy).retile(layout)
        if size(tiled) != size(layout):
            raise LayoutError(
                Code.TILE_NOT_DIVIDING,
                f"a fragment {layout} is not a whole number of tiles of the tiled copy",
                "the tile of the tiled copy and that of the fragment's partition must divide each other",
            )
        return tiled

    @classmethod
    def parse_operands(cls, parser: Parser) -> list[SSAValue | Sequence[SSAValue]]:
        return [_parse_copy(parser), parse_viewed(parser)]


@irdl_op_definition
class RetileSOp(_RetileOp):
    """`tile.retile_S %copy, %fragment`: a thread's fragment (V,M,N,...) of another tiling of the same tile, such as an
    accumulator, in the profile that `%copy` reads: ((AtomV,RestV),M,N,...). The registers are the same.
    """

    name = "tile.retile_S"


@irdl_op_definition
class RetileDOp(_RetileOp):
    """`tile.retile_D %copy, %fragment`: like `tile.retile_S`, in the profile that `%copy` writes."""

    name = "tile.retile_D"
