# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipelines with a side that multiplies into tensor memory (cutlass/pipeline/sm100_pipeline.hpp; sm_100a, sm_103a).

A side that multiplies passes a stage on by a commit, which arrives when its multiplications are complete. In a cluster
(V,M,N,K) whose V is 2 a pair of blocks multiplies together, and the thread of its even block issues for both: there are
the mbarriers at which threads of both arrive, and the commits go to both. Waits and arrivals that order uses of tensor
memory have the fences of tcgen05 beside them.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Self

from ...dialects import ptx
from ...layout.algebra.core import Layout, make_layout
from ...layout.algebra.inttuple import is_fully_static
from ..control.control_functions import if_
from ..instructions import arch, cluster
from ..instructions.mbarriers import mbarrier_arrive, mbarrier_arrive_and_expect_tx, mbarrier_try_wait
from ..instructions.tensor_core import commit
from ..scalars.operators import Operand
from ..scalars.values import Bool
from ..tensors.nvgpu import CtaGroup
from ..tensors.tensors import Address, Pointer, Tensor
from ..tensors.tma import create_tma_multicast_mask
from ..tracing.state import emit
from . import barriers
from .groups import PAIR, CooperativeGroup, PipelineOp, pipeline_error
from .participants import PipelineState
from .pipelines import CountedStages, Stages
from .transactions import Transactions


@dataclass(frozen=True)
class MmaCluster:
    """A cluster of the layout (V,M,N,K), or a block by itself. Raises TilefoldError (E5011) for another layout."""

    layout: Layout

    @staticmethod
    def of(layout: Layout | None) -> "MmaCluster":
        """The cluster of a layout; None is a block by itself."""
        return MmaCluster(make_layout((1, 1, 1, 1)) if layout is None else layout)

    def __post_init__(self) -> None:
        shape, hint = self.layout.shape, "write cute.tiled_divide(cluster_layout_mnk, (tiled_mma.thr_id.shape,))"
        if not isinstance(shape, tuple) or len(shape) != 4 or not is_fully_static((shape, self.layout.stride)):
            raise pipeline_error(f"a cluster (V,M,N,K) cannot have the layout {self.layout}", hint)
        if self.layout[0].size not in (1, PAIR):
            raise pipeline_error(f"{self.layout[0].size} blocks cannot multiply together", hint)

    @property
    def blocks(self) -> int:
        """The blocks of the cluster."""
        return self.layout.size

    @property
    def is_paired(self) -> bool:
        """Whether two blocks multiply together."""
        return self.layout[0].size == PAIR

    @property
    def group(self) -> CtaGroup:
        """The blocks that multiply together."""
        return CtaGroup.TWO if self.is_paired else CtaGroup.ONE

    def leads(self) -> Any:
        """Whether the block issues multiplications."""
        return cluster.block_idx_in_cluster() % PAIR == 0 if self.is_paired else True

    def leader(self) -> Operand:
        """The rank of the block of the pair that issues them; None where each block does."""
        rank = cluster.block_idx_in_cluster()
        return rank - rank % PAIR if self.is_paired else None

    def pair(self) -> Operand:
        """The mask of the blocks that multiply together; None for a block by itself."""
        return None if not self.is_paired else PAIR + 1 << self.leader()

    def sharing(self, modes: tuple[int, int]) -> Operand:
        """The mask of the blocks whose copies fill stages of this block, or of its pair: those along N, which share A,
        and along M, which share B, as `modes` (M, N) say; None for a block by itself.
        """
        if self.blocks == 1:
            return None
        v, *rest = self.layout.get_flat_coord(cluster.block_idx_in_cluster())
        mask = 0
        for part in (v, 1 - v) if self.is_paired else (v,):
            for mode, shared in zip((2, 1), modes, strict=True):
                if shared:
                    mask = mask | create_tma_multicast_mask(self.layout, (part, *rest), mode)
        return mask

    def count_sharing(self, modes: tuple[int, int]) -> int:
        """The blocks, or pairs, whose copies fill stages of this block, or of its pair, with itself
        (cutlass/pipeline/sm100_pipeline.hpp, PipelineTmaUmmaAsync).
        """
        along = [self.layout[mode].size for mode, shared in zip((1, 2), modes, strict=True) if shared]
        return max(sum(along) - len(along) + 1, 1)


