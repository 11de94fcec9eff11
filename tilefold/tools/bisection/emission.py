# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares a kernel's PTX with its operations at stage `instr`: the instructions that have effects, their order, and
the numbers of those that wait, signal or copy.

LLVM unrolls, peels and duplicates loops. So the operations make a pattern, in which the body of a loop may occur any
number of times and a branch once or not at all, and every path through the text must match it.
"""

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation

from tilefold.base.target import Target
from tilefold.dialects.arith.semantics import constant_of
from tilefold.dialects.ptx import BarArriveOp, BarSyncOp, EntryOp, MbarrierWaitOp, PtxOp

_EFFECTS = re.compile(
    r"(ld|st|cp|bar|barrier|mbarrier|fence|membar|atom|red|mma|wgmma|ldmatrix|stmatrix|setmaxnreg|griddepcontrol"
    r"|tensormap)\b"
)
"""Instructions that a compiler may not drop: loads, stores, copies, signals and multiplications."""
_MOVED = re.compile(r"(ldmatrix|mma)\b")
"""The modifiers among them that LLVM may put elsewhere."""
_OWN = re.compile(r"(ld|st)\.(local|param|const)\b")
"""Accesses that LLVM makes itself: to registers that it spills, to parameters, and to constants."""
_NUMBERED = re.compile(r"(bar|barrier|mbarrier|setmaxnreg)\b|cp\.async(?!\.bulk\.tensor)|.*\.wait_group")
"""The instructions whose numbers must stay: of barriers, threads, groups and bytes, and parities of phases."""
_LINE = re.compile(
    r"^(?P<label>\$\w+):|^\s+(?P<guard>@!?%p\d+\s+)?(?P<name>[a-z][\w.:]*)(?P<rest>[^\n]*)", re.MULTILINE
)
_TARGET = re.compile(r"\$\w+")
_TABLE = re.compile(r"(\$\w+): \.branchtargets([^;]*);")
_ACCESS = re.compile(r"((?:ld|st)\..*?)(?:\.v(\d+))?\.[bsuf](\d+)")
_OPERAND = re.compile(r"\[[^\]]*\]|\{[^}]*\}|[^\s,;]+")
_INTEGER = re.compile(r"-?\d+|0x[0-9A-Fa-f]+")
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
    entry_match = re.search(rf"\.entry\s+{re.escape(name)}\(.*?^\{{(?P<body>.*?)^\}}", ptx, re.DOTALL | re.MULTILINE)
    if entry_match is None:
        return [Discrepancy(name, "the text has no such kernel")]
    text = _Text.of(entry_match["body"], ptx.count("\n", 0, entry_match.start("body")) + 1)
    pattern = _Pattern(target)
    last = pattern.block(entry.body.block, 0)
    return [*_kinds(name, entry, text, pattern, executed), *_order(name, text, pattern, last)]


@dataclass(frozen=True, order=True)
class _Instruction:
    """An instruction: its name, the numbers among its operands, and how many operands may be any number."""

    name: str
    numbers: tuple[int, ...] = ()
    others: int = 0

    @property
    def kind(self) -> str:
        """The name, but of an access how many bits it moves: LLVM loads with a sign, and two words as one number."""
        access = _ACCESS.fullmatch(self.name)
        return f"{access[1]} {int(access[2] or 1) * int(access[3])}" if access else self.name

    def __str__(self) -> str:
        operands = ", ".join([*map(str, self.numbers), *["(a number)"] * self.others])
        return f"{self.name} {operands}" if operands else self.name

    @property
    def is_ordered(self) -> bool:
        """Whether it must stay where it is among the others."""
        return self.has_effects and not _MOVED.match(self.name)

    @property
    def has_effects(self) -> bool:
        """Whether it is one of the kernel's own that a compiler may not drop."""
        return _EFFECTS.match(self.name) is not None and not _OWN.match(self.name)

    def may_be(self, wanted: "_Instruction") -> bool:
        """Whether an instruction of the text may be that of an operation, of which LLVM may know more numbers."""
        missing = Counter(number % 2**32 for number in wanted.numbers)
        missing.subtract(number % 2**32 for number in self.numbers)
        return self.kind == wanted.kind and sum(count for count in missing.values() if count > 0) <= self.others


@dataclass(frozen=True)
class _Text:
    """The instructions of a kernel in the text, their lines, and of each those that may follow it. The one behind the
    last stands for the end.
    """

    instructions: list[_Instruction]
    lines: list[int]
    following: list[list[int]]

    @classmethod
    def of(cls, body: str, first: int) -> "_Text":
        """The instructions of a body that begins in line `first`."""
        instructions, lines, jumps = list[_Instruction](), list[int](), list[tuple[list[str], bool]]()
        labels, known = dict[str, int](), _constants(body)
        tables = {table: _TARGET.findall(targets) for table, targets in _TABLE.findall(body)}
        for match in _LINE.finditer(body):
            if match["label"]:
                labels[match["label"]] = len(instructions)
                continue
            instructions.append(_written(match["name"], match["rest"], known))
            lines.append(first + body.count("\n", 0, match.start("name")))
            # LLVM writes `exit` where it knows that no execution gets
            leaves = match["name"].startswith(("bra", "brx")) or match["name"] in ("ret", "exit", "trap")
            targets = [x for label in _TARGET.findall(match["rest"]) for x in tables.get(label, [label])]
            jumps.append((targets if match["name"].startswith("br") else [], match["guard"] is not None or not leaves))
        following = [
            [labels[target] for target in targets] + ([place + 1] if falls else [])
            for place, (targets, falls) in enumerate(jumps)
        ]
        for place, instruction in enumerate(instructions):
            if instruction.name == "ret":
                following[place].append(len(instructions))
        return cls(instructions, lines, following)


