# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Translation of a kernel into Python closures, once per launch, so that running it looks nothing up.

Each SSA value gets a slot in the warp's registers. A *rule* translates an operation: it resolves slots, types
and attributes and returns a *step*, a function of the warp that executes the operation for the active lanes.
A rule of an operation that contains others, or that can suspend the warp, returns a `Suspending` step, which
is a generator function.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias, overload

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from ...base.element_types import VALUES
from ...base.errors import Code
from ...base.spaces import RMEM
from ...base.spaces import Space as MemorySpace
from ...dialects import ptx, tile
from ..engine import InstructionCount
from .events import BODIES_BETWEEN_PAUSES, Event, Executions, Pause, Segment, Step, Suspending, Suspension
from .faults import SimulationError, Site, site_of
from .launch import LaunchState
from .memory.arena import Access, Allocation, unnamed
from .memory.memories import Memories
from .memory.provenance import root
from .values import Value, ValueKind, kind_of
from .warp import Warp

Rule: TypeAlias = Callable[[Any, "Translator"], Step | Suspending | None]
"""Translates one class of operations; None if there is nothing to do at run time (a constant)."""
Rules: TypeAlias = Mapping[type[Operation], Rule]
RuleOf: TypeAlias = Callable[[type[Operation]], Rule | None]
"""The rule of a class of operations."""
InlineMeanings: TypeAlias = Mapping[str, Callable[..., Any]]
"""The meaning of PTX as text: for a text, a function of the operands' elements in all lanes, arrays, that returns those
of the result, or a tuple of them.
"""


