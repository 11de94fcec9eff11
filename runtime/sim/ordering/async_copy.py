# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Asynchronous copies from global to shared memory (PTX ISA, cp.async, its groups and waits).

The hardware promises the bytes only after the issuing thread has waited for the group, so until then they are
in flight: any access is an error. Other threads see them after a barrier that follows the wait, which the
race shadow checks because the write is dated when the wait completes it. Copies that arrive at an mbarrier are complete
when somebody waits there, and belong to those who waited.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..memory.arena import IN_FLIGHT, READY
from ..memory.spaces import Access, Space
from ..values.values import Value
from ..warp import Warp
from .knowledge import copied, joined


@dataclass(slots=True)
class Pending:
    """Copies of one request that are in flight: its number, their lanes, the group of each, the shared rows and the
    bytes.
    """

    number: int
    lanes: NDArray[Any]
    groups: NDArray[Any]
    width: int
    rows: NDArray[Any]
    content: NDArray[np.uint8]


def issue(warp: Warp, shared: Space, access: Access, address: Value, content: NDArray[np.uint8]) -> None:
    """Starts writing an array (active, width) of bytes, already read, at the shared `address` of each active
    lane.
    """
    rows = shared.claim(warp, access, address)
    shared.arena.state[access.width][rows] = IN_FLIGHT
    lanes = warp.lane_numbers()
    warp.issued += 1
    warp.pending.append(Pending(warp.issued, lanes, warp.groups[lanes], access.width, rows, content))


def commit(warp: Warp) -> None:
    """The active lanes' copies since the last commit become a group."""
    if warp.active_lanes is None:
        warp.groups += 1
    else:
        warp.groups[warp.active_lanes] += 1


def wait(warp: Warp, shared: Space, in_flight: int) -> None:
    """Completes the active lanes' groups except for their `in_flight` latest ones."""
    limit = warp.groups - in_flight
    if warp.mask is not None:
        limit = np.where(warp.mask, limit, 0)
    before = len(warp.pending)
    _finish(warp, shared, lambda copy: copy.groups < limit[copy.lanes])
    if before and warp.tied.any() and shared.shadow is not None:
        warp.known = joined((warp.known, copied(warp, warp.lane_numbers())))


def tie(warp: Warp) -> int:
    """Lets all copies of the active lanes so far arrive at an mbarrier; their greatest number."""
    warp.tied[warp.lane_numbers()] = warp.issued
    return warp.issued


def complete(warp: Warp, shared: Space, lanes: NDArray[Any], number: int) -> None:
    """Completes the copies of some lanes up to a number."""
    chosen = np.zeros(warp.lanes, bool)
    chosen[lanes] = True
    _finish(warp, shared, lambda copy: chosen[copy.lanes] & (copy.number <= number))


def _finish(warp: Warp, shared: Space, which: Callable[[Pending], NDArray[np.bool_]]) -> None:
    """Completes the copies for which a condition holds."""
    remaining: list[Pending] = []
    for copy in warp.pending:
        done = which(copy)
        if done.all():
            _complete(warp, shared, copy)
        elif done.any():
            _complete(warp, shared, _part(copy, done))
            remaining.append(_part(copy, ~done))
        else:
            remaining.append(copy)
    warp.pending = remaining


def wait_all(warp: Warp, shared: Space) -> None:
    """Completes all copies of the active lanes, as a commit and a wait for every group do."""
    commit(warp)
    wait(warp, shared, 0)


def _part(copy: Pending, chosen: NDArray[Any]) -> Pending:
    return Pending(
        copy.number, copy.lanes[chosen], copy.groups[chosen], copy.width, copy.rows[chosen], copy.content[chosen]
    )


def _complete(warp: Warp, shared: Space, copy: Pending) -> None:
    shared.arena.data[copy.width][copy.rows] = copy.content
    shared.arena.state[copy.width][copy.rows] = READY
    if shared.shadow is not None:
        config = warp.launch.config
        by_copy = np.where(copy.number <= warp.tied[copy.lanes], config.blocks * config.threads, 0)
        shared.shadow.date(copy.rows, copy.width, warp.launch.clock, warp.agents[copy.lanes] + by_copy)
