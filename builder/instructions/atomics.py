# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accesses to elements that other threads access at the same time.

An element is named by its address, `t.ptr(i, j)`, or by a pointer, `t.iterator + n`. `sem` is the order of the access,
`scope` names the threads that it is ordered for: `cta`, `cluster`, `gpu` or `sys`.
"""

from collections.abc import Sequence
from functools import partial

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32, i64

from ...base.errors import Code, TilefoldError
from ...dialects import ptx
from ..control.control_functions import if_
from ..scalars.casts import in_vector
from ..scalars.dtypes import DTYPES, DType, Float32, of_sign
from ..scalars.operators import Operand
from ..scalars.values import Scalar, convert, wrap
from ..tensors.allocation import make_rmem_tensor
from ..tensors.copies import copy
from ..tensors.copy_atoms import make_copy_atom
from ..tensors.fragments import Vec
from ..tensors.nvgpu import CopyUniversalOp
from ..tensors.pointers import make_tensor, recast_ptr
from ..tensors.tensors import Address, Pointer, address_of
from ..tracing.state import emit, insert_value

Place = Address | Pointer


def atomic(kind: str, ptr: Place, val: Scalar, sem: str | None = None, scope: str | None = None) -> Operand:
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
        return wrap(emit(ptx.AtomOp(kind, at.ssa, operand, order=sem, scope=scope)).results[0], at.dtype)
    bitwise = insert_value(arith.BitcastOp(operand, bits))
    before = emit(ptx.AtomOp(kind, at.ssa, bitwise, order=sem, scope=scope)).results[0]
    return wrap(insert_value(arith.BitcastOp(before, at.dtype.ir)), at.dtype)


def atomic_add(ptr: Place, val: Scalar, sem: str | None = None, scope: str | None = None) -> Operand:
    """Adds to memory atomically and returns the old value."""
    return atomic("add", ptr, val, sem, scope)


def atomic_max(ptr: Place, val: Scalar, sem: str | None = None, scope: str | None = None) -> Operand:
    """Writes the larger of memory and a value atomically and returns the old value."""
    return atomic("max", ptr, val, sem, scope)


def atomic_min(ptr: Place, val: Scalar, sem: str | None = None, scope: str | None = None) -> Operand:
    """Writes the smaller of memory and a value atomically and returns the old value."""
    return atomic("min", ptr, val, sem, scope)


def atomic_and(ptr: Place, val: Scalar, sem: str | None = None, scope: str | None = None) -> Operand:
    """Combines the bits of memory and of a value by `and` atomically and returns the old value."""
    return atomic("and", ptr, val, sem, scope)


def atomic_or(ptr: Place, val: Scalar, sem: str | None = None, scope: str | None = None) -> Operand:
    """Combines the bits of memory and of a value by `or` atomically and returns the old value."""
    return atomic("or", ptr, val, sem, scope)


def atomic_xor(ptr: Place, val: Scalar, sem: str | None = None, scope: str | None = None) -> Operand:
    """Combines the bits of memory and of a value by `xor` atomically and returns the old value."""
    return atomic("xor", ptr, val, sem, scope)


def atomic_exch(ptr: Place, val: Scalar, sem: str | None = None, scope: str | None = None) -> Operand:
    """Writes a value atomically and returns the old value."""
    return atomic("exch", ptr, val, sem, scope)


def atomic_cas(ptr: Place, cmp: Scalar, val: Scalar, sem: str | None = None, scope: str | None = None) -> Operand:
    """Writes a value atomically if memory holds `cmp`, and returns the old value."""
    at = address_of(ptr)
    expected, new = convert(cmp, at.dtype), convert(val, at.dtype)
    return wrap(emit(ptx.AtomCasOp(at.ssa, expected.ssa, new.ssa, order=sem, scope=scope)).results[0], at.dtype)


def atomic_fmax(
    ptr: Place, val: Scalar, sem: str | None = None, scope: str | None = None, *, sign_bit: bool | None = None
) -> Operand:
    """Writes the larger of a Float32 in memory and a value atomically, and returns the old value; neither number is
    NaN. `sign_bit` tells the sign of the value, where it is known."""
    return _float_extreme("max", "umin", ptr, val, sem, scope, sign_bit)


def atomic_max_float32(ptr: Place, value: Scalar, *, positive_only: bool = True) -> Operand:
    """`atomic_fmax` of a value that is not negative, or else of any one."""
    return atomic_fmax(ptr, value, sign_bit=False if positive_only else None)


def atomic_fmin(
    ptr: Place, val: Scalar, sem: str | None = None, scope: str | None = None, *, sign_bit: bool | None = None
) -> Operand:
    """Writes the smaller of a Float32 in memory and a value atomically, and returns the old value; neither number is
    NaN. `sign_bit` tells the sign of the value, where it is known."""
    return _float_extreme("min", "umax", ptr, val, sem, scope, sign_bit)


def _float_extreme(
    kind: str, of_negative: str, ptr: Place, val: Scalar, sem: str | None, scope: str | None, sign: bool | None
) -> Operand:
    """The bits of floats are ordered as integers with a sign are, but those of negative ones the other way round. So
    the extreme with a value of either sign is one of integers.
    """
    at = address_of(ptr)
    if at.dtype != Float32:
        message = f"atomic_f{kind} is for Float32, but the elements are {at.dtype}"
        raise TilefoldError(Code.BUILD_VALUE, message, "for integers write cute.arch.atomic_max or atomic_min")
    bits = insert_value(arith.BitcastOp(convert(val, Float32).ssa, i32))

    def changed(by: str) -> Operand:
        return wrap(emit(ptx.AtomOp(by, at.ssa, bits, order=sem, scope=scope)).results[0])

    negative = wrap(bits) < 0 if sign is None else sign
    before = if_(negative, partial(changed, of_negative), partial(changed, kind))
    return wrap(insert_value(arith.BitcastOp(before.ssa, at.dtype.ir)), Float32)


def red(
    ptr: Place,
    val: "Scalar | Vec",
    *,
    op: str,
    dtype: DType | str | None = None,
    sem: str | None = None,
    scope: str | None = None,
) -> None:
    """Changes memory atomically, like `atomic`, without returning the old value: `red(t.ptr(i), 1, op="add")`. From
    sm_90 on, `add` also takes a fragment of two or four Float32, for adjacent elements of global memory; it changes
    each element atomically. `dtype` is the type of the element, or PTX's word for it, where it is not the pointer's.
    """
    place = ptr
    if dtype is not None and isinstance(ptr, Pointer):
        place = recast_ptr(ptr, dtype=_named(dtype))
    at = address_of(place)
    if isinstance(val, Vec):
        parts = [convert(val[index], at.dtype).ssa for index in range(val.size)]
        emit(ptx.RedOp(op, at.ssa, in_vector(parts), order=sem, scope=scope))
        return
    emit(ptx.RedOp(of_sign(op, at.dtype), at.ssa, convert(val, at.dtype).ssa, order=sem, scope=scope))


def _named(dtype: DType | str) -> DType:
    """A type, or that of PTX's word for it, such as `s32`. Raises TilefoldError (E5002) for another word."""
    if isinstance(dtype, DType):
        return dtype
    kinds = {"u": "Uint", "b": "Uint", "s": "Int", "f": "Float", "bf": "BFloat"}
    kind = dtype.rstrip("0123456789")
    name = kinds.get(kind, "") + dtype.removeprefix(kind)
    if name not in DTYPES:
        raise TilefoldError(Code.BUILD_VALUE, f"{dtype!r} is not an element type", "such as 's32' or 'f32'")
    return DTYPES[name]


