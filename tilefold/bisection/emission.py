# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares a kernel's PTX with its operations at stage `instr`: the instructions that have effects, and the order of
those that wait, signal or fence.

LLVM unrolls, peels and duplicates loops. So the operations make a pattern, in which the body of a loop may occur any
number of times and a branch once or not at all, and every path through the text must match it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation

from tilefold.dialects.ptx import BarArriveOp, BarSyncOp, EntryOp, PtxOp

_EFFECTS = re.compile(
    r"(ld|st|cp|bar|barrier|mbarrier|fence|membar|atom|red|mma|wgmma|ldmatrix|stmatrix|setmaxnreg|griddepcontrol"
    r"|tensormap)\b"
)
"""Instructions that a compiler may not drop: loads, stores, copies, signals and multiplications."""
_ORDERED = re.compile(
    r"(bar|barrier|mbarrier|fence|membar|setmaxnreg|griddepcontrol)\b"
    r"|cp\.async\.(commit|wait|bulk\.commit|bulk\.wait|mbarrier)|wgmma\.(fence|commit|wait)"
)
"""Those among them whose order is fixed."""
_NUMBERED = re.compile(r"bar\.(sync|arrive|warp\.sync)|.*\.wait_group|setmaxnreg")
"""Those of which the first operand is a number of the program."""
_LINE = re.compile(
    r"^(?P<label>\$\w+):|^\s+(?P<guard>@!?%p\d+\s+)?(?P<name>[a-z][\w.:]*)(?P<rest>[^\n]*)", re.MULTILINE
)
_TARGET = re.compile(r"\$\w+")
_OWN = re.compile(r"(ld|st)\.(local|param|const)")
"""Accesses that LLVM makes itself: to registers that it spills, to parameters, and to constants."""
_ANY = "(a number)"
"""Stands for a number that only a launch knows, or LLVM, where it folds it."""
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


def discrepancies(entry: EntryOp, ptx: str) -> list[Discrepancy]:
    """The differences of a kernel's PTX from its operations; none for a kernel that calls functions, whose bodies stand
    elsewhere.
    """
    name = entry.sym_name.data
    if any(isinstance(op, func.CallOp) for op in entry.walk()):
        return []
    found = re.search(rf"\.entry\s+{re.escape(name)}\(.*?^\{{(?P<body>.*?)^\}}", ptx, re.DOTALL | re.MULTILINE)
    if found is None:
        return [Discrepancy(name, "the text has no such kernel")]
    text = _Text.of(found["body"], ptx.count("\n", 0, found.start("body")) + 1)
    return [*_kinds(name, entry, text), *_order(name, entry, text)]


@dataclass(frozen=True)
class _Text:
    """The instructions of a kernel in the text: their names and lines, and of each those that may follow it. The one
    behind the last stands for the end.
    """

    names: list[str]
    lines: list[int]
    following: list[list[int]]

    @classmethod
    def of(cls, body: str, first: int) -> "_Text":
        """The instructions of a body that begins in line `first`."""
        names, lines, jumps, labels = list[str](), list[int](), list[tuple[list[str], bool]](), dict[str, int]()
        for match in _LINE.finditer(body):
            if match["label"]:
                labels[match["label"]] = len(names)
                continue
            names.append(_numbered(match["name"], match["rest"].strip()))
            lines.append(first + body.count("\n", 0, match.start("name")))
            falls = match["guard"] is not None or match["name"] not in ("bra", "bra.uni", "ret", "exit", "trap")
            jumps.append((_TARGET.findall(match["rest"]) if match["name"].startswith("bra") else [], falls))
        following = [
            [labels[target] for target in targets] + ([place + 1] if falls else [])
            for place, (targets, falls) in enumerate(jumps)
        ]
        for place, name in enumerate(names):
            if name in ("ret", "exit"):
                following[place].append(len(names))
        return cls(names, lines, following)