@dataclass(frozen=True, slots=True)
class TranslatedBlock:
    """A translated block: the slots of its arguments, its steps in runs, and the slots that its terminator
    passes on.
    """

    args: tuple[int, ...]
    parts: tuple[tuple[tuple[Step, ...], Suspending | None], ...]
    results: tuple[int, ...]
    length: int
    site: Site
    """The operation that holds the block."""
    executions: Executions

    def run(self, warp: Warp) -> Suspension:
        """Executes the block in the active lanes."""
        yield from self.enter(warp)

    def enter(self, warp: Warp) -> Iterable[Event]:
        """Executes the block in the active lanes: at once if nothing in it suspends the warp, else event by event."""
        warp.launch.spend(self.length * warp.warps, self.site)
        self.executions.warps += warp.warps
        self.executions.threads += warp.active
        steps, last = self.parts[0]
        if last is not None:
            return self._suspending(warp)
        for step in steps:
            step(warp)
        return ()

    def _suspending(self, warp: Warp) -> Suspension:
        for steps, last in self.parts:
            for step in steps:
                step(warp)
            if last is not None:
                yield from last.run(warp)


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of the program, by its place and its body, or the test of a `while`."""

    site: Site
    body: TranslatedBlock

    @property
    def bodies(self) -> int:
        """How often warps have executed the body so far."""
        return self.body.executions.warps

    @property
    def steps(self) -> int:
        """The operations of the body itself that they have executed there."""
        return self.bodies * self.body.length


MAX_DEPTH = 1000
"""How deep functions may call each other."""
MAX_FRAMES = 1 << 22
"""How many values the frames of all functions that have not returned may hold."""

Jump: TypeAlias = Callable[[Warp], tuple[int, tuple[int, ...]]]
"""The successor of a block: the number of the next, and the registers with its arguments."""


@dataclass(slots=True)
class Function:
    """A translated function: the initial frame, its blocks, and the successor of each (None: it returns)."""

    site: Site
    frame: list[Value] = field(default_factory=lambda: [])
    blocks: list[TranslatedBlock] = field(default_factory=lambda: [])
    jumps: list[Jump | None] = field(default_factory=lambda: [])

    def run(self, warp: Warp, arguments: list[Value]) -> Generator[Event, None, list[Value]]:
        """Calls the function in the active lanes. A generator that suspends where it must, and returns the results.

        Raises SimulationError (E3212) where calls nest too deeply.
        """
        caller = warp.registers
        warp.calls.append(caller)
        if len(warp.calls) > MAX_DEPTH or len(self.frame) + sum(map(len, warp.calls)) > MAX_FRAMES:
            lane = int(warp.lane_numbers()[0])
            text = f"functions call each other {len(warp.calls)} levels deep"
            warp.fault(Code.SIM_DEPTH, self.site, lane, text, f"at most {MAX_DEPTH} calls can nest; use a loop")
        warp.registers = list(self.frame)
        number, values, jumps, pause = 0, arguments, 0, Pause(self.site)
        while True:
            block = self.blocks[number]
            for slot, value in zip(block.args, values, strict=True):
                warp.registers[slot] = value
            yield from block.enter(warp)
            jump = self.jumps[number]
            if jump is None:
                break
            jumps += 1
            if jumps % BODIES_BETWEEN_PAUSES == 0:
                yield pause
            number, passed = jump(warp)
            values = [warp.registers[slot] for slot in passed]
        results = [warp.registers[slot] for slot in block.results]
        warp.registers = caller
        warp.calls.pop()
        return results


_FORWARDING = (scf.YieldOp, scf.ConditionOp, func.ReturnOp, tile.YieldOp)
"""Terminators that only hand values to the operation that contains them, or to a call."""


class Translator:
    """One translation: gives out slots and memory, and keeps the counters of the program's operations."""

    def __init__(
        self,
        rule_of: RuleOf,
        launch: LaunchState,
        spaces: Memories,
        texts: InlineMeanings = MappingProxyType({}),
    ) -> None:
        self.rule_of = rule_of
        self.launch = launch
        self.spaces = spaces
        self.texts = texts
        self.initial: list[Value] = []
        """The initial values of a warp's registers: constants, and arguments once they are bound."""
        self.shared_start = 0
        """Where the shared memory begins that the kernel's entry declares."""
        self.accesses: list[Access] = []
        self.issued: list[tuple[str, Executions]] = []
        """The instructions of the program, with the executions of their blocks."""
        self.placed: dict[tuple[str, int], list[Executions]] = {}
        """The executions of the block of each instruction, by file and line."""
        self.loops: list[Loop] = []
        self.parts: list[Segment] = []
        """The parts of the program in the order in which they were translated."""
        self.homes: dict[SSAValue, Allocation] = {}
        """The allocations that pointers of the kernel begin."""
        self.functions: dict[Operation, Function] = {}
        self._slots: dict[SSAValue, int] = {}

    def frame(self) -> "Translator":
        """A translation with registers of its own that shares everything else: that of a function."""
        own = Translator(self.rule_of, self.launch, self.spaces, self.texts)
        own.shared_start, own.accesses, own.issued = self.shared_start, self.accesses, self.issued
        own.placed, own.loops, own.parts = self.placed, self.loops, self.parts
        own.functions, own.homes = self.functions, self.homes
        return own

    def slot(self, value: SSAValue) -> int:
        """The register of an SSA value."""
        slot = self._slots.get(value)
        if slot is None:
            slot = self._slots[value] = len(self.initial)
            self.initial.append(None)
        return slot

    def slots(self, values: Sequence[SSAValue]) -> tuple[int, ...]:
        """The registers of several values."""
        return tuple(self.slot(value) for value in values)

    def constant(self, result: SSAValue, value: Value) -> None:
        """Gives an SSA value its content before the program runs."""
        self.initial[self.slot(result)] = value

    @overload
    def compute(self, result: SSAValue, function: Callable[[Value], Value], operand: SSAValue, /) -> Step: ...

    @overload
    def compute(self, result: SSAValue, function: Callable[..., Value], *operands: SSAValue) -> Step: ...

    def compute(self, result: SSAValue, function: Callable[..., Value], *operands: SSAValue) -> Step:
        """A step that computes a value as a function of others, which does not depend on the warp."""
        slots, target = self.slots(operands), self.slot(result)
        if len(slots) == 2:
            left, right = slots

            def binary(warp: Warp) -> None:
                registers = warp.registers
                registers[target] = function(registers[left], registers[right])

            return binary

        def general(warp: Warp) -> None:
            registers = warp.registers
            registers[target] = function(*[registers[slot] for slot in slots])

        return general

    def kind(self, value: SSAValue) -> ValueKind:
        """The NumPy side of a value's type. SimulationError (E3201) for a type that the simulator cannot
        hold.
        """
        kind = kind_of(value.type)
        if kind is None:
            owner = value.owner
            op = owner if isinstance(owner, Operation) else owner.parent_op()
            raise SimulationError(
                Code.SIM_UNSUPPORTED,
                f"the simulator has no values of type {value.type}",
                f"it has {VALUES}, index and 1-D vectors of them",
                site=None if op is None else site_of(op),
            )
        return kind

    def access(self, op: Operation, space: MemorySpace, kind: str, width: int) -> Access:
        """A new entry of the memory report for an operation."""
        pointer = root(op, space)
        home = None if pointer is None else self.homes.get(pointer)
        access = Access(site_of(op), space.ptx, kind, width, home=home)
        self.accesses.append(access)
        return access

    def local(self, bytes: int, name: str = "a fragment", element: Callable[[int], str | None] = unnamed) -> Allocation:
        """Memory in every thread's frame; `element` names its bytes."""
        self.spaces.local.frame.allocate(name, bytes, element=element)
        return self.spaces.local.frame.allocations[-1]

    def shared(
        self, bytes: int, align: int, name: str = "shared memory", sharing: Callable[[int], str | None] = unnamed
    ) -> int:
        """Shared memory of the block; its address. `sharing` is that of an `Allocation`."""
        return self.spaces.shared.base + self.spaces.shared.arena.allocate(name, bytes, align, sharing=sharing)

    def block(self, block: Block) -> TranslatedBlock:
        """Translates a block. SimulationError (E3201) for an operation without a rule."""
        return self.operations(block.ops, block)

    def operations(self, ops: Iterable[Operation], block: Block) -> TranslatedBlock:
        """Translates operations that follow each other in a block: all of it, or a part."""
        parts: list[tuple[tuple[Step, ...], Suspending | None]] = []
        plain: list[Step] = []
        results: tuple[int, ...] = ()
        length, executions = 0, Executions()
        args = self.slots(block.args)
        ops = tuple(ops)
        self.parts.append(Segment(block, ops, executions))
        for op in ops:
            length += 1
            if isinstance(op, _FORWARDING):
                results = self.slots(op.operands)
                continue
            if isinstance(op, ptx.PtxOp) and (mnemonic := op.mnemonic()) is not None:
                self.issued.append((mnemonic, executions))
                if isinstance(location := op.location, FileLineColLoc):
                    self.placed.setdefault((location.filename.data, location.line.data), []).append(executions)
            step = self._rule(op)(op, self)
            if isinstance(step, Suspending):
                parts.append((tuple(plain), step))
                plain = []
            elif step is not None:
                plain.append(step)
        parts.append((tuple(plain), None))
        holder = block.parent_op()
        assert holder is not None, "a block of a program"
        return TranslatedBlock(args, tuple(parts), results, length, site_of(holder), executions)

    def lines(self) -> dict[str, InstructionCount]:
        """How often instructions of each line of the source, `file:line`, were executed so far."""
        return {
            f"{file}:{line}": InstructionCount(sum(e.warps for e in parts), sum(e.threads for e in parts))
            for (file, line), parts in self.placed.items()
        }

    def instructions(self) -> dict[str, InstructionCount]:
        """How often each PTX instruction was executed so far."""
        counts: dict[str, InstructionCount] = {}
        for mnemonic, executions in self.issued:
            count = InstructionCount(executions.warps, executions.threads)
            counts[mnemonic] = counts.get(mnemonic, InstructionCount()) + count
        return {name: counts[name] for name in sorted(counts) if counts[name].warps}

    def _rule(self, op: Operation) -> Rule:
        rule = self.rule_of(type(op))
        if rule is not None:
            return rule
        raise SimulationError(
            Code.SIM_UNSUPPORTED,
            "the simulator has no rule for this operation",
            "it runs cute, tile, ptx, arith, math, vector, scf, func, branches of cf and the coordinates of gpu",
            site=site_of(op),
        )


def only_computes(op: Operation) -> bool:
    """Whether an operation makes its results of its operands, or reads registers.

    A branch of such ones chooses among values, as `arith.select` does: nothing in it reaches memory or other threads,
    so an undefined condition makes undefined results, which matter where they are used.
    """
    if isinstance(op, ptx.LoadOp):
        return op.ptr.type == ptx.LOCAL
    if isinstance(op, tile.LoadOp):
        return isinstance(type := op.operands[0].type, tile.TensorType) and type.space.data is RMEM
    return is_side_effect_free(op)
