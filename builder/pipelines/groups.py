# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The participants of a pipeline: agents, groups of them, the two sides, and the kinds of work."""

from dataclasses import dataclass, field, replace
from enum import Enum, auto

from ...base.errors import Code, TilefoldError
from ...base.target import WARP
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
