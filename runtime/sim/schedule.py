# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running the warps of one block: which is next, and when a barrier lets them go on."""

from collections.abc import Sequence
from random import Random

from ...layout.errors import Code as ErrorCode
from .faults import SimulationError
from .translate import Barrier, Code, Suspension
from .warp import Block, Warp


def run_block(block: Block, warps: Sequence[Warp], code: Code, order: Random | None) -> None:
    """Runs all warps of a block to their end: in their order, or picked by `order` wherever several could go
    on.

    SimulationError (E3207) where some warps wait at a barrier that the others do not reach, and whatever the
    kernel's steps raise.
    """
    ready: list[tuple[Warp, Suspension]] = [(warp, code.run(warp)) for warp in warps]
    waiting: dict[int, list[tuple[Warp, Suspension, Barrier]]] = {}
    ended = 0
    while ready:
        warp, run = ready.pop(0 if order is None else order.randrange(len(ready)))
        barrier = next(run, None)
        if barrier is None:
            ended += 1
            continue
        arrived = waiting.setdefault(barrier.id, [])
        arrived.append((warp, run, barrier))
        if len(arrived) == len(warps):
            block.epoch = block.launch.tick()
            ready.extend((other, suspended) for other, suspended, _ in arrived)
            del waiting[barrier.id]
    if waiting:
        _refuse(block, waiting, ended)


def _refuse(block: Block, waiting: dict[int, list[tuple[Warp, Suspension, Barrier]]], ended: int) -> None:
    """Raises the fault of warps that wait for ever."""
    held = sorted((entry for entries in waiting.values() for entry in entries), key=lambda entry: entry[0].index)
    first, _, barrier = held[0]
    groups = [f"{len(entries)} at barrier {number}" for number, entries in sorted(waiting.items())]
    if ended:
        groups.append(f"{ended} ended without it")
    raise SimulationError(
        ErrorCode.SIM_BARRIER,
        f"warp {first.index} waits at barrier {barrier.id} for ever; the warps: {', '.join(groups)}",
        "every thread of the block must execute the same barriers",
        site=barrier.site,
        block=block.coordinate,
        thread=block.thread(first.first_thread),
    )
