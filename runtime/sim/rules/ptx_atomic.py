# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for atomic operations, accesses that order others, fences and nanosleep (PTX ISA, sections of these names).

An atomic operation of several lanes is executed lane by lane, in their order.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects import ptx
from ....dialects.ptx.atomic import WORDS
from ...errors import Dim3
from ..events import Pause, Step, Suspending, Suspension
from ..faults import site_of
from ..memory.arena import Access, Atomic
from ..memory.spaces import Space
from ..ordering.loop_values import idle_slots, is_in_loop
from ..ordering.releases import fence
from ..translate import Rules, Translator
from ..values import Value, ValueKind, narrow
from ..warp import Warp
from .arithmetic import MAXIMUM_NUMBER, MINIMUM_NUMBER
from .ptx_memory import from_bytes, space_of, to_bytes

if TYPE_CHECKING:
    from ..exact.patterns import Table

Bytes = NDArray[np.uint8]
Combine = Callable[[Value, Value], Value]


def _inc(a: Value, b: Value) -> Value:
    return (a + a.dtype.type(1)) * (a < b)


def _dec(a: Value, b: Value) -> Value:
    restarts = (a == 0) | (a > b)
    return b * restarts + (a - a.dtype.type(1)) * ~restarts


_FLOAT_COMBINE: Mapping[str, Combine] = {"min": MINIMUM_NUMBER, "max": MAXIMUM_NUMBER}
"""Extremes of floats: a number wins over NaN, and -0 is less than +0 (measured on an H200)."""
_COMBINE: Mapping[str, Combine] = {
    "min": np.minimum, "max": np.maximum, "umin": np.minimum, "umax": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "inc": _inc, "dec": _dec,
}  # fmt: skip


def _shared_space(t: Translator, ptr: SSAValue[ptx.PtrType]) -> Space:
    space = space_of(t, ptr.type)
    assert space is not None, "the verifiers reject local memory"
    return space


def changes(kind: str, type: ValueKind, exact: "Table | None" = None) -> Callable[[Bytes, Bytes], Bytes]:
    """The bytes that an operation writes, from those in memory and those of its operand; sums of floats in exact
    arithmetic where there is a table of exact numbers.
    """
    if kind == "exch":
        return lambda before, given: given
    dtype = type.unsigned if kind in ("umin", "umax", "inc", "dec") else type.dtype

    def combine(before: Bytes, given: Bytes) -> Bytes:
        a, b = before.view(dtype), given.view(dtype)
        if kind == "add" and exact is not None and type.is_float:
            total = exact.values(exact.numbers(a) + exact.numbers(b), dtype)
        elif kind == "add":
            total = a + b if dtype.kind in "iuf" else narrow(a.astype(np.float64) + b.astype(np.float64), dtype)
        elif kind in _FLOAT_COMBINE and dtype.kind not in "iu":
            total = narrow(_FLOAT_COMBINE[kind](a.astype(np.float64), b.astype(np.float64)), dtype)
        else:
            total = _COMBINE[kind](a, b)
        return np.ascontiguousarray(total).view(np.uint8)

    return combine


def _orders(order: str) -> tuple[bool, bool]:
    """Whether a memory order acquires, and whether it releases."""
    return order in ("acquire", "acq_rel"), order in ("release", "acq_rel")


def _look(space: Space, pointer: int) -> Callable[[Warp], str]:
    """Names the first address that the active lanes have in a register."""
    return lambda warp: space.show(int(warp.select(warp.registers[pointer])[0]))


def _in_loop(
    op: ptx.AtomOp | ptx.AtomCasOp, t: Translator, step: Step, space: Space, pointer: int
) -> Step | Suspending:
    """The step of an atomic operation. In a loop without a bound it lets other warps go on first, as the loop may wait
    for one of them.
    """
    if not is_in_loop(op):
        return _in_any_order(op, t, step)
    pause = Pause(site_of(op), _look(space, pointer), space.name, idle_slots(op, t))

    def run(warp: Warp) -> Suspension:
        yield pause
        step(warp)

    return Suspending(run)


def _in_any_order(op: Operation, t: Translator, step: Step) -> Step | Suspending:
    """The step of an atomic write, which lets other warps go on first, or does not, where a launch tries an order of
    the warps.
    """
    if t.launch.loads is None or t.launch.loads.hurry is None:
        return step
    chance, pause = Random(t.launch.loads.hurry), Pause(site_of(op), idle=idle_slots(op, t))

    def run(warp: Warp) -> Suspension:
        if chance.random() < 0.5:
            yield pause
        step(warp)

    return Suspending(run)


def _atom(op: ptx.AtomOp | ptx.RedOp, t: Translator) -> Step | Suspending:
    pointer, value, kind = t.slot(op.ptr), t.slot(op.value), t.kind(op.value)
    space, change = _shared_space(t, op.ptr), changes(op.kind.data, kind, t.launch.exact)
    access = t.access(op, space.row, "atomic", kind.bytes)
    access.scope = op.scope_name
    result = t.slot(op.result) if isinstance(op, ptx.AtomOp) else None
    is_seen = isinstance(op, ptx.AtomOp) and op.result.first_use is not None
    acquires, releases = _orders(op.order_name)

    def step(warp: Warp) -> None:
        registers = warp.registers
        given = to_bytes(warp, registers[value], kind)
        how = Atomic(
            lambda number, before: change(before, given[number]), acquires, releases, is_seen,
            operands=lambda number: given[number].tobytes(),
        )  # fmt: skip
        before = space.update(warp, access, registers[pointer], how)
        if result is not None:
            registers[result] = from_bytes(warp, before, kind)

    if isinstance(op, ptx.AtomOp) and is_seen:
        return _in_loop(op, t, step, space, pointer)
    return _in_any_order(op, t, step)


