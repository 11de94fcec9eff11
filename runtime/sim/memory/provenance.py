# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which allocation a pointer belongs to: an address that is computed from it must stay there, even where another
allocation lies next to it.

The operations that add to a pointer are followed back to the argument of the kernel or the piece of shared memory from
which they begin. Pointers that loops carry, or that are computed otherwise, may lead anywhere.
"""

from xdsl.ir import Operation, SSAValue

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
    if len(pointers) != 1:
        return None
    pointer = pointers[0]
    while isinstance(owner := pointer.owner, PtrAddOp):
        pointer = owner.ptr
    return pointer
