# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recorded operations of TMA copies."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tilefold.base.errors import Code, LayoutError
from tilefold.layout.algebra.core import ComposedLayout, Layout, LayoutLike, join, plain_layout
from tilefold.layout.algebra.integers import ScaledBasis, add
from tilefold.layout.algebra.inttuple import flatten_to_tuple, transform_leaves
from tilefold.layout.algebra.modes import group_modes, slice_
from tilefold.layout.algebra.product import tile_to_shape
from tilefold.layout.algebra.scalars import run_time, value_of
from tilefold.layout.algebra.swizzle import Swizzle
from tilefold.layout.atoms.tma import TMA_ATOMS
from tilefold.layout.atoms.wgmma_smem import wgmma_smem_atom
from tilefold.layout.tiling.partition import local_tile
from tilefold.layout.tma.partition import compute_multicast_mask, tma_partition
from tilefold.layout.tma.tensor_map import SWIZZLE_NAMES, TensorMap
from tilefold.layout.tma.tma_copy import TmaCopy, make_tma_copy

from .algebra_operations import Inputs
from .record import RunTimeInt, parse
from .tma_model import moves_tiles, padded

_RECORDED_INSTRUCTIONS = 32
_TYPES = {
    "uint8_t": (0, "UINT8", 8), "int8_t": (0, "UINT8", 8), "float_e4m3_t": (0, "UINT8", 8),
    "float_e5m2_t": (0, "UINT8", 8), "float_ue8m0_t": (0, "UINT8", 8), "uint16_t": (1, "UINT16", 16),
    "uint32_t": (2, "UINT32", 32), "int32_t": (3, "INT32", 32), "uint64_t": (4, "UINT64", 64),
    "int64_t": (5, "INT64", 64), "half_t": (6, "FLOAT16", 16), "float": (7, "FLOAT32", 32),
    "double": (8, "FLOAT64", 64), "bfloat16_t": (9, "BFLOAT16", 16), "tfloat32_t": (11, "TFLOAT32", 32),
}  # fmt: skip
"""CUtensorMapDataType by the types of C++: its number, its name, the bits (include/cute/arch/copy_sm90_desc.hpp)."""
_KINDS = {
    "load": "SM90_TMA_LOAD",
    "load_multicast": "SM90_TMA_LOAD_MULTICAST",
    "store": "SM90_TMA_STORE",
    "reduce_add": "SM90_TMA_REDUCE_ADD",
}


