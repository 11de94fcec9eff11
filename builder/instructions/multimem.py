# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accesses to multicast memory, whose addresses stand for memory of several devices, and waits for their flags.

By default they are relaxed and of scope `sys`, which has the threads of all devices.
"""

from xdsl.dialects import arith
from xdsl.dialects.builtin import VectorType

from ...base.errors import Code, TilefoldError
from ...dialects import ptx
from ..control.control_functions import while_
from ..scalars.casts import from_vector, in_vector
from ..scalars.dtypes import DType, Float32, Int32, of_sign
from ..scalars.operators import Operand
from ..scalars.values import Scalar, as_value, convert, wrap
from ..tensors.allocation import make_rmem_tensor
from ..tensors.pointers import recast_ptr, recast_tensor
from ..tensors.tensors import Pointer, address_of
from ..tracing.state import emit, insert_value
from .atomics import atomic_cas, load, red


def multimem_ld_reduce(
    ptr: Pointer, dtype: DType | None = None, num_elements: int = 1, *, order: str = "relaxed", scope: str = "sys"
) -> tuple[Operand, ...]:
    """The sums of `num_elements` elements at a multicast address over all devices: Float32, or registers of two
    elements of 16 bits each, as Int32. TilefoldError (E5002) for other types or numbers of elements than PTX has.
    """
    kind = ptr.dtype if dtype is None else dtype
    if kind.kind != "float" or kind.bits not in (16, 32) or num_elements * kind.bits not in (32, 64, 128):
        message = f"multimem.ld_reduce has no sum of {num_elements} elements of {kind}"
        raise TilefoldError(Code.BUILD_VALUE, message, "1, 2 or 4 Float32, or 2, 4 or 8 Float16 or BFloat16")
    type = kind.ir if num_elements == 1 else VectorType(kind.ir, [num_elements])
    at = address_of(recast_ptr(ptr, dtype=kind))
    result = emit(ptx.MultimemLdReduceOp("add", at.ssa, type, order=order, scope=scope)).results[0]
    parts = [result] if num_elements == 1 else from_vector(result, num_elements)
    if kind.bits == 32:
        return tuple(wrap(part, kind) for part in parts)
    made = make_rmem_tensor(num_elements, kind)
    for place, part in enumerate(parts):
        made[place] = wrap(part, kind)
    words = recast_tensor(made, Int32)
    return tuple(words[place] for place in range(num_elements // 2))


def multimem_st(ptr: Pointer, *values: Scalar, order: str = "relaxed", scope: str = "sys") -> None:
    """Writes 1, 2 or 4 values of 32 bits at a multicast address, to the memory of all devices. TilefoldError (E5002)
    for another number of values, or other sizes.
    """
    given = [as_value(value) for value in values]
    if len(given) not in (1, 2, 4) or any(value.dtype.bits != 32 for value in given):
        message = f"multimem.st writes 1, 2 or 4 values of 32 bits, not {len(given)}"
        raise TilefoldError(Code.BUILD_VALUE, message, "pass registers of 32 bits, such as multimem_ld_reduce returns")
    words = [v.ssa if v.dtype == Float32 else insert_value(arith.BitcastOp(v.ssa, Float32.ir)) for v in given]
    at = address_of(recast_ptr(ptr, dtype=Float32))
    emit(ptx.MultimemStOp(words[0] if len(words) == 1 else in_vector(words), at.ssa, order=order, scope=scope))


def multimem_red_add1(lock_ptr: Pointer, *, order: str = "relaxed", scope: str = "sys") -> None:
    """Adds 1 atomically to an integer at a multicast address, in the memory of all devices."""
    at = address_of(lock_ptr)
    one = convert(1, at.dtype).ssa
    emit(ptx.MultimemRedOp(of_sign("add", at.dtype), at.ssa, one, order=order, scope=scope))


def red_add1(lock_ptr: Pointer, *, order: str = "relaxed", scope: str = "sys") -> None:
    """Adds 1 atomically to an integer in memory."""
    red(lock_ptr, 1, op="add", sem=order, scope=scope)


def spin_lock_atom_cas_relaxed_wait(
    lock_ptr: Pointer, *, expected_val: Scalar, reset_val: Scalar = 0, scope: str = "sys"
) -> None:
    """Waits until an integer in memory is `expected_val`, and sets it to `reset_val`. It orders no other accesses."""
    _spin(lock_ptr, expected_val, reset_val, "relaxed", scope)


def spin_lock_atom_cas_acquire_wait(
    lock_ptr: Pointer, *, expected_val: Scalar, reset_val: Scalar = 0, scope: str = "sys"
) -> None:
    """As `spin_lock_atom_cas_relaxed_wait`; the accesses before the releases that it has waited for are visible."""
    _spin(lock_ptr, expected_val, reset_val, "acquire", scope)


def spin_lock_ld_lt_relaxed_wait(lock_ptr: Pointer, *, expected_val: Scalar, scope: str = "sys") -> None:
    """Waits until an integer in memory is not less than `expected_val`. It orders no other accesses."""

    def is_less(value: Operand) -> Operand:
        return value < expected_val

    def read(*_: object) -> Operand:
        return load(lock_ptr, sem="relaxed", scope=scope)

    while_(is_less, read, read())


def _spin(lock_ptr: Pointer, expected: Scalar, reset: Scalar, order: str, scope: str) -> None:
    def swap(*_: object) -> Operand:
        return atomic_cas(lock_ptr, expected, reset, order, scope)

    def differs(before: object) -> bool:
        return before != expected

    while_(differs, swap, swap())
