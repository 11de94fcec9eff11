# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipelines: a ring of stages, which a producer fills and a consumer empties (cutlass/pipeline/sm90_pipeline.hpp).

A stage has two mbarriers. The producer arrives at `full` when the stage is, and the consumer at `empty`. So
`producer_acquire` waits for `empty`, and `consumer_wait` for `full`, at the parity of the state.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from xdsl.dialects.builtin import StringAttr

from ...dialects.ptx import MbarrierInitOp
from ...layout.algebra.core import Layout
from ..control.building import Nameable
from ..control.control_functions import if_
from ..instructions import arch
from ..instructions.mbarriers import (
    cp_async_mbarrier_arrive_noinc,
    mbarrier_arrive,
    mbarrier_try_wait,
)
from ..scalars.operators import Operand
from ..scalars.values import Bool
from ..tensors.tensors import Address, Pointer, Tensor
from . import barriers
from .groups import CooperativeGroup, Peers, PipelineOp, PipelineUserType, peers_of, pipeline_error
from .mbarrier_array import MbarrierArray
from .participants import PipelineConsumer, PipelineProducer, PipelineState, check_stages, make_pipeline_state
from .transactions import Transactions


class Mbarriers:
    """The operations that make the mbarriers of a pipeline, which get its name once."""

    def __init__(self, made: list[MbarrierInitOp]) -> None:
        self._unnamed = made

    def name(self, name: str) -> None:
        """Puts a name before theirs, unless they have one."""
        for op in self._unnamed:
            op.properties["label"] = StringAttr(f"{name}.{op.label.data}" if op.label else name)
        self._unnamed = []


@dataclass(frozen=True)
class Stages(Nameable):
    """The stages of a pipeline: each thread that fills or reads one arrives at its mbarriers. The masks are those of
    programs that make a pipeline of its parts: the ranks of the blocks at whose mbarriers a side arrives. Classes of
    programs that derive from these add fields without defaults, so all that take a position have none.
    """

    producer_op: ClassVar[PipelineOp]
    consumer_op: ClassVar[PipelineOp] = PipelineOp.AsyncThread

    sync_object_full: MbarrierArray
    sync_object_empty: MbarrierArray
    num_stages: int
    producer_mask: Operand
    consumer_mask: Operand
    mbarriers: Mbarriers | None = field(default=None, kw_only=True, repr=False, compare=False)

    def take_name(self, name: str) -> None:
        """Names the mbarriers after the variable that the pipeline is assigned to: `ring.empty[0]` in messages."""
        if self.mbarriers is not None:
            self.mbarriers.name(name)

    @classmethod
    def _made(
        cls,
        stages: int,
        producers: CooperativeGroup,
        consumers: CooperativeGroup,
        storage: Pointer | Tensor | None,
        defer_sync: bool,
        blocks: int = 1,
        tx_count: int = 0,
        fields: tuple[object, ...] = (),
    ) -> Self:
        check_stages(stages)
        bars = barriers.mbarriers(storage, 2 * stages)
        sizes = [producers.size] * stages + [consumers.size] * stages
        labels = [f"{side}[{stage}]" for side in ("full", "empty") for stage in range(stages)]
        counts = [(bars.ptr(i), *of_one) for i, of_one in enumerate(zip(sizes, labels, strict=True))]
        of_threads = (PipelineOp.AsyncThread, PipelineOp.AsyncLoad)
        completes = cls.producer_op not in of_threads or cls.consumer_op not in of_threads
        made = barriers.init(counts, not defer_sync, blocks, completes)
        full = MbarrierArray(bars, stages, (cls.producer_op, producers), tx_count, is_made=True, of_warps=True)
        threads = (cls.consumer_op, consumers)
        empty = MbarrierArray(bars, stages, threads, is_made=True, first=stages)
        return cls(full, empty, stages, None, None, *fields, mbarriers=Mbarriers(made))

    @staticmethod
    def _make_sync_object(
        barrier_storage: Pointer, num_stages: int, agent: tuple[PipelineOp, CooperativeGroup], tx_count: int = 0
    ) -> MbarrierArray:
        """The mbarriers of a side, for pipelines that programs make of their parts."""
        return MbarrierArray(barrier_storage, num_stages, agent, tx_count, of_warps=True)

    def _full(self, state: PipelineState) -> Address:
        return self.sync_object_full.place(self._stage(state))

    def _empty(self, state: PipelineState) -> Address:
        return self.sync_object_empty.place(self._stage(state))

    def _stage(self, state: PipelineState) -> Operand:
        stages = getattr(state, "stages", 0)  # a class of the program's has only an index and a phase
        if stages > self.num_stages:  # one of fewer uses the first ones
            problem = f"the state has {stages} stages, but the pipeline has {self.num_stages}"
            raise pipeline_error(problem, f"write pipeline.make_pipeline_state(..., {self.num_stages})")
        return state.index

    def producer_acquire(self, state: PipelineState, try_acquire_token: object = None) -> None:
        """Waits until the consumer has emptied the stage, unless the token of `producer_try_acquire` says so."""
        barriers.wait(self._empty(state), state.phase, try_acquire_token)

    def producer_try_acquire(self, state: PipelineState) -> Bool:
        """Whether the consumer has emptied the stage, after at most a short wait."""
        return mbarrier_try_wait(self._empty(state), state.phase)

    def producer_commit(self, state: PipelineState) -> None:
        """Announces that the thread has filled its part of the stage."""
        mbarrier_arrive(self._full(state), self.producer_mask)

    def producer_get_barrier(self, state: PipelineState) -> Address:
        """The mbarrier that tells the consumer that the stage is full: copies count their bytes there."""
        return self._full(state)

    def producer_tail(self, state: PipelineState) -> None:
        """Waits until the consumer has emptied all stages, so that the block may end. The state does not change."""
        last = state.clone()
        for _ in range(self.num_stages):
            barriers.wait(self._empty(last), last.phase)
            last.advance()

    def consumer_wait(self, state: PipelineState, try_wait_token: object = None) -> None:
        """Waits until the producer has filled the stage, unless the token of `consumer_try_wait` says so."""
        barriers.wait(self._full(state), state.phase, try_wait_token)

    def consumer_try_wait(self, state: PipelineState) -> Bool:
        """Whether the producer has filled the stage, after at most a short wait."""
        return mbarrier_try_wait(self._full(state), state.phase)

    def consumer_release(self, state: PipelineState) -> None:
        """Releases the stage for the thread."""
        mbarrier_arrive(self._empty(state), self.consumer_mask)

    def consumer_get_barrier(self, state: PipelineState) -> Address:
        """The mbarrier that tells the producer that the stage is empty."""
        return self._empty(state)

    def make_participants(self) -> tuple[PipelineProducer, PipelineConsumer]:
        """The two sides, each with its own state at its first stage."""
        return self.make_producer(), self.make_consumer()

    def make_producer(self) -> PipelineProducer:
        """The producers' side with its own state at its first stage."""
        return PipelineProducer(self, make_pipeline_state(PipelineUserType.Producer, self.num_stages))

    def make_consumer(self) -> PipelineConsumer:
        """The consumers' side with its own state at its first stage."""
        return PipelineConsumer(self, make_pipeline_state(PipelineUserType.Consumer, self.num_stages))


