# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bytes that a TMA copy moves: those of a box in the tensor, and its place in shared memory (PTX ISA, section
Tensors: bounding boxes, out-of-boundary access and swizzling modes).
"""

from dataclasses import dataclass, replace
from math import gcd

import numpy as np
from numpy.typing import NDArray

from ....dialects.ptx import BULK_UNIT
from ....layout.tma.recipe import OOB_NAN, PlacedMap

_GROUP = 16
"""The elements that a TMA copy pads together, to as many bytes."""
_TF32_BITS = 13
"""The bits of an f32 that a tf32 lacks."""


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """A box as units of `width` bytes, in the order of shared memory without swizzle: the address of each in the
    tensor, and whether it is `inside` of it. So many bytes of a `group` go to 16 bytes of shared memory.
    """

    width: int
    addresses: NDArray[np.int64]
    inside: NDArray[np.bool_]
    group: int = BULK_UNIT

    @property
    def origins(self) -> NDArray[np.int64]:
        """The address in the tensor of each 16 bytes of shared memory."""
        return self.addresses.reshape(-1, self.group // self.width)[:, 0]


def box_at(placed: PlacedMap, coordinates: tuple[int, ...]) -> Box:
    """The box of a map at some coordinates, in units that are as a whole inside or outside the tensor."""
    bits, tensor = placed.map.bits, placed.map
    first, row = coordinates[0] * bits // 8, tensor.dims[0] * bits // 8
    group = _GROUP * bits // 8 if tensor.padded else BULK_UNIT
    width = gcd(BULK_UNIT, group, first, row)
    at = first + width * np.arange(tensor.box[0] * bits // 8 // width, dtype=np.int64)
    addresses, inside = placed.address + at, (at >= 0) & (at < row)
    for start, extent, stride, count in zip(
        coordinates[1:], tensor.dims[1:], tensor.strides, tensor.box[1:], strict=True
    ):
        index = start + np.arange(count, dtype=np.int64)
        addresses = (index[:, None] * stride + addresses).ravel()
        inside = (((index >= 0) & (index < extent))[:, None] & inside).ravel()
    return Box(width, addresses, inside, group)


def rows_at(placed: PlacedMap, column: int, rows: tuple[int, ...]) -> tuple[PlacedMap, Box]:
    """Rows of a matrix, whose map has boxes of one row, as a box: with a map that has this many rows in a box."""
    boxes = [box_at(placed, (column, row)) for row in rows]
    whole = replace(placed, map=replace(placed.map, box=(placed.map.box[0], len(rows))))
    addresses, inside = np.concatenate([box.addresses for box in boxes]), np.concatenate([box.inside for box in boxes])
    return whole, Box(boxes[0].width, addresses, inside, boxes[0].group)


def places_of(placed: PlacedMap, address: int, width: int) -> NDArray[np.int64]:
    """The addresses in shared memory of the units of a box that begins at `address`, where the map swizzles them."""
    at = address + width * np.arange(placed.map.shared_bytes // width, dtype=np.int64)
    return at ^ (((at >> 7) & ((1 << placed.map.swizzle_bits) - 1)) << 4)


def packing_of(placed: PlacedMap) -> int:
    """How a load leaves elements of 4 or 6 bits in shared memory: their bits, negative where it does not pad them; 0
    for wider elements.
    """
    return 0 if placed.map.bits >= 8 else placed.map.bits if placed.map.padded else -placed.map.bits


def pattern(placed: PlacedMap) -> int:
    """The bytes at which a swizzle of shared addresses repeats."""
    return 8 * BULK_UNIT << placed.map.swizzle_bits if placed.map.swizzle_bits else 1


def fill_box(placed: PlacedMap, box: Box, content: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The bytes of a whole box in shared memory, an array (units, 16), for those of its units in the tensor."""
    unit = np.zeros(box.width, np.uint8)
    if placed.nan_fill:
        unit[:] = np.full(box.width // 2, OOB_NAN, np.uint16).view(np.uint8)
    whole = np.tile(unit, (len(box.inside), 1))
    whole[box.inside] = content
    if placed.element.name == "tf32":
        bits = whole.view(np.uint32)
        even = (bits >> _TF32_BITS) & 1
        rounded = (bits + ((1 << _TF32_BITS - 1) - 1) + even) >> _TF32_BITS << _TF32_BITS
        whole = np.where((bits & 0x7F800000) == 0x7F800000, bits, rounded).astype(np.uint32).view(np.uint8)
    rows = whole.reshape(-1, box.group)
    return rows if box.group == BULK_UNIT else np.pad(rows, ((0, 0), (0, BULK_UNIT - box.group)))


def swizzle_text(bits: int) -> str:
    """The swizzle of a map or a descriptor in words."""
    return f"a swizzle of {BULK_UNIT << bits} bytes" if bits else "no swizzle"


def find_misplaced(addresses: NDArray[np.int64], bits: int, written: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which shared addresses hold other bytes than a swizzle of `bits` bits puts there: a TMA copy has
    `written` them by another one, 1 more than its bits; 0 for none.
    """
    rows, mask = addresses >> 7, (1 << written.astype(np.int64)) // 2 - 1
    return (written != 0) & ((rows & mask) != (rows & ((1 << bits) - 1)))
