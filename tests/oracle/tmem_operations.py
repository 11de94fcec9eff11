# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recorded operations of copies that reach tensor memory."""

from collections.abc import Callable
from typing import Any

from tilefold.layout.algebra.coalesce import filter_layout
from tilefold.layout.algebra.compose import composition
from tilefold.layout.algebra.core import Layout, join, make_layout
from tilefold.layout.algebra.divide import flat_divide
from tilefold.layout.algebra.inttuple import product_each
from tilefold.layout.algebra.inverse import left_inverse
from tilefold.layout.algebra.modes import slice_
from tilefold.layout.algebra.recast import upcast
from tilefold.layout.atoms.copy_names import copy_atom
from tilefold.layout.atoms.tmem_copy import cells_of
from tilefold.layout.tiling.tiled_copy import TiledCopy
from tilefold.layout.tiling.tmem_copies import WARPS, make_tmem_copy
from tilefold.layout.tmem.cells import CELL, QUARTER, add_elements, lane_stride

from .algebra_operations import Inputs
from .copy_operations import describe, number, part
from .record import RunTimeInt, parse
from .umma_operations import accumulator


def _atom(inputs: Inputs, dynamic: bool) -> Inputs:
    atom = copy_atom(inputs["atom"])
    found: Inputs = {
        "ThrID": atom.thr_id,
        "SrcLayout": atom.src_bits,
        "DstLayout": atom.dst_bits,
        "RefLayout": atom.ref_bits,
    }
    if "TMEM" in inputs["atom"] or "UTCCP" in inputs["atom"]:
        found |= {"ValID": cells_of(atom), "ValID_32b": upcast(cells_of(atom), CELL)}
    return found


def _tensor(inputs: Inputs) -> tuple[Layout, int]:
    """The tensor in tensor memory, and the bits of its elements."""
    whole, bits = accumulator(inputs)
    if inputs["tmem"] == "acc":
        return whole, bits
    tile = slice_(((None, None), *(0,) * (len(whole) - 1)), whole)
    if "epi" in inputs:
        tile = slice_((None, None, 0, 0), flat_divide(tile, parse(inputs["epi"], False)))
    assert isinstance(tile, Layout)
    return tile, bits


def _copy(inputs: Inputs) -> tuple[TiledCopy, Layout, int]:
    tensor, bits = _tensor(inputs)
    return make_tmem_copy(copy_atom(inputs["atom"], bits), tensor), tensor, bits


def _make(inputs: Inputs, dynamic: bool) -> Inputs:
    copy, _, _ = _copy(inputs)
    return {**describe(copy), "AtomNumVal": copy.atom.values}


def _partition(side: str) -> Callable[[Inputs, bool], Inputs]:
    def run(inputs: Inputs, dynamic: bool) -> Inputs:
        copy, tensor, bits = _copy(inputs)
        take = copy.partition_S if side == "S" else copy.partition_D
        slices: list[Inputs] = []
        for tid in inputs["tids"]:
            if "gmem" in inputs:
                layout, start = take(parse(inputs["gmem"], dynamic), RunTimeInt(tid))
                slices.append({"tid": tid, **part(layout, start)})
                continue
            layout, start = take(tensor, RunTimeInt(tid))
            slices.append({"tid": tid, "addr": f"0x{add_elements(0, number(start), bits):08x}", "layout": layout})
        return {"slices": slices}

    return run


def _fragment(side: str) -> Callable[[Inputs, bool], Inputs]:
    def run(inputs: Inputs, dynamic: bool) -> Inputs:
        copy, tensor, _ = _copy(inputs)
        take = copy.partition_S if side == "S" else copy.partition_D
        shape = take(make_layout(tensor.shape), 0)[0].shape
        return {"shape": shape, "fragment": make_layout(shape)}

    return run


def _partition_warps(tensor: Layout, val_bits: int) -> tuple[Layout, tuple[Layout, ...]]:
    """The warps that reach a tensor in tensor memory: (warp, value) to a place in the tile, and the tiler that cuts the
    tile. Values have `val_bits` bits.
    """
    warps = Layout(WARPS, QUARTER * lane_stride(val_bits))
    inverse = join((left_inverse(tensor), Layout(1, 0)))
    to_tensor: Layout = composition(inverse, warps)
    shape = product_each(tensor.shape)
    axes = range(len(shape))
    tiler = tuple(
        [filter_layout(composition(Layout(shape, tuple([int(i == j) for j in axes])), to_tensor)) for i in axes]
    )
    tile: Layout = composition(make_layout(shape), tiler)
    return composition(left_inverse(tile), to_tensor), tiler


def _warps(inputs: Inputs, dynamic: bool) -> Inputs:
    tensor, bits = _tensor(inputs)
    layout_tv, tiler = _partition_warps(tensor, bits)
    slices: list[Inputs] = []
    for warp in range(4):
        tile: Any = composition(make_layout(tensor.shape), tiler)
        shape = tuple([n // t.size for n, t in zip(map(number, _sizes(tensor)), tiler, strict=True)])
        start = tensor(tile(layout_tv(warp)))
        within = composition(tensor, tuple([Layout(n, 1) for n in shape]))
        slices.append({"warp": warp, "addr": f"0x{add_elements(0, start, bits):08x}", "layout": within})
    return {"Tiler_MN": tiler, "TiledLayout_TV": layout_tv, "slices": slices}


def _sizes(layout: Layout) -> list[Any]:
    return [mode.size for mode in layout]


TMEM: dict[str, Callable[[Inputs, bool], Inputs]] = {
    "copy_atom_sm100": _atom,
    "make_tmem_copy": _make,
    "make_tmem_warp_partitioner": _warps,
    "tmem_copy_atom": _atom,
    **{f"tmem_copy_fragment_{x}": _fragment(x) for x in "SD"},
    **{f"tmem_copy_partition_{x}": _partition(x) for x in "SD"},
}
