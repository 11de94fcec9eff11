# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory that keeps who touches which bytes, and what effects say about these."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.spaces import DSMEM, SMEM
from tilefold.dialects import ptx
from tilefold.dialects.arith.semantics import constant_of
from tilefold.dialects.ptx.effects import (
    Act,
    Mbarrier,
    Memory,
    agent_of,
    bytes_of,
    effects_of,
    space_of,
)
from tilefold.layout.atoms.contract import Agent
from tilefold.runtime.sim.faults import Site, site_of
from tilefold.runtime.sim.memory.journal import Journal
from tilefold.runtime.sim.memory.local import LocalSpace, Words
from xdsl.dialects import scf
from xdsl.ir import Operation

Place = tuple[str, bool]
"""A state space as the simulator names it, and whether it is written."""


class _Noting(np.ndarray[Any, Any]):
    """The states of registers, which an operation changes where it writes these."""

    note: Callable[[], None] = staticmethod(lambda: None)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.note()
        super().__setitem__(key, value)


@dataclass(slots=True)
class Trace(Journal):
    """By operation and place the bytes that were touched, each with the block and the thread."""

    touched: dict[Site, dict[Place, set[tuple[Any, ...]]]] = field(
        default_factory=dict[Site, dict[Place, set[tuple[Any, ...]]]]
    )

    def see(self, space: str, warp: Any, site: Site, rows: NDArray[Any], width: int, *, writes: bool) -> None:
        threads = (warp.first_thread + warp.lane_numbers()).tolist()
        for thread, row in zip(threads, np.asarray(rows).tolist(), strict=True):
            self.note(site, (space, writes), warp, thread, range(row * width, (row + 1) * width))

    def note(self, site: Site, place: Place, warp: Any, thread: int, bytes: range) -> None:
        """Keeps bytes that a thread touches."""
        found = self.touched.setdefault(site, {}).setdefault(place, set())
        found.update((warp.block.coordinate, thread, byte) for byte in bytes)

    def watch_fragments(self, patch: pytest.MonkeyPatch) -> None:
        """Keeps accesses to fragments, too."""
        load, store, words = LocalSpace.load, LocalSpace.store, LocalSpace.words

        def note(warp: Any, site: Site, address: Any, width: int, writes: bool) -> None:
            starts = np.broadcast_to(warp.select(address), warp.active).tolist()
            for lane, start in zip(warp.lane_numbers().tolist(), starts, strict=True):
                self.note(site, ("local", writes), warp, warp.first_thread + lane, range(start, start + width))

        def traced_load(self: LocalSpace, warp: Any, site: Site, address: Any, width: int) -> Any:
            note(warp, site, address, width, False)
            return load(self, warp, site, address, width)

        def traced_store(self: LocalSpace, warp: Any, site: Site, address: Any, content: Any) -> None:
            note(warp, site, address, content.shape[1], True)
            store(self, warp, site, address, content)

        def traced_words(self: LocalSpace, warp: Any, site: Site, address: int, size: int) -> Words:
            note(warp, site, address, size, False)
            given = words(self, warp, site, address, size)
            state = given.state.view(_Noting)
            state.note = lambda: note(warp, site, address, size, True)
            return replace(given, state=state)

        for name, method in (("load", traced_load), ("store", traced_store), ("words", traced_words)):
            patch.setattr(LocalSpace, name, method)


def once(module: Operation) -> Iterator[tuple[ptx.PtxOp, bool]]:
    """The operations of `ptx` that are executed once, and whether only one thread, or one warp, executes them: those in
    branches, of which the kernels here have no others.
    """
    for op in module.walk():
        parent = op.parent_op()
        if isinstance(op, ptx.PtxOp) and not isinstance(parent, scf.ForOp | scf.WhileOp):
            yield op, isinstance(parent, scf.IfOp)


def touched_by(trace: Trace, op: ptx.PtxOp) -> dict[Place, int]:
    """The bytes that agents have touched by an operation, by place; a warp or warpgroup shares those of memory."""
    found = trace.touched.get(site_of(op), {})
    if agent_of(op) is Agent.THREAD:
        return {place: len(bytes) for place, bytes in found.items()}
    shared = {place: {(block, byte) for block, _, byte in bytes} for place, bytes in found.items()}
    return {place: len(found[place] if place[0] == "local" else bytes) for place, bytes in shared.items()}


def declared(op: ptx.PtxOp) -> dict[Place, int | None]:
    """The bytes that one agent touches by an operation, by place, as its effects say; None where only the run knows."""
    found: dict[Place, dict[str, int | None]] = {}
    for effect in effects_of(op):
        resource = effect.resource
        if effect.act is Act.ALLOCATES or not isinstance(resource, Memory | Mbarrier):
            continue
        space, owner = space_of(op, resource), getattr(op, resource.operand).owner
        if space is None and not isinstance(owner, ptx.CvtaTensorMapOp):
            continue  # a tensor map that is a parameter
        name = "global" if space is None else SMEM.ptx if space is DSMEM else space.ptx
        place = name, isinstance(resource, Mbarrier) or effect.act is not Act.READS
        part = f"{resource.operand} {space}"
        found.setdefault(place, {})[part] = 8 if isinstance(resource, Mbarrier) else _bytes(op, resource)
    return {
        place: None if None in parts.values() else sum(count or 0 for count in parts.values())
        for place, parts in found.items()
    }


def _bytes(op: ptx.PtxOp, memory: Memory) -> int | None:
    name = memory.bytes
    if isinstance(name, str) and name.startswith("%"):
        return constant_of(getattr(op, name[1:]))
    return bytes_of(op, memory)


def agents(op: ptx.PtxOp, threads: int, alone: bool) -> int:
    """How many agents execute an operation."""
    each = {Agent.THREAD: 1, Agent.WARP: 32, Agent.WARPGROUP: 128}[agent_of(op)]
    return 1 if alone else threads // each
