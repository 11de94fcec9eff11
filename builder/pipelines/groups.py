# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The participants of a pipeline: agents, groups of them, the two sides, and the kinds of work.

Of a cluster they are the blocks that copy into each other's stages, and those that a block tells that a stage is empty.
"""

from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any

from ...base.errors import Code, TilefoldError
from ...base.target import MAX_CLUSTER, WARP
from ...layout.algebra.core import Layout, make_layout
from ...layout.algebra.inttuple import is_fully_static
from ...layout.algebra.modes import flatten_layout
from ..control.control_functions import if_
from ..instructions import arch, cluster
from ..instructions.mbarriers import mbarrier_arrive
from ..scalars.values import Bool, Int
from ..tensors.tensors import Address
from ..tracing.state import current


class Agent(Enum):
    """The participants: single threads, warps, a block, or a cluster of blocks."""

    Thread = auto()
    Warp = auto()
    ThreadBlock = auto()
    ThreadBlockCluster = auto()


class PipelineUserType(Enum):
    """A side of a pipeline."""

    Producer = auto()
    Consumer = auto()
    ProducerConsumer = auto()
    """A warp that is on both sides; its state is the producer's."""


class PipelineOp(Enum):
    """The work after which a side of a pipeline passes a stage on, which determines how it arrives."""

    AsyncThread = auto()
    """Each thread arrives by itself."""
    AsyncLoad = auto()
    """Each thread's `cp.async` arrive when they are complete."""
    TmaLoad = auto()
    """Tensor and bulk copies count their bytes; one thread of the warp arrives for them."""
    TmaStore = auto()
    """Tensor and bulk copies to global memory, in groups of the thread that starts them."""
    TCGen05Mma = auto()
    """Multiplications into tensor memory; a commit arrives when they are complete."""
    ClcLoad = auto()
    """An answer of cluster launch control, whose bytes count."""


@dataclass(frozen=True)
class CooperativeGroup:
    """One side of a pipeline: `size` arrivals, of threads or of warps, pass a stage on. The size is a whole number;
    `alignment` changes nothing.

    Raises TilefoldError (E5011) for the agents that are blocks, and for a size that no mbarrier counts.
    """

    agent: Agent
    size: int = 1
    alignment: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.agent not in (Agent.Thread, Agent.Warp):
            problem = f"a group cannot have agents of the kind {self.agent!r}"
            raise pipeline_error(problem, "write pipeline.Agent.Thread, or pipeline.Agent.Warp")
        if isinstance(self.size, float) and self.size.is_integer():  # a quotient, such as threads / 32
            object.__setattr__(self, "size", int(self.size))
        if type(self.size) is not int or not 0 < self.size < 1 << 20:
            problem = f"a group cannot have {self.size!r} arrivals"
            raise pipeline_error(problem, "an mbarrier counts 1 to 2^20 - 1 arrivals")

    def times(self, blocks: int) -> "CooperativeGroup":
        """The group with the arrivals of equal groups in other blocks. Raises TilefoldError (E5011) for too many."""
        return replace(self, size=self.size * blocks)

    def check_threads(self, side: str) -> None:
        """Raises TilefoldError (E5011) if each thread arrives once, but the block has fewer threads."""
        threads = current().threads
        if threads is not None and self.size > threads:
            hint = "the size of a group is the number of arrivals that pass a stage on"
            raise pipeline_error(f"the {side} group has {self.size} threads, but the block has only {threads}", hint)

    def check_warps(self, side: str, each: int = 1) -> None:
        """Raises TilefoldError (E5011) where each warp arrives `each` times, but the block has fewer warps, or the size
        is not a multiple of `each`.
        """
        threads = current().threads
        if self.size % each:
            hint = f"each warp arrives at {each} blocks of its cluster: multiply the number of warps by {each}"
            raise pipeline_error(f"the {side} group has {self.size} arrivals", hint)
        if threads is not None and self.size > -(-threads // WARP) * each:
            hint = "one thread of each warp arrives: the size is the number of warps"
            if each > 1:
                hint += f", times the {each} blocks that each of them signals"
            warps = -(-threads // WARP)
            raise pipeline_error(
                f"the {side} group has {self.size} arrivals, but the block has only {warps} warps", hint
            )


def pipeline_error(problem: str, hint: str) -> TilefoldError:
    """The error of a pipeline (E5011)."""
    return TilefoldError(Code.BUILD_PIPELINE, problem, hint)


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