def _before() -> None:
    emit(ptx.TensorFenceOp("before_thread_sync"))


def _after() -> None:
    emit(ptx.TensorFenceOp("after_thread_sync"))


@dataclass(frozen=True)
class _TensorCoreStages(Stages):
    """Stages with a side that multiplies."""

    mma_cluster: MmaCluster = field(default_factory=lambda: MmaCluster.of(None), kw_only=True)

    @classmethod
    def _create(
        cls,
        num_stages: int,
        producers: CooperativeGroup,
        consumers: CooperativeGroup,
        storage: Pointer | Tensor | None,
        layout: Layout | None,
        defer_sync: bool,
        tx_count: int = 0,
    ) -> Self:
        blocks = MmaCluster.of(layout)
        made = cls._made(num_stages, producers, consumers, storage, defer_sync, blocks.blocks, tx_count)
        return replace(made, mma_cluster=blocks)

    @property
    def is_leader_cta(self) -> Operand:
        """Whether the block issues the multiplications of its pair; True for a block by itself."""
        return self.mma_cluster.leads()

    @property
    def cta_group(self) -> CtaGroup:
        """The blocks that multiply together."""
        return self.mma_cluster.group

    def _commit(self, at: Address, mask: object) -> None:
        commit(at, mask, self.mma_cluster.group)

    def _arrive_at_leader(self, at: Address) -> None:
        _before()
        mbarrier_arrive(at, self.mma_cluster.leader())


@dataclass(frozen=True)
class PipelineTmaUmma(_TensorCoreStages, CountedStages):
    """A pipeline whose producer fills stages by TMA copies, of `tx_count` bytes for all blocks that multiply
    together, and whose consumer multiplies. Whole warps call its methods; the consumer's only in the block that leads.
    """

    consumer_op = PipelineOp.TCGen05Mma

    mcast_mode_mn: tuple[int, int] = field(default=(1, 1), kw_only=True)

    @classmethod
    def create(
        cls,
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        tx_count: int,
        barrier_storage: Pointer | Tensor | None = None,
        cta_layout_vmnk: Layout | None = None,
        mcast_mode_mn: tuple[int, int] = (1, 1),
        enable_multicast_signaling: bool = False,
        defer_sync: bool = False,
        name: str = "",
    ) -> Self:
        """A pipeline of `num_stages` stages. The consumer group has an arrival for each block, or pair, whose
        multiplications read the copies of a block: M + N - 1 in a cluster whose blocks copy along M (B) and N (A),
        unless `mcast_mode_mn` has a 0 for one of them. With `enable_multicast_signaling` the group has the arrivals of
        one block, and they are multiplied here.

        Raises TilefoldError (E5011) for another layout of a cluster, and for a number of bytes that no copies have.
        """
        if enable_multicast_signaling:
            consumer_group = consumer_group.times(MmaCluster.of(cta_layout_vmnk).count_sharing(mcast_mode_mn))
        made = cls._create(
            num_stages, producer_group, consumer_group, barrier_storage, cta_layout_vmnk, defer_sync, tx_count
        )
        counted = None if made.mma_cluster.is_paired else Transactions(tx_count)
        return replace(made, transactions=counted, mcast_mode_mn=mcast_mode_mn)

    def producer_acquire(self, state: PipelineState, try_acquire_token: object = None) -> None:
        """Waits until the stage is empty; then one thread of the block that leads arrives and expects the bytes."""
        super().producer_acquire(state, try_acquire_token)
        full, bytes = self._full(state), self.sync_object_full.tx_count

        if self.mma_cluster.is_paired:
            if_(self.mma_cluster.leads(), lambda: barriers.expect(full, bytes))
        else:
            barriers.expect(full, bytes)
        if self.transactions is not None:
            self.transactions.begin()

    def consumer_wait(self, state: PipelineState, try_wait_token: object = None) -> None:
        """Waits until the stage is full. Multiplications that have released it earlier are complete then, so that the
        scale factors which they read in tensor memory may be overwritten.
        """
        super().consumer_wait(state, try_wait_token)
        _after()

    def consumer_release(self, state: PipelineState) -> None:
        """Releases the stage in each block that copies into it, once the multiplications so far are complete."""
        self._commit(self._empty(state), self.mma_cluster.sharing(self.mcast_mode_mn))


