# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Primitives of the lanes of a warp, and atomic changes of memory."""

from typing import Any

from xdsl.ir import SSAValue

from ...dialects import ptx
from ..instructions import atomics, warp
from ..scalars.dtypes import DTYPES, Int32
from ..scalars.values import Scalar, as_value, convert, wrap
from ..tensors.fragments import unary_of
from ..tensors.raw_pointers import Address
from ..tracing.state import emit
from .barriers import address
from .enums import AtomicOp, MemOrder, MemScope, ReductionKind, ReductionOp, ReductionType, SharedSpace, Shfl, VoteSync


def vote_sync(mask: object, predicate: object, kind: VoteSync) -> Any:
    """A vote of the lanes of a mask on a predicate: a predicate, or an Int32 with a bit for each lane (BALLOT)."""
    return getattr(warp, f"vote_{kind.value}_sync")(predicate, mask)


def shfl_sync(
    thread_mask: Scalar,
    val: Scalar,
    offset: Scalar,
    mask_and_clamp: Scalar,
    kind: Shfl,
    return_value_and_is_valid: bool = False,
) -> Any:
    """The value of another lane, by the operands of the instruction (PTX ISA, shfl.sync); with
    `return_value_and_is_valid` also whether the segment of the executing lane has it.
    """
    lane, control = convert(offset, Int32).ssa, convert(mask_and_clamp, Int32).ssa
    valid: list[Any] = []

    def word(ssa: SSAValue) -> SSAValue:
        result, has_lane = emit(
            ptx.ShflSyncValidOp(kind.value, ssa, lane, control, warp.lane_mask(thread_mask))
        ).results
        valid.append(wrap(has_lane))
        return result

    moved = warp.by_words(word, as_value(val))
    return (moved, valid[0]) if return_value_and_is_valid else moved


def redux_sync(value: Scalar, kind: ReductionKind, mask: object = warp.FULL_MASK, abs: bool = False) -> Any:
    """The Int32 or Uint32 of the lanes of a mask combined (sm_80); of Float32, by FMIN and FMAX only, compute
    capability 10.x. With `abs`, of absolute values.
    """
    operand = as_value(value)
    word = kind.value
    if operand.dtype.kind == "float":
        word = word.removeprefix("f")
    return warp.redux_sync(unary_of("abs", operand) if abs else operand, word, mask)


def red(
    op: ReductionOp,
    type: ReductionType,
    ptr: object,
    value: Scalar,
    *,
    mem_order: MemOrder = MemOrder.RELAXED,
    mem_scope: MemScope = MemScope.GPU,
) -> None:
    """Changes a number of memory atomically, and returns nothing (PTX ISA, red)."""
    at = Address(address(ptr).ssa, DTYPES[type.value])
    atomics.red(at, value, op=op.value, sem=mem_order.value, scope=mem_scope.value)


def atomicrmw(
    op: AtomicOp,
    ptr: Any,
    a: Any,
    *,
    mem_order: MemOrder | None = None,
    mem_scope: MemScope | None = None,
    syncscope: MemScope | None = None,
    space: SharedSpace | None = None,
) -> Any:
    """Changes the number at an address atomically and returns the old one (PTX ISA, atom). The number has the type of
    the memory, or of `a` where the pointer says none. `syncscope` is another name of `mem_scope`, and the address says
    which memory it is in, whatever `space` is.
    """
    order = None if mem_order is None else mem_order.value
    of_threads = syncscope if mem_scope is None else mem_scope
    scope = None if of_threads is None else of_threads.value
    return atomics.atomic(op.value.removeprefix("f"), ptr, a, order, scope)
