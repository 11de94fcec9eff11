# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps in memory: 128 bytes with the fields by which kernels change them (PTX ISA, tensormap.replace).

The bytes of a GPU's maps are not documented; the bytes here are the simulator's own.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code, LayoutError
from ....dialects.ptx import BULK_UNIT, MAP_BYTES, MAP_FIELDS
from ....layout.tma.recipe import MAP_ELEMENTS, PlacedMap
from ....layout.tma.tensor_map import MAX_RANK, TensorMap
from ..ordering.asynchronous import Source
from ..ordering.clocks import TENSOR_MAPS
from ..ordering.knowledge import acquired_proxy
from ..warp import Warp
from .arena import Access
from .bulk import rows_at
from .spaces import Space

_MARK = 0x70616D74
_FIELDS: list[object] = [
    ("mark", "u4"), ("promotion", "u2"),
    *((name, f"u{field.bits // 8}", (field.dimensions or 1,)) for name, field in MAP_FIELDS.items()),
]  # fmt: skip
RECORD = np.dtype(_FIELDS)
"""A map in memory; the rest of its 128 bytes is zero."""
assert RECORD.itemsize <= MAP_BYTES

_MODEL: Mapping[str, str] = MappingProxyType({
    "interleave_layout": "interleaves its elements", "element_stride": "skips elements of the tensor",
})  # fmt: skip
"""The fields that the simulator models only with their first value, and the effect of other values."""


def encode(placed: PlacedMap) -> NDArray[np.uint8]:
    """A map as it lies in memory: 128 bytes."""
    tensor, record = placed.map, np.zeros((), RECORD)
    rank = len(tensor.dims)
    record["mark"], record["promotion"], record["global_address"] = _MARK, placed.promotion, placed.address
    record["rank"], record["fill_mode"], record["swizzle_mode"] = rank - 1, placed.nan_fill, tensor.swizzle_bits
    record["elemtype"] = MAP_FIELDS["elemtype"].words.index(placed.element.packed or placed.element.name)
    record["box_dim"][:rank], record["global_dim"][:rank] = tensor.box, [n & 0xFFFFFFFF for n in tensor.dims]
    record["global_stride"][: rank - 1], record["element_stride"] = tensor.strides, 1
    content = np.zeros(MAP_BYTES, np.uint8)
    content[: RECORD.itemsize] = record[None].view(np.uint8)
    return content


def change_field(content: NDArray[np.uint8], field: str, dimension: int, value: int) -> None:
    """Changes a field of maps in memory, an array (lanes, 128)."""
    content[: RECORD.itemsize].view(RECORD)[field][0, dimension] = value


def begin_map(content: NDArray[np.uint8]) -> bool:
    """Whether 128 bytes are a map whose fields can be changed. Zero bytes become one: kernels begin maps so, and change
    every field.
    """
    if not content.any():
        content[: RECORD.itemsize].view(RECORD)["mark"] = _MARK
    return is_map(content)


def is_map(content: NDArray[np.uint8]) -> bool:
    """Whether bytes are a map, as a launch or a copy made it."""
    return bool(content[: RECORD.itemsize].view(RECORD)["mark"][0] == _MARK)


def decode(content: NDArray[np.uint8]) -> PlacedMap:
    """The map of 128 bytes. LayoutError (E0322, E0323) for one that describes no tensor or no box."""
    record = content[: RECORD.itemsize].view(RECORD)[0]
    rank, element = int(record["rank"][0]) + 1, MAP_FIELDS["elemtype"].words[int(record["elemtype"][0])]
    if not 1 <= rank <= MAX_RANK:
        raise LayoutError(Code.TENSOR_MAP, f"it has {rank} dimensions", f"a map has 1 to {MAX_RANK}")
    if not record["element_stride"][:rank].all():
        hint = "copy a map there first, or set every field: a map that begins with zero bytes has none of them"
        raise LayoutError(Code.TENSOR_MAP, "it has an element stride of 0", hint)
    for field, does in _MODEL.items():
        if (record[field][:rank] != (field == "element_stride")).any():
            raise LayoutError(Code.SIM_UNSUPPORTED, f"it {does}, which the simulator does not model", "")
    kind = next((x for x in MAP_ELEMENTS.values() if element == (x.packed or x.name)), None)
    if kind is None:
        raise LayoutError(Code.SIM_UNSUPPORTED, f"its elements are {element}, which the simulator does not model", "")
    dims, strides, box = (
        tuple(record[field][:count].tolist())
        for field, count in (("global_dim", rank), ("global_stride", rank - 1), ("box_dim", rank))
    )
    made = TensorMap(kind.type.bits, dims, strides, box, int(record["swizzle_mode"][0]), kind.padded)
    address = int(record["global_address"][0])
    made.check_address(address)
    return PlacedMap(made, address, kind, bool(record["fill_mode"][0]), int(record["promotion"]))


def map_at(space: Space, warp: Warp, access: Access, lane: int, address: int) -> tuple[PlacedMap, Source]:
    """The map in global memory that a TMA copy of the lane reads, and its bytes. SimulationError for undefined bytes
    (E3204), a race (E3205), a write without the fences of maps (E3216), and bytes that are not a map of a tensor
    (E0322, E0323).
    """
    before, access = warp.mask_state(), replace(access, width=BULK_UNIT)
    if address % MAP_BYTES:
        text = f"the tensor map at {space.show(address)} is not at a multiple of {MAP_BYTES} bytes"
        warp.fault(Code.SIM_MISALIGNED, access.site, lane, text, f"align the memory of maps to {MAP_BYTES} bytes")
    rows = rows_at(space, warp, access, lane, np.arange(address, address + MAP_BYTES, BULK_UNIT), reads=True)
    warp.spread(lane, len(rows))
    content = space.read_rows(warp, access, rows).reshape(-1)
    if space.shadow is not None:
        for proxy, fence, hint in (
            (TENSOR_MAPS, "release", "let the thread that wrote it execute ptx.fence.proxy.tensormap.release"),
            (
                acquired_proxy(address),
                "acquire",
                "let the thread that copies execute ptx.fence.proxy.tensormap.acquire",
            ),
        ):
            if (conflict := space.shadow.unfenced(warp, rows, BULK_UNIT, proxy)) is not None:
                where, other = space.show_row(int(rows[conflict.index]), BULK_UNIT, conflict.byte), conflict.agent
                text = f"reads a tensor map at {where}, which {warp.block.describe(other)} wrote"
                text = f"{text}; fence.proxy.tensormap::generic.{fence} between them is missing"
                warp.fault(Code.SIM_PROXY, access.site, lane, text, hint)
    warp.restore(before)
    if not is_map(content):
        text, hint = f"{space.show(address)} holds no tensor map", "copy one there first, by ptx.tensormap.copy"
        _refuse(warp, access, lane, LayoutError(Code.TENSOR_MAP, text, hint))
    try:
        return decode(content), Source(space, rows, BULK_UNIT, np.full(len(rows), lane))
    except LayoutError as error:
        text = f"the tensor map at {space.show(address)}: {error.message}"
        _refuse(warp, access, lane, LayoutError(error.code, text, error.hint))


def _refuse(warp: Warp, access: Access, lane: int, error: LayoutError) -> NoReturn:
    warp.fault(error.code, access.site, lane, error.message, error.hint or "")
