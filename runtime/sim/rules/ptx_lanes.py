# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for the exchange of values between lanes (PTX ISA, sections shfl.sync, vote.sync, match.sync, redux.sync)."""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from ....base.errors import Code
from ....base.target import WARP
from ....dialects import ptx
from ....dialects.arith.integer_range import wrap_signed
from ..events import Step
from ..faults import Site, site_of
from ..ordering.knowledge import meet_in_exchange
from ..translate import Rules, Translator
from ..values import Lanes, Value, varies
from ..warp import Bools, Warp
from .arithmetic import MAXIMUM_NUMBER, MINIMUM_NUMBER


def bits_of(lanes: Bools) -> int:
    """A bit for each lane of a warp that is set, as a signed i32."""
    return wrap_signed(int(np.sum(lanes * (1 << np.arange(len(lanes)) % WARP))), 32)


class Group:
    """The lanes that execute one warp-wide instruction together: those of its mask, checked."""

    def __init__(self, instruction: str, mask: SSAValue | None, site: Site, t: Translator) -> None:
        self._instruction, self._site = instruction, site
        self._slot = None if mask is None else t.slot(mask)

    def rows(self, warp: Warp) -> Bools | None:
        """The group of each lane; see `groups_of`."""
        given = -1 if self._slot is None else warp.registers[self._slot]
        return groups_of(warp, given, self._instruction, self._site)


