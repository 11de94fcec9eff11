# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`allocate-smem`: on the way from stage `index` to stage `instr`."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ..base.errors import Code
from ..base.target import DEFAULT_ARCH, Target
from ..dialects.arith.semantics import constant_of
from ..dialects.gpu import CoordinateOp, ThreadIdOp
from ..dialects.kernel import kernels_in
from ..dialects.ptx import EntryOp, SmemAddrOp, SmemAllocOp, SregOp
from .errors import LoweringError
from .writing.emitter import Emitter


@dataclass(frozen=True)
class AllocateSmemPass(ModulePass):
    """Assigns shared memory: each allocation gets an offset, and the kernel gets the total size.

    Allocations are placed in order, each with its alignment. Those of the two branches of a condition share their
    place where all threads of the block take one of them, and only once: outside loops. Refuses a kernel that needs
    more shared memory than the target allows per block.

    Before: `%s = ptx.smem.alloc 4096 align 128`. After: `%s = ptx.smem.addr 0 bytes 4096`, and `shared(4096)` on the
    entry.
    """

    name = "allocate-smem"
    target: str = DEFAULT_ARCH

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        limit = Target(self.target).max_shared_bytes
        for entry in kernels_in(op, EntryOp):
            end = 0 if entry.shared_bytes is None else entry.shared_bytes.value.data
            around = _around([alloc for alloc in entry.walk() if isinstance(alloc, SmemAllocOp)])
            entry.shared_bytes = IntegerAttr(self._place_all(entry.body, end, limit, around, once=True), i64)

    def _place_all(self, region: Region, end: int, limit: int, around: Set[Operation], *, once: bool) -> int:
        """Places the allocations of a region from `end` on, and returns where the last one ends. Allocations are in the
        operations `around`. `once` is False in loops.
        """
        for op in [op for block in region.blocks for op in block.ops]:
            if isinstance(op, SmemAllocOp):
                end = self._place(op, end, limit)
            if op not in around:
                continue
            is_branch, first = isinstance(op, scf.IfOp), end
            shares = once and isinstance(op, scf.IfOp) and _is_of_block(op.cond)
            for inner in op.regions:
                start = first if shares else end
                end = max(end, self._place_all(inner, start, limit, around, once=once and is_branch))
        return end

    def _place(self, alloc: SmemAllocOp, end: int, limit: int) -> int:
        align = alloc.align.value.data
        start = -(-end // align) * align
        end = start + alloc.bytes.value.data
        if end > limit:
            raise LoweringError(
                Code.TARGET_SHARED_MEMORY,
                f"with this allocation the block needs {end} bytes of shared memory; {self.target} has {limit}",
                alloc,
                "use smaller tiles or fewer stages, or a target with more shared memory",
            )
        emitter = Emitter(alloc)
        emitter.replace([emitter.value(SmemAddrOp(start, alloc.bytes.value.data))])
        return end


def _around(allocs: Iterable[Operation]) -> Set[Operation]:
    """The operations that operations are in."""
    around: set[Operation] = set()
    for op in allocs:
        parent = op.parent_op()
        while parent is not None and parent not in around:
            around.add(parent)
            parent = parent.parent_op()
    return around


_OF_THREADS = f"{ThreadIdOp.REGISTER}."


def _is_of_block(value: SSAValue) -> bool:
    """Whether a value follows from constants, the kernel's numbers, and coordinates and sizes of blocks, clusters and
    the grid, by arithmetic and conditions on such values. Loads and loops count as different in each thread.
    """
    seen: set[SSAValue] = set()
    left = [value]
    while left:
        value = left.pop()
        if value in seen or constant_of(value) is not None:
            continue
        seen.add(value)
        causes = _causes(value)
        if causes is None:
            return False
        left += causes
    return True


def _causes(value: SSAValue) -> Sequence[SSAValue] | None:
    """The only values that a value depends on, if the threads of a block then agree on it; None where they may not."""
    owner = value.owner
    if isinstance(owner, Block):
        return () if isinstance(owner.parent_op(), EntryOp) else None
    match owner:
        case SregOp():
            return None if owner.register.data.startswith(_OF_THREADS) else ()
        case CoordinateOp():
            return None if owner.REGISTER.startswith(ThreadIdOp.REGISTER) else ()
        case scf.IfOp():
            ends = [region.block.last_op for region in owner.regions]
            return owner.cond, *[end.operands[owner.results.index(value)] for end in ends if end is not None]
        case _:
            is_arithmetic = owner.name.startswith(f"{arith.Arith.name}.") and not owner.regions
            return owner.operands if is_arithmetic else None
