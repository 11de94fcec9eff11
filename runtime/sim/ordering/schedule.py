# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running the warps of one block: which is next, and when a barrier or an mbarrier lets them go on."""

from collections.abc import Sequence
from random import Random
from typing import TypeAlias

import numpy as np

from ....base.errors import Code as ErrorCode
from ..faults import SimulationError
from ..translate import Barrier, Code, Pause, Suspension, Until
from ..warp import WARP, Block, Warp
from .knowledge import joined, meet, snapshot

Entry: TypeAlias = tuple[Warp, Suspension, Barrier]
"""A warp at a barrier."""
Waiting: TypeAlias = dict[int, list[Entry]]
"""The warps at each barrier that is not complete."""
Held: TypeAlias = list[tuple[Warp, Suspension, Until]]
"""The warps that wait at mbarriers."""


def run_block(block: Block, warps: Sequence[Warp], code: Code, order: Random | None) -> None:
    """Runs all warps of a block to their end: in their order, or picked by `order` wherever several could go
    on.

    SimulationError (E3207) where some warps wait at a barrier or an mbarrier for what never happens, and whatever the
    kernel's steps raise.
    """
    ready: list[tuple[Warp, Suspension]] = [(warp, code.run(warp)) for warp in warps]
    waiting: Waiting = {}
    held: Held = []
    ended = 0
    while _wake(held, ready) or ready:
        warp, run = ready.pop(0 if order is None else order.randrange(len(ready)))
        event = next(run, None)
        if event is None:
            ended += 1
            continue
        if isinstance(event, Pause):
            ready.append((warp, run))
            continue
        if isinstance(event, Until):
            held.append((warp, run, event))
            continue
        arrived = waiting.setdefault(event.id, [])
        arrived.append((warp, run, event))
        if not event.waits:
            ready.append((warp, run))
        if event.threads is not None:
            warp.offered = snapshot(warp, np.arange(warp.lanes))
        if _is_complete(arrived, len(warps)):
            _release(block, warps, arrived)
            ready.extend((other, suspended) for other, suspended, barrier in arrived if barrier.waits)
            del waiting[event.id]
    if held or any(barrier.waits for entries in waiting.values() for _, _, barrier in entries):
        _refuse(block, waiting, held, ended)


def _wake(held: Held, ready: list[tuple[Warp, Suspension]]) -> bool:
    """Moves the warps whose conditions hold to those that are ready; whether there are any."""
    woken = [entry for entry in held if entry[2].holds()]
    held[:] = [entry for entry in held if entry not in woken]
    ready.extend((warp, run) for warp, run, _ in woken)
    return bool(woken)


def _is_complete(arrived: list[Entry], warps: int) -> bool:
    """Whether all that meet at a barrier have arrived. Each warp counts as 32 threads (PTX ISA, bar)."""
    barrier = arrived[-1][2]
    for _, _, other in arrived:
        if other.threads != barrier.threads:
            counts = " and ".join("all" if each is None else str(each) for each in (other.threads, barrier.threads))
            text = f"warps meet at barrier {barrier.id} with different numbers of threads, {counts}"
            warp = arrived[-1][0]
            warp.fault(ErrorCode.SIM_BARRIER, barrier.site, 0, text, "give one number wherever the barrier is used")
    return len(arrived) == warps if barrier.threads is None else len(arrived) * WARP >= barrier.threads


def _release(block: Block, warps: Sequence[Warp], arrived: list[Entry]) -> None:
    """Records what a completed barrier orders."""
    if arrived[0][2].threads is not None:
        meet([warp for warp, _, _ in arrived], [warp for warp, _, barrier in arrived if barrier.waits])
        return
    block.epoch = block.launch.tick()
    if any(warp.known for warp in warps):
        total = joined(warp.known for warp in warps)
        for warp in warps:
            warp.known = total


def _refuse(block: Block, waiting: Waiting, held: Held, ended: int) -> None:
    """Raises the fault of warps that wait for ever."""
    groups = [f"{len(entries)} at barrier {number}" for number, entries in sorted(waiting.items())]
    if held:
        first, _, until = min(held, key=lambda entry: entry[0].index)
        what, site = f"{until.describe()},", until.site
        groups.append(f"{len(held)} at mbarriers")
        hint = "let as many threads and copies arrive as the mbarrier was made for, and wait for the right parity"
    else:
        stuck = [entry for entries in waiting.values() for entry in entries if entry[2].waits]
        first, _, barrier = min(stuck, key=lambda entry: entry[0].index)
        what, site = f"at barrier {barrier.id}", barrier.site
        hint = "every thread of the block must execute the same barriers"
    if ended:
        groups.append(f"{ended} ended without it")
    raise SimulationError(
        ErrorCode.SIM_BARRIER,
        f"warp {first.index} waits {what} for ever; the warps: {', '.join(groups)}",
        hint,
        site=site,
        block=block.coordinate,
        thread=block.thread(first.first_thread),
    )
