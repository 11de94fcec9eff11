# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""When the threads of a cluster have executed proxy fences themselves. The clocks say which writes a fence orders on
the way to an access of the async proxy, whoever executes it, since PTX asks for no more (PTX ISA, Memory Consistency
Model: causality order). CUTLASS lets each thread that has written execute one, before the barrier
(`tma_store_fence`).
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..warp import Cluster

_KEPT = 8
"""The last fences of a thread that are kept."""


@dataclass(slots=True, eq=False)
class ProxyFences:
    """The times of the fences of each thread, by the memory that they are of: accesses before a time are before it."""

    cluster: Cluster
    _times: dict[tuple[str, int], deque[int]] = field(init=False, default_factory=dict[tuple[str, int], deque[int]])

    def add(self, space: str, agents: Iterable[int], time: int) -> None:
        """Threads execute a fence."""
        for agent in agents:
            self._times.setdefault((space, agent), deque(maxlen=_KEPT)).append(time)

    def lacks(self, space: str, agent: int, time: int, until: int) -> bool:
        """Whether a thread has executed none behind its access at a time, among what is known of it, that before
        `until`; False if that is not known.
        """
        times = self._times.get((space, agent), ())
        if len(times) == _KEPT and times[0] > time:  # those before it are forgotten
            return False
        return not any(time < fence <= until for fence in times)
