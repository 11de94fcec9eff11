# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipelines that hold the positions of their sides: a stage is asked for by its index, and passed on with an advance
(`cute.experimental`; sm_100a).
"""

from typing import Any

from ...layout.algebra.integers import AnyTuple
from ..control.control_functions import if_
from ..instructions import arch, cluster
from ..instructions.mbarriers import mbarrier_arrive
from ..instructions.warp import elect_one
from ..scalars.operators import Operand
from ..tensors.tensors import Address
from ..tracing.attributes import Stateful
from . import barriers
from .groups import Agent, CooperativeGroup, PipelineUserType
from .participants import PipelineState, make_pipeline_state
from .pipelines import Stages
from .tensor_core_pipelines import PipelineTmaUmma, PipelineUmmaAsync


class AdvancingPipeline(Stateful):
    """A pipeline with the position of each side. The `producer_state` and `consumer_state` may be replaced."""

    def __init__(self, raw_pipeline: Stages) -> None:
        self.raw_pipeline = raw_pipeline
        self.producer_state = make_pipeline_state(PipelineUserType.Producer, raw_pipeline.num_stages)
        self.consumer_state = make_pipeline_state(PipelineUserType.Consumer, raw_pipeline.num_stages)

    def producer_acquire_and_get_stage(self) -> tuple[Address, Operand]:
        """Waits until the next stage is empty; its mbarrier, and its index."""
        self.raw_pipeline.producer_acquire(self.producer_state)
        return self.raw_pipeline.producer_get_barrier(self.producer_state), self.producer_state.index

    def producer_commit(self) -> None:
        """Announces that the stage is full, or will be."""
        self.raw_pipeline.producer_commit(self.producer_state)

    def producer_commit_and_advance(self) -> None:
        """The same, and goes on to the next stage."""
        self.producer_commit()
        self.producer_state.advance()

    def consumer_wait_and_get_stage(self) -> tuple[Address, Operand]:
        """Waits until the next stage is full; its mbarrier, and its index."""
        self.raw_pipeline.consumer_wait(self.consumer_state)
        return self.raw_pipeline.producer_get_barrier(self.consumer_state), self.consumer_state.index

    def consumer_release_and_advance(self) -> None:
        """Announces that the stage is, or will be, empty, and goes on to the next one."""
        self.raw_pipeline.consumer_release(self.consumer_state)
        self.consumer_state.advance()


class _TilesOfCopies(PipelineTmaUmma):
    """Stages whose copies announce their bytes by themselves, and whose producer arrives afterwards."""

    def producer_acquire(self, state: PipelineState, try_acquire_token: object = None) -> None:
        barriers.wait(self._empty(state), state.phase, try_acquire_token)

    def producer_commit(self, state: PipelineState) -> None:
        if_(elect_one(), lambda: mbarrier_arrive(self._full(state)))


class TMAToUMMAPipeline(AdvancingPipeline):
    """TMA copies fill stages, which multiplications read. Each copy announces its bytes (`tma_load`); in the block
    that leads, the producer then commits the stage.
    """

    @classmethod
    def create(
        cls,
        *,
        num_stages: int,
        mma_operation_type: object = None,
        tma_operation_type: object = None,
        cluster_layout_vmnk: AnyTuple = None,
    ) -> "TMAToUMMAPipeline":
        """A pipeline of `num_stages` stages for a block, or the blocks of a cluster (V,M,N,K). The layout says whether
        a pair multiplies, so the kinds of operations change nothing.
        """
        one = CooperativeGroup(Agent.Thread)
        sharing = 1 if cluster_layout_vmnk is None else sum(cluster_layout_vmnk[mode].size for mode in (1, 2)) - 1
        made = _TilesOfCopies._create(  # pyright: ignore[reportPrivateUsage]
            num_stages, one, CooperativeGroup(Agent.Thread, sharing), None, cluster_layout_vmnk, False
        )
        return cls(made)

    create_with_mask = create


class UMMAtoAsyncPipeline(AdvancingPipeline):
    """Multiplications fill stages of tensor memory, which threads read."""

    @classmethod
    def create(
        cls,
        *,
        num_stages: int,
        consumer_arv_count: int,
        mma_operation_type: object = None,
        consumer: object = None,
        cluster_layout_vmnk: AnyTuple = None,
    ) -> "UMMAtoAsyncPipeline":
        """A pipeline of `num_stages` stages, each of which `consumer_arv_count` threads of all blocks that multiply
        together release.
        """
        groups = CooperativeGroup(Agent.Thread), CooperativeGroup(Agent.Thread, consumer_arv_count)
        made = PipelineUmmaAsync.create(
            num_stages=num_stages, producer_group=groups[0], consumer_group=groups[1],
            cta_layout_vmnk=cluster_layout_vmnk,
        )  # fmt: skip
        return cls(made)


def pipeline_advance_iterator(raw_pipeline: Stages, state: PipelineState) -> PipelineState:
    """The position after the next stage."""
    state.advance()
    return state


class TMAStorePipeline(Stateful):
    """Stages of shared memory that `arv_count` threads fill, and the warp `tma_warp_id` copies to global memory. All of
    the threads call the methods; they meet at a barrier.
    """

    def __init__(self, stages: int, arv_count: int, barrier_id: int, tma_warp_id: int) -> None:
        self.stages, self.arv_count, self.barrier_id, self.tma_warp_id = stages, arv_count, barrier_id, tma_warp_id
        self.index: Any = 0

    def get_index(self) -> Operand:
        """The index of the stage."""
        return self.index

    def acquire_sync(self) -> None:
        """Waits until the copies have read the stage."""
        self._copying(lambda: arch.cp_async_bulk_wait_group(self.stages - 1, read=True))
        arch.barrier(barrier_id=self.barrier_id, number_of_threads=self.arv_count)

    def commit_sync(self) -> None:
        """Makes the threads' writes to the stage visible to copies."""
        arch.fence_proxy("async.shared", space="cta")
        arch.barrier(barrier_id=self.barrier_id, number_of_threads=self.arv_count)

    def release_advance(self) -> None:
        """Commits the copies of the stage, and goes on to the next one."""
        self._copying(arch.cp_async_bulk_commit_group)
        self.index = (self.index + 1) % self.stages

    def tail(self) -> None:
        """Waits until the copies have read all stages."""
        self._copying(lambda: arch.cp_async_bulk_wait_group(0, read=True))

    def _copying(self, action: Any) -> None:
        if_(cluster.make_warp_uniform(arch.warp_idx()) == self.tma_warp_id, action)
