# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The faults of accesses to global and shared memory, in words."""

from typing import Any, NoReturn

import numpy as np

from ....base.errors import Code
from ....base.spaces import GMEM, SMEM
from ....base.target import WARP
from ...engine import NumPyArray
from ..ordering.asynchronous import AsyncOperation, InFlight, writers
from ..ordering.clocks import AGENT, ASYNC, BEYOND_WARP, Conflict
from ..ordering.knowledge import known, times_of
from ..ordering.releases import block_of, has_seen, missing_edge
from ..warp import Warp
from .arena import ABSENT, IN_FLIGHT, MBARRIER, READY, TAKEN, Access, Allocation
from .provenance import HINT
from .space_state import SpaceState

NUMBER_HINT = "pass an array to cute.runtime.from_dlpack, and keep it, before using its address as a number"
_MULTICAST_HINT = (
    "only multimem instructions may access it (PTX ISA, Memory Consistency Model: Multimem Addresses); all others, TMA "
    "copies too, take the memory of one device"
)
_LAYOUT_HINT = "check the layout against the size of the tensor, or predicate the access"
_STAGE = (
    "let the consumer release the stage after its last read, by an arrival at an mbarrier, and the producer acquire "
    "it, by a wait there, before it copies again"
)
ATOMIC = frozenset({"ptx.atom", "ptx.atom.cas", "ptx.red", "ptx.ld.acquire", "ptx.st.release"})
"""The operations whose accesses are atomic."""
WARP_SYNC = "put a barrier between the two accesses; both belong to one warp, so ptx.bar.warp.sync suffices"
BLOCK_BARRIER = "put a barrier of the block between the two accesses"
PAIR = (
    "put a barrier of the block between the two accesses, where all threads reach it; otherwise let one thread "
    "arrive at a barrier or an mbarrier after its access, and the other wait there before its own"
)


def refuse(space: SpaceState, warp: Warp, access: Access, rows: NumPyArray, *, loading: bool) -> None:
    """Raises the fault of the first lane whose bytes are not in a state for the access."""
    warp.leave_lockstep(is_fault=True)
    for index, row in enumerate(rows.tolist()):
        states = space.arena.state[access.width][row]
        if (states == READY).all() or not (loading or TAKEN[states].any()):
            continue
        lane = int(warp.lane_numbers()[index])
        where = space.show_row(row, access.width)
        verb = "reads" if loading else "writes"
        if (states == ABSENT).any():
            out_of_bounds(space, warp, access, index, space.address(row * access.width % space.arena.span), loading)
        if (states == IN_FLIGHT).any():
            byte = row * access.width + int((states == IN_FLIGHT).argmax())
            operation, other = next(writers(warp.block.cluster, space, byte))
            text = f"{verb} {where} while {operation.describe(other)} is still writing it"
            hint = "wait for its group in the thread that issued the copy, and then at a barrier, or at an mbarrier"
            if isinstance(operation, AsyncOperation) and operation.pipe:
                hint = operation.cure
            elif isinstance(operation, AsyncOperation) and operation in operation.issuer.state(InFlight).loads:
                hint = "wait at its mbarrier for the phase that counts its bytes; the first phase has parity 0"
                hint += _other_phase(warp, operation)
            warp.fault(Code.SIM_IN_FLIGHT, access.site, lane, text, hint, other=operation.origin)
        if (states == MBARRIER).any():
            hint = "end it with ptx.mbarrier.inval before using its bytes for anything else"
            warp.fault(Code.SIM_MBARRIER, access.site, lane, f"{verb} {where}, which belongs to an mbarrier", hint)
        warp.fault(
            Code.SIM_UNINITIALISED, access.site, lane,
            f"reads {where} in {space.name} memory, which is unwritten",
            "write it first, or start from a fill that defines it",
            (space.name, row * access.width),
        )  # fmt: skip


def _other_phase(warp: Warp, operation: AsyncOperation) -> str:
    """An addition to a hint: the warp's last wait at the mbarrier of a copy, and the phase in which the bytes come."""
    from ..ordering.mbarrier import mbarriers_of

    for barrier in mbarriers_of(warp.block.cluster).values():
        wait = barrier.waits.get(warp)
        if wait is not None and any(getattr(part, "operation", None) is operation for part in barrier.arrivals):
            ended = f"phase {wait.phase}" if wait.phase >= 0 else "the phase before the first"
            return f"; {wait.site} waited for {ended} of it, and the bytes come in phase {barrier.phase}"
    return ""


