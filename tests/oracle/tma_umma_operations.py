# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recorded operations of TMA copies of the operands of tcgen05.mma, and of clusters by pairs of blocks."""

from collections.abc import Callable
from typing import Any

from tilefold.layout.algebra.compose import composition
from tilefold.layout.algebra.core import Layout, LayoutLike, make_identity_layout, make_layout, size
from tilefold.layout.algebra.divide import tiled_divide
from tilefold.layout.algebra.integers import add
from tilefold.layout.algebra.inttuple import transform_leaves
from tilefold.layout.algebra.modes import group_modes, slice_
from tilefold.layout.algebra.scalars import RunTimeInt, run_time, value_of
from tilefold.layout.atoms.tma import TMA_ATOMS, TmaFacts
from tilefold.layout.atoms.umma_smem import tile_to_mma_shape
from tilefold.layout.tiling.partition import local_tile
from tilefold.layout.tiling.tiled_mma import TiledMma
from tilefold.layout.tma.partition import compute_multicast_mask, tma_partition
from tilefold.layout.tma.tma_copy import TmaCopy, copy_of_tile

from .algebra_operations import Inputs
from .record import parse
from .tma_operations import encode_as, gmem_part, smem_part
from .umma_operations import in_bytes, plain, smem_layout_atom, tiled_umma, width

_PACKED = {
    "float_e2m1_t": (13, "16U4_ALIGN8B", 4),
    "cute::detail::float_e2m1_unpacksmem_t": (14, "16U4_ALIGN16B", 4),
    "cute::detail::float_e3m2_unpacksmem_t": (15, "16U6_ALIGN16B", 6),
    "cute::detail::float_e2m3_unpacksmem_t": (15, "16U6_ALIGN16B", 6),
}
"""CUtensorMapDataType of elements of 4 and 6 bits: number, name and bits."""


def _clusters(inputs: Inputs, dynamic: bool) -> Inputs:
    blocks: Layout = tiled_divide(
        make_layout(parse(inputs["cluster_shape"], False)), (Layout(inputs["atom_thr_size"], 1),)
    )
    ctas: list[Inputs] = []
    for rank in range(size(blocks)):
        coord = _coordinate(blocks, rank)
        masks = {"v": (0,), "m": (1,), "n": (2,), "vm": (0, 1), "vn": (0, 2)}
        found = {f"mask_{name}": compute_multicast_mask(blocks, coord, modes) for name, modes in masks.items()}
        ctas.append({"block_rank": rank, "coord_vmnk": coord, **found})
    return {"layout": blocks, "ctas": ctas}


def _coordinate(blocks: Layout, rank: int) -> Any:
    """The coordinate (V,M,N,K) of a block."""
    modes = [mode.size for mode in blocks]
    found: list[int] = []
    index = next(i for i in range(size(blocks)) if blocks(i) == rank)
    for extent in modes:
        found.append(index % extent)
        index //= extent
    return tuple(found)


_AXES = {"A": 0, "B": 1}
"""The axis of an operand in (M,N,K), beside K."""
_SHARED_ALONG = {"A": 2, "B": 1}
"""The mode of (V,M,N,K) along which blocks need the same part of an operand."""


def cluster_by_pairs(shape: tuple[int, ...], mma: TiledMma) -> Layout:
    """The ranks of the blocks of a cluster by (V,M,N,K): V counts the blocks that share a multiplication."""
    result: Layout = tiled_divide(make_layout(shape), (make_layout(mma.atom.threads),))
    return result


def make_tma_operand_copy(
    facts: TmaFacts, operand: str, gmem: Layout, smem: LayoutLike, tiler: tuple[Any, ...], mma: TiledMma,
    cluster: Layout, *, val_bits: int, smem_bits: int | None = None,
) -> TmaCopy:  # fmt: skip
    """The TMA copies of a block's part of the operand "A" or "B" to one stage of shared memory, whose layout is
    ((MN,K),RestMN,RestK).

    `tiler` is that of M, N, K and so on, `cluster` that of `cluster_by_pairs`. Values have `val_bits` bits, and take
    `smem_bits` in shared memory. Raises `LayoutError` as `make_tma_copy` does.
    """
    kept = (tiler[_AXES[operand]], tiler[2], *tiler[3:])
    tile: Layout = composition(make_identity_layout(gmem.shape), kept)
    whole = mma.thrfrg(operand, tile)
    of_block = slice_((0, (None, (None,) * len(whole[1][1]))), whole)
    assert isinstance(of_block, Layout), "coordinates are not swizzled"
    shared = cluster[_SHARED_ALONG[operand]].size if facts.multicast else 1
    return copy_of_tile(
        facts, gmem, smem, of_block, val_bits=val_bits, multicast=shared, bits=None, smem_bits=smem_bits
    )