def smem_layout(inputs: Inputs) -> LayoutLike:
    """The layout of shared memory: tiled from an atom of wgmma, or as it is written.

    Swizzles are written as CuTe's TMA reads them, in bytes; those of tilefold's layouts are in elements.
    """
    bits = inputs["val_bits"]
    if "smem_atom" not in inputs:
        layout = parse(re.sub(r"smem_ptr\[[0-9]+b\]\(unset\)", "0", inputs["smem"]), False)
        if isinstance(layout, Layout):
            return layout
        swizzle = layout.inner
        in_elements = Swizzle(swizzle.bits, swizzle.base - (bits // 8).bit_length() + 1, swizzle.shift)
        return ComposedLayout(in_elements, 0, layout.outer)
    _, major, mode, _ = inputs["smem_atom"].replace("GMMA::Layout", "").split("_")
    order = parse(inputs["smem_order"], False) if "smem_order" in inputs else None
    return tile_to_shape(wgmma_smem_atom(major, mode, bits), parse(inputs["smem_shape"], False), order)


def _copy(inputs: Inputs, smem: LayoutLike) -> tuple[TmaCopy, Layout]:
    type_ = inputs.get("internal_type", inputs["type"])
    if type_ not in _TYPES:
        raise LayoutError(Code.TENSOR_MAP, f"a tensor map has no elements of type {type_}")
    gmem = parse(inputs["gmem_typed"], True)
    copy = make_tma_copy(
        TMA_ATOMS[_KINDS[inputs["kind"]]],
        gmem,
        smem,
        parse(inputs["cta_tiler"], False),
        val_bits=inputs["val_bits"],
        multicast=inputs["multicast"],
        bits=_TYPES[type_][2],
    )
    copy.tensor_map().check_address(inputs.get("gmem_address", 0))
    return copy, gmem


def _encode(inputs: Inputs, tensor_map: TensorMap) -> Inputs:
    number, name, _ = _TYPES[inputs.get("internal_type", inputs["type"])]
    rank = len(tensor_map.dims)
    return {
        "type": number,
        "type_name": name,
        "rank": rank,
        "dims": list(tensor_map.dims),
        "strides_bytes": list(tensor_map.strides),
        "box": list(tensor_map.box),
        "element_strides": [1] * rank,
        "interleave": 0,
        "swizzle": tensor_map.swizzle_bits,
        "swizzle_name": SWIZZLE_NAMES[tensor_map.swizzle_bits],
        "l2_promotion": 2,
        "oob_fill": 0,
    }


def _map(inputs: Inputs, dynamic: bool) -> Inputs:
    smem = smem_layout(inputs)
    copy, _ = _copy(inputs, smem)
    plain = plain_layout(smem)
    coordinates = _recorded_coordinates(copy)
    tiler = parse(inputs["cta_tiler"], False)
    tiles, start = local_tile(coordinates, tiler, (None,) * len(tiler) if len(tiler) > 1 else None)
    assert isinstance(tiles, Layout)
    rank = len(copy.basis)
    slices: list[Inputs] = []
    for block in range(copy.multicast):
        gmem = copy.partition_gmem(tiles, RunTimeInt(block))
        tile = copy.partition_smem(plain, RunTimeInt(block))
        sides = [gmem_part(gmem, rank, start), smem_part(tile)]
        if not copy.loads:
            sides.reverse()
        slices.append({"slice": block, "partition_S": sides[0], "partition_D": sides[1]})
    return {
        "encode": _encode(inputs, copy.tensor_map()),
        "tma_tensor": coordinates,
        "box_basis": copy.basis,
        "gmem_tiles": tiles,
        "elements_per_instruction": copy.values,
        "instructions_per_tile": copy.instructions,
        "Tiler_MN": copy.tiled_copy.tiler,
        "TiledLayout_TV": copy.layout_tv,
        "slices": slices,
    }


def _recorded_coordinates(copy: TmaCopy) -> Layout:
    """The coordinates of the tensor. In CuTe strides of modes that share an outer dimension are run-time integers."""
    shared = {number for number, mode in enumerate(copy.basis) if number and len(flatten_to_tuple(mode.stride)) > 1}

    def step(d: Any) -> Any:
        if not isinstance(d, ScaledBasis) or d.path[0] not in shared:
            return d
        return replace(d, value=run_time(d.value))

    layout = copy.coordinates()
    return Layout(layout.shape, transform_leaves(step, layout.stride))


def is_copy(inputs: Inputs) -> bool:
    """Whether the instructions of `tma_map` move each element of a tile to its place."""
    smem = smem_layout(inputs)
    return moves_tiles(_copy(inputs, smem)[0], smem, parse(inputs["cta_tiler"], False))


def gmem_part(part: tuple[Any, Any], rank: int, start: Any = 0) -> Inputs:
    layout, offset = part
    first = add(start, offset)
    coords = [padded(value_of(add(first, step)), rank) for step in _steps(layout)]
    return {
        "layout": layout,
        "coord": padded(value_of(first), rank),
        "instructions": len(coords),
        "coords": coords[:_RECORDED_INSTRUCTIONS],
        "coord_last": coords[-1],
    }


def smem_part(part: tuple[Any, Any]) -> Inputs:
    layout, offset = part
    plain = plain_layout(layout)
    offsets = [value_of(add(offset, step)) for step in _steps(plain)]
    return {
        "layout": plain,
        "offset": offset,
        "instructions": len(offsets),
        "offsets": offsets[:_RECORDED_INSTRUCTIONS],
    }


def _steps(layout: Layout) -> list[Any]:
    """Where each instruction begins in a tensor ((TMA,TMA_Iter),Rest...)."""
    starts = join([layout[0][1], *list(layout)[1:]])
    return [starts(i) for i in range(value_of(starts.size))]


def _partition(inputs: Inputs, dynamic: bool) -> Inputs:
    smem = smem_layout(inputs)
    tiler = parse(inputs["cta_tiler"], False)
    modes = len(tiler)
    stage = smem if len(smem) == modes else slice_((*(None,) * modes, *(0,) * (len(smem) - modes)), smem)
    copy, _ = _copy(inputs, stage)
    tile, start = local_tile(_recorded_coordinates(copy), tiler, run_time(parse(inputs["tile_coord"], False)))
    assert isinstance(tile, Layout)
    rank = len(copy.basis)
    blocks = parse(inputs["cta_layout"], False)
    ctas: list[Inputs] = []
    for cta in inputs["ctas"]:
        coord = run_time(parse(cta, False))
        shared, coordinates = tma_partition(
            copy, coord, blocks, group_modes(smem, 0, modes), group_modes(tile, 0, modes)
        )
        ctas.append({"cta": cta, "gmem": gmem_part(coordinates, rank, start), "smem": smem_part(shared)})
    return {
        "encode": _encode(inputs, copy.tensor_map()),
        "tma_tensor": copy.coordinates(),
        "gmem_tile": {"layout": tile, "coord": padded(value_of(start), rank)},
        "elements_per_instruction": copy.values,
        "ctas": ctas,
    }


def _mask(inputs: Inputs, dynamic: bool) -> Inputs:
    blocks, modes = parse(inputs["cta_layout_vmnk"], False), tuple(inputs["modes"])
    return {"masks": [compute_multicast_mask(blocks, parse(coord, False), modes) for coord in inputs["coords"]]}


def encode_as(name: str) -> tuple[int, str, int]:
    """The type of a map's elements for a type of C++: its number, its name and its bits."""
    return _TYPES[name]


TMA: dict[str, Callable[[Inputs, bool], Inputs]] = {"tma_map": _map, "tma_mask": _mask, "tma_partition": _partition}
