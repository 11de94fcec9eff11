# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of launches that are measured on the GPU, on the tensors at hand."""

import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from .replay import Launch

P = TypeVar("P")
RUNS = 5
"""The launches of each plan that are timed, after one that compiles it."""


@dataclass(frozen=True)
class Tuner(Generic[P]):
    """The fastest plans of problems that were measured."""

    _fastest: dict[Hashable, P] = field(default_factory=dict[Hashable, P])

    def plan(self, problem: Hashable, plans: Sequence[P], launch: Callable[[P], Launch]) -> P:
        """The fastest of some plans for a problem, whose launches write the same result. Only the first call measures;
        within a graph that is being captured, the first plan serves.
        """
        if problem in self._fastest:
            return self._fastest[problem]
        torch: Any = sys.modules["torch"]
        if torch.cuda.is_current_stream_capturing():
            return plans[0]
        times = [self._time(torch, launch(plan)) for plan in plans]
        return self._fastest.setdefault(problem, plans[times.index(min(times))])

    @staticmethod
    def _time(torch: Any, launch: Launch) -> float:
        """Milliseconds of the fastest of some launches."""
        launch.run(None, "auto")
        times: list[float] = []
        for _ in range(RUNS):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            launch.run(None, "auto")
            end.record()
            end.synchronize()
            times.append(float(start.elapsed_time(end)))
        return min(times)
