# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The two sides of a pipeline, each with a state of its own."""

from typing import Any, NamedTuple, Protocol, Self

from ..scalars.values import Bool
from ..tensors.tensors import Address
from ..tracing.attributes import Stateful
from .states import PipelineState


class Pipeline(Protocol):
    """The methods of a pipeline that its sides call."""

    def producer_acquire(self, state: PipelineState, try_acquire_token: object = None) -> None: ...
    def producer_try_acquire(self, state: PipelineState) -> Bool: ...
    def producer_commit(self, state: PipelineState) -> None: ...
    def producer_get_barrier(self, state: PipelineState) -> Address: ...
    def producer_tail(self, state: PipelineState) -> None: ...
    def consumer_wait(self, state: PipelineState, try_wait_token: object = None) -> None: ...
    def consumer_try_wait(self, state: PipelineState) -> Bool: ...
    def consumer_release(self, state: PipelineState) -> None: ...


class Filling(NamedTuple):
    """A stage that the producer may fill."""

    pipeline: Pipeline
    stages: int
    count: Any
    index: Any
    phase: Any

    @property
    def barrier(self) -> Address:
        """The mbarrier at which copies into the stage count their bytes."""
        return self.pipeline.producer_get_barrier(_state(self))

    def commit(self) -> None:
        """The stage is full, or its copies have been started."""
        self.pipeline.producer_commit(_state(self))


class Reading(NamedTuple):
    """A stage that the consumer may read."""

    pipeline: Pipeline
    stages: int
    count: Any
    index: Any
    phase: Any

    def release(self) -> None:
        """The stage may be filled again."""
        self.pipeline.consumer_release(_state(self))


def _state(stage: Filling | Reading) -> PipelineState:
    return PipelineState(*stage[1:])


class _Side(Stateful):
    """A pipeline, and where one side is."""

    def __init__(self, pipeline: Pipeline, state: PipelineState) -> None:
        self.pipeline = pipeline
        self.state = state

    def advance(self) -> None:
        """Advances to the next stage."""
        self.state.advance()

    def clone(self) -> Self:
        """The same side at the same stage, which advances by itself."""
        return type(self)(self.pipeline, self.state.clone())

    def reset(self) -> None:
        """Counts stages from 0 again, such as those of another tile; the next stage and its parity stay."""
        self.state.reset_count()

    def _stage(self) -> tuple[Pipeline, int, Any, Any, Any]:
        return self.pipeline, self.state.stages, self.state.count, self.state.index, self.state.phase


class PipelineProducer(_Side):
    """The side that fills stages."""

    ImmutableResourceHandle = Filling
    _PipelineProducer__state = property(lambda self: self.state)  # by this name programs read it

    def try_acquire(self) -> Bool:
        """Whether the stage is empty, after a short wait at most."""
        return self.pipeline.producer_try_acquire(self.state)

    def acquire(self, try_acquire_token: object = None) -> Filling:
        """Waits until the stage is empty, unless a token of `try_acquire` says so."""
        self.pipeline.producer_acquire(self.state, try_acquire_token)
        return Filling(*self._stage())

    def acquire_and_advance(self, try_acquire_token: object = None) -> Filling:
        """Waits until the stage is empty, and advances to the next."""
        stage = self.acquire(try_acquire_token)
        self.advance()
        return stage

    def commit(self, stage: Filling | None = None) -> None:
        """Marks a stage as full: the given one, or the current one."""
        (Filling(*self._stage()) if stage is None else stage).commit()

    def tail(self) -> None:
        """Waits until the consumer has emptied all stages, so that the block may end."""
        self.pipeline.producer_tail(self.state)


class PipelineConsumer(_Side):
    """The side that reads stages."""

    ImmutableResourceHandle = Reading

    def try_wait(self) -> Bool:
        """Whether the stage is full, after a short wait at most."""
        return self.pipeline.consumer_try_wait(self.state)

    def wait(self, try_wait_token: object = None) -> Reading:
        """Waits until the stage is full, unless a token of `try_wait` says so."""
        self.pipeline.consumer_wait(self.state, try_wait_token)
        return Reading(*self._stage())

    def wait_and_advance(self, try_wait_token: object = None) -> Reading:
        """Waits until the stage is full, and advances to the next."""
        stage = self.wait(try_wait_token)
        self.advance()
        return stage

    def release(self, stage: Reading | None = None) -> None:
        """Releases a stage for filling: the given one, or the current one."""
        (Reading(*self._stage()) if stage is None else stage).release()
