# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which parts of a kernel a launch has executed: arms of branches, bodies of loops, blocks, and lines of the source."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Block, Operation
from xdsl.traits import IsTerminator

from ...dialects import ptx
from ...dialects.kernel import KernelOp
from .events import Segment
from .faults import Site, site_of

Line = tuple[str, int]
"""A file and the number of a line in it."""


@dataclass(frozen=True, slots=True)
class Arm:
    """An arm of a branch or the body of a loop, by the operation that it belongs to. `name` is "then", "else", "body"
    or "block".
    """

    site: Site
    name: str

    def __str__(self) -> str:
        match self.name:
            case "then":
                return f"the branch of {self.site.line_name} for a condition that holds"
            case "else":
                return f"the branch of {self.site.line_name} for a condition that does not hold"
            case "body":
                return f"the body of the loop of {self.site.line_name}"
            case _:
                return "this part"


@dataclass(frozen=True, slots=True)
class Reached:
    """The lines and the arms of a kernel, and whether a thread has executed them. `idle` are
    the arms without an execution in which nothing happens, such as the missing `else` of an `if`.
    """

    lines: Mapping[Line, bool]
    arms: Mapping[Arm, bool]
    idle: frozenset[Arm]
    first: Mapping[Arm, Site]
    """The first operation of each arm in which something happens."""

    def joined(self, other: "Reached") -> "Reached":
        """The lines and arms that one of two runs has executed."""
        return Reached(
            _either(self.lines, other.lines),
            _either(self.arms, other.arms),
            frozenset(arm for arm in self.idle | other.idle if arm not in {**self.first, **other.first}),
            {**other.first, **self.first},
        )


_Key = TypeVar("_Key")


def _either(one: Mapping[_Key, bool], other: Mapping[_Key, bool]) -> dict[_Key, bool]:
    return {key: one.get(key, False) or other.get(key, False) for key in (*one, *other)}


def reached_by(parts: Iterable[Segment]) -> Reached:
    """The lines and arms of a kernel after a run, by the parts of its translation."""
    lines: dict[Line, bool] = {}
    arms: dict[Arm, bool] = {}
    busy: set[Arm] = set()
    first: dict[Arm, Site] = {}
    threads: dict[Block, int] = {}
    parts = list(parts)
    for part in parts:
        threads[part.block] = max(threads.get(part.block, 0), part.executions.threads)
    for part in parts:
        ran = part.executions.warps > 0
        work = [op for op in part.ops if _does_work(op)]
        for op in work:
            if isinstance(place := op.location, FileLineColLoc):
                line = place.filename.data, place.line.data
                lines[line] = lines.get(line, False) or ran
        arm = _arm_of(part, work)
        if arm is not None:
            arms[arm] = arms.get(arm, False) or ran
            if work:
                busy.add(arm)
                first.setdefault(arm, site_of(work[0]))
        for missing, passed in _missing_arms(part, threads):
            arms[missing] = arms.get(missing, False) or passed
    return Reached(lines, arms, frozenset(arms.keys() - busy), first)


def _arm_of(part: Segment, work: list[Operation]) -> Arm | None:
    holder = part.block.parent_op()
    match holder:
        case scf.IfOp():
            return Arm(site_of(holder), "then" if part.block is holder.true_region.block else "else")
        case scf.ForOp():
            return Arm(site_of(holder), "body")
        case scf.WhileOp():
            return Arm(site_of(holder), "body") if part.block is holder.after_region.block else None
        case KernelOp():
            is_entry = part.block.prev_block is None
            return Arm(site_of(work[0]), "block") if work and not is_entry else None
        case _:
            return None


def _missing_arms(part: Segment, threads: Mapping[Block, int]) -> Iterator[tuple[Arm, bool]]:
    """The arms that branches of a part lack, since nothing is to be done there, and whether threads took them."""
    for op in part.ops:
        if isinstance(op, scf.IfOp) and not op.false_region.blocks:
            yield Arm(site_of(op), "else"), part.executions.threads > threads.get(op.true_region.block, 0)


def _does_work(op: Operation) -> bool:
    """Whether an operation is more than the frame of others, a constant, or the pause of a thread that waits."""
    return not (op.has_trait(IsTerminator) or isinstance(op, arith.ConstantOp | ptx.NanosleepOp))
