# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for instructions that packages define, from their contracts alone."""

from collections.abc import Mapping
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from ....base.element_types import BY_PTX
from ....base.errors import Code as ErrorCode
from ....base.spaces import LANE_SHIFT, Bytes, Cells
from ....base.target import WARP, WARPGROUP
from ....dialects import ptx, tile
from ....dialects.ptx.base import PtrType
from ....layout.algebra.core import cosize, size
from ....layout.atoms import contract
from ....layout.atoms.contract import Agent, AsChosen, AtOnce, AtWait, InGroup, OnArrivals, OnBytes, Operand, Role
from ....layout.atoms.custom import Allocates, Commits, CustomInstruction, Executes, Frees, Given, Waits
from ...engine import numpy_type
from ..faults import Site, site_of
from ..launch import Completion
from ..memory import bulk
from ..memory.refusals import out_of_bounds, race
from ..memory.spaces import Access, Space
from ..ordering import asynchronous
from ..ordering.asynchronous import Operation, Proxy, Source
from ..translate import Rules, Step, Translator
from ..values import TensorValue, Value, varies
from ..warp import Warp
from .ptx_mbarrier import Barriers

Elements = NDArray[Any]


class _Matrix:
    """How one operation reaches a matrix: the elements of each executing thread, and where they are."""

    def __init__(self, op: ptx.CustomOp | tile.InstructionOp, operand: Operand, slot: int, t: Translator) -> None:
        record = op.record
        self.operand, self.slot, self.site, self.t = operand, slot, site_of(op), t
        element = BY_PTX[operand.element]
        self.dtype, self.width = np.dtype(numpy_type(element)), element.bits // 8
        layout, ids = operand.layout, record.contract.ids
        threads, values = size(layout[0]), size(layout[1])
        self.indices = np.array([[layout(i, v) for v in range(values)] for i in range(threads)])
        """By thread and value, the element of the matrix."""
        self.lanes = np.array([ids(i) for i in range(threads)])
        self.count, self.by_warp = cosize(layout), record.contract.agent is Agent.WARP
        place = record.places.get(operand.role)
        self.places = None if place is None else np.array([place(i) for i in range(size(place))], np.int64)
        type = op.args[record.operands.index(operand)].type
        assert isinstance(type, PtrType | tile.TensorType)
        self.row = type.space.data
        space = None if place is None else t.spaces.of(self.row)
        self.access = None if space is None else t.access(op, space.row, "matrix", self.width)
        self.space = space

    def addresses(self, warp: Warp) -> Value:
        """The address of the matrix."""
        value = warp.registers[self.slot]
        return value.address if isinstance(value, TensorValue) else value

    def in_memory(self, warp: Warp, executing: NDArray[Any]) -> "_Rows":
        """The rows of all elements, for the executing lanes. A fault for one that is outside of its space, or that the
        warp does not reach.
        """
        assert self.space is not None
        assert self.access is not None
        assert self.places is not None
        address = self.addresses(warp)
        given = address[executing] if varies(address) else np.full(len(executing), address)
        if (given != given[0]).any():
            lane = int(executing[(given != given[0]).argmax()])
            text = f"the lanes of a warp give different addresses of {self.operand.role.value}"
            warp.fault(ErrorCode.SIM_CONVERGENCE, self.site, lane, text, "compute it from values that all lanes share")
        at = int(given[0]) + self.places[self.indices.ravel()]
        lanes = np.repeat(executing if self.by_warp else executing[:1], self.indices.shape[1])
        self._check_reach(warp, at, lanes)
        offsets, span = self.space.offsets(at), self.space.arena.span
        outside = (offsets < 0) | (offsets > span - self.width)
        if outside.any():
            place = int(outside.argmax())
            _spread(warp, lanes)
            out_of_bounds(self.space, warp, self.access, place, int(at[place]), loading=not self.operand.writes)
        self.access.requests += 1
        self.access.threads += len(executing)
        return _Rows((offsets + warp.block.rank * span) // self.width, lanes, self.indices.ravel())

    def _check_reach(self, warp: Warp, at: NDArray[Any], lanes: NDArray[Any]) -> None:
        match self.row.form:
            case Bytes():
                return
            case Cells(warp_lanes=reached):
                pass
        if not self.by_warp:
            return
        first = warp.index % (WARPGROUP // WARP) * reached
        cells = at >> LANE_SHIFT
        wrong = (cells < first) | (cells >= first + reached)
        if wrong.any():
            place = int(wrong.argmax())
            text = f"reaches lane {cells[place]} of {self.row}; warp {warp.index} reaches lanes {first} to "
            text += f"{first + reached - 1}"
            hint = f"give each warp of a warpgroup the cells of its own {reached} lanes"
            warp.fault(ErrorCode.SIM_OUT_OF_BOUNDS, self.site, int(lanes[place]), text, hint)

    def read(self, warp: Warp, executing: NDArray[Any], pending: Operation | None) -> Elements:
        """The elements of the matrix. The faults of reads."""
        matrix = np.zeros(self.count, self.dtype)
        if self.space is None:
            base = self.addresses(warp)
            for value in range(self.indices.shape[1]):
                content = self.t.spaces.local.load(warp, self.site, base + value * self.width, self.width)
                matrix[self.indices[:, value]] = content.view(self.dtype)[:, 0]
            return matrix
        rows = self.in_memory(warp, executing)
        content = self._content(warp, rows) if pending is None else pending.content
        matrix[rows.elements] = np.ascontiguousarray(content).view(self.dtype)[:, 0]
        return matrix

    def _content(self, warp: Warp, rows: "_Rows") -> NDArray[np.uint8]:
        assert self.space is not None
        assert self.access is not None
        if proxy_of(self.operand) is Proxy.ASYNC:
            return bulk.read(self.space, warp, self.access, int(rows.lanes[0]), rows.rows)
        before = warp.mask_state()
        _spread(warp, rows.lanes)
        content = self.space.read_rows(warp, self.access, rows.rows)
        warp.restore(before)
        return content

    def claim(self, warp: Warp, rows: "_Rows", content: NDArray[np.uint8]) -> None:
        """Checks that the rows may be written. The faults of writes."""
        assert self.space is not None
        assert self.access is not None
        if proxy_of(self.operand) is Proxy.ASYNC:
            bulk.claim(self.space, warp, self.access, int(rows.lanes[0]), rows.rows, content)
            return
        before = warp.mask_state()
        _spread(warp, rows.lanes)
        self.space.check_writable(warp, self.access, rows.rows)
        conflict = None if self.space.shadow is None else self.space.shadow.write(warp, rows.rows, self.width)
        if conflict is not None:
            race(self.space, warp, self.access, rows.rows, conflict, "writes")
        warp.restore(before)


def _spread(warp: Warp, lanes: NDArray[Any]) -> None:
    """Makes lanes active, each as often as `lanes` has it: each of several rows of memory is that of one access."""
    warp.mask = np.isin(np.arange(warp.lanes), lanes)
    warp.active, warp.active_lanes = len(lanes), lanes


class _Rows:
    """Rows of memory, the lane of each, and the element of the matrix that each holds."""

    def __init__(self, rows: NDArray[Any], lanes: NDArray[Any], elements: NDArray[Any]) -> None:
        self.rows, self.lanes, self.elements = rows, lanes, elements


def proxy_of(operand: Operand) -> Proxy:
    """The proxy by which an operand is reached, as the order of accesses knows them."""
    match operand.proxy:
        case contract.Proxy.GENERIC | contract.Proxy.TENSOR:
            return Proxy.GENERIC
        case contract.Proxy.ASYNC | contract.Proxy.TENSORMAP:
            return Proxy.ASYNC
        case _ as other:
            assert_never(other)


def pipe_of(operand: Operand) -> str:
    """The instruction that waits for an effect or commits it; empty if none does."""
    match operand.completion:
        case AtWait(wait):
            return wait
        case OnArrivals(commit):
            return commit
        case AtOnce() | OnBytes() | InGroup() | AsChosen():
            return ""
        case _ as other:
            assert_never(other)


def executing(warp: Warp, record: CustomInstruction, site: Site) -> NDArray[Any]:
    """The lanes that execute an instruction. A fault unless they are those of its contract."""
    lanes = warp.lane_numbers()
    match record.contract.agent:
        case Agent.ELECTED | Agent.THREAD:
            expected, hint = 1, "let one thread execute it: ptx.elect.sync chooses it"
        case Agent.WARP:
            expected, hint = WARP, "let all lanes of the warp execute it"
        case Agent.WARPGROUP | Agent.BLOCK | Agent.BLOCK_PAIR as agent:
            raise AssertionError(f"{record.name} is executed by {agent.value}, which its record refuses")
        case _ as other:
            assert_never(other)
    if len(lanes) != expected:
        text = f"{len(lanes)} lanes of the warp execute {record.name}, which is an instruction of "
        text += record.contract.agent.value
        warp.fault(ErrorCode.SIM_CONVERGENCE, site, int(lanes[0]), text, hint)
    return lanes


def _custom(op: ptx.CustomOp | tile.InstructionOp, t: Translator) -> Step:
    record, site = op.record, site_of(op)
    slots = {operand.role: t.slot(value) for operand, value in zip(record.operands, op.args, strict=True)}
    t.launch.apart()
    match record.effect:
        case Executes():
            return _execute(op, record, slots, t)
        case Waits():

            def wait(warp: Warp) -> None:
                executing(warp, record, site)
                asynchronous.wait_for(warp, record.name)

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
            target = _Matrix(op, record.contract.operand(Role.DESTINATION), slots[Role.DESTINATION], t)

            def allocate(warp: Warp) -> None:
                lanes = executing(warp, record, site)
                address = np.array([cells.allocate(warp, own, units)], target.dtype)
                rows = target.in_memory(warp, lanes[:1])
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
        operand.role: _Matrix(op, operand, slots[operand.role], t)
        for operand in record.operands
        if record.given(operand) is Given.MATRIX
    }
    flags = {o.role: slots[o.role] for o in record.operands if record.given(o) in (Given.FLAG, Given.COUNT)}
    roles = [operand.role for operand in record.operands]
    barriers = Barriers(op, op.args[roles.index(Role.BARRIER)], t, "async") if Role.BARRIER in roles else None

    def step(warp: Warp) -> None:
        lanes = executing(warp, record, site)
        elements: dict[Role, Any] = {role: warp.select(warp.registers[slot])[0] for role, slot in flags.items()}
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

    return step


def _pending(warp: Warp, matrix: _Matrix, lanes: NDArray[Any]) -> Operation | None:
    """The operation of the same pipe and thread that is writing the same elements: the pipe keeps their order."""
    if matrix.space is None or not (pipe := pipe_of(matrix.operand)):
        return None
    rows = matrix.in_memory(warp, lanes).rows
    return next(
        (
            other
            for other in reversed(warp.operations)
            if other.pipe == pipe and other.memory is matrix.space and np.array_equal(other.rows, rows)
            and bool(other.flying.all())
        ),
        None,
    )  # fmt: skip


def _sources(warp: Warp, matrices: Mapping[Role, _Matrix], lanes: NDArray[Any]) -> list[Source]:
    """The rows that an operation reads until it is complete: of one memory, as one source."""
    by_space: dict[int, tuple[Space, int, list[_Rows]]] = {}
    for matrix in matrices.values():
        if matrix.space is not None and not matrix.operand.writes and not isinstance(matrix.operand.completion, AtOnce):
            _, _, rows = by_space.setdefault(id(matrix.space), (matrix.space, matrix.width, []))
            rows.append(matrix.in_memory(warp, lanes))
    return [
        Source(space, np.concatenate([r.rows for r in rows]), width, np.concatenate([r.lanes for r in rows]))
        for space, width, rows in by_space.values()
    ]


def _write(
    warp: Warp,
    matrix: _Matrix,
    lanes: NDArray[Any],
    content: Elements,
    sources: list[Source],
    superseded: Operation | None,
    barriers: Barriers | None,
) -> None:
    """Writes the elements of a matrix, at once or when its completion says."""
    source = sources[0] if sources else None
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
            warp.operations.extend(_start(warp, matrix, lanes, content, source))
        case OnBytes():
            assert barriers is not None, "the contract has an mbarrier"
            (operation,) = _start(warp, matrix, lanes, content, source)
            warp.loads.append(operation)
            for barrier, _ in barriers.by_row(warp):
                barrier.add(operation, content.nbytes)
                if warp.launch.completion is Completion.EARLY:
                    barrier.land()
        case InGroup() | AsChosen():
            raise AssertionError("the record refuses it")
        case _ as other:
            assert_never(other)


def _start(
    warp: Warp, matrix: _Matrix, lanes: NDArray[Any], content: Elements, source: Source | None
) -> list[Operation]:
    """The operations in flight that write a matrix: one, or one for each register of a fragment."""
    proxy, pipe = proxy_of(matrix.operand), pipe_of(matrix.operand)
    warp.block.cluster.reads_late |= source is not None
    if matrix.space is not None:
        rows = matrix.in_memory(warp, lanes)
        bytes = np.ascontiguousarray(content[rows.elements]).view(np.uint8).reshape(-1, matrix.width)
        matrix.claim(warp, rows, bytes)
        matrix.space.hold(warp, rows.rows, matrix.width)
        groups = np.zeros(len(rows.rows), np.int64)
        return [
            Operation(
                matrix.site, proxy, warp, rows.lanes, groups, matrix.space, rows.rows, matrix.width, bytes, source, pipe
            )
        ]
    local, started = matrix.t.spaces.local, list[Operation]()
    for value in range(matrix.indices.shape[1]):
        at = matrix.addresses(warp) + value * matrix.width
        rows = local.claim(warp, matrix.site, at, matrix.width)
        bytes = np.ascontiguousarray(content[matrix.indices[:, value]]).view(np.uint8).reshape(-1, matrix.width)
        local.hold(warp, rows, matrix.width)
        groups = np.zeros(len(rows), np.int64)
        started.append(
            Operation(matrix.site, proxy, warp, lanes, groups, local, rows, matrix.width, bytes, source, pipe)
        )
        source = None
    return started


def _write_now(matrix: _Matrix, warp: Warp, rows: _Rows, content: Elements) -> None:
    """Writes elements to memory."""
    assert matrix.space is not None
    bytes = np.ascontiguousarray(content[rows.elements]).view(np.uint8).reshape(-1, matrix.width)
    matrix.claim(warp, rows, bytes)
    time, agents = warp.launch.clock, warp.agents[rows.lanes]
    matrix.space.land(rows.rows, matrix.width, bytes, time, agents)


PTX_CUSTOM: Rules = {ptx.CustomOp: _custom, tile.InstructionOp: _custom}
