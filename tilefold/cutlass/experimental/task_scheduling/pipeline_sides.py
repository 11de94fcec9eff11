# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sides of pipelines in the code of one task: their positions, and the steps that wait and signal."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tilefold.builder.control.control_functions import if_
from tilefold.builder.control.variables import Temporary
from tilefold.builder.instructions import cluster
from tilefold.builder.pipelines.groups import PipelineUserType
from tilefold.builder.pipelines.participants import PipelineState, make_pipeline_state
from tilefold.builder.pipelines.pipelines import Stages
from tilefold.builder.pipelines.tensor_core_pipelines import MmaCluster

from .enums import PipelineType, SignalingThreads
from .resources import MemoryResource, PipelineConfig


class PipelineSides:
    """The sides of pipelines that a task is on. `followers` are the members of forks but the first ones, whose commits
    count for all.
    """

    def __init__(self, pipelines: Mapping[MemoryResource, Stages], followers: Sequence[MemoryResource]) -> None:
        self._pipelines = pipelines
        self._followers = followers
        self._states: dict[tuple[MemoryResource, str], Temporary] = {}
        self._tokens: dict[tuple[MemoryResource, bool], object] = {}

    def pipeline(self, resource: MemoryResource) -> Stages | None:
        """The pipeline of a resource; None without one."""
        return self._pipelines.get(resource)

    def side(self, resource: MemoryResource, fills: bool) -> PipelineState | None:
        """The position of a side of a resource's pipeline: that of its works. None without a pipeline."""
        if self.pipeline(resource) is None:
            return None
        if not fills and _config(resource).advance_on_wait:
            return _state(self._position(resource, "read"))
        return _state(self._position(resource, "fill" if fills else "wait"))

    def _position(self, resource: MemoryResource, kind: str) -> Temporary:
        """The position by its kind: `fill`; `wait` and `read`, the last stage waited for; and `release`."""
        key = resource, kind
        if key not in self._states:
            side = PipelineUserType.Producer if kind == "fill" else PipelineUserType.Consumer
            state = make_pipeline_state(side, _config(resource).num_stages)
            self._states[key] = Temporary(f"the stage of '{resource.name}'", state)
        return self._states[key]

    def prepare(self, resource: MemoryResource) -> None:
        """Makes the positions that steps of a loop may use, before the loop."""
        if self.pipeline(resource) is not None:
            for kind in ("fill", "wait", "read", "release"):
                self._position(resource, kind)

    def positions(self) -> Iterator[Temporary]:
        """The positions so far."""
        yield from self._states.values()

    def forget_answers(self) -> None:
        """Where control flow changes, the next wait takes no answer of an earlier question."""
        self._tokens.clear()

    def end(self, resource: MemoryResource) -> None:
        """Waits at the end of a task until all that it has filled is released, if other blocks may release it."""
        pipeline, state = self.pipeline(resource), self._states.get((resource, "fill"))
        if pipeline is not None and state is not None and _config(resource).cluster is not None:
            self._guarded(resource, True, lambda: pipeline.producer_tail(_state(state)))

    def fetch(self, resource: MemoryResource, pipeline: Stages, ask: Callable[[object], object]) -> None:
        """Asks for the next tile, whose arrival completes the stage to fill."""
        bar = pipeline.producer_get_barrier(_state(self._position(resource, "fill")))
        self._guarded(resource, True, lambda: ask(bar))

    def step(self, resource: MemoryResource, pipeline: Stages, name: str) -> None:
        """A step that waits or signals, by its name."""
        if name in ("try_acquire", "acquire", "commit"):
            self._fill(resource, pipeline, name)
        else:
            self._read(resource, pipeline, name)

    def _guarded(self, resource: MemoryResource, fills: bool, act: Any) -> None:
        """Acts in the blocks of the cluster that are on a side of a pipeline."""
        config = _config(resource)
        signals = config.producer_signaling_threads if fills else config.consumer_signaling_threads
        if config.cluster is None or signals is SignalingThreads.All:
            act()
        elif config.pipeline_type is PipelineType.ClcFetchAsync:
            rank: Any = cluster.block_idx_in_cluster()
            if_(rank == 0, act)
        else:
            if_(MmaCluster.of(config.cluster).leads(), act)

    def _try(self, resource: MemoryResource, fills: bool, ask: Callable[[], object]) -> None:
        """Asks whether a stage may be used, for the next wait in the same loop; a block that is not on the side does
        not ask, so that in a cluster the wait is without an answer.
        """
        if _config(resource).cluster is None:
            self._tokens[resource, fills] = ask()

    def _fill(self, resource: MemoryResource, pipeline: Stages, name: str) -> None:
        position = self._position(resource, "fill")
        state, follows = _state(position), any(resource is each for each in self._followers)
        if name == "try_acquire":
            self._try(resource, True, lambda: pipeline.producer_try_acquire(state))
        elif name == "acquire":
            token = self._tokens.pop((resource, True), None)
            acquire = partial(Stages.producer_acquire, pipeline) if follows else pipeline.producer_acquire
            self._guarded(resource, True, lambda: acquire(state, token))
        else:
            if not follows:
                self._guarded(resource, True, lambda: pipeline.producer_commit(state))
            _state(position).advance()

    def _read(self, resource: MemoryResource, pipeline: Stages, name: str) -> None:
        waits_ahead, position = _config(resource).advance_on_wait, self._position(resource, "wait")
        state = _state(position)
        if name == "try_wait":
            self._try(resource, False, lambda: pipeline.consumer_try_wait(state))
        elif name == "wait":
            token = self._tokens.pop((resource, False), None)
            self._guarded(resource, False, lambda: pipeline.consumer_wait(state, token))
            if waits_ahead:
                self._position(resource, "read").set(state.clone())
                _state(position).advance()
        else:
            released = self._position(resource, "release") if waits_ahead else position
            self._guarded(resource, False, lambda: pipeline.consumer_release(_state(released)))
            _state(released).advance()


def _config(resource: MemoryResource) -> PipelineConfig:
    assert resource.pipeline_config is not None
    return resource.pipeline_config


def _state(position: Temporary) -> PipelineState:
    state = position.get()
    assert isinstance(state, PipelineState)
    return state
