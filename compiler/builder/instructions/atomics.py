# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accesses to elements that other threads access at the same time.

An element is named by its address, `t.ptr(i, j)`, or by a pointer, `t.iterator + n`. `sem` is the order of the access,
`scope` names the threads that it is ordered for: `cta`, `cluster`, `gpu` or `sys`.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32, i64

from ....base.errors import Code, TilefoldError
from ....dialects import ptx
from ..control.control_functions import if_
from ..scalars.casts import in_vector
from ..scalars.dtypes import DType, Float32, of_sign
from ..scalars.values import Scalar, convert, wrap
from ..tensors.fragments import Vec
from ..tensors.pointers import recast_ptr
from ..tensors.tensors import Address, Pointer, address_of
from ..tracing.state import emit, insert_value

Place = Address | Pointer


def atomic(kind: str, ptr: Place, val: Scalar, sem: str | None = None, scope: str | None = None) -> Any:
    """Changes memory atomically and returns the old value: `atomic("add", t.ptr(i), 1)`.

    `add`, `min`, `max`, `umin`, `umax`, `and`, `or`, `xor` and `exch` of integers of 32 and 64 bits, `add` of floats,
    `exch` of those of 32 and 64 bits; `min` of unsigned integers is `umin`. The order is relaxed unless it is
    `acquire`, `release` or `acq_rel`, the scope that of the GPU.
    """
    at = address_of(ptr)
    operand = convert(val, at.dtype).ssa
    kind = of_sign(kind, at.dtype)
    bits = {32: i32, 64: i64}.get(at.dtype.bits) if kind == "exch" and at.dtype.kind == "float" else None
    if bits is None:
        return wrap(emit(ptx.AtomOp(kind, at.ssa, operand, sem, scope)).results[0], at.dtype)
    before = emit(ptx.AtomOp(kind, at.ssa, insert_value(arith.BitcastOp(operand, bits)), sem, scope)).results[0]
    return wrap(insert_value(arith.BitcastOp(before, at.dtype.ir)), at.dtype)


def atomic_add(ptr: Place, val: Scalar, sem: str | None = None, scope: str | None = None) -> Any:
    """Adds to memory atomically and returns the old value."""
    return atomic("add", ptr, val, sem, scope)


def atomic_max(ptr: Place, val: Scalar, sem: str | None = None, scope: str | None = None) -> Any:
    """Writes the larger of memory and a value atomically and returns the old value."""
    return atomic("max", ptr, val, sem, scope)


def atomic_min(ptr: Place, val: Scalar, sem: str | None = None, scope: str | None = None) -> Any:
    """Writes the smaller of memory and a value atomically and returns the old value."""
    return atomic("min", ptr, val, sem, scope)


def atomic_and(ptr: Place, val: Scalar, sem: str | None = None, scope: str | None = None) -> Any:
    """Combines the bits of memory and of a value by `and` atomically and returns the old value."""
    return atomic("and", ptr, val, sem, scope)


def atomic_or(ptr: Place, val: Scalar, sem: str | None = None, scope: str | None = None) -> Any:
    """Combines the bits of memory and of a value by `or` atomically and returns the old value."""
    return atomic("or", ptr, val, sem, scope)


def atomic_xor(ptr: Place, val: Scalar, sem: str | None = None, scope: str | None = None) -> Any:
    """Combines the bits of memory and of a value by `xor` atomically and returns the old value."""
    return atomic("xor", ptr, val, sem, scope)


def atomic_exch(ptr: Place, val: Scalar, sem: str | None = None, scope: str | None = None) -> Any:
    """Writes a value atomically and returns the old value."""
    return atomic("exch", ptr, val, sem, scope)


def atomic_cas(ptr: Place, cmp: Scalar, val: Scalar, sem: str | None = None, scope: str | None = None) -> Any:
    """Writes a value atomically if memory holds `cmp`, and returns the old value."""
    at = address_of(ptr)
    expected, new = convert(cmp, at.dtype), convert(val, at.dtype)
    return wrap(emit(ptx.AtomCasOp(at.ssa, expected.ssa, new.ssa, sem, scope)).results[0], at.dtype)


