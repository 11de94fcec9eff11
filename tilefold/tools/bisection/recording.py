# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The instructions with effects that each thread of a launch executes, with their operands, and where those of two
launches first part.

Emission keeps such instructions, and their order in a thread. LLVM's changes to arithmetic between them do not show.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith, cf, vector
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilefold.dialects.ptx import LOCAL, PtrType, PtxOp
from tilefold.dialects.ptx.base import integer_bits, split_vector, value_bytes
from tilefold.dialects.ptx.effects import effects_of
from tilefold.driver.trial import Trial
from tilefold.runtime.errors import Dim3
from tilefold.runtime.sim.events import Step, Suspending, Suspension
from tilefold.runtime.sim.faults import SimulationError, Site, site_of
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import discard
from tilefold.runtime.sim.translate import Rule, RuleOf, Translator
from tilefold.runtime.sim.values import Value, varies
from tilefold.runtime.sim.warp import Warp
from tilefold.tools.bisection.instructions import is_own

MAX_EVENTS = 1 << 21
"""The most executions by a thread that are kept."""
Thread = tuple[Dim3, Dim3]
"""The coordinates of a thread's block and of the thread."""


@dataclass(frozen=True, slots=True)
class Event:
    """An execution by a thread: when, the operation, and the bits of its operands."""

    time: int
    op: Operation
    values: tuple[int, ...]


@dataclass
class Recorder:
    """Keeps the executions of each thread, those of one class of operations together."""

    streams: dict[tuple[Thread, type[Operation]], list[Event]] = field(
        default_factory=dict[tuple[Thread, type[Operation]], list[Event]]
    )
    count: int = 0

    def rules(self, rules: RuleOf) -> RuleOf:
        """The rules of operations, which tell of executions."""

        def rule_of(kind: type[Operation]) -> Rule | None:
            rule = rules(kind)
            if rule is None or not issubclass(kind, PtxOp):
                return rule
            return lambda op, t: self._watched(op, t, rule)

        return rule_of

    def _watched(self, op: Operation, t: Translator, rule: Rule) -> "Step | Suspending | None":
        step = rule(op, t)
        if step is None or not counts(op):
            return step
        operands = [
            (t.slot(operand), 64 if isinstance(operand.type, PtrType) else integer_bits(operand.type))
            if operand.type != LOCAL
            else None
            for operand in op.operands
        ]
        if isinstance(step, Suspending):
            run = step.run

            def suspending(warp: Warp) -> Suspension:
                self._keep(op, operands, warp)
                yield from run(warp)

            return Suspending(suspending)
        plain = step

        def telling(warp: Warp) -> None:
            self._keep(op, operands, warp)
            plain(warp)

        return telling

    def _keep(self, op: Operation, operands: list[tuple[int, int | None] | None], warp: Warp) -> None:
        lanes = np.flatnonzero(warp.live()).tolist()
        if self.count + len(lanes) > MAX_EVENTS:
            return
        columns = [  # where the thread's own memory lies is for LLVM to choose
            [0] * len(lanes) if place is None else _bits(warp.registers[place[0]], place[1], lanes, warp.lanes)
            for place in operands
        ]
        block = warp.block.coordinate
        for row, lane in enumerate(lanes):
            thread = block, warp.block.thread(warp.first_thread + lane)
            values = tuple([column[row] for column in columns])
            self.streams.setdefault((thread, type(op)), []).append(Event(self.count, op, values))
            self.count += 1


def counts(op: Operation) -> bool:
    """Whether an operation has an effect besides those on the thread's own memory, which LLVM may not need."""
    return any(not is_own(op, effect) for effect in effects_of(op))


def _bits(value: Value, bits: int | None, lanes: list[int], count: int) -> list[int]:
    """The bits of a register in some lanes, as integers; of an integer as many as its type has."""
    array = np.asarray(value)
    if not (varies(value) and array.ndim and array.shape[0] == count):
        return [_number(array, bits)] * len(lanes)
    return [_number(array[lane], bits) for lane in lanes]


def _number(array: Any, bits: int | None) -> int:
    if bits is not None and array.ndim == 0 and array.dtype.kind in "biu":
        return int(array) & ((1 << bits) - 1)
    return int.from_bytes(array.tobytes(), "little")


@dataclass(frozen=True)
class Divergence:
    """Where a thread of the second launch first does something else: the operations of both, None where one has none,
    the number of the first operand that differs, None for another number of executions, and the operations whose
    results lead to it in the second.
    """

    thread: Thread
    first: Site | None
    second: Site | None
    operand: str | None
    feeding: tuple[Site, ...] = ()

    def __str__(self) -> str:
        block, thread = (f"({x},{y},{z})" for x, y, z in self.thread)
        return f"block {block}, thread {thread}"


