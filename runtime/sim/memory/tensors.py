# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accesses to the elements of tensors: from a tensor's address and an index to bytes in a state space."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from ....base.errors import Code
from ....base.spaces import Cells
from ....base.spaces import Space as MemorySpace
from ....dialects.ptx import PtrType
from ....dialects.tile import TensorType
from ....layout.algebra.core import ComposedLayout, Layout, size
from ....layout.algebra.swizzle import Swizzle
from ....layout.tmem.cells import add_elements
from ..faults import SimulationError, Site, site_of
from ..translate import Translator
from ..values import FAR, TensorValue, Value, add_address, anywhere, varies
from ..values.scalars import actual
from ..warp import Warp
from .arena import WIDTHS, Access
from .spaces import Space

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Port:
    """How an operation reaches the elements of one of its tensors.

    `space` is None for fragments, `swizzle` None for a plain layout. Indices are in elements of `element_bits`, before
    the swizzle and relative to the tensor's address and offset. Elements narrower than a byte are reached by the byte:
    at indices that begin one, and as many as fill some.
    """

    site: Site
    space: Space | None
    t: Translator
    accesses: dict[int, Access]
    element_bits: int
    swizzle: Swizzle | None = None

    def address(self, tensor: TensorValue, index: Value) -> Value:
        """The byte address of the element at `index`, an integer or one per lane."""
        if self.swizzle is not None:
            index = self.swizzle(tensor.offset + index)
        bytes = _bytes_of(index, self.element_bits) if tensor.scalars else index * self.element_bits // 8
        return add_address(tensor.address, bytes)

    @property
    def per_byte(self) -> int:
        """The fewest elements that can be reached: those in a byte, or one."""
        return max(1, 8 // self.element_bits)

    def adjacent(self, warp: Warp, tensor: TensorValue, index: int, count: int) -> bool:
        """Whether in every active lane the `count` elements from `index` on lie together and are aligned to
        their size.

        The indices themselves are known to follow each other.
        """
        width = count * self.element_bits // 8
        if self.swizzle is not None and (
            count > 1 << self.swizzle.base or anywhere(warp.select(tensor.offset + index) % count)
        ):
            return False
        return not anywhere(warp.select(self.address(tensor, index)) % width)

    def load(self, warp: Warp, tensor: TensorValue, index: Value, count: int = 1) -> Bytes:
        """The bytes of `count` adjacent elements from `index` on in each active lane: an array (active,
        bytes).
        """
        address, width = self.address(tensor, index), count * self.element_bits // 8
        if self.space is None:
            return self.t.spaces.local.load(warp, self.site, address, width)
        return self.space.load(warp, self.accesses[width], address)

    def store(self, warp: Warp, tensor: TensorValue, index: Value, content: Bytes) -> None:
        """Writes an array (active, bytes) to adjacent elements from `index` on in each active lane."""
        address = self.address(tensor, index)
        if self.space is None:
            self.t.spaces.local.store(warp, self.site, address, content)
        else:
            self.space.store(warp, self.accesses[content.shape[1]], address, content)


def port(op: Operation, type: TensorType | PtrType, kind: str, t: Translator, element_bits: int = 8) -> Port:
    """How `op` reaches a tensor, or the bytes at a pointer, for accesses of a `kind` as the memory report
    names it.
    """
    swizzle = None
    if isinstance(type, TensorType):
        element_bits = type.step_bits
        layout = type.layout.data
        if isinstance(layout, ComposedLayout):
            assert isinstance(layout.inner, Swizzle)
            swizzle = layout.inner
        state = type.space.data
    else:
        state = type.space.data
    space = t.spaces.of(state)
    accesses = {} if space is None else {w: t.access(op, space.row, kind, w) for w in WIDTHS}
    return Port(site_of(op), space, t, accesses, element_bits, swizzle)


MAX_COUNT = 1 << 20
"""The most elements that one operation of a thread copies or prints."""


def check_count(op: Operation, layout: Layout) -> None:
    """SimulationError (E3211) for an operation on more elements than a simulation can go through."""
    count = size(layout)
    if count > MAX_COUNT:
        raise SimulationError(
            Code.SIM_MEMORY,
            f"each thread goes through {count} elements here; the simulator allows {MAX_COUNT}",
            "divide the tensor among threads, or use a smaller tile",
            site=site_of(op),
        )


def move(tensor: TensorValue, distance: Value, type: TensorType) -> TensorValue:
    """A tensor that begins `distance` elements further on: beyond all memory for one that exceeds 64 bits in bytes.
    OverflowError for one that does in elements of a swizzled tensor.
    """
    if type.is_swizzled:
        return TensorValue(tensor.address, checked_index(tensor.offset + distance))
    address = element_address(tensor.address, distance, type.space.data, type.element_bits)
    return TensorValue(address, 0, tensor.scalars)


def element_address(address: Value, index: Value, space: MemorySpace, bits: int) -> Value:
    """The address `index` elements of `bits` each after another. In cells that elements share the upper bits have the
    place of an element.
    """
    if isinstance(space.form, Cells) and bits < space.unit_bits:
        return add_elements(address, index, bits)
    return add_address(address, _bytes_of(index, space.step_bits(bits)))


def _bytes_of(index: Value, bits: int) -> Value:
    """The bytes of `index` elements of this many bits each; in lanes, no more than lead out of all memory."""
    if varies(index) and index.dtype != object:
        index = np.clip(index.astype(np.int64), -(FAR // bits), FAR // bits)
    return index * bits // 8


def recast(tensor: TensorValue, old_bits: int, new_bits: int) -> TensorValue:
    """A tensor whose offset within a swizzle counts elements of another width."""
    return tensor if old_bits == new_bits else replace(tensor, offset=tensor.offset * old_bits // new_bits)


def checked_index(value: Value) -> Value:
    """`value`, if it is not a uniform integer beyond 64 bits: then OverflowError."""
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise OverflowError
    return value


@contextmanager
def in_64_bits(warp: Warp, site: Site) -> Generator[None]:
    """Turns an OverflowError in index arithmetic into a SimulationError (E3209) of the first active thread."""
    try:
        yield
    except OverflowError:
        lane = int(warp.lane_numbers()[0])
        warp.fault(Code.SIM_ARITHMETIC, site, lane, "the coordinate is so large that its address exceeds 64 bits")


def tensor_layout(type: TensorType, tensor: TensorValue) -> Layout:
    """The plain layout of a tensor, with numbers for the `?` of its type."""
    return actual(type.layout.data, tensor.scalars) if tensor.scalars else type.plain_layout


def tensor_value(value: Value) -> TensorValue:
    """A tensor's value, or a pointer's as that of a plain tensor."""
    return value if isinstance(value, TensorValue) else TensorValue(value)
