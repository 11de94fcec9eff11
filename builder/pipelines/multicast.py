# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The blocks of a cluster that copy into each other's stages: which of them a block tells that a stage is empty."""

from dataclasses import dataclass
from typing import Any

from ...base.target import MAX_CLUSTER
from ...layout.algebra.core import Layout, make_layout
from ...layout.algebra.inttuple import is_fully_static
from ...layout.algebra.modes import flatten_layout
from ..control.control_functions import if_
from ..instructions import arch, cluster
from ..instructions.mbarriers import mbarrier_arrive
from ..scalars.values import Bool, Int
from ..tensors.tensors import Address
from .groups import pipeline_error

PAIR = 2
"""The blocks that multiply together by one instruction of tcgen05."""


@dataclass(frozen=True)
class Peers:
    """A cluster of `blocks` blocks. A block signals `told_blocks` of them: lane i of a warp signals block i if it
    `tells`.
    """

    blocks: int
    told_blocks: int
    lane: Int
    tells: Bool

    def arrive(self, at: Address) -> None:
        """Arrives for the warp at the mbarrier of each block that copies into the stages of this one.

        The block's reads, by the warp's multiplications and loads, are complete; the peers need to know no more.
        """
        arch.sync_warp()
        if_(self.tells, lambda: mbarrier_arrive(at, self.lane, scope="cta"))


def peers_of(layout: Layout | None, modes: tuple[int, int]) -> Peers | None:
    """The peers in a cluster of the layout (V,M,N,1), which share tiles along M and along N as `modes` say; None for
    blocks, also of a pair, that share none. Blocks of pairs (V = 2) share with those at the same place in theirs
    (cutlass/pipeline/sm100_pipeline.hpp, PipelineTmaTransformAsync). Raises TilefoldError (E5011) for another layout.
    """
    if layout is None:
        return None
    flat: Layout = flatten_layout(layout)
    shape, hint = flat.shape, f"write cute.make_layout((v, m, n, 1)), v = 1 or 2, of {MAX_CLUSTER} blocks at most"
    if not isinstance(shape, tuple) or len(shape) != 4 or not is_fully_static((shape, flat.stride)):
        raise pipeline_error(f"a cluster cannot have the layout {layout}", hint)
    rows: Any
    columns: Any
    pair: Any
    pair, rows, columns, _ = shape
    if flat != make_layout(shape) or pair > PAIR or shape[3] != 1 or flat.size > MAX_CLUSTER:
        raise pipeline_error(f"a cluster cannot have the layout {layout}", hint)
    if rows * columns == 1:
        return None
    lane, rank, column = arch.lane_idx(), cluster.block_idx_in_cluster(), pair * rows
    along_m, along_n = lane // column == rank // column, lane % column == rank % column
    if pair == PAIR:
        along_m = along_m & (lane % PAIR == rank % PAIR)
    same, told_blocks = along_m | along_n, rows + columns - 1
    if not all(modes):
        same, told_blocks = (along_m, rows) if modes[0] else (along_n, columns)
    return Peers(flat.size, told_blocks, lane, same & (lane < flat.size))
