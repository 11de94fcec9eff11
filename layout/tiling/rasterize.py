# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order in which blocks take the tiles of a matrix, so that blocks that run together share rows and columns."""

from typing import Any

from ..algebra.integers import is_static, maximum, minimum


def rasterize(index: Any, grid_m: Any, grid_n: Any, group: int) -> tuple[Any, Any]:
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
