# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for instructions that packages define, made only from their contracts."""

from collections.abc import Mapping
from typing import assert_never

import numpy as np

from ....base.errors import Code
from ....base.target import WARP
from ....dialects import ptx, tile
from ....layout.atoms.contract import Agent, AsChosen, AtOnce, AtWait, InGroup, OnArrivals, OnBytes, Role
from ....layout.atoms.custom import Allocates, Commits, CustomInstruction, Executes, Frees, Given, Waits
from ...engine import NumPyArray
from ..atoms.custom import Elements, Matrix, Rows, pipe_of, proxy_of
from ..faults import Site, site_of
from ..launch import Completion
from ..memory.arena import Access
from ..ordering import asynchronous
from ..ordering.asynchronous import AsyncOperation, InFlight, Source
from ..translate import Rules, Step, Translator
from ..warp import Warp
from .ptx_mbarrier import Barriers


def executing(warp: Warp, record: CustomInstruction, site: Site) -> NumPyArray:
    """The lanes that execute an instruction. A fault unless they are those of its contract."""
    lanes = warp.lane_numbers()
    match record.contract.agent:
        case Agent.ELECTED | Agent.THREAD:
            expected, hint = 1, "let one thread execute it: ptx.elect.sync chooses it"
        case Agent.WARP:
            expected, hint = WARP, "let all lanes of the warp execute it"
        case Agent.WARPGROUP | Agent.BLOCK | Agent.BLOCK_PAIR as agent:
            raise AssertionError(f"{record.name} is executed by {agent.value}, which its record rejects")
        case _ as other:
            assert_never(other)
    if len(lanes) != expected:
        text = f"{len(lanes)} lanes of the warp execute {record.name}, which is an instruction of "
        text += record.contract.agent.value
        warp.fault(Code.SIM_CONVERGENCE, site, int(lanes[0]), text, hint)
    return lanes


def _custom(op: ptx.CustomOp | tile.InstructionOp, t: Translator) -> Step:
    record, site = op.record, site_of(op)
    slots = {operand.role: t.slot(value) for operand, value in zip(record.operands, op.args, strict=True)}
    t.launch.leave_lockstep()
    match record.effect:
        case Executes():
            return _execute(op, record, slots, t)
        case Waits():

            def wait(warp: Warp) -> None:
                executing(warp, record, site)
                asynchronous.wait_for(warp, record.name)
                _show(warp, t)

            return wait
        case Commits():
            barrier = op.args[[operand.role for operand in record.operands].index(Role.BARRIER)]
            barriers = Barriers(op, barrier, t, "async")

            def commit(warp: Warp) -> None:
                executing(warp, record, site)
                for reached, lanes in barriers.by_row(warp):
                    reached.track(asynchronous.tie(warp, site, lanes, record.name), warp, lanes)
                    if warp.launch.completion is Completion.EARLY:
                        reached.land()

            return commit
        case Allocates(space, units):
            cells = t.spaces.cells(space)
            own = Access(site, space.ptx, "matrix", 4)
            target = Matrix(op, record.contract.operand(Role.DESTINATION), slots[Role.DESTINATION], t)

            def allocate(warp: Warp) -> None:
                lanes = executing(warp, record, site)
                address = np.array([cells.allocate(warp, own, units)], target.dtype)
                rows = target.in_memory(warp, lanes)
                _write_now(target, warp, rows, address)

            return allocate
        case Frees(units):
            slot, space = slots[Role.SOURCE], record.contract.operand(Role.SOURCE).spaces[0]
            cells, own = t.spaces.cells(space), Access(site, space.ptx, "matrix", 4)

            def free(warp: Warp) -> None:
                executing(warp, record, site)
                cells.free(warp, own, int(warp.select(warp.registers[slot])[0]), units)

            return free
        case _ as other:
            assert_never(other)


def _execute(
    op: ptx.CustomOp | tile.InstructionOp, record: CustomInstruction, slots: Mapping[Role, int], t: Translator
) -> Step:
    site = site_of(op)
    assert isinstance(record.effect, Executes)
    arithmetic = record.effect.arithmetic
    matrices = {
        operand.role: Matrix(op, operand, slots[operand.role], t)
        for operand in record.operands
        if record.given(operand) is Given.MATRIX
    }
    flags = {o.role: slots[o.role] for o in record.operands if record.given(o) in (Given.FLAG, Given.COUNT)}
    roles = [operand.role for operand in record.operands]
    barriers = Barriers(op, op.args[roles.index(Role.BARRIER)], t, "async") if Role.BARRIER in roles else None

    def step(warp: Warp) -> None:
        lanes = executing(warp, record, site)
        elements = {role: warp.select(warp.registers[slot])[0] for role, slot in flags.items()}
        accumulates = bool(elements.get(Role.ACCUMULATE, True))
        superseded = {role: _pending(warp, matrix, lanes) for role, matrix in matrices.items() if matrix.operand.writes}
        for role, matrix in matrices.items():
            if matrix.operand.reads and (accumulates or not matrix.operand.writes):
                elements[role] = matrix.read(warp, lanes, superseded.get(role))
        results = arithmetic(elements)
        for role, matrix in matrices.items():
            if matrix.operand.writes:
                content = np.asarray(results[role]).reshape(-1).astype(matrix.dtype)
                _write(warp, matrix, lanes, content, _sources(warp, matrices, lanes), superseded[role], barriers)

        _show(warp, t)

    return step


