# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The barriers of pipelines: arrays of mbarriers in shared memory, and the numbered barriers of a block."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation

from ...base.errors import Code, TilefoldError
from ...base.target import WARP
from ...dialects.ptx import MbarrierArriveExpectTxOp, MbarrierArriveOp, MbarrierInitOp
from ..control.control_functions import if_
from ..instructions import arch, cluster
from ..instructions.math import where
from ..instructions.mbarriers import mbarrier_arrive, mbarrier_init_named, mbarrier_wait
from ..instructions.warp import is_elected
from ..scalars.dtypes import Int32, Int64
from ..scalars.operators import Operand
from ..scalars.values import convert
from ..tensors.address_space import AddressSpace
from ..tensors.allocation import make_smem_tensor
from ..tensors.gemm import ONE_THREAD
from ..tensors.layouts import size
from ..tensors.pointers import make_tensor
from ..tensors.tensors import Address, Pointer, Tensor
from ..tracing.attributes import Composite, Stateful
from ..tracing.state import emit
from .groups import Agent, CooperativeGroup, pipeline_error
from .participants import PipelineState


@dataclass(frozen=True)
class NamedBarrier(Composite):
    """Barrier `barrier_id` of a block, 0 to 15, for `num_threads` threads of whole warps. `cute.arch.sync_threads()`
    uses barrier 0. The number may be a value that is the same in all threads of a warp. A barrier of no threads, of a
    role that a configuration leaves out, may be made, but not used.
    """

    barrier_id: Operand
    num_threads: int

    def __post_init__(self) -> None:
        if type(self.num_threads) is not int or self.num_threads < 0 or self.num_threads % WARP:
            raise self._error()

    def _error(self) -> TilefoldError:
        text = f"{self.num_threads!r} threads meet at a barrier"
        return pipeline_error(text, "whole warps meet: a multiple of 32")

    def _met(self) -> int:
        """The number of threads, of which there must be some."""
        if not self.num_threads:
            raise self._error()
        return self.num_threads

    @classmethod
    def create(cls, barrier_id: Operand, num_threads: int) -> Self:
        """The barrier of a number for as many threads."""
        return cls(barrier_id, num_threads)

    def arrive_and_wait(self) -> None:
        """Waits until all the threads arrive; then sees their earlier writes."""
        arch.barrier(barrier_id=self.barrier_id, number_of_threads=self._met())

    sync = arrive_and_wait
    wait = arrive_and_wait

    def get_barrier(self) -> Any:
        """The barrier's number."""
        return self.barrier_id

    def arrive(self) -> None:
        """Arrives without waiting."""
        arch.barrier_arrive(barrier_id=self.barrier_id, number_of_threads=self._met())


def sync(barrier_id: Operand = 0) -> None:
    """Waits until all threads of the block have reached a barrier."""
    arch.barrier(barrier_id=barrier_id)


def arrive_and_wait(barrier_id: object, num_threads: int) -> None:
    """Waits until `num_threads` threads have reached a barrier."""
    NamedBarrier(barrier_id, num_threads).arrive_and_wait()


def arrive(barrier_id: object, num_threads: int) -> None:
    """Arrives at a barrier of `num_threads` threads without waiting."""
    NamedBarrier(barrier_id, num_threads).arrive()


def agent_sync(agent: Agent, is_relaxed: bool = False) -> None:
    """Waits for all threads of the block, or of the cluster; with `is_relaxed` no writes are passed on. Raises
    TilefoldError (E5011) for a single thread.
    """
    if agent is Agent.ThreadBlockCluster:
        (cluster.cluster_arrive_relaxed if is_relaxed else cluster.cluster_arrive)()
        cluster.cluster_wait()
    elif agent is Agent.ThreadBlock:
        arch.sync_threads()
    else:
        raise pipeline_error("a barrier of a single thread has nothing to wait for", "write pipeline.Agent.ThreadBlock")


def pipeline_init_arrive(cluster_shape_mn: object = (1, 1), is_relaxed: bool = False) -> None:
    """Announces, without waiting, that the thread has created its pipelines with `defer_sync`."""
    if size(cluster_shape_mn) > 1:
        (cluster.cluster_arrive_relaxed if is_relaxed else cluster.cluster_arrive)()


def pipeline_init_wait(cluster_shape_mn: object = (1, 1)) -> None:
    """Waits until all threads of the cluster, or of a block without a cluster, have called `pipeline_init_arrive`."""
    if size(cluster_shape_mn) > 1:
        cluster.cluster_wait()
    else:
        arch.sync_threads()


