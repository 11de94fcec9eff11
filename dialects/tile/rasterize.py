# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which tile a block works on: the operation, and the rasters of blocks."""

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import I64, IndexType, IntegerAttr
from xdsl.irdl import operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...layout.algebra.integers import AnyInt, AnyTuple, Unknown, is_static, maximum, minimum
from ...layout.algebra.inttuple import leaves
from ..cute import CoordAttr
from ..definitions import irdl_op_definition
from .assembly import check_operands, fill_coordinate
from .directives import TileOp


def rasterize(index: AnyInt, grid_m: AnyTuple, grid_n: AnyInt, group: int) -> tuple[AnyInt, AnyInt]:
    """The tile (m, n) of the block `index` where tiles are taken in groups of `group` rows, column by column within a
    group; the last group has the rows that remain.

    `index`, `grid_m` and `grid_n` are integers of any kind, `0 <= index < grid_m * grid_n`; each tile has one index.

        group 2 of a grid of 3 by 4:   0 2 4 6
                                       1 3 5 7
                                       8 9 10 11
    """
    band = grid_n * group
    first = index // band * group
    within = index % band
    whole = is_static(grid_m) and grid_m % group == 0
    rows = group if whole else maximum(minimum(grid_m - first, group), 1)  # the 1 only proves that it is not 0
    return first + within % rows, within // rows


MAX_GROUP = 1 << 16
"""The most rows of tiles in a group; a grid has hardly more."""


@irdl_op_definition
class RasterizeOp(TileOp):
    """`%m, %n = tile.rasterize %id in (%rows, 32) group 8`: the tile of a block, in grouped order.

    In a grid of `%rows` by 32 tiles, 8 rows form a group. Blocks go through a group column by column, then through the
    next group, so that concurrent blocks read few rows and columns. The last group may have fewer rows.
    Precondition: 0 <= id < rows * columns.
    """

    name = "tile.rasterize"
    index = operand_def(IndexType)
    sizes = var_operand_def(IndexType)
    grid = prop_def(CoordAttr)
    group = prop_def(IntegerAttr[I64])
    m = result_def(IndexType)
    n = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "$index `in` custom<Coordinate>($grid, $sizes) `group` $group attr-dict"

    def tile(self, index: object, sizes: Sequence[object]) -> tuple[Any, Any]:
        """The coordinate of the tile: `index` and `sizes` stand for the operands, as integers of the algebra."""
        rows, columns = fill_coordinate(self.grid.data, sizes)
        return rasterize(index, rows, columns, self.group.value.data)

    def verify_(self) -> None:
        grid = self.grid.data
        if not isinstance(grid, tuple) or len(grid) != 2 or any(isinstance(g, tuple) or g is None for g in grid):
            raise VerifyException("the grid has two sizes: the rows and the columns of tiles")
        check_operands(grid, self.sizes, "grid")
        if any(not isinstance(part, Unknown) and not 1 <= part < 2**31 for part in leaves(grid)):
            raise VerifyException("the grid has at least one row and one column, and less than 2^31")
        if not 1 <= self.group.value.data <= MAX_GROUP:
            raise VerifyException(f"a group has 1 to {MAX_GROUP} rows, not {self.group.value.data}")
