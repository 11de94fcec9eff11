# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel of several blocks: branches between them, which lanes of a warp may take to different blocks.

Lanes that are at one block are a *group*: they execute it together. Each group has the registers of its lanes. Groups
that arrive at the same block become one. No group waits for another but where the kernel makes its threads wait (PTX
ISA, Independent Thread Scheduling): the group at the first block in the text goes on, which brings lanes together again
behind branches and loops, until it waits, or has gone round a loop for long.
"""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects import cf
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from ...base.errors import Code
from ...base.target import WARP
from ...dialects.ptx import ActivemaskOp, BarWarpSyncOp, ElectSyncOp, RetOp
from ...dialects.ptx.effects import Agent, agent_of
from .events import BODIES_BETWEEN_PAUSES, Barrier, Event, Pause, Suspension, Until, total_votes
from .faults import Site, site_of
from .flow import is_aligned_barrier, live_values, past, refuse_past
from .translate import TranslatedBlock, Translator, only_computes
from .values import Value, ValueKind, kind_of, merge, varies
from .warp import Bools, Warp

_ONE_BARRIER = "let all lanes of a warp wait at one barrier, or all arrive there, with one number of threads"
PATIENCE = 16
"""How often a group pauses in a loop before groups that are further on take a turn."""


@dataclass(slots=True)
class Edge:
    """A way to a node: its number, and the registers that its arguments take their values from."""

    target: int
    sources: tuple[int, ...]
    targets: tuple[int, ...]

    def take(self, registers: list[Value]) -> None:
        """Gives the arguments of the target their values."""
        values = [registers[slot] for slot in self.sources]
        for slot, value in zip(self.targets, values, strict=True):
            registers[slot] = value


@dataclass(frozen=True, slots=True)
class Mask:
    """A register that names the lanes of an instruction."""

    slot: int


@dataclass(slots=True)
class Node:
    """A block, or the part of one up to or from the first instruction at which lanes meet. `live` are the registers
    that may be read from here on, by number with their kinds. Where its edges only choose among values, undefined ones
    may decide (`selects`). `acts` tells whether it does more than compute. At an aligned `barrier`, `past` are the
    nodes that act behind it and never lead back to it: lanes that have been there have left it out.
    """

    code: TranslatedBlock
    meets: bool
    mask: int | Mask | None = None
    """The lanes that meet there by their bits, or the register that has them, where the instruction names them."""
    condition: int | None = None
    selects: bool = False
    site: Site = field(default_factory=lambda: Site(""))
    edges: tuple[Edge, ...] = ()
    live: Mapping[int, ValueKind | None] = field(default_factory=dict[int, ValueKind | None])
    acts: bool = False
    past: frozenset[int] = frozenset()
    barrier: Site | None = None


@dataclass(slots=True, eq=False)
class Group:
    """Lanes at a node: their registers, and the rest of its execution if they have begun it. `event` is the event that
    they wait for, `pauses` how often they have paused, `rounds` how often they have gone back.
    """

    node: int
    lanes: Bools
    registers: list[Value]
    run: Iterator[Event] | None = None
    event: Event | None = None
    pauses: int = 0
    rounds: int = 0

    @property
    def is_held(self) -> bool:
        """Whether it waits for a condition that does not hold yet."""
        return isinstance(self.event, Until) and not self.event.holds()


@dataclass(slots=True)
class Graph:
    """The translated body of a kernel of several blocks."""

    nodes: list[Node]
    pauses: list[Pause]
    """The pause of each node, for loops that come back to it."""

    def run(self, warp: Warp) -> Suspension:
        """Executes the kernel in all lanes of a warp."""
        number, rounds = 0, 0
        been: dict[int, Bools] = {}
        while True:
            node = self.nodes[number]
            if been and node.barrier is not None:
                refuse_past(warp, node.barrier, node.past, been)
            yield from node.code.enter(warp)
            if not node.edges:
                return
            edge = node.edges[0]
            if node.condition is not None:
                chosen = warp.registers[node.condition]
                if not node.selects:
                    warp.note(node.site, "decides by", chosen)
                if varies(chosen):
                    taken = warp.live() & chosen
                    count = int(np.count_nonzero(taken))
                    if 0 < count < warp.active:
                        joined = yield from self._run_diverged(warp, number, taken, been)
                        if joined is None:
                            return
                        number = joined
                        continue
                    chosen = count > 0
                edge = node.edges[0 if chosen else 1]
            edge.take(warp.registers)
            if edge.target <= number:
                rounds += 1
                if rounds % BODIES_BETWEEN_PAUSES == 0:
                    if warp.is_several:  # it may wait for a warp that is not in it
                        warp.leave_lockstep()
                    yield self.pauses[edge.target]
            number = edge.target

    def _run_diverged(
        self, warp: Warp, number: int, taken: Bools, been: dict[int, Bools]
    ) -> Generator[Event, None, int | None]:
        """Executes groups of lanes until all that have not returned are together again. Returns the number of the node
        where they are, or None if no lane is left. `been` says which lanes have been, in a group, at a node that acts.
        """
        groups: list[Group] = []
        level = 0
        everything = warp.live().copy()
        self._leave(groups, Group(number, everything, warp.registers), taken)
        while groups:
            if all(isinstance(group.event, Barrier) for group in groups):
                yield from self._meet(warp, groups)
            if len(groups) == 1 and groups[0].run is None:
                (only,) = groups
                warp.registers = only.registers
                warp.diverged = ()
                if np.array_equal(only.lanes, everything):
                    warp.narrow(only.lanes)
                    return only.node
            group = self._next(groups, everything)
            level = max(level, group.pauses // PATIENCE)  # a group that could not go on gets no turns for that time
            group.pauses = max(group.pauses, level * PATIENCE)
            warp.registers = group.registers
            warp.diverged = tuple([(g.node, g.lanes, g.registers) for g in groups if g is not group])
            warp.narrow(group.lanes)
            if group.is_held:  # and so is every other, or it has arrived at a barrier
                held = [g.event for g in groups if isinstance(g.event, Until)]
                first = held[0]
                yield Until(lambda held=held: any(e.holds() for e in held), first.site, first.describe,
                            first.code, first.hint)  # fmt: skip
                continue
            group.event = None
            if group.run is None:
                node = self.nodes[group.node]
                if node.barrier is not None:
                    refuse_past(warp, node.barrier, node.past, been)
                if node.acts:
                    been[group.node] = been[group.node] | group.lanes if group.node in been else group.lanes.copy()
                group.run = iter(node.code.enter(warp))
            event = next(group.run, None)
            if event is None:
                groups.remove(group)
                group.run = None
                yield from self._finish(warp, groups, group, everything)
            elif isinstance(event, Until) or (isinstance(event, Barrier) and not warp.is_of_whole_blocks):
                group.event = event
            else:
                if isinstance(event, Pause):
                    group.pauses += PATIENCE
                yield event
        warp.diverged = ()
        return None

    def _meet(self, warp: Warp, groups: list[Group]) -> Iterator[Event]:
        """All lanes have arrived at barriers that they need not reach together: now the warp arrives (PTX ISA, barrier:
        a thread waits for all threads of its warp that have not exited, which marks the warp's arrival).
        """
        lanes = np.logical_or.reduce([group.lanes for group in groups])
        barriers = [group.event for group in groups if isinstance(group.event, Barrier)]
        first = barriers[0]
        for group, barrier in zip(groups, barriers, strict=True):
            if barrier.purpose != first.purpose:
                there = f"{first.described}, where the warp's lane {int(groups[0].lanes.argmax())} is"
                text = f"the thread is at {barrier.described}, and not at {there}"
                warp.fault(Code.SIM_BARRIER, barrier.site, int(group.lanes.argmax()), text, _ONE_BARRIER)
        votes = [barrier.votes for barrier in barriers if barrier.votes is not None]
        total_votes(votes)
        warp.narrow(lanes)
        yield first
        for vote in votes[1:]:
            vote.kinds, vote.holding, vote.threads = votes[0].kinds, votes[0].holding, votes[0].threads
        for group in groups:
            group.event = None

    def _finish(self, warp: Warp, groups: list[Group], group: Group, everything: Bools) -> Iterator[Event]:
        """Moves a group on behind the node that it has executed."""
        node = self.nodes[group.node]
        if not node.edges:
            everything &= ~group.lanes
            ended = warp.ended
            warp.ended = group.lanes if ended is None else ended | group.lanes
            return
        taken = group.lanes
        if node.condition is not None:
            chosen = group.registers[node.condition]
            if not node.selects:
                warp.note(node.site, "decides by", chosen)
            taken = group.lanes & chosen if varies(chosen) else group.lanes if chosen else np.zeros_like(taken)
        before = group.node
        self._leave(groups, group, taken)
        if group.node <= before:
            group.rounds += 1
            if group.rounds % BODIES_BETWEEN_PAUSES == 0:
                group.pauses += 1
                yield self.pauses[group.node]

    def _leave(self, groups: list[Group], group: Group, taken: Bools) -> None:
        """Sends the `taken` lanes of a group along the first edge of its node, and the others along the second."""
        edges = self.nodes[group.node].edges
        rest = group.lanes & ~taken
        others = None
        if rest.any():
            others = Group(group.node, rest, list(group.registers) if taken.any() else group.registers)
            others.pauses = group.pauses
            edges[1].take(others.registers)
            others.node = edges[1].target
        if taken.any():
            group.lanes = taken
            edges[0].take(group.registers)
            group.node = edges[0].target
            self._arrive(groups, group)
        if others is not None:
            if not taken.any():
                group.node, group.lanes, group.registers = others.node, others.lanes, others.registers
                others = group
            self._arrive(groups, others)

    def _arrive(self, groups: list[Group], group: Group) -> None:
        """Adds a group to the others, or to one that is about to execute the same node."""
        for other in groups:
            if other.node == group.node and other.run is None:
                ours, theirs = group.registers, other.registers
                for slot, kind in self.nodes[group.node].live.items():
                    if ours[slot] is not theirs[slot]:
                        theirs[slot] = _joined(group.lanes, ours[slot], theirs[slot], kind)
                other.lanes = other.lanes | group.lanes
                other.pauses = min(other.pauses, group.pauses)
                return
        groups.append(group)

    def _next(self, groups: list[Group], everything: Bools) -> Group:
        """The group that goes on: among those that can, the one that has paused least and is first in the text. One
        that lanes of other groups have to meet first waits for these, which may go round a loop.
        """

        def order(group: Group) -> tuple[int, int, int]:
            meets = group.run is None and self._lacks_lanes(group, everything)
            has_arrived = isinstance(group.event, Barrier)
            return 3 if has_arrived else 2 if meets else int(group.is_held), group.pauses // PATIENCE, group.node

        return min(groups, key=order)

    def _lacks_lanes(self, group: Group, everything: Bools) -> bool:
        """Whether a group is about to meet lanes that have not returned and may not be in it."""
        node = self.nodes[group.node]
        if not node.meets or node.mask is None:
            return node.meets
        named = group.registers[node.mask.slot] if isinstance(node.mask, Mask) else node.mask
        if named is None or varies(named):
            return True
        bits = np.arange(len(everything)) % WARP
        return bool(((int(named) >> bits & 1).astype(bool) & everything & ~group.lanes).any())


def _joined(lanes: Bools, ours: Value, theirs: Value, kind: ValueKind | None) -> Value:
    """A register of two groups; one that only one of them has written has its value."""
    if ours is None or theirs is None:
        return theirs if ours is None else ours
    return merge(lanes, ours, theirs, kind)


def _is_choice(end: cf.ConditionalBranchOp) -> bool:
    """Whether a branch only chooses among values."""
    sides = end.then_block, end.else_block
    behind = {side: _behind(side) for side in sides}
    return any(all(side is join or behind[side] is join for side in sides) for join in (*sides, *behind.values()))


def _behind(block: Block) -> Block | None:
    """The block behind one that only computes values, for the lanes of one branch; None behind another."""
    end = block.last_op
    if not isinstance(end, cf.BranchOp) or len(block.predecessors()) > 1:
        return None
    return end.successor if all(op is end or only_computes(op) for op in block.ops) else None


def graph(region: Region, t: Translator) -> Graph:
    """The translation of a kernel's blocks. SimulationError (E3201) for an operation without a rule."""
    parts = [part for block in region.blocks for part in _parts(block)]
    first = {block: index for index, (block, _) in reversed(list(enumerate(parts)))}
    nodes: list[Node] = []
    for index, (block, ops) in enumerate(parts):
        meets = bool(ops) and _meets(ops[0])
        node = Node(t.operations(ops, block), meets, _mask_of(ops[0], t) if meets else None)
        node.acts = not all(op.has_trait(IsTerminator) or only_computes(op) for op in ops)
        end = ops[-1] if ops else None
        match end:
            case cf.BranchOp():
                node.edges = (_edge(end.successor, end.arguments, first, t),)
            case cf.ConditionalBranchOp():
                node.condition, node.site = t.slot(end.cond), site_of(end)
                node.selects = _is_choice(end)
                node.edges = (
                    _edge(end.then_block, end.then_arguments, first, t),
                    _edge(end.else_block, end.else_arguments, first, t),
                )
            case RetOp():
                pass
            case _:
                node.edges = (Edge(index + 1, (), ()),)
        nodes.append(node)
    ways = [[edge.target for edge in node.edges] for node in nodes]
    for node, live in zip(nodes, live_values(parts, ways), strict=True):
        node.live = {t.slot(value): kind_of(value.type) for value in live}
    for number, (_, ops) in enumerate(parts):
        if is_aligned_barrier(ops[0]):
            nodes[number].barrier = site_of(ops[0])
            nodes[number].past = frozenset(other for other in past(ways, number) if nodes[other].acts)
    pauses = [Pause(_site(ops, block)) for block, ops in parts]
    return Graph(nodes, pauses)


def _site(ops: list[Operation], block: Block) -> Site:
    named = next((op for op in ops if site_of(op).file), None)
    holder = named or block.parent_op()
    assert holder is not None
    return site_of(holder)


def _parts(block: Block) -> list[tuple[Block, list[Operation]]]:
    """The operations of a block up to the first one at which lanes meet, and from there on."""
    ops = list(block.ops)
    at = next((index for index, op in enumerate(ops) if _meets(op)), 0)
    return [(block, part) for part in (ops[:at], ops[at:]) if part]


def _mask_of(op: Operation, t: Translator) -> int | Mask | None:
    """The lanes that an instruction names by a mask; None where it is for all lanes of the warp, or of more warps."""
    if isinstance(op, BarWarpSyncOp):
        return op.mask.value.data & 0xFFFFFFFF if op.lanes is None else Mask(t.slot(op.lanes))
    mask: SSAValue | None = getattr(op, "mask", None)
    return None if mask is None else Mask(t.slot(mask))


def _meets(op: Operation) -> bool:
    """Whether lanes meet at an operation, but at an election among those that `activemask` has found together."""
    mask = op if isinstance(op, ActivemaskOp) else op.mask.owner if isinstance(op, ElectSyncOp) and op.mask else None
    elects = isinstance(mask, ActivemaskOp) and all(isinstance(x.operation, ElectSyncOp) for x in mask.result.uses)
    return agent_of(op) is not Agent.THREAD and not elects


def _edge(
    target: Block, arguments: "list[SSAValue] | tuple[SSAValue, ...]", first: dict[Block, int], t: Translator
) -> Edge:
    pairs = [(a, b) for a, b in zip(t.slots(arguments), t.slots(target.args), strict=True) if a != b]
    return Edge(first[target], tuple([a for a, _ in pairs]), tuple([b for _, b in pairs]))
