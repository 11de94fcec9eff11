# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fault of warps that wait forever, in words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from ....base.errors import Code
from ..events import Suspension, Until
from ..faults import SimulationError, Site
from ..warp import Block, Cluster, Warp
from .asynchronous import Trackers


@dataclass(frozen=True, slots=True)
class IncompleteBarrier:
    """A barrier of a block: its phase, how many have arrived in words, and the warps that wait there, with the
    operations.
    """

    block: Block
    number: int
    phase: int
    arrived: str
    waiting: Sequence[tuple[Warp, Site]]


def refuse(
    barriers: Sequence[IncompleteBarrier], held: Sequence[tuple[Warp, Suspension, Until]], ended: Sequence[Warp]
) -> None:
    """Raises the fault of warps that wait forever, some of them `held` at mbarriers: it names each barrier and mbarrier
    and its missing arrivals.
    """
    stuck = [(warp, site, f"barrier {barrier.number}", None) for barrier in barriers for warp, site in barrier.waiting]
    stuck += [(warp, until.site, until.describe()[0], until) for warp, _, until in held]
    first, site, place, until = min(stuck, key=_culprit)
    parts = [
        f"barrier {barrier.number}{_of_block(barrier.block)}, phase {barrier.phase}: {barrier.arrived}, "
        f"{_warps([warp for warp, _ in barrier.waiting], 'wait')}"
        for barrier in barriers
    ]
    states = sorted(((until.describe(), warp) for warp, _, until in held), key=lambda entry: entry[0])
    for (title, state), group in groupby(states, key=lambda entry: entry[0]):
        parts.append(f"{title}, {state}, {_warps([warp for _, warp in group], 'wait')}")
    if ended:
        parts.append(_warps(ended, "have ended"))
    until = held[0][2] if until is None and held else until
    hint = "every thread of the block must execute the same barriers"
    if until is not None:
        misdirected = _hint_misdirected(first.block.cluster)
        telling = next((wait for wait in (until, *(wait for _, _, wait in held)) if wait.has_begun()), until)
        place = telling.describe()[0]
        cause = "" if misdirected else telling.cause(any(title != place for _, _, title, _ in stuck))
        where = f"{place}: " if telling is not until and cause else ""
        hint = (f"{where}{cause}: {telling.hint}" if cause else telling.hint) + misdirected
    raise SimulationError(
        Code.SIM_BARRIER if until is None else until.code,
        f"warp {first.index} waits at {place} forever; {'; '.join(parts)}",
        hint,
        site=site,
        block=first.block.coordinate,
        thread=first.block.thread(first.first_thread),
        grids=[first.block.cluster.grid.index],
    )


def _culprit(entry: tuple[Warp, Site, str, Until | None]) -> tuple[bool, bool, int]:
    """The order of warps that wait forever: those first that wait for something that others may wait for in turn, and
    those last that wait for all others of the cluster.
    """
    warp, site, _, until = entry
    is_barrier = until is None or until.code is Code.SIM_BARRIER
    return is_barrier, "cluster" in site.op, warp.first_index


def _of_block(block: Block) -> str:
    """The block in words, where there are several that run."""
    cluster = block.cluster
    return f" of {cluster.name(block.rank)}" if cluster.size > 1 or not cluster.launch.grids.is_single else ""


def _warps(warps: Iterable[Warp], do: str) -> str:
    """Some warps and their state, in words."""
    chosen = sorted(warps, key=lambda warp: warp.first_index)
    blocks = groupby(chosen, key=lambda warp: warp.block)
    names = [", ".join(str(warp.index) for warp in group) + _of_block(block) for block, group in blocks]
    if len(chosen) < 2:
        do = {"wait": "waits", "have ended": "has ended"}[do]
    return " ".join(
        ["warps" if len(chosen) > 1 else "warp" if chosen else "no warp", *(names and [" and ".join(names)]), do]
    )


def _hint_misdirected(cluster: Cluster) -> str:
    """An addition to the hint where threads wait forever and an mbarrier that is known to the cluster lacks all
    arrivals of other blocks, while that of another block at the same place has more.
    """
    for barrier in cluster.state(Trackers).rows.values():
        for other in cluster.state(Trackers).rows.values():
            more = other.place == barrier.place and other.arrived > barrier.arrived
            if more and barrier.is_published and not barrier.is_reached:
                block = cluster.name(other.maker // cluster.config.threads)
                counts = f"{other.arrived} arrivals, this one {barrier.arrived}, none by other blocks"
                text = "a thread arrives at a peer's mbarrier by the address from ptx.mapa, a commit by its mask"
                return f"; the mbarrier of {block} at the same place has {counts}: {text}"
    return ""
