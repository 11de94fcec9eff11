# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The faults of accesses to global and shared memory, in words."""

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ..ordering.asynchronous import writers
from ..ordering.entries import ASYNC, times_of
from ..ordering.races import Conflict
from ..ordering.releases import Unheard
from ..warp import Warp
from .arena import ABSENT, IN_FLIGHT, MBARRIER, READY, TAKEN
from .outside import HINT

if TYPE_CHECKING:
    from .spaces import Access, Space

NUMBER_HINT = "pass an array to cute.runtime.from_dlpack, and keep it, before its address is used as a number"


def refuse(space: "Space", warp: Warp, access: "Access", rows: NDArray[Any], *, loading: bool) -> None:
    """Raises the fault of the first lane whose bytes are not in a state for the access."""
    warp.apart()
    for index, row in enumerate(rows.tolist()):
        states = space.arena.state[access.width][row]
        if (states == READY).all() or not (loading or TAKEN[states].any()):
            continue
        lane = int(warp.lane_numbers()[index])
        where = space.show_row(row, access.width)
        verb = "reads" if loading else "writes"
        if (states == ABSENT).any():
            out_of_bounds(space, warp, access, index, space.base + row * access.width % space.arena.span, loading)
        if (states == IN_FLIGHT).any():
            byte = row * access.width + int((states == IN_FLIGHT).argmax())
            operation, other = next(writers(warp.block.cluster, space, byte))
            text = f"{verb} {where} while {operation.describe(other)} is still writing it"
            hint = "wait for its group in the thread that issued the copy, and then at a barrier, or at an mbarrier"
            warp.fault(Code.SIM_IN_FLIGHT, access.site, lane, text, hint, other=operation.origin)
        if (states == MBARRIER).any():
            hint = "end it with ptx.mbarrier.inval before its bytes are used otherwise"
            warp.fault(Code.SIM_MBARRIER, access.site, lane, f"{verb} {where}, which belongs to an mbarrier", hint)
        warp.fault(
            Code.SIM_UNINITIALISED, access.site, lane,
            f"reads {where} in {space.name} memory, which is unwritten",
            "write it first, or start from a fill that defines it",
            (space.name, row * access.width),
        )  # fmt: skip


def out_of_bounds(space: "Space", warp: Warp, access: "Access", index: int, address: int, loading: bool) -> NoReturn:
    """Raises the fault of an active lane whose access is outside of every allocation."""
    warp.apart()
    view = warp.launch.outside.describe(address)
    beyond, hint = f"through {view}", HINT
    if view is None:
        beyond = f"out of bounds at {space.show(address)}"
        hint = "check the layout against the size of the tensor, or predicate the access"
        if warp.launch.reached is not None and abs(address - space.base) > 2 * space.arena.span:
            beyond, hint = f"at {address:#x}, where there is none that the simulator knows", NUMBER_HINT
    verb = "reads" if loading else "writes"
    text = f"{verb} {access.width} bytes of {space.name} memory {beyond}"
    warp.fault(Code.SIM_OUT_OF_BOUNDS, access.site, int(warp.lane_numbers()[index]), text, hint)


def leave(space: "Space", warp: Warp, access: "Access", index: int, offsets: NDArray[Any]) -> NoReturn:
    """Raises the fault of an active lane whose access leaves the allocation that its address was computed from."""
    warp.apart()
    assert access.home is not None
    verb = "reads" if access.kind in ("load", "matrix") else "writes"
    text = (
        f"{verb} {access.width} bytes of {space.name} memory at {space.show(space.base + int(offsets[index]))}, by an "
        f"address computed from {access.home.name} ({access.home.size} bytes)"
    )
    hint = "check the layout against the size of the tensor, or predicate the access"
    warp.fault(Code.SIM_OUT_OF_BOUNDS, access.site, int(warp.lane_numbers()[index]), text, hint)


