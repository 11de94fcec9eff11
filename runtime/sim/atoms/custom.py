# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The matrices of instructions that packages define: their elements, and the rows of memory that hold them."""

from typing import TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from ....base.element_types import BY_PTX
from ....base.errors import Code
from ....base.spaces import LANE_SHIFT, Bytes, Cells
from ....base.target import WARP, WARPGROUP
from ....dialects import ptx, tile
from ....dialects.ptx.base import PtrType
from ....layout.algebra.core import cosize, size
from ....layout.atoms.contract import Agent, AsChosen, AtOnce, AtWait, InGroup, OnArrivals, OnBytes, Operand, Proxy
from ...engine import NumPyArray, numpy_type
from ..faults import site_of
from ..memory import bulk
from ..memory.refusals import out_of_bounds, race
from ..ordering.asynchronous import AsyncOperation
from ..translate import Translator
from ..values import TensorValue, Value, varies
from ..warp import Warp

Elements: TypeAlias = NumPyArray
"""The elements of a matrix, in its order."""


class Matrix:
    """How one operation reaches a matrix: the elements of each executing thread, and where they are."""

    def __init__(self, op: ptx.CustomOp | tile.InstructionOp, operand: Operand, slot: int, t: Translator) -> None:
        record = op.record
        self.operand, self.slot, self.site, self.t = operand, slot, site_of(op), t
        element = BY_PTX[operand.element]
        self.dtype, self.width = np.dtype(numpy_type(element)), element.bits // 8
        layout, ids = operand.layout, record.contract.ids
        threads, values = size(layout[0]), size(layout[1])
        self.indices = np.array([[layout(i, v) for v in range(values)] for i in range(threads)])
        """The element of the matrix for each thread and value."""
        self.lanes = np.array([ids(i) for i in range(threads)])
        self.count, self.of_warp = cosize(layout), record.contract.agent is Agent.WARP
        self.by_lane = self.of_warp and not operand.is_shared_by_all
        if not self.by_lane:  # one access for all lanes
            self.indices = self.indices[:1]
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

    def in_memory(self, warp: Warp, executing: NumPyArray) -> "Rows":
        """The rows of all elements, for the executing lanes. A fault for one that is outside its space, or that the
        warp does not reach.
        """
        assert self.space is not None
        assert self.access is not None
        assert self.places is not None
        address = self.addresses(warp)
        given = address[executing] if varies(address) else np.full(len(executing), address)
        if (given != given[0]).any():
            lane = int(executing[(given != given[0]).argmax()])
            text = f"the lanes of a warp pass different addresses of {self.operand.role.value}"
            warp.fault(Code.SIM_CONVERGENCE, self.site, lane, text, "compute it from values that all lanes share")
        at = int(given[0]) + self.places[self.indices.ravel()]
        lanes = np.repeat(executing if self.by_lane else executing[:1], self.indices.shape[1])
        self._check_reach(warp, at, lanes)
        offsets, span = self.space.offsets(at), self.space.arena.span
        outside = (offsets < 0) | (offsets > span - self.width)
        if outside.any():
            place = int(outside.argmax())
            spread_over(warp, lanes)
            out_of_bounds(self.space, warp, self.access, place, int(at[place]), loading=not self.operand.writes)
        self.access.requests += 1
        self.access.threads += len(executing)
        return Rows((offsets + warp.block.rank * span) // self.width, lanes, self.indices.ravel())

    def _check_reach(self, warp: Warp, at: NumPyArray, lanes: NumPyArray) -> None:
        match self.row.form:
            case Bytes():
                return
            case Cells(warp_lanes=reached):
                pass
        if not self.of_warp:
            return
        first = warp.index % (WARPGROUP // WARP) * reached
        cells = at >> LANE_SHIFT
        wrong = (cells < first) | (cells >= first + reached)
        if wrong.any():
            place = int(wrong.argmax())
            text = f"reaches lane {cells[place]} of {self.row}; warp {warp.index} reaches lanes {first} to "
            text += f"{first + reached - 1}"
            hint = f"give each warp of a warpgroup the cells of its own {reached} lanes"
            warp.fault(Code.SIM_OUT_OF_BOUNDS, self.site, int(lanes[place]), text, hint)

    def read(self, warp: Warp, executing: NumPyArray, pending: AsyncOperation | None) -> Elements:
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

    def _content(self, warp: Warp, rows: "Rows") -> NDArray[np.uint8]:
        assert self.space is not None
        assert self.access is not None
        if proxy_of(self.operand) is Proxy.ASYNC:
            return bulk.read(self.space, warp, self.access, int(rows.lanes[0]), rows.rows)
        before = warp.mask_state()
        spread_over(warp, rows.lanes)
        content = self.space.read_rows(warp, self.access, rows.rows)
        warp.restore(before)
        return content

    def claim(self, warp: Warp, rows: "Rows", content: NDArray[np.uint8]) -> None:
        """Checks that the rows may be written. The faults of writes."""
        assert self.space is not None
        assert self.access is not None
        if proxy_of(self.operand) is Proxy.ASYNC:
            bulk.claim(self.space, warp, self.access, int(rows.lanes[0]), rows.rows, content)
            return
        before = warp.mask_state()
        spread_over(warp, rows.lanes)
        self.space.check_writable(warp, self.access, rows.rows)
        conflict = None if self.space.shadow is None else self.space.shadow.write(warp, rows.rows, self.width)
        if conflict is not None:
            race(self.space, warp, self.access, rows.rows, conflict, "writes")
        warp.restore(before)


def spread_over(warp: Warp, lanes: NumPyArray) -> None:
    """Makes lanes active, each as often as it is in `lanes`: a lane's rows of memory are accessed one by one."""
    warp.mask = np.isin(np.arange(warp.lanes), lanes)
    warp.active, warp.active_lanes = len(lanes), lanes


class Rows:
    """Rows of memory, the lane of each, and the element of the matrix that each holds."""

    def __init__(self, rows: NumPyArray, lanes: NumPyArray, elements: NumPyArray) -> None:
        self.rows, self.lanes, self.elements = rows, lanes, elements


def proxy_of(operand: Operand) -> Proxy:
    """The proxy by which an operand is reached, as the order of accesses knows them."""
    match operand.proxy:
        case Proxy.GENERIC | Proxy.TENSOR:
            return Proxy.GENERIC
        case Proxy.ASYNC | Proxy.TENSORMAP:
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
