# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for copies of tensors and for single executions of copy atoms, by the atoms' tables."""

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ....base.target import WARP
from ....dialects import ptx, tile
from ....dialects.cute.values import unknowns
from ....dialects.ptx.effects import Proxy
from ....dialects.tile.bulk_rules import runs_of
from ....dialects.tile.copy_rules import atom_values, split_atom_mode
from ....dialects.tile.umma_rules import reaches_cells
from ....layout.algebra.core import make_layout, size
from ....layout.atoms.contract import CP_ASYNC_GROUP, AtOnce
from ....layout.atoms.instructions import Custom
from ...arrays.storage import distances
from ..atoms.exchange import Exchange, exchange_of
from ..events import Step
from ..faults import SimulationError, Site, site_of
from ..memory.elements import Elements
from ..memory.ragged_guard import check_all
from ..memory.tensors import check_count, port, tensor_value
from ..ordering import asynchronous
from ..translate import Rules, Translator
from ..values import TensorValue
from ..values.scalars import actual, for_each_layout
from ..warp import Warp
from .predicates import leading_values, one_for_all, read_predicates, under
from .tile_bulk_copies import BulkMove
from .tile_packages import package_copy
from .tile_tensor_memory import Execution, executions
from .tile_tma import tma_copy

Flags = NDArray[np.bool_]
"""Predicates in each active lane: an array (active, values)."""
Move = Callable[[Warp, TensorValue, TensorValue, Flags | None], None]
Indices = NDArray[np.int64]


def _copy(op: tile.CopyOp, t: Translator) -> Step | None:
    if op.tma is not None:
        t.launch.leave_lockstep()
        return tma_copy(op, t)
    source, target = t.slot(op.src), t.slot(op.dst)
    check_count(op, op.src.type.plain_layout)
    count, first = int(size(op.src.type.plain_layout)), len(unknowns(op.src.type.layout.data))
    atom = op.copy_atom
    by_scalars = partial(_move, op, t, first) if atom is None or not atom.atom.is_bulk else _bulk(op, atom, t)
    move_of = cache(by_scalars)  # one for each set of run-time strides
    if not first and not unknowns(op.dst.type.layout.data):
        move_of(())  # refuses unsupported copies before anything runs
    flags, site = read_predicates(op, t), site_of(op)

    def step(warp: Warp) -> None:
        registers = warp.registers
        warp.launch.spend(count * warp.warps, site)
        src, dst = tensor_value(registers[source]), tensor_value(registers[target])

        def run(scalars: tuple[int, ...]) -> None:
            given = None if flags is None else flags(warp)
            for tensor in (src, dst):
                if tensor.guard is not None:
                    check_all(warp, op, tensor.guard, given)
            move_of(scalars)(warp, src, dst, given)

        for_each_layout(warp, (*src.scalars, *dst.scalars), run)

    return step


def _places(op: tile.CopyOp, scalars: tuple[int, ...], first: int) -> tuple[Indices, Indices]:
    """The indices of all elements in source and destination, for the `?` of the source, `first` of them, and of the
    destination.
    """
    src, dst = op.src.type.layout.data, op.dst.type.layout.data
    return distances(actual(src, scalars[:first])), distances(actual(dst, scalars[first:]))


