# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TMA copies of whole tiles, from a tensor map and a place in shared memory; and of views of tensors in global
memory: the map is that of the whole tensor, and the coordinates are those of the view in it (`cute.experimental`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, TypeAlias, get_args

from ...base.errors import Code, TilefoldError
from ...layout.algebra.core import ComposedLayout, LayoutLike
from ...layout.algebra.integers import AnyTuple
from ..control.control_functions import if_
from ..instructions import cluster
from ..instructions.cluster import block_idx_in_cluster
from ..instructions.mbarriers import mbarrier_expect_tx
from ..instructions.warp import elect_one
from ..tensors.copies import copy
from ..tensors.layouts import make_layout, rank, size, size_in_bytes
from ..tensors.modes import filter_zeros, group_modes
from ..tensors.nvgpu import CopyBulkTensorTileG2SMulticastOp, CopyBulkTensorTileG2SOp, CopyBulkTensorTileS2GOp, CtaGroup
from ..tensors.operand_copies import make_tiled_tma_atom_A, make_tiled_tma_atom_B
from ..tensors.tensors import Address, CoordTensor, Tensor
from ..tensors.tiled_mma import TiledMma
from ..tensors.tma import TmaInfo, create_tma_multicast_mask, make_tiled_tma_atom, tma_copy, tma_partition
from ..tensors.views import on_coordinates, viewed_tensor, zipped_divide
from ..tracing.state import current
from .maps_in_memory import LoadedMap, is_computed, once_defined, place_of_map, write_map


class OperationTypeEnum(Enum):
    """The operations at the sides of a pipeline. A load names who loads: a block on its own, or a pair."""

    SM90_TMA_LOAD = "load"
    SM90_TMA_LOAD_MULTICAST = "load for several blocks"
    SM100_TMA_LOAD_2SM = "load of a pair"
    SM100_TMA_LOAD_2SM_MULTICAST = "load of a pair for several blocks"
    SM100_MMA_1SM_SS = "multiplication"
    SM100_MMA_2SM_SS = "multiplication of a pair"
    SM100_COPY_T2R = "load from tensor memory"


Operand: TypeAlias = Literal["A", "B", "SFA", "SFB"]
"""Operands of multiplications that TMA copies load: A and B, and their scales."""
_PAIRED = (OperationTypeEnum.SM100_TMA_LOAD_2SM, OperationTypeEnum.SM100_TMA_LOAD_2SM_MULTICAST)


@dataclass(frozen=True)
class OperandTile:
    """The values of a block's tile of an operand: the tile (M,N,K) of those that multiply together, and their MMA."""

    operand: Operand
    tiler: AnyTuple
    tiled_mma: TiledMma


def get_cta_v_map_ab(gmem: Tensor, mma_tiler: object, tiled_mma: TiledMma, operand: Operand) -> OperandTile:
    """The values of a block's tile of A or B, or of their scales, as `tma_load` takes them. Raises TilefoldError
    (E5002) for another operand.
    """
    if operand not in get_args(Operand):
        raise TilefoldError(Code.BUILD_VALUE, f"an MMA loads no operand {operand!r}", 'write "A", "B", "SFA" or "SFB"')
    return OperandTile(operand, mma_tiler, tiled_mma)


def get_cta_v_map_c(gmem: Tensor, epi_tile: object) -> Any:
    """The values of a tile of an epilogue, as `tma_store` takes them: the tiler that cuts it."""
    return epi_tile


def tma_load(
    src: Tensor,
    dst: Tensor,
    mbar: object,
    *,
    cta_v_map: OperandTile,
    tma_operation_type: OperationTypeEnum = OperationTypeEnum.SM90_TMA_LOAD,
    update_expect_tx: bool = True,
) -> None:
    """Loads a tile of an operand, a view of a tensor in global memory, to a stage of shared memory; a warp calls it.
    The mbarrier expects the bytes, unless `update_expect_tx` is False; a pair uses that of the block that leads.
    """
    _load(src, dst, mbar, cta_v_map, tma_operation_type, update_expect_tx)


def tma_load_multicast(
    src: Tensor,
    dst: Tensor,
    mbar: object,
    *,
    vmnk_layout: object,
    cta_v_map: OperandTile,
    tma_operation_type: OperationTypeEnum,
    multicast_mode: int,
    update_expect_tx: bool = True,
) -> None:
    """`tma_load` of a part of the tile for all blocks along a mode of the cluster (V,M,N,K), each of which does so."""
    _load(src, dst, mbar, cta_v_map, tma_operation_type, update_expect_tx, (vmnk_layout, multicast_mode))


def _load(
    src: Tensor,
    dst: Tensor,
    mbar: Any,
    tile: OperandTile,
    kind: OperationTypeEnum,
    announces: bool,
    shared: tuple[Any, int] | None = None,
) -> None:
    is_paired = kind in _PAIRED
    mask: Any = None
    place: Any = 0
    blocks, cluster_shape = make_layout(1), None
    op = CopyBulkTensorTileG2SOp(CtaGroup.TWO if is_paired else CtaGroup.ONE)
    if shared is not None and size(shared[0][shared[1]]) > 1:
        layout, mode = shared
        op = CopyBulkTensorTileG2SMulticastOp(op.cta_group)
        coord = layout.get_flat_coord(cluster.block_idx_in_cluster())
        mask, place, cluster_shape = create_tma_multicast_mask(layout, coord, mode), coord[mode], layout.shape
        blocks = make_layout(size(layout[mode]))
    make = make_tiled_tma_atom_A if tile.operand in ("A", "SFA") else make_tiled_tma_atom_B
    whole = viewed_tensor(src)

    def info_of_map() -> TmaInfo:
        return make(op, whole, _from_0(dst.ir_type.layout.data), tile.tiler, tile.tiled_mma, cluster_shape)

    map = _map_in_memory(whole, info_of_map, size(viewed_tensor(dst)) // size(dst)) if is_computed(whole) else None
    info = info_of_map() if map is None else map.info
    rows, depth = (size(part) for part in dst.layout.shape[0])
    tiles = zipped_divide(on_coordinates(src, info.tma_tensor), (rows, depth))
    to, source = tma_partition(info.atom, place, blocks, group_modes(dst, 0, 3), group_modes(tiles, 0, 2))
    to, source = filter_zeros(to), filter_zeros(source)  # elements of a group have one scale
    if announces:
        bytes = size_in_bytes(dst.element_type, dst.layout) * (2 if is_paired else 1)
        leads: Any = cluster.block_idx_in_cluster() % 2 == 0 if is_paired else True
        if_(leads, lambda: if_(elect_one(), lambda: mbarrier_expect_tx(mbar, bytes)))
    tma_copy(info.atom, source, to, mbar, mask, None, None if map is None else map.place)
    if map is not None:
        map.loads()


def _map_in_memory(tensor: Tensor, make: Callable[[], TmaInfo], stages: int) -> LoadedMap:
    """The map of a tensor whose address the kernel computes, written once where the tensor is defined."""
    written = current().maps

    def write() -> LoadedMap:
        info = make()
        key = tensor.ssa, info.atom.type
        if key not in written:
            written[key] = LoadedMap.written(info, stages)
        return written[key]

    return once_defined(tensor, write)


def tma_store(src: Tensor, dst: Tensor, *, cta_v_map: object) -> None:
    """Stores a tile of shared memory to a view of a tensor in global memory; a warp calls it. The map of a tensor whose
    address the kernel computes is written before each store: `StoreMap` writes it once.
    """
    map = StoreMap.of(src, dst, cta_v_map)
    map.write()
    map.store(src, dst)


@dataclass(frozen=True)
class StoreMap:
    """The map of a tensor to which tiles are stored, at a `place` in memory if the kernel computes its address."""

    info: TmaInfo
    place: Address | None

    @classmethod
    def of(cls, src: Tensor, dst: Tensor, cta_v_map: object) -> "StoreMap":
        """The map for a view of a tensor and a tile in shared memory."""
        whole = viewed_tensor(dst)
        info = make_tiled_tma_atom(CopyBulkTensorTileS2GOp(), whole, _from_0(src.ir_type.layout.data), cta_v_map)
        return cls(info, place_of_map() if is_computed(whole) else None)

    def write(self) -> None:
        """Makes the map in memory, if it is there; the warp that stores calls it."""
        if self.place is not None:
            write_map(self.info.atom, self.place)

    def store(self, src: Tensor, dst: Tensor) -> None:
        """Stores a tile; a warp calls it."""
        part = on_coordinates(dst, self.info.tma_tensor)
        source, to = tma_partition(self.info.atom, 0, make_layout(1), group_modes(src, 0, 2), group_modes(part, 0, 2))
        tma_copy(self.info.atom, source, to, None, None, None, self.place)


def _from_0(layout: LayoutLike) -> LayoutLike:
    """The layout of a stage of shared memory, wherever that begins."""
    return ComposedLayout(layout.inner, 0, layout.outer) if isinstance(layout, ComposedLayout) else layout


def block_copy(
    atom: Any, src: object, dst: object, *, tma_multicast: Mapping[str, Any] | None = None, **options: Any
) -> None:
    """Copies a tile between global and shared memory by a tensor map; all modes of both belong to the tile. `options`
    are those of `copy`.

    `tma_multicast` has the `cluster_shape` (M,N) of blocks that load parts of the tile for each other, and the
    `multicast_dim`, "M" or "N", that these blocks have in common. By an atom without a multicast each block loads the
    whole tile. TilefoldError (E5002) for another one, and for pairs
    of blocks (`use_2cta_mma_inst`).
    """
    coord: AnyTuple = 0
    blocks, mask = 1, None
    if tma_multicast is not None and atom.type.multicast.data > 1:
        coord, blocks, mask = _multicast(**tma_multicast)
    loads = isinstance(src, CoordTensor)
    tiles = (group_modes(tensor, 0, rank(tensor)) for tensor in ((dst, src) if loads else (src, dst)))
    parts = tma_partition(atom, coord, make_layout(blocks), *tiles)
    shared, coords = map(filter_zeros, parts)  # elements of a group have one scale
    options |= {} if mask is None else {"mcast_mask": mask}
    copy(atom, *((coords, shared) if loads else (shared, coords)), **options)


def _multicast(
    cluster_shape: tuple[int, int], multicast_dim: str, use_2cta_mma_inst: bool = False
) -> tuple[Any, int, Any]:
    """The place of the block among those that share a tile, their number, and the mask of them, None for one."""
    if use_2cta_mma_inst or multicast_dim not in ("M", "N"):
        hint = 'multicast_dim is "M" or "N", and pairs of blocks need sm_100'
        raise TilefoldError(Code.BUILD_VALUE, f"blocks share no tile along {multicast_dim!r}", hint)
    rows, columns = cluster_shape
    blocks = columns if multicast_dim == "M" else rows
    if blocks == 1:
        return 0, 1, None
    own = block_idx_in_cluster()
    place = own % rows, own // rows
    mode = 1 if multicast_dim == "M" else 0
    return place[mode], blocks, create_tma_multicast_mask(make_layout((rows, columns)), place, mode)
