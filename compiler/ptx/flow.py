# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The control flow of a PTX function: its basic blocks, which dominate which, and where values of registers meet.

Registers of PTX are variables. In SSA form, a block where several values of a register meet takes it as an argument
(Cytron et al., Efficiently Computing Static Single Assignment Form, 1991), if an instruction may still read it.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...base.errors import Code
from .operands import written_and_read
from .syntax import Function, Instruction, Label, Not, Place, Pragma, PtxError, Register, Statement, Symbol, Table

ENDS = ("ret", "exit")
"""Instructions that end a thread."""


@dataclass(slots=True, eq=False)
class BasicBlock:
    """Instructions that are executed one after the other, the successors, and the guard that chooses between two: the
    first where it holds. `arguments` are the registers whose values meet here.
    """

    number: int
    place: Place
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    guard: Register | Not | None = None
    branch: Instruction | None = None
    successors: "list[BasicBlock]" = field(default_factory=lambda: [])
    predecessors: "list[BasicBlock]" = field(default_factory=lambda: [])
    parent: "BasicBlock | None" = None
    """The nearest block through which all ways lead here."""
    arguments: list[str] = field(default_factory=list[str])


def is_unaligned(instruction: Instruction) -> bool:
    """Whether it is a barrier of the block at which lanes of a warp may arrive one by one; `bar` is aligned."""
    modifiers = [word for word in instruction.modifiers if word != "cta"]
    is_barrier = instruction.opcode == "barrier" and modifiers[:1] in (["sync"], ["arrive"], ["red"])
    return is_barrier and "aligned" not in modifiers


def blocks_of(
    function: Function, file: str, in_memory: Container[str] = (), *, as_written: bool = False
) -> list[BasicBlock]:
    """The blocks of a function that can be reached, in the order of the text, the first without predecessors. Registers
    `in_memory` have no values. A loop that waits for a phase becomes one wait, unless they are to be `as_written`.

    PtxError (E1008) for a branch to no label, (E1011) for a register that a load still writes.
    """
    blocks, starts = _cut(function)
    tables = {s.name: s.labels for s in function.body or () if isinstance(s, Table)}
    for index, block in enumerate(blocks):
        after = blocks[index + 1] if index + 1 < len(blocks) else None
        _connect(block, after, starts, tables, file)
    for block in () if as_written else blocks:
        _join_wait(block)
        check_pending_loads(block.instructions, file)
    reached = _reachable(blocks[0])
    kept = [block for block in blocks if block in reached]
    for number, block in enumerate(kept):
        block.number = number
        for successor in block.successors:
            successor.predecessors.append(block)
    _find_parents(kept)
    _place_arguments(kept, function, in_memory)
    return kept


def _cut(function: Function) -> tuple[list[BasicBlock], dict[str, BasicBlock]]:
    entry = BasicBlock(0, function.place)
    blocks, starts = [entry, BasicBlock(1, function.place)], dict[str, BasicBlock]()
    for statement in _with_branches(function.body or ()):
        last = blocks[-1]
        if isinstance(statement, Label):
            if last.instructions or last.branch is not None or last is blocks[1]:
                last = BasicBlock(len(blocks), statement.place)
                blocks.append(last)
            starts[statement.name] = last
            continue
        if isinstance(statement, Table | Pragma):
            continue
        if last.branch is not None:
            last = BasicBlock(len(blocks), statement.place)
            blocks.append(last)
        if statement.opcode in (*ENDS, "bra", "brx"):
            last.branch, last.guard = statement, statement.guard
        else:
            last.instructions.append(statement)
    if blocks[-1].guard is not None:  # who does not branch there is at the end
        blocks.append(BasicBlock(len(blocks), function.place))
    return blocks, starts


def _with_branches(body: Sequence[Statement]) -> Iterator[Statement]:
    """The statements of a function, with a branch around each guarded barrier at which lanes arrive one by one: those
    whose guard does not hold go on to barriers of their own.
    """
    for number, statement in enumerate(body):
        if not isinstance(statement, Instruction) or statement.guard is None or not is_unaligned(statement):
            yield statement
            continue
        guard, around = statement.guard, f"behind {number}"  # no label of a text has a blank
        other = guard.register if isinstance(guard, Not) else Not(guard)
        yield replace(statement, opcode="bra", modifiers=(), operands=(Symbol(around),), guard=other)
        yield replace(statement, guard=None)
        yield Label(around, statement.place)


def _connect(
    block: BasicBlock,
    after: BasicBlock | None,
    starts: Mapping[str, BasicBlock],
    tables: Mapping[str, tuple[str, ...]],
    file: str,
) -> None:
    branch = block.branch
    if branch is not None and branch.opcode in ("bra", "brx"):
        named = branch.operands[-1] if branch.operands else None
        table = tables.get(named.name, (named.name,)) if isinstance(named, Symbol) else ("an operand is not a label",)
        for target in table:
            if target not in starts:
                raise PtxError(Code.PTX_SYNTAX, f"the branch leads to no label: {target}", branch.place, "", file)
            block.successors.append(starts[target])
    if after is not None and (branch is None or branch.guard is not None):
        block.successors.append(after)