def _kinds(name: str, entry: EntryOp, text: _Text) -> Iterator[Discrepancy]:
    """Instructions with effects of a kind that only one side has."""
    wanted = {mnemonic for op in entry.walk() for mnemonic in (_mnemonic(op),) if mnemonic and _EFFECTS.match(mnemonic)}
    have = {
        written: line
        for name_and_number, line in zip(reversed(text.names), reversed(text.lines), strict=True)
        if _EFFECTS.match(written := name_and_number.split(" ")[0]) and not _OWN.match(written)
    }
    for missing in sorted(wanted - have.keys()):
        yield Discrepancy(name, f"the PTX has no {missing}, which the kernel executes")
    for extra in sorted(have.keys() - wanted):
        yield Discrepancy(name, f"the PTX has {extra}, which is none of the kernel's operations", have[extra])


@dataclass
class _Pattern:
    """A nondeterministic automaton: of each state the states that follow at once, and those after an instruction."""

    silent: list[list[int]] = field(default_factory=lambda: [[]])
    after: list[dict[str, int]] = field(default_factory=lambda: [{}])

    def state(self) -> int:
        """A new state."""
        self.silent.append([])
        self.after.append({})
        return len(self.silent) - 1

    def block(self, block: Block, start: int) -> int:
        """Adds the instructions of a block behind a state; the state behind them."""
        for op in block.ops:
            mnemonic = _mnemonic(op)
            if mnemonic is not None and _ORDERED.match(mnemonic):
                end = self.state()
                self.after[start][_numbered(mnemonic, _number(op))] = end
                start = end
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

    def closure(self, states: set[int]) -> set[int]:
        """All states that are reached without an instruction."""
        seen, todo = set(states), list(states)
        while todo:
            for state in self.silent[todo.pop()]:
                if state not in seen:
                    seen.add(state)
                    todo.append(state)
        return seen


def _order(name: str, entry: EntryOp, text: _Text) -> Iterator[Discrepancy]:
    """The first instruction, on a path through the text, that no execution of the operations allows at its place."""
    pattern = _Pattern()
    last = pattern.block(entry.body.block, 0)
    states = frozenset(pattern.closure({0}))
    seen: set[tuple[int, frozenset[int]]] = {(0, states)}
    todo: list[tuple[int, frozenset[int], str]] = [(0, states, "the kernel's begin")]
    while todo and len(seen) < MAX_PATHS:
        place, states, before = todo.pop()
        allowed = sorted({follows for state in states for follows in pattern.after[state]})
        if place == len(text.names):
            if last not in states:
                yield Discrepancy(name, f"the PTX ends after {before}, and lacks {' or '.join(allowed)}")
                return
            continue
        written, line = text.names[place], text.lines[place]
        if _ORDERED.match(written):
            fitting = {written, f"{written.partition(' ')[0]} {_ANY}"}
            if fitting.isdisjoint(allowed):
                expected = f"; {' or '.join(allowed)} would" if allowed else ""
                yield Discrepancy(name, f"{written} may not follow {before}{expected}", line)
                return
            after = {end for state in states for key, end in pattern.after[state].items() if key in fitting}
            states = frozenset(pattern.closure(after))
            before = f"{written} in line {line}"
        for following in text.following[place]:
            if (following, states) not in seen:
                seen.add((following, states))
                todo.append((following, states, before))


def _number(op: Operation) -> str:
    """The number that the text has as the first operand of an instruction, as far as it is known."""
    number = next((op.properties[key] for key in ("n", "id", "mask") if key in op.properties), None)
    if isinstance(op, BarSyncOp | BarArriveOp) and op.offset is not None:
        return _ANY
    value = str(number.value.data) if isinstance(number, IntegerAttr) else ""
    return "" if len(value) > 9 else value  # a mask that the text has as a negative number


def _mnemonic(op: Operation) -> str | None:
    return op.mnemonic() if isinstance(op, PtxOp) else None


def _numbered(name: str, operands: str) -> str:
    """An instruction with its first operand, where that is a number which must stay."""
    number = re.match(rf"\d+|{re.escape(_ANY)}", operands)
    return f"{name} {number[0]}" if number is not None and _NUMBERED.match(name) else name