@dataclass(frozen=True)
class PipelineAsync(Stages):
    """A pipeline between threads: each thread of the producer group arrives when it has filled a stage, each of the
    consumer group when it has read it.
    """

    producer_op = PipelineOp.AsyncThread

    @classmethod
    def create(
        cls,
        *,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        barrier_storage: Pointer | Tensor | None = None,
        producer_mask: object = None,
        consumer_mask: object = None,
        defer_sync: bool = False,
        name: str = "",
    ) -> Self:
        """A pipeline with two mbarriers for each stage, which one thread initialises; all threads of the block call it.

        The mbarriers lie in `barrier_storage`, elements of 8 bytes of shared memory, or in memory of their own. With
        `defer_sync`, the block waits for them elsewhere, by `pipeline_init_wait`. A mask is the rank of the block at
        whose mbarriers a side arrives; the cluster waits elsewhere. Raises TilefoldError (E5011) for groups of more
        threads than the block has that arrive in it.
        """
        if producer_mask is None:
            producer_group.check_threads("producer")
        if consumer_mask is None:
            consumer_group.check_threads("consumer")
        blocks = 1 if producer_mask is None and consumer_mask is None else 2
        made = cls._made(num_stages, producer_group, consumer_group, barrier_storage, defer_sync, blocks)
        return replace(made, producer_mask=producer_mask, consumer_mask=consumer_mask)


@dataclass(frozen=True)
class PipelineCpAsync(PipelineAsync):
    """A pipeline whose producers fill stages by `cp.async`: a stage is full when the copies of all producers are
    complete.

    An elementary store of a producer before `producer_commit` counts as well.
    """

    producer_op = PipelineOp.AsyncLoad

    def producer_commit(self, state: PipelineState) -> None:
        """The thread arrives once its `cp.async` so far are complete, and does not wait for that."""
        cp_async_mbarrier_arrive_noinc(self._full(state))


@dataclass(frozen=True)
class CountedStages(Stages):
    """Stages that tensor and bulk copies fill, which count their bytes; these are compared with the pipeline's where
    `transactions` are given.
    """

    producer_op = PipelineOp.TmaLoad

    transactions: Transactions | None = field(default=None, kw_only=True)

    def producer_get_barrier(self, state: PipelineState) -> Address:
        """The mbarrier at which the copies into the stage count their bytes."""
        full = self._full(state)
        if self.transactions is not None:
            self.transactions.note(full)
        return full

    def producer_commit(self, state: PipelineState) -> None:
        """Has no effect: the copies themselves count. Raises TilefoldError (E5011) if the copies since
        `producer_acquire` move a number of bytes that differs from the pipeline's.
        """
        if self.transactions is not None:
            self.transactions.end()

    def producer_tail(self, state: PipelineState) -> None:
        """Waits until the consumer has emptied all stages. Raises TilefoldError (E5011) as `producer_commit` does."""
        if self.transactions is not None:
            self.transactions.end()
        super().producer_tail(state)


