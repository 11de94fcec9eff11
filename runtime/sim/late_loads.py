# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels whose relaxed loads come as late as they may: behind the stores that follow them, to other places.

PTX's memory model orders a relaxed access and a later one to another place only by a fence, a release, an acquire, or
because the later one depends on the value (PTX ISA, Memory Consistency Model: causality order, no thin air). So a load
may find a value that another thread has written because of a later store: two threads that each load and then store
may both find the other's store.
"""

from collections.abc import Iterator

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.traits import IsTerminator, is_side_effect_free
from xdsl.utils.hints import isa

from ...dialects.kernel import KernelOp
from ...dialects.ptx import AtomCasOp, AtomOp, LoadAcquireOp, LoadOp, PtrAddOp, PtrType, RedOp, StoreOp, StoreReleaseOp
from ...dialects.ptx.base import float_bits, integer_bits
from .faults import Site, site_of
from .memory.provenance import root

_RELAXED = (LoadAcquireOp, AtomOp, AtomCasOp)
_ACCESSES = (LoadOp, StoreOp, LoadAcquireOp, StoreReleaseOp, AtomOp, RedOp, AtomCasOp)
_WIDEST = 16
"""The bytes of the widest access."""


def delay_loads(kernel: KernelOp) -> list[Site]:
    """Moves the relaxed loads of a kernel, and its atomic operations, behind later accesses; those that have moved."""
    loads = [op for op in kernel.walk() if isinstance(op, _RELAXED) and _is_relaxed(op)]
    return [site_of(op) for op in reversed(loads) if _delay(op)]


def _is_relaxed(op: Operation) -> bool:
    if isinstance(op, LoadAcquireOp | StoreReleaseOp):
        return op.relaxed is not None
    return not isinstance(op, AtomOp | RedOp | AtomCasOp) or op.order_name == "relaxed"


def _delay(load: Operation) -> bool:
    """Moves a load down its block; whether it has passed an access that is not a load of the thread's own."""
    last, has_passed = load, False
    for op in _behind(load):
        if op.has_trait(IsTerminator) or op.regions or any(value.owner is load for value in op.operands):
            break
        if isinstance(op, _ACCESSES):
            if not _is_relaxed(op) or not _are_disjoint(load, op):
                break
            has_passed |= not isinstance(op, LoadOp)
        elif not is_side_effect_free(op):
            break
        last = op
    block = load.parent_block()
    if has_passed and block is not None:
        load.detach()
        block.insert_op_after(load, last)
    return has_passed


def _behind(op: Operation) -> Iterator[Operation]:
    following = op.next_op
    while following is not None:
        yield following
        following = following.next_op


def _are_disjoint(first: Operation, second: Operation) -> bool:
    """Whether two accesses are surely to different places: of different arguments, or as constants tell."""
    one, other = _pointer(first), _pointer(second)
    if one.type != other.type:
        return False
    home, far = root(first, one.type.space.data), root(second, other.type.space.data)
    if home is not far:
        return all(isinstance(place, BlockArgument) and _is_parameter(place) for place in (home, far))
    begin, start = _offset(one, home), _offset(other, far)
    return (
        begin is not None and start is not None and (begin + _bytes(first) <= start or start + _bytes(second) <= begin)
    )


def _is_parameter(place: BlockArgument) -> bool:
    around = place.block.parent_op()
    return isinstance(around, KernelOp) and place.block is around.body.blocks.first


def _pointer(op: Operation) -> SSAValue[PtrType]:
    assert isinstance(op, _ACCESSES)
    return op.ptr


def _bytes(op: Operation) -> int:
    """How many bytes an access may have."""
    value = op.results[0] if op.results else op.operands[0]
    bits = integer_bits(value.type) or float_bits(value.type)
    return _WIDEST if bits is None else bits // 8


def _offset(pointer: SSAValue, home: SSAValue | None) -> int | None:
    """The constant by which a pointer is behind another; None for another offset."""
    total = 0
    while pointer is not home:
        if not isinstance(op := pointer.owner, PtrAddOp) or not isinstance(by := op.offset.owner, arith.ConstantOp):
            return None
        if not isa(by.value, IntegerAttr):
            return None
        total += by.value.value.data
        pointer = op.ptr
    return total