def out_of_bounds(space: SpaceState, warp: Warp, access: Access, index: int, address: int, loading: bool) -> NoReturn:
    """Raises the fault of an active lane whose access is outside every allocation."""
    warp.leave_lockstep(is_fault=True)
    view = warp.launch.outside.describe(address)
    beyond, hint = f"through {view}", HINT
    if view is None:
        past = space.arena.ended_before(address - space.base)
        beyond, hint = f"out of bounds at {space.show(address)}", _LAYOUT_HINT
        if past is not None and (tiles := _tiles(warp, past)) is not None:
            beyond, hint = tiles
        if warp.launch.reached is not None and abs(address - space.base) > 2 * space.arena.span:
            beyond, hint = f"at {address:#x}, where the simulator has no memory", NUMBER_HINT
        if any(m.start <= address < m.start + m.size for m in warp.launch.multicasts):
            beyond, hint = f"at {address:#x}, an address of multicast memory", _MULTICAST_HINT
    verb = "reads" if loading else "writes"
    text = f"{verb} {access.width} bytes of {space.name} memory {beyond}"
    warp.fault(Code.SIM_OUT_OF_BOUNDS, access.site, int(warp.lane_numbers()[index]), text, hint)


def leave(space: SpaceState, warp: Warp, access: Access, index: int, offsets: NumPyArray) -> NoReturn:
    """Raises the fault of an active lane whose access leaves the allocation that its address was computed from."""
    warp.leave_lockstep(is_fault=True)
    assert access.home is not None
    loading = access.kind in ("load", "matrix") or (access.kind == "async" and space.name == GMEM.ptx)  # cp.async
    verb, home, offset = "reads" if loading else "writes", access.home, int(offsets[index])
    tiles = _tiles(warp, home) if offset >= home.start + home.size else None
    computed = f"at {space.show(space.base + offset)}, by an address computed from {home.name} ({home.size} bytes)"
    beyond, hint = tiles or (computed, _LAYOUT_HINT)
    text = f"{verb} {access.width} bytes of {space.name} memory {beyond}"
    warp.fault(Code.SIM_OUT_OF_BOUNDS, access.site, int(warp.lane_numbers()[index]), text, hint)


def _tiles(warp: Warp, allocation: Allocation) -> tuple[str, str] | None:
    """A place past the end of an argument beyond which tiles reach, in words, and a hint; None for another one."""
    tiles = warp.launch.facts.tiles().get(allocation.name.removeprefix("argument "))
    return tiles and (f"past the end of {allocation.name} ({allocation.size} bytes): {tiles[0]}", tiles[1])


def is_repeated(
    space: SpaceState, warp: Warp, access: Access, rows: NumPyArray, conflict: Conflict, content: NumPyArray | None
) -> bool:
    """Whether all threads of a store write one value, and it conflicts with stores of the same one, so that no store
    changes anything; within a block, also whether those that write one element agree. It notifies the observer. The
    store counts as made then.
    """
    if content is None or not conflict.with_write or space.shadow is None:
        return False
    within = space.in_block or (not conflict.time and _of_one_warp(warp, conflict.agent))
    if (content != content[0]).any() and not (within and _agree(rows, content)):
        return False
    data, state = space.arena.data[access.width], space.arena.state[access.width]
    if conflict.time and not ((state[rows] == READY).all() and (data[rows] == content).all()):
        return False
    if conflict.time:
        space.shadow.date(rows, access.width, warp.launch.clock, warp.active_agents())
    if space.journal is not None:
        warp.leave_lockstep()
        place = space.show_row(int(rows[conflict.index]), access.width, conflict.byte)
        other = warp.block.describe(conflict.agent)
        space.journal.remark(access.site, f"several threads store the same value at {place}, {other} too: one would do")
    return True


def _agree(rows: NumPyArray, content: NumPyArray) -> bool:
    """Whether equal rows have equal contents."""
    order = np.argsort(rows, kind="stable")
    again = rows[order][1:] == rows[order][:-1]
    return bool((content[order][1:][again] == content[order][:-1][again]).all())