@dataclass(frozen=True)
class PipelineTmaAsync(CountedStages):
    """A pipeline whose producer warps fill stages by tensor and bulk copies, which count `tx_count` bytes (sm_90).

    Whole warps call its methods. One thread of a producer warp arrives and expects the bytes; one thread of a consumer
    warp arrives when the warp is done. So the groups' sizes are numbers of warps.
    """

    is_signalling_thread: Operand
    peers: Peers | None = field(default=None, kw_only=True)
    consumers: CooperativeGroup | None = field(default=None, kw_only=True)

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
        tidx: object = None,
        mcast_mode_mn: tuple[int, int] = (1, 1),
        enable_multicast_signaling: bool = False,
        defer_sync: bool = False,
        name: str = "",
    ) -> Self:
        """A pipeline in which each producer warp expects `tx_count` bytes per stage.

        `cta_layout_vmnk` is the layout (1,M,N,1) of a cluster whose blocks copy into each other's stages: along M (B)
        and along N (A), unless `mcast_mode_mn` has a 0 for one of them. A consumer warp tells each of these blocks that
        it is done: the group has M + N - 1 arrivals for each warp, or one, which is multiplied here, with
        `enable_multicast_signaling`. Lanes are chosen for that whatever `tidx`; with a constant in its place each
        thread of the group arrives.

        Raises TilefoldError (E5011) for another layout of a cluster, and for a number of bytes that no copies have.
        """
        peers = peers_of(cta_layout_vmnk, mcast_mode_mn)
        if enable_multicast_signaling and peers is not None:
            consumer_group = consumer_group.times(peers.told_blocks)
        each_thread = type(tidx) is int and peers is None
        if each_thread:
            consumer_group.check_threads("consumer")
        blocks = 1 if peers is None else peers.blocks
        sides, fields = (producer_group, consumer_group), (True if each_thread else None,)
        made = cls._made(num_stages, *sides, barrier_storage, defer_sync, blocks, tx_count, fields)
        return replace(made, transactions=Transactions(tx_count), peers=peers, consumers=consumer_group)

    @staticmethod
    def init_empty_barrier_arrive_signal(cta_layout_vmnk: Layout, tidx: object) -> tuple[Operand, Operand]:
        """The rank of the block that a thread signals when its warp is done with a stage, and whether it does: lane i
        of a warp signals block i, whatever `tidx`. For pipelines that programs make of their parts.
        """
        peers = peers_of(cta_layout_vmnk, (1, 1))
        return (0, arch.lane_idx() == 0) if peers is None else (peers.lane, peers.tells)

    def producer_acquire(self, state: PipelineState, try_acquire_token: object = None) -> None:
        """Waits until the consumer has emptied the stage; then one thread arrives there and expects the bytes. A
        program whose `cp.async` fill the stage, too, arrives at `sync_object_full` by itself, and may have a group of
        more arrivals: one for each of their threads (PTX ISA, cp.async.mbarrier.arrive). Raises TilefoldError (E5011)
        for a group of more warps than the block has.
        """
        self.sync_object_full.agent[1].check_warps("producer")
        super().producer_acquire(state, try_acquire_token)
        full, bytes = self._full(state), self.sync_object_full.tx_count
        barriers.expect(full, bytes)
        if self.transactions is not None:
            self.transactions.begin()

    def consumer_release(self, state: PipelineState) -> None:
        """Releases the stage for the warp; one thread arrives. A program that arrives at `sync_object_empty` by itself
        may have a group of more arrivals. Raises TilefoldError (E5011) for a group of more warps than the block has.
        """
        empty = self._empty(state)
        if self.is_signalling_thread is None and self.consumers is not None:
            self.consumers.check_warps("consumer", 1 if self.peers is None else self.peers.told_blocks)
        if self.is_signalling_thread is not None:
            arch.sync_warp()
            if_(self.is_signalling_thread, lambda: mbarrier_arrive(empty, self.consumer_mask))
        elif self.peers is None:
            barriers.arrive_once(empty)
        else:
            self.peers.arrive(empty)


@dataclass(frozen=True)
class PipelineTmaStore:
    """A pipeline of stages that one thread copies from shared to global memory by tensor or bulk copies (sm_90)."""

    producer_op: ClassVar[PipelineOp] = PipelineOp.TmaStore

    num_stages: int

    @classmethod
    def create(cls, *, num_stages: int, producer_group: CooperativeGroup) -> Self:
        """A pipeline for the threads that fill the stages; only the copying threads call its methods."""
        check_stages(num_stages)
        producer_group.check_threads("producer")
        return cls(num_stages)

    def producer_acquire(self) -> None:
        """Waits until a stage is free: all groups except the last `num_stages` - 1 have read theirs."""
        arch.cp_async_bulk_wait_group(self.num_stages - 1, read=True)

    def producer_commit(self) -> None:
        """Commits the copies of a stage to a group."""
        arch.cp_async_bulk_commit_group()

    def producer_tail(self) -> None:
        """Waits until the copies have read all stages, so that the block may end."""
        arch.cp_async_bulk_wait_group(0, read=True)
