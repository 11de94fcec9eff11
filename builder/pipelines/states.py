# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The position of one side of a pipeline: the stage, the parity of its phase, and the number of stages passed."""

from typing import Any

from ...base.errors import TilefoldError
from ..instructions.math import where
from ..scalars.dtypes import Int32
from ..scalars.values import NoStages, Value, convert
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
    before, which counts as complete. Raises TilefoldError (E5011) for a number of stages below 1.
    """
    if stages == 0:
        raise _no_stages(stages)
    return PipelineState(stages, phase=int(type is not PipelineUserType.Consumer))


def _no_stages(stages: object) -> TilefoldError:
    problem = f"a pipeline cannot have {stages!r} stages"
    return pipeline_error(problem, "give it a static number of stages, at least 1")