def atomic_fmax(ptr: Place, val: Scalar, sem: str | None = None, scope: str | None = None) -> Any:
    """Writes the larger of a Float32 in memory and a value atomically, and returns the old value; neither number is
    NaN."""
    return _float_extreme("max", "umin", ptr, val, sem, scope)


def atomic_fmin(ptr: Place, val: Scalar, sem: str | None = None, scope: str | None = None) -> Any:
    """Writes the smaller of a Float32 in memory and a value atomically, and returns the old value; neither number is
    NaN."""
    return _float_extreme("min", "umax", ptr, val, sem, scope)


def _float_extreme(kind: str, of_negative: str, ptr: Place, val: Scalar, sem: str | None, scope: str | None) -> Any:
    """The bits of floats are ordered as integers with a sign are, but those of negative ones the other way round. So
    the extreme with a value of either sign is one of integers.
    """
    at = address_of(ptr)
    if at.dtype != Float32:
        message = f"atomic_f{kind} is for Float32, but the elements are {at.dtype}"
        raise TilefoldError(Code.BUILD_VALUE, message, "of integers write cute.arch.atomic_max or atomic_min")
    bits = insert_value(arith.BitcastOp(convert(val, Float32).ssa, i32))

    def changed(by: str) -> Any:
        return wrap(emit(ptx.AtomOp(by, at.ssa, bits, sem, scope)).results[0])

    before = if_(wrap(bits) < 0, partial(changed, of_negative), partial(changed, kind))
    return wrap(insert_value(arith.BitcastOp(before.ssa, at.dtype.ir)), Float32)


def red(kind: str, ptr: Place, val: "Scalar | Vec", sem: str | None = None, scope: str | None = None) -> None:
    """Changes memory atomically, like `atomic`, without returning the old value. From sm_90 on `add` takes a fragment
    of two or four Float32, too, for adjacent elements of global memory, each of which is changed atomically.
    """
    at = address_of(ptr)
    if isinstance(val, Vec):
        parts = [convert(val[index], at.dtype).ssa for index in range(val.size)]
        emit(ptx.RedOp(kind, at.ssa, in_vector(parts), sem, scope))
        return
    emit(ptx.RedOp(of_sign(kind, at.dtype), at.ssa, convert(val, at.dtype).ssa, sem, scope))


def load_acquire(ptr: Place, scope: str | None = None) -> Any:
    """Reads an element; the writes before its release are visible afterwards."""
    at = address_of(ptr)
    return wrap(emit(ptx.LoadAcquireOp(at.ssa, at.dtype.ir, scope)).results[0], at.dtype)


def store_release(ptr: Place, val: Scalar, scope: str | None = None) -> None:
    """Writes an element; the thread's earlier writes come before it."""
    at = address_of(ptr)
    emit(ptx.StoreReleaseOp(convert(val, at.dtype).ssa, at.ssa, scope))


_ACQUIRING, _RELEASING = (None, "relaxed", "acquire"), (None, "relaxed", "release")


def load(ptr: Pointer, dtype: DType | None = None, *, sem: str | None = None, scope: str | None = None) -> Any:
    """The element at a pointer, as one of `dtype` if that is given. Where `sem` is "acquire", or "relaxed", which is
    weaker, the access is `load_acquire`. TilefoldError (E5002) for another order.
    """
    _check_order(sem, _ACQUIRING)
    at = ptr if dtype is None else recast_ptr(ptr, dtype=dtype)
    return at.load() if sem is None else load_acquire(at, scope)


def store(ptr: Pointer, val: Scalar, *, sem: str | None = None, scope: str | None = None) -> None:
    """Writes the element at a pointer. Where `sem` is "release", or "relaxed", which is weaker, the access is
    `store_release`. TilefoldError (E5002) for another order.
    """
    _check_order(sem, _RELEASING)
    if sem is None:
        ptr.store(val)
    else:
        store_release(ptr, val, scope)


def _check_order(sem: str | None, orders: Sequence[str | None]) -> None:
    if sem not in orders:
        raise TilefoldError(Code.BUILD_VALUE, f"there is no order {sem!r} of this access", f"one of {orders}")