def _move(op: tile.CopyOp, t: Translator, first: int, scalars: tuple[int, ...]) -> Move:
    """How a copy moves, for the `?` of its source, `first` of them, and of its destination."""
    src, dst = _places(op, scalars, first)
    atom = op.copy_atom
    widest = 128 if atom is None else atom.atom.max_bits
    if widest is not None:
        return _elementwise(op, op.src.type, op.dst.type, src, dst, widest // 8, t)
    assert atom is not None
    if isinstance(atom.atom.instruction, Custom):
        sent, received = atom_values(atom)
        splits = [split_atom_mode(x.layout.data, n, atom) for x, n in ((op.src.type, sent), (op.dst.type, received))]
        assert splits[0] is not None, "the verifier checks this"
        assert splits[1] is not None, "the verifier checks this"
        begins = list(zip(src[::sent].tolist(), dst[::received].tolist(), strict=True))
        return package_copy(op, atom.atom.contract, (splits[0][0], splits[1][0]), begins, t)
    return _by_atom(op, atom, op.src.type, op.dst.type, src, dst, t)


def _atom_call(op: tile.AtomCallOp, t: Translator) -> Step:
    source, target = t.slot(op.src), t.slot(op.dst)
    src, dst = op.src.type, op.dst.type
    record = op.atom.atom
    assert isinstance(src, tile.TensorType | ptx.PtrType)
    assert isinstance(dst, tile.TensorType | ptx.PtrType)
    first = distances(src.plain_layout if isinstance(src, tile.TensorType) else make_layout(record.src[1].size))
    second = distances(dst.plain_layout if isinstance(dst, tile.TensorType) else make_layout(record.dst[1].size))
    if record.is_bulk:
        move = BulkMove(op, record.src_bits[1].size // 8, t).at([(0, 0)])
    else:
        move = _by_atom(op, op.atom, src, dst, first, second, t)
    count = None if op.count is None else t.slot(op.count)

    def step(warp: Warp) -> None:
        registers = warp.registers
        flags = None if count is None else np.arange(len(first)) < warp.select(registers[count])[:, None]
        move(warp, tensor_value(registers[source]), tensor_value(registers[target]), flags)

    return step


def _bulk(op: tile.CopyOp, atom: tile.CopyAtomAttr, t: Translator) -> Callable[[tuple[int, ...]], Move]:
    """How a copy by bulk copies moves, for the `?` of its source and destination."""
    run, starts = runs_of(atom, op.src.type, op.dst.type)
    copies, begins = BulkMove(op, run.size * op.src.type.element_bits // 8, t), distances(starts)
    first = len(unknowns(op.src.type.layout.data))

    def move_of(scalars: tuple[int, ...]) -> Move:
        src, dst = _places(op, scalars, first)
        places = list(zip(src[begins].tolist(), dst[begins].tolist(), strict=True))
        return copies.at(places)

    return move_of


def _elementwise(
    op: tile.CopyOp,
    src: tile.TensorType,
    dst: tile.TensorType,
    first: Indices,
    second: Indices,
    widest: int,
    t: Translator,
) -> Move:
    """Moves each element by itself; elements that lie together on both sides in groups of up to `widest`
    bytes. Elements narrower than a byte are moved by the byte, as they lie in the source.
    """
    reader, writer, least = port(op, src, "load", t), port(op, dst, "store", t), src.per_byte
    order = np.argsort(first, kind="stable") if least > 1 else np.arange(len(first))
    first, second = first[order], second[order]
    group = _run(first, second, max(1, widest * 8 // src.element_bits))
    if group < least or (first[::least] % least).any() or (second[::least] % least).any():
        raise SimulationError(
            Code.PACKED_ELEMENTS,
            "the elements are not adjacent by the byte in source and destination",
            f"copy at least {least} adjacent elements, starting at a multiple of {least}",
            site=site_of(op),
        )
    starts = [(int(first[i]), int(second[i])) for i in range(0, len(first), group)]
    singles = [(int(a), int(b)) for a, b in zip(first[::least], second[::least], strict=True)]

    def element(warp: Warp, source: TensorValue, target: TensorValue, i: int, j: int) -> None:
        writer.store(warp, target, j, reader.load(warp, source, i, least))

    def move(warp: Warp, source: TensorValue, target: TensorValue, flags: Flags | None) -> None:
        chosen = None if flags is None else flags[:, order][:, ::least]
        for position, (a, b) in enumerate(starts):
            begin, end = position * group // least, (position + 1) * group // least
            whole = chosen is None or chosen[:, begin:end].all()
            if whole and reader.adjacent(warp, source, a, group) and writer.adjacent(warp, target, b, group):
                writer.store(warp, target, b, reader.load(warp, source, a, group))
                continue
            for number, (i, j) in enumerate(singles[begin:end], begin):
                under(warp, None if chosen is None else chosen[:, number], partial(element, warp, source, target, i, j))

    return move


def _run(first: Indices, second: Indices, limit: int) -> int:
    """The largest power of two, up to `limit`, such that both index lists fall into runs of that length."""
    count = limit
    while count > 1:
        if len(first) % count == 0 and all(
            (indices.reshape(-1, count) == indices[::count, None] + np.arange(count)).all()
            for indices in (first, second)
        ):
            return count
        count //= 2
    return 1


def _by_atom(
    op: tile.CopyOp | tile.AtomCallOp,
    atom: tile.CopyAtomAttr,
    src: tile.TensorType | ptx.PtrType,
    dst: tile.TensorType | ptx.PtrType,
    first: Indices,
    second: Indices,
    t: Translator,
) -> Move:
    """Executes an atom as often as the operands hold its values."""
    record = atom.atom
    if reaches_cells(record):
        return _in_turn(executions(op, record, src, dst, first, second, t), record.src[1].size, site_of(op))
    lanes = max(WARP, record.threads)
    exchange = exchange_of(record, lanes) if lanes == WARP else None
    site = site_of(op)
    if exchange is None:
        raise SimulationError(Code.SIM_UNSUPPORTED, f"the simulator does not execute atom {record.name}", site=site)
    bits, count = record.val_bits, exchange.values_in
    completion = record.destination.completion
    is_async = completion == CP_ASYNC_GROUP
    if not is_async and not isinstance(completion, AtOnce):
        text = f"the simulator does not execute atom {record.name}, which completes otherwise than cp.async"
        raise SimulationError(Code.SIM_UNSUPPORTED, text, site=site)
    reader = port(op, src, "async" if is_async else "load", t, bits)
    writer = port(op, dst, "async" if is_async else "store", t, bits)
    given_by = [Elements(reader, row) for row in first.reshape(-1, exchange.values_in)]
    taken_by = [Elements(writer, row) for row in second.reshape(-1, exchange.values_out)]
    put = partial(_start, record.destination.proxy) if is_async else _scatter
    crosses, writers, zfill = exchange.crosses_lanes, exchange.writers, record.zfill
    get = partial(_exchange, exchange) if crosses else _gather

    def execute(warp: Warp, source: TensorValue, target: TensorValue, a: Elements, b: Elements) -> None:
        if crosses and not warp.is_whole:
            text = f"{warp.active} lanes execute {record.name}; all {WARP} of the warp must"
            warp.fault(Code.SIM_CONVERGENCE, site, None, text, "move it out of divergent control flow")
        content = get(warp, source, a)
        if crosses and not writers.all():
            writing = np.tile(writers, warp.warps)
            under(warp, writing, lambda: put(warp, target, b, content[writing]))
        else:
            put(warp, target, b, content)

    def move(warp: Warp, source: TensorValue, target: TensorValue, flags: Flags | None) -> None:
        for number, (a, b) in enumerate(zip(given_by, taken_by, strict=True)):
            given = None if flags is None else flags[:, number * count : (number + 1) * count]
            if given is not None and zfill:
                leading = leading_values(warp, site, given) * bits // 8
                assert reader.space is not None
                access, address = reader.accesses[count * bits // 8], reader.address(source, a.first)
                put(warp, target, b, reader.space.load_leading(warp, access, address, leading))
                continue
            chosen = None if given is None else one_for_all(warp, site, given)
            under(warp, chosen, partial(execute, warp, source, target, a, b))

    return move


def _in_turn(calls: Sequence[Execution], values: int, site: Site) -> Move:
    """Executions of an atom of this many values one after the other."""

    def move(warp: Warp, source: TensorValue, target: TensorValue, flags: Flags | None) -> None:
        for number, call in enumerate(calls):
            given = None if flags is None else flags[:, number * values : (number + 1) * values]
            chosen = None if given is None else one_for_all(warp, site, given)
            under(warp, chosen, partial(call, warp, source, target))

    return move


def _exchange(exchange: Exchange, warp: Warp, source: TensorValue, values: Elements) -> NDArray[np.uint8]:
    """The values that each lane gets from an atom that moves them between lanes; only lanes whose values are used read
    them.
    """
    bits = values.port.element_bits
    if exchange.readers.all():
        return exchange.move(_gather(warp, source, values), bits)
    content = np.zeros((warp.active, exchange.values_in * bits // 8), np.uint8)
    reading = np.tile(exchange.readers, warp.warps)

    def read() -> None:
        content[reading] = _gather(warp, source, values)

    under(warp, reading, read)
    return exchange.move(content, bits)


def _gather(warp: Warp, source: TensorValue, values: Elements) -> NDArray[np.uint8]:
    """The bytes of a lane's values of one execution. In registers the values may lie apart, in memory they do
    not.
    """
    if values.port.space is None:
        return values.load(warp, source)
    return values.port.load(warp, source, values.first, len(values.indices))


def _scatter(warp: Warp, target: TensorValue, values: Elements, content: NDArray[np.uint8]) -> None:
    """Writes the bytes of a lane's values of one execution."""
    if values.port.space is None:
        values.store(warp, target, content)
    else:
        values.port.store(warp, target, values.first, content)


def _start(proxy: Proxy, warp: Warp, target: TensorValue, values: Elements, content: NDArray[np.uint8]) -> None:
    """Starts writing the bytes of a lane's values of one execution of cp.async."""
    writer = values.port
    assert writer.space is not None
    access = writer.accesses[content.shape[1]]
    rows = writer.space.claim(warp, access, writer.address(target, values.first))
    asynchronous.start(warp, writer.site, proxy, writer.space, rows, access.width, content)


TILE_COPIES: Rules = {tile.CopyOp: _copy, tile.AtomCallOp: _atom_call}