def _show(warp: Warp, t: Translator) -> None:
    """Tells the observer of time of work that has begun or ended."""
    journal = t.spaces.global_.journal
    if journal is not None and journal.schedule is not None:
        journal.schedule.polls(warp)


def _pending(warp: Warp, matrix: Matrix, lanes: NumPyArray) -> AsyncOperation | None:
    """The operation of the same pipe and thread that is writing the same elements: the pipe keeps their order."""
    if matrix.space is None or not (pipe := pipe_of(matrix.operand)):
        return None
    rows = matrix.in_memory(warp, lanes).rows
    return next(
        (
            other
            for other in reversed(warp.state(InFlight).operations)
            if other.pipe == pipe and other.memory is matrix.space and np.array_equal(other.rows, rows)
            and bool(other.flying.all())
        ),
        None,
    )  # fmt: skip


def _sources(warp: Warp, matrices: Mapping[Role, Matrix], lanes: NumPyArray) -> tuple[Source, ...]:
    """The rows that an operation reads until it is complete."""
    sources: list[Source] = []
    for matrix in matrices.values():
        if matrix.space is not None and not matrix.operand.writes and not isinstance(matrix.operand.completion, AtOnce):
            rows = matrix.in_memory(warp, lanes)
            sources.append(Source(matrix.space, rows.rows, matrix.width, rows.lanes))
    return tuple(sources)


def _write(
    warp: Warp,
    matrix: Matrix,
    lanes: NumPyArray,
    content: Elements,
    sources: tuple[Source, ...],
    superseded: AsyncOperation | None,
    barriers: Barriers | None,
) -> None:
    """Writes the elements of a matrix, at once or when its completion says."""
    if superseded is not None:
        superseded.flying[:] = False
        assert matrix.space is not None
        matrix.space.lift(superseded.rows, superseded.width)
    match matrix.operand.completion:
        case AtOnce():
            if matrix.space is not None:
                _write_now(matrix, warp, matrix.in_memory(warp, lanes), content)
                return
            base = matrix.addresses(warp)
            for value in range(matrix.indices.shape[1]):
                part = np.ascontiguousarray(content[matrix.indices[:, value]]).view(np.uint8)
                matrix.t.spaces.local.store(
                    warp, matrix.site, base + value * matrix.width, part.reshape(-1, matrix.width)
                )
        case AtWait() | OnArrivals():
            warp.state(InFlight).operations.extend(_start(warp, matrix, lanes, content, sources))
        case OnBytes():
            assert barriers is not None, "the contract has an mbarrier"
            (operation,) = _start(warp, matrix, lanes, content, sources)
            warp.state(InFlight).loads.append(operation)
            for barrier, _ in barriers.by_row(warp):
                barrier.add(operation, content.nbytes)
                if warp.launch.completion is Completion.EARLY:
                    barrier.land()
        case InGroup() | AsChosen():
            raise AssertionError("the record rejects it")
        case _ as other:
            assert_never(other)


def _start(
    warp: Warp, matrix: Matrix, lanes: NumPyArray, content: Elements, sources: tuple[Source, ...]
) -> list[AsyncOperation]:
    """The operations in flight that write a matrix: one, or one for each register of a fragment."""
    proxy, pipe = proxy_of(matrix.operand), pipe_of(matrix.operand)
    source, further = (sources[0], sources[1:]) if sources else (None, ())
    warp.block.cluster.reads_late |= source is not None
    if matrix.space is not None:
        rows = matrix.in_memory(warp, lanes)
        bytes = np.ascontiguousarray(content[rows.elements]).view(np.uint8).reshape(-1, matrix.width)
        matrix.claim(warp, rows, bytes)
        matrix.space.hold(warp, rows.rows, matrix.width)
        groups = np.zeros(len(rows.rows), np.int64)
        told = not isinstance(matrix.operand.completion, AtWait)
        of_all = matrix.site, proxy, warp, rows.lanes, groups, matrix.space, rows.rows, matrix.width, bytes, source
        return [AsyncOperation(*of_all, pipe, further, told)]
    local, started = matrix.t.spaces.local, list[AsyncOperation]()
    for value in range(matrix.indices.shape[1]):
        at = matrix.addresses(warp) + value * matrix.width
        rows = local.claim(warp, matrix.site, at, matrix.width)
        bytes = np.ascontiguousarray(content[matrix.indices[:, value]]).view(np.uint8).reshape(-1, matrix.width)
        local.hold(warp, rows, matrix.width)
        groups = np.zeros(len(rows), np.int64)
        started.append(
            AsyncOperation(
                matrix.site, proxy, warp, lanes, groups, local, rows, matrix.width, bytes, source, pipe, further
            )
        )
        source, further = None, ()
    return started


def _write_now(matrix: Matrix, warp: Warp, rows: Rows, content: Elements) -> None:
    """Writes elements to memory."""
    assert matrix.space is not None
    bytes = np.ascontiguousarray(content[rows.elements]).view(np.uint8).reshape(-1, matrix.width)
    matrix.claim(warp, rows, bytes)
    time, agents = warp.launch.clock, warp.agents[rows.lanes]
    matrix.space.land(rows.rows, matrix.width, bytes, time, agents)


PTX_CUSTOM: Rules = {ptx.CustomOp: _custom, tile.InstructionOp: _custom}