@dataclass(frozen=True)
class PipelineTmaMultiConsumersAsync(PipelineTmaUmma):
    """A pipeline whose producer fills stages by TMA copies, and whose consumers are warps that multiply and threads
    that read shared memory; all of them release a stage.
    """

    @classmethod
    def create(  # pyright: ignore[reportIncompatibleMethodOverride]  # it has two groups of consumers
        cls,
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group_umma: CooperativeGroup,
        consumer_group_async: CooperativeGroup,
        tx_count: int,
        barrier_storage: Pointer | Tensor | None = None,
        cta_layout_vmnk: Layout | None = None,
        defer_sync: bool = False,
        name: str = "",
    ) -> Self:
        """A pipeline of `num_stages` stages. A stage is empty after the arrivals of both groups of consumers: that of
        `PipelineTmaUmma`, and one of each thread. Raises TilefoldError (E5011) as that does.
        """
        both = CooperativeGroup(consumer_group_async.agent, consumer_group_umma.size + consumer_group_async.size)
        return super().create(
            num_stages=num_stages, producer_group=producer_group, consumer_group=both, tx_count=tx_count,
            barrier_storage=barrier_storage, cta_layout_vmnk=cta_layout_vmnk, defer_sync=defer_sync, name=name,
        )  # fmt: skip

    def consumer_release(  # pyright: ignore[reportIncompatibleMethodOverride]  # each consumer names itself
        self, state: PipelineState, op_type: PipelineOp
    ) -> None:
        """Releases the stage: for a warp that multiplies (`PipelineOp.TCGen05Mma`) once its multiplications so far are
        complete, or for the thread (`PipelineOp.AsyncThread`). Raises TilefoldError (E5011) for another consumer.
        """
        match op_type:
            case PipelineOp.TCGen05Mma:
                super().consumer_release(state)
            case PipelineOp.AsyncThread:
                mbarrier_arrive(self._empty(state))
            case _:
                hint = "PipelineOp.TCGen05Mma or PipelineOp.AsyncThread"
                raise pipeline_error(f"{op_type} does not consume these stages", hint)


@dataclass(frozen=True)
class _StagesOfThreads(_TensorCoreStages):
    """Stages of a side that multiplies and one of threads."""

    @classmethod
    def create(
        cls,
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        barrier_storage: Pointer | Tensor | None = None,
        cta_layout_vmnk: Layout | None = None,
        defer_sync: bool = False,
        name: str = "",
    ) -> Self:
        """A pipeline of `num_stages` stages; the group that does not multiply has the arrivals of all blocks
        that multiply together. For a pair, the mask of the side that multiplies names both blocks, and that of the
        threads is the rank of the block that leads; None for a block by itself.
        Raises TilefoldError (E5011) for another layout of a cluster.
        """
        made = cls._create(num_stages, producer_group, consumer_group, barrier_storage, cta_layout_vmnk, defer_sync)
        pair, leader = made.mma_cluster.pair(), made.mma_cluster.leader()
        producer, consumer = (pair, leader) if cls.producer_op is PipelineOp.TCGen05Mma else (leader, pair)
        return replace(made, producer_mask=producer, consumer_mask=consumer)

    def producer_acquire(self, state: PipelineState, try_acquire_token: object = None) -> None:
        """Waits until the consumer side of all blocks that multiply together is done with the stage."""
        super().producer_acquire(state, try_acquire_token)
        _after()

    def consumer_wait(self, state: PipelineState, try_wait_token: object = None) -> None:
        """Waits until the producer side has filled the stage."""
        super().consumer_wait(state, try_wait_token)
        _after()