def _join_wait(block: BasicBlock) -> None:
    """Makes one wait of a loop that does nothing but test whether a phase of an mbarrier is complete, until it is."""
    if len(block.instructions) != 1 or len(block.successors) != 2 or block.guard is None:
        return
    test, negated = block.instructions[0], isinstance(block.guard, Not)
    tested = block.guard.register if isinstance(block.guard, Not) else block.guard
    if test.opcode != "mbarrier" or test.modifiers[:1] not in (("try_wait",), ("test_wait",)):
        return
    done, again = block.successors[::-1] if negated else block.successors
    back = again.successors == [block] and not again.instructions and again.guard is None
    if test.operands[0] != tested or test.guard is not None or "parity" not in test.modifiers:
        return
    if again is block or back:
        block.instructions = [replace(test, modifiers=("wait", *test.modifiers[1:]))]
        block.successors, block.guard, block.branch = [done], None, None


def _reachable(entry: BasicBlock) -> set[BasicBlock]:
    reached, work = {entry}, [entry]
    while work:
        for successor in work.pop().successors:
            if successor not in reached:
                reached.add(successor)
                work.append(successor)
    return reached


def reverse_postorder(entry: BasicBlock) -> list[BasicBlock]:
    """The blocks in an order in which each comes after one of its predecessors, and after all outside loops."""
    order: list[BasicBlock] = []
    seen, work = {entry}, [(entry, iter(entry.successors))]
    while work:
        block, rest = work[-1]
        successor = next(rest, None)
        if successor is None:
            order.append(block)
            work.pop()
        elif successor not in seen:
            seen.add(successor)
            work.append((successor, iter(successor.successors)))
    return order[::-1]


def _find_parents(blocks: Sequence[BasicBlock]) -> None:
    """Immediate dominators (Cooper, Harvey and Kennedy, A Simple, Fast Dominance Algorithm, 2001)."""
    order = reverse_postorder(blocks[0])
    rank = {block: index for index, block in enumerate(order)}
    parents: dict[BasicBlock, BasicBlock] = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            known = [p for p in block.predecessors if p in parents]
            best = known[0]
            for other in known[1:]:
                while best is not other:
                    if rank[best] > rank[other]:
                        best = parents[best]
                    else:
                        other = parents[other]
            if parents.get(block) is not best:
                parents[block], changed = best, True
    for block in order[1:]:
        block.parent = parents[block]


def exposed_and_written(block: BasicBlock, counts: Callable[[str], bool]) -> tuple[set[str], set[str]]:
    """The registers that a block reads before it writes them, and those that it writes, of which only some count."""
    early, made = set[str](), set[str]()
    for instruction in block.instructions:
        targets, sources = written_and_read(instruction)
        early.update(name for name in sources if name not in made)
        made.update(filter(counts, targets))
    if block.guard is not None:
        guard = block.guard.register if isinstance(block.guard, Not) else block.guard
        early.update({guard.name} - made)
    return early, made


def _place_arguments(blocks: Sequence[BasicBlock], function: Function, in_memory: Container[str]) -> None:
    """Finds the registers that are arguments of blocks: at the iterated dominance frontier of their writes."""
    writes: dict[str, list[BasicBlock]] = {}
    exposed: dict[BasicBlock, set[str]] = {}
    written: dict[BasicBlock, set[str]] = {}
    for block in blocks:
        early, made = exposed_and_written(block, lambda name: name not in in_memory)
        exposed[block], written[block] = {name for name in early if name in function.registers}, made
        for name in made:
            writes.setdefault(name, []).append(block)
    frontiers = _frontiers(blocks)
    live = live_registers(blocks, exposed, written)
    for name in sorted(writes):
        placed, work = set[BasicBlock](), list(writes[name])
        while work:
            for block in frontiers[work.pop()]:
                if block not in placed and name in live[block]:
                    placed.add(block)
                    block.arguments.append(name)
                    work.append(block)


def _frontiers(blocks: Sequence[BasicBlock]) -> dict[BasicBlock, set[BasicBlock]]:
    frontiers: dict[BasicBlock, set[BasicBlock]] = {block: set() for block in blocks}
    for block in blocks:
        if len(block.predecessors) < 2:
            continue
        for above in block.predecessors:
            while above is not None and above is not block.parent:
                frontiers[above].add(block)
                above = above.parent
    return frontiers


def live_registers(
    blocks: Sequence[BasicBlock], exposed: dict[BasicBlock, set[str]], written: dict[BasicBlock, set[str]]
) -> dict[BasicBlock, set[str]]:
    """The registers that may be read from the beginning of each block on."""
    live = {block: set(exposed[block]) for block in blocks}
    work = list(blocks)
    while work:
        block = work.pop()
        after = set[str]().union(*(live[successor] for successor in block.successors))
        now = exposed[block] | (after - written[block])
        if now != live[block]:
            live[block] = now
            work.extend(block.predecessors)
    return live


def check_pending_loads(instructions: Sequence[Instruction], file: str) -> None:
    """Refuses an instruction that writes a register which a load before it writes, too, without a wait between, in
    instructions without a branch. PtxError (E1011) at the second one.
    """
    pending: dict[str, Instruction] = {}
    for instruction in instructions:
        words = instruction.modifiers
        if instruction.opcode == "tcgen05" and words[0] == "wait::ld":
            pending.clear()
            continue
        if not pending and instruction.opcode != "tcgen05":
            continue
        written, _ = written_and_read(instruction)
        name = next((name for name in written if name in pending), None)
        if name is not None:
            line = pending[name].place.line
            text = f"{instruction.name} writes {name}, which the tcgen05.ld of line {line} may still be writing"
            hint = "wait for the load first, by tcgen05.wait::ld.sync.aligned, or take another register"
            raise PtxError(Code.PTX_PENDING, text, instruction.place, hint, file=file)
        if instruction.opcode == "tcgen05" and words[0] == "ld":
            pending.update(dict.fromkeys(written, instruction))
