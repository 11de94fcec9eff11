# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recorded operations of wgmma's shared-memory layouts and descriptors."""

from collections.abc import Callable
from typing import Any

from tilefold.layout.algebra.core import ComposedLayout, Layout, cosize, size
from tilefold.layout.algebra.inttuple import ceil_div
from tilefold.layout.algebra.product import tile_to_shape
from tilefold.layout.atoms.wgmma_smem import (
    SWIZZLE_BITS,
    MatrixDescriptor,
    make_matrix_descriptor,
    wgmma_smem_atom,
)
from tilefold.layout.tiling.partition import local_tile

from .algebra_operations import Inputs, fnv1a64, values
from .mma_operations import tiled_mma
from .record import parse, show

_TYPE_NAMES = ("INTERLEAVE", "B128", "B64", "B32")
_RECORDED_DESCRIPTORS, _RECORDED_VALUES = 32, 256


def _atom(name: str, val_bits: int) -> tuple[Any, int]:
    """The layout `GMMA::Layout_K_SW128_Atom` and the bits of its swizzle."""
    major, mode = name.removeprefix("GMMA::Layout_").removesuffix("_Atom").split("_")
    return wgmma_smem_atom(major, mode, val_bits), SWIZZLE_BITS[mode]


def _plain(layout: Any) -> Layout:
    return layout.outer if isinstance(layout, ComposedLayout) else layout


def _recorded(layout: Any, swizzle_bits: int, val_bits: int) -> Inputs:
    everything = values(layout)
    return {
        "layout": f"Sw<{swizzle_bits},4,3> o smem_ptr[{val_bits}b](unset) o {show(_plain(layout), False)}",
        "position_independent": layout,
        "fnv1a64_all": fnv1a64(everything),
        "values": everything[:_RECORDED_VALUES],
        "cosize": cosize(layout),
    }


def _smem_atom(inputs: Inputs, dynamic: bool) -> Inputs:
    layout, swizzle_bits = _atom(inputs["atom"], inputs["val_bits"])
    return _recorded(layout, swizzle_bits, inputs["val_bits"])


def _smem_layout(inputs: Inputs, atom: str, shape: str) -> tuple[Any, int]:
    layout, swizzle_bits = _atom(inputs[atom], inputs["val_bits"])
    order = (parse(inputs["order"], False),) if "order" in inputs else ()
    return tile_to_shape(layout, parse(inputs[shape], False), *order), swizzle_bits


def _tile_to_shape(inputs: Inputs, dynamic: bool) -> Inputs:
    layout, swizzle_bits = _smem_layout(inputs, "atom", "target")
    return _recorded(layout, swizzle_bits, inputs["val_bits"])


def _fields(descriptor: MatrixDescriptor) -> Inputs:
    return {
        "hex": f"0x{descriptor.value:016x}",
        "start_address": descriptor.start_address,
        "leading_byte_offset": descriptor.leading_byte_offset,
        "stride_byte_offset": descriptor.stride_byte_offset,
        "base_offset": descriptor.base_offset,
        "layout_type": descriptor.layout_type,
        "layout_type_name": _TYPE_NAMES[descriptor.layout_type],
    }


def _descriptors(inputs: Inputs, dynamic: bool) -> Inputs:
    layout, swizzle_bits = _smem_layout(inputs, "atom", "smem_shape")
    plain, tiler, bits = _plain(layout), parse(inputs["mma_tile"], False), inputs["val_bits"]
    rest: Any = ceil_div(parse(inputs["smem_shape"], False), tiler)
    outputs: Inputs = {"descs": {}}
    for m in range(rest[0]):
        for k in range(rest[1]):
            tile, start = local_tile(plain, tiler, (m, k))
            assert isinstance(tile, Layout)
            address = inputs["smem_base"] + start * bits // 8
            descriptor = make_matrix_descriptor(tile, swizzle_bits, bits, inputs["major"], address)
            outputs["descs"][f"({m},{k})"] = _fields(descriptor)
            outputs["tile_layout"] = tile
    return outputs


def _fragment_descriptors(inputs: Inputs, dynamic: bool) -> Inputs:
    layout, swizzle_bits = _smem_layout(inputs, "smem_atom", "smem_shape")
    mma, operand, bits = tiled_mma(inputs), inputs["operand"], inputs["val_bits"]
    major = mma.atom.operand(operand).major.value
    found: list[Inputs] = []
    for tid in inputs["tids"]:
        part, start = mma.partition(operand, _plain(layout), tid)
        assert isinstance(part, Layout)
        address = inputs["smem_base"] + start * bits // 8
        first = make_matrix_descriptor(part[0], swizzle_bits, bits, major, address)
        fragment = mma.make_fragment(operand, part)
        steps = values(fragment)[: min(size(fragment), _RECORDED_DESCRIPTORS)]
        found.append(
            {
                "tid": tid,
                "partition_layout": part,
                "partition_offset": start,
                "fragment_layout": fragment,
                "descs": [f"0x{first.value + step:016x}" for step in steps],
                "desc0": _fields(first),
            }
        )
    return {"slices": found}


WGMMA: dict[str, Callable[[Inputs, bool], Inputs]] = {
    "gmma_fragment_desc": _fragment_descriptors,
    "gmma_smem_atom": _smem_atom,
    "gmma_tile_to_shape": _tile_to_shape,
    "make_gmma_desc": _descriptors,
}