def race(space: SpaceState, warp: Warp, access: Access, rows: NumPyArray, conflict: Conflict, verb: str) -> None:
    """Raises the fault of an access that nothing orders after an earlier one, unless such are forgiven there, or the
    thread has read the atomic write that it conflicts with.
    """
    agent = conflict.agent
    place = int(rows[conflict.index]) * access.width + conflict.byte
    if conflict.with_write and conflict.atomic and has_seen(warp, (id(space.releases), place), conflict):
        if verb == "writes" and space.shadow is not None:
            space.shadow.date(rows, access.width, warp.launch.clock, warp.active_agents())
        return
    if warp.launch.forgives(Code.SIM_RACE, access.site):
        if space.journal is not None and _is_wide(warp, conflict):
            space.journal.wider.add(access.site)
        if access.kind == "store" and space.shadow is not None:
            space.shadow.date(rows, access.width, warp.launch.clock, warp.active_agents())
        return
    where = space.show_row(int(rows[conflict.index]), access.width, conflict.byte)
    lane = int(warp.lane_numbers()[conflict.index])
    other = warp.block.describe(agent)
    if conflict.narrow:
        text = f"race: {verb} {space.name} {where}, which {other} changed; the scope of one does not reach the other"
        hint = 'give both operations scope "gpu", or "cluster" where all threads are of one cluster'
        if warp.launch.grids.of_block(block_of(warp, agent)).device != warp.block.cluster.grid.device:
            hint = 'give both operations scope "sys", which has the threads of all devices'
    elif agent == warp.launch.agent_before:
        text = f"race: {verb} {space.name} {where}, which {other} wrote, with no ptx.griddepcontrol.wait in between"
        hint = "let the thread execute ptx.griddepcontrol.wait first: with use_pdl, the two launches may overlap"
    else:
        did = "wrote" if conflict.with_write else "read"
        text = f"race: {verb} {space.name} {where}, which {other} {did}, with no barrier in between"
        hint = remedy(warp, lane, conflict, access)
        if (conflict.with_write, access.kind) in ((False, "bulk"), (False, "multicast")) and space.name == SMEM.ptx:
            text, hint = f"{text}: the copy overwrites a stage that {other} reads", f"{_STAGE}; {hint}"
        if sharing := space.arena.sharing(place % space.arena.span):
            text, hint = f"{text}; {sharing}", "use strides that give each element bytes of its own"
    warp.fault(Code.SIM_RACE, access.site, lane, text, hint, (space.name, place), rival=warp.block.thread_of(agent))


def _is_wide(warp: Warp, conflict: Conflict) -> bool:
    """Whether accesses of several warps conflict."""
    pairs = conflict.pairs if len(conflict.pairs) else np.array([(conflict.index, conflict.agent)])
    same = _in_one_warp(warp, warp.active_agents()[pairs[:, 0]], pairs[:, 1] & AGENT)
    others = ASYNC if conflict.with_write else ASYNC | BEYOND_WARP
    return bool((~same | (pairs[:, 1] & others != 0)).any())


def _of_one_warp(warp: Warp, agent: int) -> bool:
    return not agent & ASYNC and bool(_in_one_warp(warp, int(warp.agents[0]), agent))


def _in_one_warp(warp: Warp, first: Any, second: Any) -> Any:
    """Whether threads of the launch, by their numbers, are of the same warp."""
    (block, thread), (other, place) = (warp.launch.grids.place_of(agent) for agent in (first, second))
    return (block == other) & (thread // WARP == place // WARP)


def remedy(warp: Warp, lane: int, conflict: Conflict, access: Access) -> str:
    """The order that an access by this lane lacks, behind one by an agent of the launch."""
    agent = conflict.agent
    for knowing, own in warp.own.items():
        entry = np.array([conflict.time << 32 | agent])
        if int(times_of(own.clock, warp, entry)[0]) > conflict.time > 0:
            x, y, z = warp.block.thread(warp.first_thread + knowing)
            return f"thread ({x},{y},{z}) has waited for it, this one has not: put ptx.bar.warp.sync after the wait"
    if agent & ASYNC:
        hint = "wait for the asynchronous copy, at its group or mbarrier, and let others know by a barrier"
        is_shared = access.space == SMEM.ptx and warp.block.cluster.size > 1
        return f'{hint}; for st.async of a peer, wait with scope "cluster"' if is_shared else hint
    is_wide = access.kind in ("async", "bulk") and len(warp.block.warps) > 1  # it has bytes of other warps
    if _of_one_warp(warp, agent) and not is_wide:
        return WARP_SYNC
    if not agent or block_of(warp, agent) != block_of(warp, int(warp.agents[lane])):
        if agent and (missing := missing_edge(warp, lane, agent, conflict.time)):
            return missing
        if (access.site.op in ATOMIC) != conflict.atomic:
            return "one of the two is not an atomic access: let it be one, such as ptx.st.release or ptx.ld.acquire"
        return (
            "put a barrier between the two accesses (between blocks, only the barrier of their cluster works)"
            if warp.block.cluster.size > 1
            else "blocks run in any order: use atomics, a release and an acquire, or a launch for each"
        )
    return (_other_barrier(warp, conflict) or PAIR) if warp.launch.pairs else BLOCK_BARRIER


def _other_barrier(warp: Warp, conflict: Conflict) -> str:
    """A hint where a thread of the block has been at another barrier than this warp, or too early for its access."""
    agent = conflict.agent
    _, thread = warp.launch.grids.place_of(agent)
    other, who = warp.block.warps[int(thread) // WARP], warp.block.describe(agent)
    until = int(times_of(known(warp), warp, np.array([conflict.time << 32 | agent]))[0])
    if until in other.arrivals and not conflict.with_write:
        return f"{other.arrivals[until][0]} lets this thread go on before {who} reads: put it after the read"
    own = {number for _, number in warp.arrivals.values()}
    site, number = next((arrival for time, arrival in other.arrivals.items() if time > conflict.time), (None, None))
    if number is None or number in own:
        return ""
    return f"{who} is at barrier {number} after its access, by {site}, and this thread is not: wait there"