def recorded(trial: Trial, module: ModuleOp) -> Recorder:
    """The executions of a launch, up to its end or its first fault."""
    recorder = Recorder()
    options = replace(trial.engine.options, processes=1, races=False)
    engine = replace(trial.engine, options=options, sink=discard, instrument=recorder.rules)
    with suppress(SimulationError):
        engine.launch(SimProgram(module, trial.kernel), trial.config, trial.arguments())
    return recorder


def divergence(first: Recorder, second: Recorder) -> Divergence | None:
    """The earliest execution of the second launch that differs from that of the first, in any thread; None if all are
    the same. Operations of a class that the first never executes come last: emission adds some, as shuffles of numbers
    that are the same in all lanes.
    """
    classes = {kind for _, kind in first.streams}
    found = [(key[1] not in classes, time, parted) for key, time, parted in _partings(first, second)]
    return min(found, key=lambda entry: entry[:2])[2] if found else None


def _partings(first: Recorder, second: Recorder) -> Iterator[tuple[tuple[Thread, type[Operation]], int, Divergence]]:
    """The first difference in each stream, with the stream and its time in the second launch."""
    for key in dict.fromkeys((*first.streams, *second.streams)):
        ours, theirs = first.streams.get(key, []), second.streams.get(key, [])
        for a, b in zip(ours, theirs, strict=False):
            if a.values != b.values:
                index = next((i for i, (x, y) in enumerate(zip(a.values, b.values, strict=False)) if x != y), None)
                names = _operand_names(b.op)
                operand = names[index] if index is not None and index < len(names) else "another operand"
                feeding = () if index is None else tuple(_feeding(_part(b.op.operands[index], a, b, index)))
                yield key, b.time, Divergence(key[0], site_of(a.op), site_of(b.op), operand, feeding)
                break
        else:
            if len(ours) > len(theirs):
                a = ours[len(theirs)]
                yield key, second.count, Divergence(key[0], site_of(a.op), None, None)
            elif len(theirs) > len(ours):
                b = theirs[len(ours)]
                yield key, b.time, Divergence(key[0], None, site_of(b.op), None)


def _operand_names(op: Operation) -> list[str]:
    """The names of an operation's operands, one for each value."""
    names: list[str] = []
    for name, _ in op.get_irdl_definition().operands if isinstance(op, PtxOp) else ():
        given = cast("SSAValue | Sequence[SSAValue] | None", getattr(op, name))
        count = 1 if isinstance(given, SSAValue) else len(given or ())
        names += [name if count == 1 else f"{name}[{index}]" for index in range(count)]
    return names


def _part(value: SSAValue, ours: Event, theirs: Event, index: int) -> SSAValue:
    """A value, or the first element that differs, if it is a vector made of elements."""
    element, count = split_vector(value.type)
    if count < 2:
        return value
    bits = 8 * (value_bytes(element) or 4)
    differing = ours.values[index] ^ theirs.values[index]
    place = ((differing & -differing).bit_length() - 1) // bits
    part = value
    while isinstance(owner := part.owner, vector.InsertOp):
        if owner.static_position.get_values() == (place,):
            return owner.source
        part = owner.dest
    return owner.source if isinstance(owner, vector.BroadcastOp) else value


def _feeding(value: SSAValue) -> Iterator[Site]:
    """The operations that compute a value, from the last one back to loads, also on the ways to a block where values
    meet, and those that choose the way.
    """
    seen: set[SSAValue] = set()
    todo = [value]
    while todo:
        one = todo.pop(0)
        if one in seen:
            continue
        seen.add(one)
        if isinstance(one, BlockArgument):
            todo += _met(one)
        elif isinstance(owner := one.owner, Operation) and not isinstance(owner, arith.ConstantOp):
            site = site_of(owner)
            if site.line:
                yield site
            if not (isinstance(owner, PtxOp) and counts(owner)):
                todo += owner.operands


def _met(argument: BlockArgument) -> Iterator[SSAValue]:
    """The values that a block takes as an argument, and the conditions of the branches that pass them."""
    block = argument.owner
    region = block.parent
    for other in region.blocks if region is not None else ():
        end = other.last_op
        if isinstance(end, cf.BranchOp) and end.successor is block:
            yield end.arguments[argument.index]
        elif isinstance(end, cf.ConditionalBranchOp) and block in (end.then_block, end.else_block):
            yield from (
                given[argument.index]
                for to, given in ((end.then_block, end.then_arguments), (end.else_block, end.else_arguments))
                if to is block
            )
            yield end.cond
