# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares a kernel's PTX, read as operations, with its operations at stage `instr`: those that have effects, their
order, and the numbers of those that wait, signal or copy.

LLVM unrolls, peels and duplicates loops. So the operations make a pattern, in which the body of a loop may occur any
number of times and a branch once or not at all, and every path through the text must match it.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects import func, scf
from xdsl.ir import Block, Operation

from tilefold.base.target import Target
from tilefold.compiler.ptx.parser import parse_ptx
from tilefold.compiler.ptx.places import locations
from tilefold.compiler.ptx.syntax import PtxError
from tilefold.compiler.ptx.translate import translate
from tilefold.dialects.ptx import EntryOp, MbarrierWaitOp, PtxOp
from tilefold.tools.bisection.instructions import Graph, Instruction, InstructionGroup, instruction_of

MAX_PATHS = 100_000
"""The most combinations of a place in the text and of states of the pattern that are looked at."""


@dataclass(frozen=True)
class Discrepancy:
    """How the PTX of a kernel differs from its operations, and the line of the text where that shows; 0 for none."""

    kernel: str
    text: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.kernel}, line {self.line}: {self.text}" if self.line else f"{self.kernel}: {self.text}"


def discrepancies(
    entry: EntryOp, ptx: str, target: Target, executed: Container[str] | None = None
) -> list[Discrepancy]:
    """The differences of a kernel's PTX for a target from its operations; none for a kernel that calls functions, whose
    bodies stand elsewhere. `executed` are the instructions that a launch has executed; LLVM may drop others, of which
    it knows that nothing executes them.
    """
    name = entry.sym_name.data
    if any(isinstance(op, func.CallOp) for op in entry.walk()):
        return []
    try:
        module = parse_ptx(ptx, name)
        if name not in module.functions:
            return [Discrepancy(name, "the text has no such kernel")]
        function, shared = module.functions[name], entry.shared_bytes
        types, bytes = entry.function_type.inputs.data, 0 if shared is None else shared.value.data
        body = translate(module, function, types, name, locations({}, name), bytes, as_written=True)
    except PtxError:
        return []
    text, pattern = Graph.of(body, target), _Pattern(target)
    last = pattern.block(entry.body.block, 0)
    return [*_kinds(name, entry, text, target, executed), *_order(name, text, pattern, last)]


def _kinds(
    name: str, entry: EntryOp, text: Graph, target: Target, executed: Container[str] | None
) -> Iterator[Discrepancy]:
    """Instructions with effects of a kind that only one side has."""
    made = [(op, wanted) for op in entry.walk() if (wanted := instruction_of(op, target)) is not None]
    written = [(found, line) for found, line in zip(text.instructions, text.lines, strict=True) if found is not None]
    wanted = {one.kind: one for _, one in made if isinstance(one, Instruction)}
    needed = {
        one.kind
        for op, one in made
        if isinstance(one, Instruction) and (executed is None or (cast("PtxOp", op).mnemonic() or "") in executed)
    }
    several = [one for _, one in made if isinstance(one, InstructionGroup)]
    missing = [one for kind, one in wanted.items() if kind in needed and not any(x.is_like(one) for x, _ in written)]
    for one in sorted(missing, key=lambda one: one.name):
        yield Discrepancy(name, f"the PTX has no {one.name}, which the kernel executes")
    extra = {
        found.kind: (found.name, line)
        for found, line in reversed(written)
        if not any(found.is_like(one) for one in wanted.values()) and not any(one.may_be(found) for one in several)
    }
    for written_name, line in sorted(extra.values()):
        yield Discrepancy(name, f"the PTX has {written_name}, which no operation of the kernel has", line)


@dataclass
class _Pattern:
    """A nondeterministic automaton: of each state the states that follow at once, and those after an instruction."""

    target: Target
    silent: list[list[int]] = field(default_factory=lambda: [[]])
    after: list[dict[Instruction | InstructionGroup, int]] = field(default_factory=lambda: [{}])

    def state(self) -> int:
        """A new state."""
        self.silent.append([])
        self.after.append({})
        return len(self.silent) - 1

    def block(self, block: Block, start: int) -> int:
        """Adds the instructions of a block after a state; returns the state after them."""
        for op in block.ops:
            start = self._instruction(op, start)
            inner = [block for region in op.regions for block in region.blocks]
            if isinstance(op, scf.ForOp | scf.WhileOp):
                for part in inner:  # a loop: the condition and the body, in any number
                    end = self.block(part, start)
                    self.silent[start].append(end)
                    self.silent[end].append(start)
                    start = end
            elif inner:  # branches: the text has them one after the other, in either order
                end = self.state()
                self.silent[start].append(end)
                for part in inner:
                    self.silent[self.block(part, self._behind(start))].append(end)
                if len(inner) > 1:
                    self.silent[end].append(start)
                start = end
        return start

    def _behind(self, start: int) -> int:
        state = self.state()
        self.silent[start].append(state)
        return state

    def _instruction(self, op: Operation, start: int) -> int:
        """Adds the instruction of an operation, if any, after a state; returns the state after it."""
        wanted = instruction_of(op, self.target)
        if wanted is None or (isinstance(wanted, Instruction) and not wanted.is_ordered):
            return start
        end = self.state()
        if isinstance(wanted, InstructionGroup):  # any number of them
            self.silent[start].append(end)
            self.after[end][wanted] = end
        else:
            self.after[start][wanted] = end
        if isinstance(op, MbarrierWaitOp):  # a loop
            self.after[end][wanted] = end
        return end

    def closure(self, states: set[int]) -> set[int]:
        """All states that are reached without an instruction."""
        seen, todo = set(states), list(states)
        while todo:
            for state in self.silent[todo.pop()]:
                if state not in seen:
                    seen.add(state)
                    todo.append(state)
        return seen


def _order(name: str, text: Graph, pattern: _Pattern, last: int) -> Iterator[Discrepancy]:
    """The first instruction, on a path through the text, that no execution of the operations allows at its place:
    `last` is the state of the pattern behind all of them.
    """
    states = frozenset(pattern.closure({0}))
    seen: set[tuple[int, frozenset[int]]] = {(0, states)}
    todo: list[tuple[int, frozenset[int], str]] = [(0, states, "the kernel's begin")]
    while todo and len(seen) < MAX_PATHS:
        place, states, before = todo.pop()
        written, line = text.instructions[place], text.lines[place]
        if place == 1:
            if last not in states:
                allowed = _listed(pattern, states)
                yield Discrepancy(name, f"the PTX ends after {before}, and lacks {allowed}")
                return
            continue
        if written is not None and written.is_ordered:
            after = {end for state in states for wanted, end in pattern.after[state].items() if _fits(written, wanted)}
            if not after:
                allowed = _listed(pattern, states)
                expected = f"; {allowed} would" if allowed else ""
                yield Discrepancy(name, f"{written} may not follow {before}{expected}", line)
                return
            states = frozenset(pattern.closure(after))
            before = f"{written} in line {line}"
        for following in text.following[place]:
            if (following, states) not in seen:
                seen.add((following, states))
                todo.append((following, states, before))


def _fits(written: Instruction, wanted: Instruction | InstructionGroup) -> bool:
    return wanted.may_be(written) if isinstance(wanted, InstructionGroup) else written.may_be(wanted)


def _listed(pattern: _Pattern, states: Container[int]) -> str:
    """The instructions that may follow in some states, in words."""
    return " or ".join(sorted({str(x) for state, after in enumerate(pattern.after) if state in states for x in after}))