def is_repeated(
    space: "Space", warp: Warp, access: "Access", rows: NDArray[Any], conflict: Conflict, content: NDArray[Any] | None
) -> bool:
    """Whether a store is of one value by all its threads, and conflicts with stores of the same one, so that none of
    them changes anything. The observer is told. The store counts as made then.
    """
    if content is None or not conflict.with_write or space.shadow is None or (content != content[0]).any():
        return False
    data, state = space.arena.data[access.width], space.arena.state[access.width]
    if conflict.time and not ((state[rows] == READY).all() and (data[rows] == content).all()):
        return False
    if conflict.time:
        space.shadow.date(rows, access.width, warp.launch.clock, warp.active_agents())
    if space.journal is not None:
        warp.apart()
        place = space.show_row(int(rows[conflict.index]), access.width, conflict.byte)
        other = warp.block.describe(conflict.agent)
        space.journal.remark(access.site, f"several threads store the same value at {place}, {other} too: one would do")
    return True


def race(space: "Space", warp: Warp, access: "Access", rows: NDArray[Any], conflict: Conflict, verb: str) -> None:
    """Raises the fault of an access that nothing orders after an earlier one, unless such are forgiven there."""
    if warp.launch.forgives(Code.SIM_RACE, access.site):
        return
    place = int(rows[conflict.index]) * access.width + conflict.byte
    where = space.show_row(int(rows[conflict.index]), access.width, conflict.byte)
    lane = int(warp.lane_numbers()[conflict.index])
    other = warp.block.describe(conflict.agent)
    if conflict.narrow:
        text = f"race: {verb} {space.name} {where}, which {other} changed; the scope of one does not reach the other"
        hint = 'give both operations scope "gpu", or "cluster" where all threads are of one cluster'
    else:
        did = "wrote" if conflict.with_write else "read"
        text = f"race: {verb} {space.name} {where}, which {other} {did}, and no barrier lies between"
        hint = remedy(warp, lane, conflict)
    warp.fault(Code.SIM_RACE, access.site, lane, text, hint, (space.name, place))


def remedy(warp: Warp, lane: int, conflict: Conflict) -> str:
    """The order that two accesses lack, by who makes them: this lane, and an agent of the launch."""
    agent = conflict.agent
    for knowing, own in warp.own.items():
        entry = np.array([conflict.time << 32 | agent])
        if int(times_of(own.clock, warp, entry)[0]) > conflict.time > 0:
            x, y, z = warp.block.thread(warp.first_thread + knowing)
            return f"thread ({x},{y},{z}) has waited for it, this one has not: put ptx.bar.warp.sync behind the wait"
    if agent & ASYNC:
        return "wait for the asynchronous copy, at its group or mbarrier, and let others know by a barrier"
    threads, own_agent = warp.launch.config.threads, int(warp.agents[lane])
    if not agent or (agent - 1) // threads != (own_agent - 1) // threads:
        if warp.unheard is not None:
            return _unheard(*warp.unheard)
        return (
            "put a barrier between the two accesses (there is none between blocks, but that of their cluster)"
            if warp.block.cluster.size > 1
            else "blocks run in any order: use atomics, a release and an acquire, or a launch for each"
        )
    first = (own_agent - 1) % threads // 32
    if (agent - 1) % threads // 32 == first:
        return "put a barrier between the two accesses; both are of one warp, so that ptx.bar.warp.sync will do"
    return "put a barrier of the block between the two accesses"


def _unheard(write: Unheard, scope: str) -> str:
    """Why an atomic read has learned nothing of the write that it has seen."""
    if not write.releases:
        return f'{write.site} does not release: put ptx.fence "acq_rel" before it, or let it be a release'
    if not scope:
        return f'the look at the value of {write.site} does not acquire: put ptx.fence "acq_rel" behind it'
    return (
        f'the release at {write.site} is of scope "{write.scope}", the acquire of scope "{scope}", and one of them '
        'does not reach the other block: give both, and their fences, scope "gpu"'
    )
