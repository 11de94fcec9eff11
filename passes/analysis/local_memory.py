# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which fragments of a kernel at stage `instr` have accesses whose offsets only the run knows.

LLVM keeps a fragment in registers if every access has a constant offset once the loops marked `unroll` are unrolled.
Another access puts the whole fragment in local memory, unless LLVM makes a choice among values of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, OpResult, Region, SSAValue

from ...dialects.ptx import LOCAL, EntryOp, LoadOp, LocalAllocOp, PtrAddOp, StoreOp
from ...dialects.ptx.effects import Act, touches
from .affine import Sums
from .loop_hints import trip_values, unroll_count
from .ranges import Memoised


@dataclass(frozen=True, slots=True)
class LocalFragment:
    """A fragment, the accesses to it whose offsets only the run knows, and those of them that would have constant ones
    if the loops around them were unrolled.
    """

    alloc: LocalAllocOp
    accesses: tuple[LoadOp | StoreOp, ...] = ()
    by_loops: frozenset[Operation] = frozenset()

    @property
    def bytes(self) -> int:
        """The bytes that it takes of a thread's local memory."""
        return self.alloc.bytes.value.data

    def escapes(self) -> Iterator[Operation]:
        """The operations that take its address, or one within it, to do more than read and write at known places."""
        waiting: list[SSAValue] = [self.alloc.result]
        while waiting:
            value = waiting.pop()
            for use in value.uses:
                if isinstance(use.operation, PtrAddOp):
                    waiting.append(use.operation.result)
                elif not any(touches(use.operation, act, value) for act in (Act.READS, Act.WRITES)):
                    yield use.operation


def local_fragments(entry: EntryOp) -> list[LocalFragment]:
    """The fragments of a kernel with accesses whose offsets only the run knows, in the order of the first of these."""
    by_alloc: dict[LocalAllocOp, list[LoadOp | StoreOp]] = {}
    by_loops = set[Operation]()
    constants, unrolled, sums = _Constants(), _Constants(all_loops=True), Sums()
    for op in entry.walk():
        if isinstance(op, LoadOp | StoreOp) and op.ptr.type == LOCAL:
            address = sums.address(op.ptr)
            alloc = address.base.owner
            if isinstance(alloc, LocalAllocOp) and not all(constants.of(term) for term, _ in address.offset.terms):
                by_alloc.setdefault(alloc, []).append(op)
                if all(unrolled.of(term) for term, _ in address.offset.terms):
                    by_loops.add(op)
    return [
        LocalFragment(alloc, tuple(accesses), frozenset(by_loops.intersection(accesses)))
        for alloc, accesses in by_alloc.items()
    ]


class _Constants(Memoised[bool]):
    """Which values are constant in each copy of a loop's body once loops are unrolled: those that are marked so, or all
    whose bounds are constant then.
    """

    def __init__(self, *, all_loops: bool = False) -> None:
        super().__init__()
        self._all_loops = all_loops

    def _find(self, value: SSAValue) -> None:
        """Notes whether a value is one. Loop-carried values count as such until the body proves otherwise."""
        size = len(self._known)
        self._known[value] = True
        if not self._compute(value):  # then nothing that was found meanwhile to be one may rest on it
            others = [
                other for other in islice(reversed(self._known), len(self._known) - size) if not self._known[other]
            ]
            self._forget(size)
            self._known.update(dict.fromkeys([*others, value], False))

    def _compute(self, value: SSAValue) -> bool:
        if isinstance(value, BlockArgument):
            loop = value.block.parent_op()
            if not isinstance(loop, scf.ForOp) or not self._unrolls(loop):
                return False
            return self._carried(loop, value.index - 1) if value.index else self.of(loop.lb) and self.of(loop.step)
        assert isinstance(value, OpResult)
        match value.op:
            case arith.ConstantOp():
                return True
            case scf.ForOp() as loop:
                return self._unrolls(loop) and self._carried(loop, value.index)
            case scf.IfOp() as branch:
                yielded = [_yielded(region, value.index) for region in branch.regions]
                return all(map(self.of, (branch.cond, *yielded)))
            case op:
                return op.dialect_name() == "arith" and all(map(self.of, op.operands))

    def _unrolls(self, loop: scf.ForOp) -> bool:
        return _unrolled(loop) or (self._all_loops and all(map(self.of, (loop.lb, loop.ub, loop.step))))

    def _carried(self, loop: scf.ForOp, index: int) -> bool:
        """Whether the value that a loop carries at `index` is one in each iteration."""
        return self.of(loop.iter_args[index]) and self.of(_yielded(loop.body, index))


def _yielded(region: Region, index: int) -> SSAValue:
    assert region.block.last_op is not None, "a region ends in its terminator"
    return region.block.last_op.operands[index]


def _unrolled(loop: scf.ForOp) -> bool:
    """Whether each iteration of a loop has its own copy of the body; a loop of one iteration does not count."""
    trips = trip_values(loop)
    return unroll_count(loop) == 0 or (trips is not None and len(trips) <= 1)