class PipelineOrder(Stateful):
    """Groups of threads that take turns in each of `depth` consecutive kinds of work: `wait` begins a group's turn,
    `arrive` ends it, and the group's next turn is in the next kind of work (cutlass/pipeline/sm90_pipeline.hpp,
    OrderedSequenceBarrier).
    """

    def __init__(self, bars: Tensor, length: int, group: Any, state: PipelineState) -> None:
        self.bars = bars
        self.length = length
        self.group = group
        self.state = state

    @classmethod
    def create(
        cls,
        *,
        depth: int,
        length: int,
        group_id: object,
        producer_group: CooperativeGroup,
        barrier_storage: Pointer | Tensor | None = None,
        defer_sync: bool = False,
        name: str = "",
    ) -> Self:
        """Turns of `length` groups, each with the threads of `producer_group`; the thread is in group `group_id`, and
        group 0 is the first. Raises TilefoldError (E5011) for a group of more threads than the block has.
        """
        producer_group.check_threads("producer")
        if type(length) is not int or length < 1:
            raise pipeline_error(f"an ordered sequence cannot have {length!r} groups", "pass at least one group")
        state = PipelineState(depth, phase=where(group_id == 0, 1, 0))
        bars = mbarriers(barrier_storage, depth * length)
        init([(bars.ptr(i), producer_group.size, None) for i in range(depth * length)], not defer_sync)
        return cls(bars, length, group_id, state)

    def wait(self, state: PipelineState | None = None) -> None:
        """Waits for the turn of the thread's group, in the kind of work of `state`, by default the object's own."""
        given = self.state if state is None else state
        mbarrier_wait(self._bar(given, self.group), given.phase)

    def arrive(self, state: PipelineState | None = None) -> PipelineState:
        """Ends the thread's part of the turn; the next group's turn begins when all threads of this group have called
        it. Advances the state, which it returns.
        """
        given, following = self.state if state is None else state, self.group + 1
        mbarrier_arrive(self._bar(given, where(following == self.length, 0, following)))
        given.advance()
        return given

    def _bar(self, state: PipelineState, group: object) -> Address:
        return self.bars.ptr(state.index * self.length + group)


def mbarriers(storage: Pointer | Tensor | None, count: int) -> Tensor:
    """An array of mbarriers: where `storage` begins, 8 bytes each, or in new shared memory.

    Raises TilefoldError (E5011) for anything but shared memory of 8-byte elements, and for too little of it.
    """
    if storage is None:
        return make_smem_tensor(count, Int64)
    tensor = storage.tensor if isinstance(storage, Pointer) else storage
    hint = f"write cute.make_smem_tensor({count}, cute.Int64)"
    if not isinstance(tensor, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TilefoldError(Code.BUILD_VALUE, f"the storage of mbarriers cannot be a {type(storage).__name__}", hint)
    if tensor.memspace is not AddressSpace.smem or tensor.element_type.bits != 64:
        raise pipeline_error(
            f"mbarriers cannot be in {tensor.memspace.name} with elements of type {tensor.element_type}", hint
        )
    held = size(tensor)
    if isinstance(storage, Tensor) and isinstance(held, int) and held < count:
        raise pipeline_error(f"{count} mbarriers are in a tensor of {held} elements", hint)
    return make_tensor(tensor.iterator, count)


def alloc_reserved_mbarrier(num_stages: int) -> Pointer:
    """Where the two mbarriers of each stage of a pipeline are, in shared memory of their own."""
    return make_smem_tensor(2 * num_stages, Int64).iterator


def init(
    counts: Sequence[tuple[Address, int, str | None]],
    is_synchronised: bool,
    blocks: int = 1,
    counts_bytes: bool = False,
) -> list[MbarrierInitOp]:
    """Makes mbarriers, each for a number of arrivals, which copies or commits may complete, and with a name for
    messages; one thread does. Then all threads of the block wait, or of a cluster of several blocks, if asked to. The
    operations that make them.
    """
    made: list[MbarrierInitOp] = []

    def all_of_them() -> None:
        made.extend([mbarrier_init_named(*count) for count in counts])
        if blocks > 1 or counts_bytes or not is_synchronised:  # a barrier that comes later may be a relaxed one
            cluster.mbarrier_init_fence()

    if_(arch.linear_thread_idx() == 0, all_of_them)
    if is_synchronised:
        pipeline_init_arrive(blocks, is_relaxed=True)
        pipeline_init_wait(blocks)
    return made


def arrive_once(at: Address) -> None:
    """One thread of the warp, or each that a condition around it selects, arrives after all earlier accesses of the
    warp's threads.
    """
    _of_one_thread(MbarrierArriveOp(at.ssa))


def expect(at: Address, bytes: Operand) -> None:
    """One thread of the warp, or each that a condition around it selects, arrives and expects bytes."""
    _of_one_thread(MbarrierArriveExpectTxOp(at.ssa, convert(bytes, Int32).ssa))


def _of_one_thread(made: Operation) -> None:
    if not is_elected():
        made.attributes[ONE_THREAD] = UnitAttr()
    emit(made)


def wait(at: Address, parity: Operand, token: Operand = None, scope: str | None = None) -> None:
    """Waits for the phase of a parity, unless a token of `cute.arch.mbarrier_try_wait` says that it is complete."""
    if token is None:
        mbarrier_wait(at, parity, scope)
    else:
        if_(token, lambda: None, lambda: mbarrier_wait(at, parity, scope))