def _constants(body: str) -> dict[str, int]:
    """The registers that hold one number wherever they are used."""
    defined = Counter(
        register
        for match in _LINE.finditer(body)
        if match["name"] and (operands := _OPERAND.findall(match["rest"]))
        for register in re.findall(r"%\w+", operands[0])
    )
    moves = re.findall(rf"\bmov\.\w+\s+(%\w+), ({_INTEGER.pattern});", body)
    return {register: int(number, 0) for register, number in moves if defined[register] == 1}


def _written(name: str, rest: str, known: Mapping[str, int]) -> _Instruction:
    """An instruction of the text, `known` registers of which hold one number."""
    if not _NUMBERED.match(name):
        return _Instruction(name)
    operands = [operand for operand in _OPERAND.findall(rest) if operand[0] not in "[{"]
    numbers = [int(x, 0) if _INTEGER.fullmatch(x) else known.get(x) for x in operands]
    others = sum(
        number is None and re.match(r"%(?!p\d)", x) is not None for x, number in zip(operands, numbers, strict=True)
    )
    return _Instruction(name, tuple([number for number in numbers if number is not None]), others)


def _kinds(
    name: str, entry: EntryOp, text: _Text, pattern: "_Pattern", executed: Container[str] | None
) -> Iterator[Discrepancy]:
    """Instructions with effects of a kind that only one side has."""
    operations = [
        (made, _mnemonic(op) or "") for op in entry.walk() if (made := pattern.wanted(op)) and made.has_effects
    ]
    wanted = {made.kind: made for made, _ in operations}
    needed = {made.kind for made, mnemonic in operations if executed is None or mnemonic in executed}
    pairs = zip(reversed(text.instructions), reversed(text.lines), strict=True)
    have = {written.kind: (written.name, line) for written, line in pairs if written.has_effects}
    for missing in sorted(needed - have.keys()):
        yield Discrepancy(name, f"the PTX has no {wanted[missing].name}, which the kernel executes")
    for extra in sorted(have.keys() - wanted.keys()):
        written, line = have[extra]
        yield Discrepancy(name, f"the PTX has {written}, which no operation of the kernel has", line)


@dataclass
class _Pattern:
    """A nondeterministic automaton: of each state the states that follow at once, and those after an instruction."""

    target: Target
    silent: list[list[int]] = field(default_factory=lambda: [[]])
    after: list[dict[_Instruction, int]] = field(default_factory=lambda: [{}])

    def state(self) -> int:
        """A new state."""
        self.silent.append([])
        self.after.append({})
        return len(self.silent) - 1

    def block(self, block: Block, start: int) -> int:
        """Adds the instructions of a block behind a state; the state behind them."""
        for op in block.ops:
            wanted = self.wanted(op)
            if wanted is not None and wanted.is_ordered:
                end = self.state()
                self.after[start][wanted] = end
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

    def wanted(self, op: Operation) -> _Instruction | None:
        """The instruction that an operation stands for, with the numbers that the program knows."""
        mnemonic = _mnemonic(op)
        if mnemonic is None or not _NUMBERED.match(mnemonic):
            return None if mnemonic is None else _Instruction(mnemonic)
        if isinstance(op, MbarrierWaitOp):
            mnemonic = op.test_on(self.target)
        unknown = isinstance(op, BarSyncOp | BarArriveOp) and op.offset is not None
        kept = [
            op.properties.get(key) for key in ("n", "id", "mask", "threads", "bytes") if not (unknown and key == "id")
        ]
        numbers = [number.value.data for number in kept if isinstance(number, IntegerAttr)]
        constants = [constant_of(operand) for operand in op.operands]
        return _Instruction(mnemonic, (*numbers, *[x for x in constants if x is not None]), int(unknown))

    def closure(self, states: set[int]) -> set[int]:
        """All states that are reached without an instruction."""
        seen, todo = set(states), list(states)
        while todo:
            for state in self.silent[todo.pop()]:
                if state not in seen:
                    seen.add(state)
                    todo.append(state)
        return seen


def _order(name: str, text: _Text, pattern: _Pattern, last: int) -> Iterator[Discrepancy]:
    """The first instruction, on a path through the text, that no execution of the operations allows at its place:
    `last` is the state of the pattern behind all of them.
    """
    states = frozenset(pattern.closure({0}))
    seen: set[tuple[int, frozenset[int]]] = {(0, states)}
    todo: list[tuple[int, frozenset[int], str]] = [(0, states, "the kernel's begin")]
    while todo and len(seen) < MAX_PATHS:
        place, states, before = todo.pop()
        allowed = sorted({follows for state in states for follows in pattern.after[state]})
        if place == len(text.instructions):
            if last not in states:
                yield Discrepancy(name, f"the PTX ends after {before}, and lacks {' or '.join(map(str, allowed))}")
                return
            continue
        written, line = text.instructions[place], text.lines[place]
        if written.is_ordered:
            fitting = {wanted for wanted in allowed if written.may_be(wanted)}
            if not fitting:
                expected = f"; {' or '.join(map(str, allowed))} would" if allowed else ""
                yield Discrepancy(name, f"{written} may not follow {before}{expected}", line)
                return
            after = {end for state in states for wanted, end in pattern.after[state].items() if wanted in fitting}
            states = frozenset(pattern.closure(after))
            before = f"{written} in line {line}"
        for following in text.following[place]:
            if (following, states) not in seen:
                seen.add((following, states))
                todo.append((following, states, before))


def _mnemonic(op: Operation) -> str | None:
    return op.mnemonic() if isinstance(op, PtxOp) else None