def _cas(op: ptx.AtomCasOp, t: Translator) -> Step | Suspending:
    pointer, compare, value, result = t.slot(op.ptr), t.slot(op.compare), t.slot(op.value), t.slot(op.result)
    kind, space = t.kind(op.value), _shared_space(t, op.ptr)
    access = t.access(op, space.row, "atomic", kind.bytes)
    access.scope = op.scope_name
    acquires, releases = _orders(op.order_name)

    def step(warp: Warp) -> None:
        registers = warp.registers
        wanted, given = to_bytes(warp, registers[compare], kind), to_bytes(warp, registers[value], kind)

        def change(number: int, before: Bytes) -> Bytes:
            return given[number] if before.tobytes() == wanted[number].tobytes() else before

        how = Atomic(
            change, acquires, releases, operands=lambda number: wanted[number].tobytes() + given[number].tobytes()
        )
        before = space.update(warp, access, registers[pointer], how)
        registers[result] = from_bytes(warp, before, kind)

    return _in_loop(op, t, step, space, pointer)


def _of_elements(access: Access, type: Attribute) -> tuple[list[int], Access]:
    """The offsets of the parts of an access, each of which is one by itself, and the access to a part: the elements of
    a vector, or the whole. The access itself, which is counted, is to all of them.
    """
    width = access.width // WORDS.get(type, 1)
    return list(range(0, access.width, width)), replace(access, width=width)


def _load_acquire(op: ptx.LoadAcquireOp, t: Translator) -> Suspending:
    pointer, result, kind = t.slot(op.ptr), t.slot(op.result), t.kind(op.result)
    space = _shared_space(t, op.ptr)
    access = t.access(op, space.row, "load", kind.bytes)
    access.scope = op.scope_name
    offsets, part = _of_elements(access, op.result.type)
    pause, acquires = Pause(site_of(op), _look(space, pointer), space.name, idle_slots(op, t)), op.relaxed is None

    loads = t.launch.loads
    chance = None if loads is None or loads.hurry is None else Random(loads.hurry)
    hurried: set[tuple[Dim3, int]] = set()

    def run(warp: Warp) -> Suspension:
        key = warp.block.coordinate, warp.index
        if chance is None or key in hurried or chance.random() < 0.5:
            yield pause  # a loop that waits for another warp's store lets that warp go on
        hurried.add(key)
        at = warp.registers[pointer]
        if len(offsets) == 1:
            content = space.observe(warp, access, at, acquires=acquires)
        else:
            space.rows(warp, access, at)
            each = [space.observe(warp, part, at + offset, acquires=acquires) for offset in offsets]
            content = np.concatenate(each, axis=1)
        warp.registers[result] = from_bytes(warp, content, kind)

    return Suspending(run)


def _store_release(op: ptx.StoreReleaseOp, t: Translator) -> Step | Suspending:
    pointer, value, kind = t.slot(op.ptr), t.slot(op.value), t.kind(op.value)
    space = _shared_space(t, op.ptr)
    access = t.access(op, space.row, "store", kind.bytes)
    access.scope = op.scope_name
    offsets, part = _of_elements(access, op.value.type)
    releases = op.relaxed is None

    def step(warp: Warp) -> None:
        at, content = warp.registers[pointer], to_bytes(warp, warp.registers[value], kind)
        if len(offsets) == 1:
            space.publish(warp, access, at, content, releases=releases)
            return
        space.rows(warp, access, at)
        for offset in offsets:
            given = np.ascontiguousarray(content[:, offset : offset + part.width])
            space.publish(warp, part, at + offset, given, releases=releases)

    return _in_any_order(op, t, step)


def _fence(op: ptx.FenceOp, t: Translator) -> Step:
    scope = op.scope_name
    acquires, releases = op.order.data != "release", op.order.data != "acquire"
    if acquires:
        t.launch.fences.add(scope)
    space, is_sequential = t.spaces.shared, op.order.data == "sc"

    def step(warp: Warp) -> None:
        fence(warp, scope, acquires=acquires, releases=releases)
        if is_sequential and space.outdated is not None:
            space.outdated.fence(warp, scope)

    return step


def _nanosleep(op: ptx.NanosleepOp, t: Translator) -> Suspending:
    pause = Pause(site_of(op), idle=idle_slots(op, t))

    def run(warp: Warp) -> Suspension:
        yield pause

    return Suspending(run)


PTX_ATOMIC: Rules = {
    ptx.AtomOp: _atom,
    ptx.RedOp: _atom,
    ptx.AtomCasOp: _cas,
    ptx.LoadAcquireOp: _load_acquire,
    ptx.StoreReleaseOp: _store_release,
    ptx.FenceOp: _fence,
    ptx.NanosleepOp: _nanosleep,
}