def load_acquire(ptr: Place, scope: str | None = None) -> Operand:
    """Reads an element; the writes before its release are visible afterwards."""
    return _load(ptr, scope, relaxed=False)


def store_release(ptr: Place, val: Scalar, scope: str | None = None) -> None:
    """Writes an element; the thread's earlier writes come before it."""
    _store(ptr, val, scope, relaxed=False)


def _load(ptr: Place, scope: str | None, *, relaxed: bool) -> Operand:
    at = address_of(ptr)
    return wrap(emit(ptx.LoadAcquireOp(at.ssa, at.dtype.ir, scope, relaxed)).results[0], at.dtype)


def _store(ptr: Place, val: Scalar, scope: str | None, *, relaxed: bool) -> None:
    at = address_of(ptr)
    emit(ptx.StoreReleaseOp(convert(val, at.dtype).ssa, at.ssa, scope=scope, relaxed=relaxed))


_ACQUIRING, _RELEASING = (None, "relaxed", "acquire"), (None, "relaxed", "release")


def load(
    ptr: Pointer,
    dtype: DType | None = None,
    *,
    sem: str | None = None,
    scope: str | None = None,
    level1_eviction_priority: str | None = None,
    cop: str | None = None,
    ss: str | None = None,
    level_prefetch_size: str | None = None,
) -> Operand:
    """The element at a pointer, as one of `dtype` if that is given. Where `sem` is "acquire", the access is
    `load_acquire`; where it is "relaxed", the writes before a release are visible only behind a fence. Another one of
    global memory may have a cache operator `cop` (ca, cg, cs, lu, cv), a priority in the L1 cache (evict_first,
    evict_last, evict_normal, evict_unchanged, evict_no_allocate), and the bytes that the L2 cache fetches (size_64b,
    size_128b, size_256b). The pointer says by itself which memory it is in,
    `ss`. TilefoldError (E5002) for another order, and for caches with an order; (E0317) for an unknown word.
    """
    _check_order(sem, _ACQUIRING)
    at = ptr if dtype in (None, ptr.dtype) else recast_ptr(ptr, dtype=dtype)
    hint = _hint(sem, cop, level1_eviction_priority, level_prefetch_size)
    if not hint:
        return at.load() if sem is None else _load(at, scope, relaxed=sem == "relaxed")
    made = make_rmem_tensor(1, at.dtype)
    copy(make_copy_atom(CopyUniversalOp(), at.dtype, load=hint), make_tensor(at, 1), made)
    return made[0]


