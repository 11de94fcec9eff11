# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which fragments of a kernel at stage `instr` lie in local memory instead of registers, and which accesses are why.

LLVM keeps a fragment in registers if every access has a constant offset once the loops marked `unroll` are unrolled.
One access whose offset only the run knows puts the whole fragment in memory.
"""

from dataclasses import dataclass
from itertools import islice

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, OpResult, Region, SSAValue

from ...dialects.ptx import LOCAL, EntryOp, LoadOp, LocalAllocOp, StoreOp
from .affine import Sums
from .loop_hints import trip_values, unroll_count
from .memoised import Memoised


@dataclass(frozen=True, slots=True)
class LocalFragment:
    """A fragment in local memory, and the accesses to it whose offsets only the run knows."""

    alloc: LocalAllocOp
    accesses: tuple[LoadOp | StoreOp, ...]

    @property
    def bytes(self) -> int:
        """The bytes that it takes of a thread's local memory."""
        return self.alloc.bytes.value.data


def local_fragments(entry: EntryOp) -> list[LocalFragment]:
    """The fragments of a kernel that lie in local memory, in the order of their first such access."""
    by_alloc: dict[LocalAllocOp, list[LoadOp | StoreOp]] = {}
    constants, sums = _Constants(), Sums()
    for op in entry.walk():
        if isinstance(op, LoadOp | StoreOp) and op.ptr.type == LOCAL:
            address = sums.address(op.ptr)
            alloc = address.base.owner
            if isinstance(alloc, LocalAllocOp) and not all(constants.of(term) for term, _ in address.offset.terms):
                by_alloc.setdefault(alloc, []).append(op)
    return [LocalFragment(alloc, tuple(accesses)) for alloc, accesses in by_alloc.items()]


class _Constants(Memoised[bool]):
    """Which values are constant in each copy of a loop's body once loops are unrolled."""

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
            if not isinstance(loop, scf.ForOp) or not _unrolled(loop):
                return False
            return self._carried(loop, value.index - 1) if value.index else self.of(loop.lb) and self.of(loop.step)
        assert isinstance(value, OpResult)
        match value.op:
            case arith.ConstantOp():
                return True
            case scf.ForOp() as loop:
                return _unrolled(loop) and self._carried(loop, value.index)
            case scf.IfOp() as branch:
                yielded = [_yielded(region, value.index) for region in branch.regions]
                return all(map(self.of, (branch.cond, *yielded)))
            case op:
                return op.dialect_name() == "arith" and all(map(self.of, op.operands))

    def _carried(self, loop: scf.ForOp, index: int) -> bool:
        """Whether what a loop carries at `index` is one in each iteration."""
        return self.of(loop.iter_args[index]) and self.of(_yielded(loop.body, index))


def _yielded(region: Region, index: int) -> SSAValue:
    assert region.block.last_op is not None, "a region ends in its terminator"
    return region.block.last_op.operands[index]


def _unrolled(loop: scf.ForOp) -> bool:
    """Whether each iteration of a loop has its own copy of the body; a loop of one iteration does not count."""
    trips = trip_values(loop)
    return unroll_count(loop) == 0 or (trips is not None and len(trips) <= 1)