def _operand(inputs: Inputs, dynamic: bool) -> Inputs:
    mma, operand = tiled_umma(inputs), inputs["operand"]
    number, name, bits = _PACKED.get(inputs["type"]) or encode_as(inputs["type"])
    smem_bits = width(inputs["smem_type"])
    tensor = parse(inputs["gmem"], False)
    gmem = Layout(run_time(tensor.shape), transform_leaves(lambda d: d if d == 1 else RunTimeInt(d), tensor.stride))
    atom, _ = smem_layout_atom(inputs["smem_atom"], smem_bits)
    smem = tile_to_mma_shape(atom, parse(inputs["smem_mma_shape"], False))
    stage = slice_((None, None, None, 0), smem)
    tiler, cluster = parse(inputs["tile_mnk"], False), cluster_by_pairs(parse(inputs["cluster_shape"], False), mma)
    facts = TMA_ATOMS[inputs["copy_op"].replace("SM100_TMA_2SM", "SM90_TMA")]
    copy = make_tma_operand_copy(facts, operand, gmem, stage, tiler, mma, cluster, val_bits=bits, smem_bits=smem_bits)
    rank = len(copy.basis)
    tensor_map = copy.tensor_map()
    keep = (tiler[0], tiler[2]) if operand == "A" else (tiler[1], tiler[2])
    tiles, start = local_tile(copy.coordinates(), keep, (None,) * len(tensor))
    assert isinstance(tiles, Layout)
    along = 2 if operand == "A" else 1
    ctas: list[Inputs] = []
    for block in range(size(cluster)):
        coord = _coordinate(cluster, block)
        part, first = mma.partition(operand, tiles, RunTimeInt(coord[0]))
        shared = Layout(cluster[along].size, 1) if facts.multicast else Layout(1, 0)
        at: Any = RunTimeInt(coord[along]) if facts.multicast else RunTimeInt(0)
        assert isinstance(part, Layout)
        in_smem, in_gmem = tma_partition(copy, at, shared, group_modes(smem, 0, 3), group_modes(part, 0, 3))
        modes = (along,) if facts.multicast else ()
        begins = value_of(in_smem[1])
        shown = smem_part((in_smem[0], 0))
        ctas.append(
            {
                "block_rank": block,
                "cta_coord_vmnk": coord,
                "gmem": gmem_part(in_gmem, rank, add(start, first)),
                "smem": {key: shown[key] for key in ("layout", "instructions", "offsets")},
                "smem_byte_offset": begins * smem_bits // 8,
                "mcast_mask": compute_multicast_mask(cluster, coord, modes),
            }
        )
    return {
        "encode": {
            "type": number,
            "type_name": name,
            "rank": rank,
            "dims": list(tensor_map.dims),
            "strides_bytes": list(tensor_map.strides),
            "box": list(tensor_map.box),
            "element_strides": [1] * rank,
            "interleave": 0,
            "swizzle": tensor_map.swizzle_bits,
            "swizzle_name": tensor_map.swizzle_name,
            "l2_promotion": 2,
            "oob_fill": 0,
        },
        "smem_layout": in_bytes(smem, smem_bits),
        "cluster_layout_vmnk": cluster,
        "tma_tensor": copy.coordinates(),
        "gmem_tiles": tiles,
        "bits_per_tma": copy.values * bits,
        "ThrID": mma.atom.thr_id,
        "ctas": ctas,
        "stages": smem,
        "box_values": copy.values,
    }


def fills_stages(outputs: Inputs) -> bool:
    """Whether the instructions of each block, with those of the blocks that share boxes, fill each stage once."""
    stages = plain(outputs["stages"])
    size_of_stage, box = stages[0].size * stages[1].size * stages[2].size, outputs["box_values"]
    starts = outputs["ctas"][0]["smem"]["offsets"]
    return sorted(starts) == list(range(0, box * len(starts), box)) and len(starts) * box % size_of_stage == 0


TMA_UMMA: dict[str, Callable[[Inputs, bool], Inputs]] = {
    "cluster_layout_vmnk": _clusters,
    "make_tma_atom_sm100": _operand,
}