def groups_of(warp: Warp, given: Value, instruction: str, site: Site) -> Bools | None:
    """The group of each lane by its mask: an array (lanes, lanes), whose row i is the mask that lane i gives. None if
    it is all of its warp.

    SimulationError (E3208) where the lanes that execute the instruction are not those that they name, or do not
    agree. Lanes that the block does not have may be named.
    """
    active = warp.live()
    every, lanes = (1 << min(warp.lanes, WARP)) - 1, np.arange(warp.lanes)
    if not varies(given) and given & every == every and (warp.mask is None or warp.is_whole):
        return None
    if warp.spans_blocks:  # too many rows
        warp.leave_lockstep()
    masks = np.broadcast_to(given, (warp.lanes,)).astype(np.int64)
    rows = (masks[:, None] >> lanes % WARP) & 1 & (lanes[:, None] // WARP == lanes // WARP) != 0
    own = np.diagonal(rows).copy()
    if warp.ended is not None:  # "all non-exited threads corresponding to membermask" (PTX ISA, vote.sync)
        rows &= ~warp.ended
    missing = rows & ~active
    differ = rows & (masks[:, None] != masks[None, :])
    hint = "let exactly the lanes of the mask execute it together"
    for bad, text in (
        (active & ~own, "its mask lacks this lane, which executes it"),
        (active & missing.any(axis=1), "its mask names lanes that do not execute it"),
        (active & differ.any(axis=1), "lanes of its mask pass a different mask"),
    ):
        if bad.any():
            lane = int(bad.argmax())
            more = f" (lane {int(missing[lane].argmax())})" if "do not execute" in text else ""
            warp.fault(Code.SIM_CONVERGENCE, site, lane, f"{instruction}: {text}{more}", hint)
    return rows


def _source(mode: str, segment: int, lanes: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """The lane that each lane's value comes from (PTX ISA, shfl.sync, Semantics)."""
    b = b & (WARP - 1)
    first = lanes & -segment
    last = first + segment - 1
    match mode:
        case "up":
            source = lanes - b
            return np.where(source >= first, source, lanes)
        case "down":
            source = lanes + b
        case "bfly":
            source = lanes ^ b
        case _:
            source = first | (b & (segment - 1))
    return np.where(source <= last, source, lanes)


def _shfl(op: ptx.ShflSyncOp, t: Translator) -> Step:
    value, lane, result = t.slot(op.value), t.slot(op.lane), t.slot(op.result)
    t.kind(op.value)
    mode, segment, site = op.mode.data, op.segment, site_of(op)
    group = Group("shfl.sync", op.mask, site, t)

    def step(warp: Warp) -> None:
        rows = group.rows(warp)
        given = warp.registers[value]
        lanes = np.arange(warp.lanes)
        b = np.broadcast_to(np.asarray(warp.registers[lane], np.int64), (warp.lanes,))
        warp.registers[result] = _exchange(warp, rows, _source(mode, segment, lanes, b), given, site)

    return step


def _sources_of(mode: str, lanes: Lanes, b: Lanes, c: Lanes) -> tuple[Lanes, Bools]:
    """The lane that each lane's value comes from, and whether its segment has it, by the instruction's operand c (PTX
    ISA, shfl.sync, Semantics).
    """
    segment, b = (c >> 8 & WARP - 1) | -WARP, b & WARP - 1
    last = (lanes & segment) | (c & WARP - 1 & ~segment)
    source = {"up": lanes - b, "down": lanes + b, "bfly": lanes ^ b, "idx": (lanes & segment) | (b & ~segment)}[mode]
    valid = source >= last if mode == "up" else source <= last
    return np.where(valid, source, lanes), valid


def _shfl_valid(op: ptx.ShflSyncValidOp, t: Translator) -> Step:
    value, lane, control = t.slot(op.value), t.slot(op.lane), t.slot(op.control)
    result, valid, mode, site = t.slot(op.result), t.slot(op.valid), op.mode.data, site_of(op)
    group = Group("shfl.sync", op.mask, site, t)

    def step(warp: Warp) -> None:
        rows, lanes = group.rows(warp), np.arange(warp.lanes)
        b, c = (np.broadcast_to(np.asarray(warp.registers[slot], np.int64), (warp.lanes,)) for slot in (lane, control))
        source, warp.registers[valid] = _sources_of(mode, lanes, b, c)
        warp.registers[result] = _exchange(warp, rows, source, warp.registers[value], site)

    return step


def _exchange(warp: Warp, rows: Bools | None, source: Lanes, given: Value, site: Site) -> Value:
    """The values of other lanes. SimulationError (E3208) for those of lanes that do not take part."""
    lanes = np.arange(warp.lanes)
    present = source < warp.lanes
    if rows is not None:
        present &= rows[lanes, np.minimum(source, warp.lanes - 1)]
    bad = warp.live() & ~present
    if bad.any():
        first = int(bad.argmax())
        text = f"shfl.sync: the value comes from lane {int(source[first])}, which does not take part"
        warp.fault(Code.SIM_CONVERGENCE, site, first, text, "name that lane in the mask, or choose another")
    chosen = np.where(present, source, lanes)
    return given[chosen] if varies(given) and given.shape[0] == warp.lanes else given


def _of_groups(warp: Warp, rows: Bools | None, function: Callable[[Bools], Any], dtype: Any) -> Value:
    """A function of each lane's group, evaluated once where all lanes are one group, or all of a warp."""
    active = warp.live()
    if rows is None:
        number = np.arange(warp.lanes) // WARP
        parts = [function(number == warp) for warp in range(-(-warp.lanes // WARP))]
        return np.repeat(np.array(parts, dtype), WARP) if warp.is_several else parts[0]
    if (rows[active] == rows[int(active.argmax())]).all():
        return function(rows[int(active.argmax())])
    return np.array([function(row) if live else 0 for row, live in zip(rows, active, strict=True)], dtype)


def _vote(op: ptx.VoteSyncOp, t: Translator) -> Step:
    predicate, result, mode = t.slot(op.predicate), t.slot(op.result), op.mode.data
    group = Group("vote.sync", op.mask, site_of(op), t)

    def step(warp: Warp) -> None:
        holds = np.broadcast_to(np.asarray(warp.registers[predicate], bool), (warp.lanes,))
        warp.registers[result] = vote(mode, holds, warp, group.rows(warp))

    return step


def vote(mode: str, holds: Bools, warp: Warp, rows: Bools | None) -> Value:
    """The result of a vote in each lane's group, in whose lanes a predicate holds."""

    def of_group(row: Bools) -> Any:
        match mode:
            case "all":
                return bool(holds[row].all())
            case "any":
                return bool(holds[row].any())
            case "uni":
                return bool(holds[row].all() or not holds[row].any())
            case _:
                return bits_of(holds & row)

    return _of_groups(warp, rows, of_group, np.int32 if mode == "ballot" else np.bool_)


def _match(op: ptx.MatchAnySyncOp, t: Translator) -> Step:
    value, result = t.slot(op.value), t.slot(op.result)
    group = Group("match.sync", op.mask, site_of(op), t)
    shared = t.spaces.shared

    def step(warp: Warp) -> None:
        rows = group.rows(warp)
        given = np.broadcast_to(np.asarray(warp.registers[value]), (warp.lanes,))
        parts = given.reshape(-1, min(warp.lanes, WARP) if rows is None else warp.lanes)
        same = (parts[:, :, None] == parts[:, None, :]).reshape(warp.lanes, -1)
        same = same if rows is None else same & rows
        warp.registers[result] = np.array([bits_of(row) for row in same], np.int32)
        if shared.shadow is not None:
            meet_in_exchange(warp, rows)

    return step


_REDUCTIONS: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "min": min,
    "max": max,
    "umin": lambda a, b: min(a & 0xFFFFFFFF, b & 0xFFFFFFFF),
    "umax": lambda a, b: max(a & 0xFFFFFFFF, b & 0xFFFFFFFF),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


_FLOAT_REDUCTIONS: Mapping[str, Callable[[Any, Any], Any]] = {"min": MINIMUM_NUMBER, "max": MAXIMUM_NUMBER}


def _redux(op: ptx.ReduxSyncOp, t: Translator) -> Step:
    value, result, is_float = t.slot(op.value), t.slot(op.result), op.is_float
    kind, *modifiers = op.kind.data.split(".")
    group = Group("redux.sync", op.mask, site_of(op), t)
    dtype = np.dtype(np.float32 if is_float else np.int32)

    def step(warp: Warp) -> None:
        numbers = np.broadcast_to(np.asarray(warp.registers[value], dtype), (warp.lanes,))  # a constant has no type

        def total(row: Bools) -> Any:
            if is_float:
                given = np.abs(numbers[row]) if "abs" in modifiers else numbers[row]
                if "NaN" in modifiers and np.isnan(given).any():
                    return np.float32(np.nan)
                return reduce(_FLOAT_REDUCTIONS[kind], given)
            return wrap_signed(reduce(_REDUCTIONS[kind], numbers[row].tolist()), 32)

        warp.registers[result] = _of_groups(warp, group.rows(warp), total, dtype)

    return step


def _elect(op: ptx.ElectSyncOp, t: Translator) -> Step:
    result = t.slot(op.result)
    group = Group("elect.sync", op.mask, site_of(op), t)

    def step(warp: Warp) -> None:
        rows, lanes = group.rows(warp), np.arange(warp.lanes)
        warp.registers[result] = lanes % WARP == 0 if rows is None else lanes == rows.argmax(axis=1)

    return step


def _activemask(op: ptx.ActivemaskOp, t: Translator) -> Step:
    result = t.slot(op.result)

    def step(warp: Warp) -> None:
        parts = [bits_of(part) for part in warp.live().reshape(-1, min(warp.lanes, WARP))]
        warp.registers[result] = np.repeat(np.array(parts, np.int32), WARP) if warp.is_several else parts[0]

    return step


PTX_LANES: Rules = {
    ptx.ShflSyncOp: _shfl,
    ptx.ShflSyncValidOp: _shfl_valid,
    ptx.VoteSyncOp: _vote,
    ptx.MatchAnySyncOp: _match,
    ptx.ReduxSyncOp: _redux,
    ptx.ElectSyncOp: _elect,
    ptx.ActivemaskOp: _activemask,
}
