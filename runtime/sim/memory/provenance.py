# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which allocation a pointer belongs to: an address that is computed from it must stay there, even where another
allocation lies next to it.

The operations that add to a pointer are followed back to the argument of the kernel or the piece of shared memory from
which they begin, also through loops and branches. Pointers that come from several may lead anywhere.
"""

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from ....dialects.ptx import EntryOp, PtrAddOp, PtrType, SmemAddrOp
from .arena import Allocation


def pieces(entry: EntryOp, start: int) -> dict[SSAValue, Allocation]:
    """The allocations of shared memory of a kernel by their addresses, where the block's begins at an offset."""
    homes: dict[SSAValue, Allocation] = {}
    for op in entry.walk():
        if isinstance(op, SmemAddrOp) and op.bytes is not None:
            name = f"shared tensor %{op.result.name_hint}" if op.result.name_hint else "shared memory"
            homes[op.result] = Allocation(name, start + op.offset.value.data, op.bytes.value.data)
    return homes


def root(op: Operation, space: str) -> SSAValue | None:
    """The pointer from which additions of integers lead to the one by which an operation accesses a state space. None
    where it has several of them.
    """
    pointers = [value for value in op.operands if isinstance(value.type, PtrType) and value.type.space.data == space]
    return _root(pointers[0], set()) if len(pointers) == 1 else None


def _root(pointer: SSAValue, seen: set[SSAValue]) -> SSAValue | None:
    """The one pointer from which a value comes, also through loops and branches; None if it comes from several."""
    while isinstance(owner := pointer.owner, PtrAddOp):
        pointer = owner.ptr
    sources = _sources(pointer)
    if not sources or pointer in seen:
        return pointer
    seen.add(pointer)
    roots = {root for source in sources if (root := _root(source, seen)) not in seen}
    return roots.pop() if len(roots) == 1 else None


def _sources(value: SSAValue) -> list[SSAValue]:
    """The values that a loop or a branch hands on as this one."""
    owner = value.owner
    if isinstance(owner, Block):
        loop = owner.parent_op()
        if isinstance(loop, scf.ForOp) and isinstance(value, BlockArgument) and value.index > 0:
            return [loop.iter_args[value.index - 1], _yielded(owner)[value.index - 1]]
    elif isinstance(value, OpResult):
        if isinstance(owner, scf.ForOp):
            return [owner.iter_args[value.index], _yielded(owner.body.block)[value.index]]
        if isinstance(owner, scf.IfOp):
            return [_yielded(region.block)[value.index] for region in owner.regions]
        if isinstance(owner, arith.SelectOp):
            return [owner.lhs, owner.rhs]
    return []


def _yielded(block: Block) -> Sequence[SSAValue]:
    last = block.last_op
    return () if last is None else last.operands