def store(
    ptr: Pointer,
    val: "Scalar | Vec",
    *,
    sem: str | None = None,
    scope: str | None = None,
    level1_eviction_priority: str | None = None,
    cop: str | None = None,
    ss: str | None = None,
) -> None:
    """Writes the element at a pointer, or the elements of a vector in their own type. Where `sem` is "release", the
    access is `store_release`; where it is "relaxed", it makes earlier writes visible only after a fence. Cache
    operators (wb, cg, cs, wt) and priorities as those of `load`. TilefoldError (E5002) for another order, and for
    caches or a vector with an order; (E0317) for an unknown word.
    """
    _check_order(sem, _RELEASING)
    hint = _hint(sem, cop, level1_eviction_priority, None)
    if hint:
        made = make_rmem_tensor(1, ptr.dtype)
        made[0] = val
        copy(make_copy_atom(CopyUniversalOp(), ptr.dtype, store=hint), made, make_tensor(ptr, 1))
    elif isinstance(val, Vec):
        if sem is not None:
            raise TilefoldError(
                Code.BUILD_VALUE, f"an access with the memory order '{sem}' takes a single element", "not a vector"
            )
        recast_ptr(ptr, dtype=val.dtype).store(val)
    elif sem is None:
        ptr.store(val)
    else:
        _store(ptr, val, scope, relaxed=sem == "relaxed")


def _check_order(sem: str | None, orders: Sequence[str | None]) -> None:
    if sem not in orders:
        raise TilefoldError(Code.BUILD_VALUE, f"this access cannot have the memory order {sem!r}", f"one of {orders}")


def _hint(sem: str | None, cop: str | None, priority: str | None, prefetch: str | None) -> str:
    """PTX's words for the caches of an access."""
    eviction = "" if priority is None else f"L1::{'no_allocate' if priority == 'evict_no_allocate' else priority}"
    fetched = "" if prefetch is None else f"L2::{prefetch.removeprefix('size_').upper()}"
    hint = ".".join(word for word in (cop, eviction, fetched) if word)
    if hint and sem is not None:
        message = f"an access with the memory order '{sem}' takes no cache hint, but {hint!r} is given"
        raise TilefoldError(Code.BUILD_VALUE, message, "leave out one of the two")
    return hint