@dataclass(frozen=True)
class PipelineUmmaAsync(_StagesOfThreads):
    """A pipeline whose producer multiplies, and whose consumer threads read tensor memory."""

    producer_op = PipelineOp.TCGen05Mma

    def producer_commit(self, state: PipelineState) -> None:
        """Passes the stage on, in each of these blocks, once the multiplications so far are complete."""
        self._commit(self._full(state), self.mma_cluster.pair())

    def producer_tail(self, state: PipelineState) -> None:
        """Waits, in the block that leads, until the consumers have read all stages."""
        base = super()
        if self.mma_cluster.is_paired:
            if_(self.mma_cluster.leads(), lambda: base.producer_tail(state))
        else:
            base.producer_tail(state)

    def consumer_release(self, state: PipelineState) -> None:
        """Releases the stage for the thread, after its waits for loads from tensor memory."""
        self._arrive_at_leader(self._empty(state))


@dataclass(frozen=True)
class PipelineAsyncUmma(_StagesOfThreads):
    """A pipeline whose producer threads write shared or tensor memory, and whose consumer multiplies. Writes of shared
    memory need `fence_proxy("async.shared", ...)` before the commit.
    """

    producer_op = PipelineOp.AsyncThread
    consumer_op = PipelineOp.TCGen05Mma

    def producer_commit(self, state: PipelineState) -> None:
        """Announces, in the block that leads, that the thread has filled its part of the stage."""
        self._arrive_at_leader(self._full(state))

    @property
    def _scope(self) -> str | None:
        """The scope of waits for a full stage: multiplications of a pair read what threads of both blocks wrote."""
        return "cluster" if self.mma_cluster.is_paired else None

    def consumer_wait(self, state: PipelineState, try_wait_token: object = None) -> None:
        """Waits until the threads of all blocks that multiply together have filled the stage."""
        barriers.wait(self._full(state), state.phase, try_wait_token, self._scope)
        _after()

    def consumer_try_wait(self, state: PipelineState) -> Bool:
        """Whether these threads have filled the stage, after at most a short wait."""
        return mbarrier_try_wait(self._full(state), state.phase, self._scope)

    def consumer_release(self, state: PipelineState) -> None:
        """Releases the stage in each block that multiplies with others, once the multiplications are complete."""
        self._commit(self._empty(state), self.mma_cluster.pair())


@dataclass(frozen=True)
class PipelineClcFetchAsync(_TensorCoreStages):
    """A pipeline whose producer, a warp of the first block of a cluster, asks for the work of another cluster, and
    whose consumers, threads of all blocks, read the answers (PTX ISA, clusterlaunchcontrol).
    """

    producer_op = PipelineOp.ClcLoad

    @classmethod
    def create(
        cls,
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        tx_count: int,
        barrier_storage: Pointer | Tensor | None = None,
        cta_layout_vmnk: Layout | None = None,
        defer_sync: bool = False,
        name: str = "",
    ) -> Self:
        """A pipeline of `num_stages` answers of `tx_count` bytes; the consumer group has the threads of all blocks.
        Raises TilefoldError (E5011) for another layout of a cluster.
        """
        return cls._create(
            num_stages, producer_group, consumer_group, barrier_storage, cta_layout_vmnk, defer_sync, tx_count
        )

    def producer_acquire(self, state: PipelineState, try_acquire_token: object = None) -> None:
        """Waits until all consumers have read the answer; then a lane for each block of the cluster arrives there and
        expects the bytes.
        """
        super().producer_acquire(state, try_acquire_token)
        full, bytes, blocks = self._full(state), self.sync_object_full.tx_count, self.mma_cluster.blocks
        if blocks == 1:
            barriers.expect(full, bytes)
            return
        lane = arch.lane_idx()
        if_(lane < blocks, lambda: mbarrier_arrive_and_expect_tx(full, bytes, lane))

    def producer_commit(self, state: PipelineState) -> None:
        """Has no effect: the answer itself counts."""

    def consumer_release(self, state: PipelineState) -> None:
        """Announces in the first block that the thread has read the answer."""
        mbarrier_arrive(self._empty(state), None if self.mma_cluster.blocks == 1 else 0)
