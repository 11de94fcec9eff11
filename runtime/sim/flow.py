# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Facts that follow from the branches of a kernel of several blocks: the values that may still be read, and the aligned
barriers that lanes of a warp leave out, which all threads of a warp execute (PTX ISA, barrier).
"""

from collections.abc import Iterable, Mapping, Sequence, Set

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from ...base.errors import Code
from ...dialects.ptx import BarArriveOp, BarRedOp, BarSyncOp
from .faults import Site
from .warp import Bools, Warp


def is_aligned_barrier(op: Operation) -> bool:
    """Whether an operation is a barrier that all lanes of a warp reach together."""
    return isinstance(op, BarSyncOp | BarArriveOp | BarRedOp) and op.unaligned is None


def past(ways: Sequence[Sequence[int]], number: int) -> set[int]:
    """The nodes behind one that never lead back to it, where `ways` has those directly behind each."""
    back = [set[int]() for _ in ways]
    for source, targets in enumerate(ways):
        for target in targets:
            back[target].add(source)
    return _reachable(ways, number) - _reachable(back, number) - {number}


def _reachable(ways: Sequence[Iterable[int]], number: int) -> set[int]:
    """The nodes that some steps lead to."""
    found, left = set[int](), [number]
    while left:
        new = set(ways[left.pop()]) - found
        found |= new
        left += new
    return found


def refuse_past(warp: Warp, barrier: Site, behind: Set[int], been: Mapping[int, Bools]) -> None:
    """SimulationError (E3207) where lanes that are not at an aligned barrier have been at a node behind it, even if
    they have returned by now. `been` says which lanes have been where.
    """
    for number in behind & been.keys():
        missing = been[number] & ~warp.live()
        if missing.any():
            text = f"the thread does not reach this barrier, which {warp.active} of the warp's {warp.lanes} lanes do"
            hint = "move the barrier out of divergent control flow"
            warp.fault(Code.SIM_BARRIER, barrier, int(missing.argmax()), text, hint)


def live_values(parts: Sequence[tuple[Block, list[Operation]]], ways: Sequence[Sequence[int]]) -> list[set[SSAValue]]:
    """The values that may be read from the beginning of each part on; constants have registers that never change."""
    reads: list[set[SSAValue]] = []
    writes: list[set[SSAValue]] = []
    for _, ops in parts:
        used, made = set[SSAValue](), set[SSAValue]()
        for op in ops:
            for inner in op.walk():
                used.update(inner.operands)
                made.update(inner.results)
        reads.append({value for value in used - made if not isinstance(value.owner, arith.ConstantOp)})
        writes.append(made)
    # arguments are set on the way to a block, before groups join
    arguments: list[set[SSAValue]] = [
        set(block.args) if index == 0 or parts[index - 1][0] is not block else set()
        for index, (block, _) in enumerate(parts)
    ]
    live = [set(read) for read in reads]
    changed = True
    while changed:
        changed = False
        for index in range(len(parts) - 1, -1, -1):
            after = set[SSAValue]()
            for target in ways[index]:
                after |= live[target] - arguments[target]
            now = reads[index] | (after - writes[index])
            if not now <= live[index]:
                live[index] |= now
                changed = True
    return live
