# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The two sides of a pipeline, each with a state of its own.

A state is the position of a side: the stage, the parity of its phase, and the number of stages passed.
"""

from typing import Any, NamedTuple, Protocol, Self

from ...base.errors import TilefoldError
from ..instructions.math import where
from ..scalars.dtypes import Int32
from ..scalars.values import Bool, NoStages, Value, convert
from ..tensors.tensors import Address
from ..tracing.attributes import Stateful
from .groups import PipelineUserType, pipeline_error


class PipelineState(Stateful):
    """A position in a ring of stages (cutlass/pipeline/sm90_pipeline.hpp, PipelineState).

    `index` is the stage, `phase` the parity to wait for, `count` the number of stages since `reset_count`. They are
    numbers while Python knows them, and Int32 where a loop of the kernel carries them. A state of 0 stages is a
    position in any ring, and does not advance.
    """

    index: Any
    phase: Any
    count: Any

    def __init__(self, stages: int, count: object = 0, index: object = 0, phase: object = 0) -> None:
        if type(stages) not in (int, NoStages) or stages < 0:
            raise _no_stages(stages)
        self.stages = stages or NoStages()
        self.index = index
        self.phase = phase
        self.count = count

    def advance(self, count: object = 1) -> None:
        """Advances by one or several stages; after the last one comes the first, and the phase changes. TilefoldError
        (E5011) for a state of 0 stages.
        """
        if not self.stages:
            raise _no_stages(self.stages)
        following = self.index + count
        self.count = self.count + count
        if type(count) is int and count == 1 and isinstance(self.index, Value):
            wraps = following == self.stages
            self.index, rounds = where(wraps, 0, following), wraps
        else:
            self.index, rounds = following % self.stages, following // self.stages & 1
        self.phase = self.phase ^ (convert(rounds, Int32) if isinstance(rounds, Value) else rounds)

    _index = property(lambda self: self.index, lambda self, index: setattr(self, "index", index))
    _phase = property(lambda self: self.phase, lambda self, phase: setattr(self, "phase", phase & 1))
    _count = property(lambda self: self.count, lambda self, count: setattr(self, "count", count))
    # by these names derived classes of programs change them; where they count rounds, the phase is the lowest bit, for
    # PTX takes only 0 and 1 (mbarrier.test_wait)

    def reset_count(self) -> None:
        """Restarts the count at 0; stage and phase stay."""
        self.count = 0

    def clone(self) -> "PipelineState":
        """A copy of the state, which advances on its own."""
        return PipelineState(self.stages, self.count, self.index, self.phase)

    def __repr__(self) -> str:
        return f"PipelineState(stages={self.stages}, count={self.count}, index={self.index}, phase={self.phase})"


def make_pipeline_state(type: PipelineUserType, stages: int) -> PipelineState:
    """The first state of a side, at stage 0. The consumer waits for its first phase, and the producer for the phase
    before, which counts as complete. Raises TilefoldError (E5011) for a number of stages below 0.
    """
    return PipelineState(stages, phase=int(type is not PipelineUserType.Consumer))


def check_stages(stages: int) -> None:
    """Raises TilefoldError (E5011) for a number of stages that no pipeline has."""
    if type(stages) is not int or stages < 1:
        raise _no_stages(stages)


def _no_stages(stages: object) -> TilefoldError:
    problem = f"a pipeline cannot have {stages!r} stages"
    return pipeline_error(problem, "give it a static number of stages, at least 1")


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
