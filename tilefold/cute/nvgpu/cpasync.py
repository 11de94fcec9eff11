# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.nvgpu.cpasync`: asynchronous copies between global and shared memory, cp.async and TMA copies."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilefold.builder.pipelines.tensor_map_manager import (
    copy_tensormap,
    cp_fence_tma_desc_release,
    fence_tma_desc_acquire,
    fence_tma_desc_release,
    update_tma_descriptor,
)
from tilefold.builder.tensors import copy_atoms
from tilefold.builder.tensors.fragments import ReductionOp
from tilefold.builder.tensors.nvgpu import (
    CopyBulkG2SOp,
    CopyBulkS2GOp,
    CopyBulkTensorGather4G2SOp,
    CopyBulkTensorScatter4S2GOp,
    CopyBulkTensorTileG2SMulticastOp,
    CopyBulkTensorTileG2SOp,
    CopyBulkTensorTileS2GOp,
    CopyDsmemStoreOp,
    CopyG2SOp,
    CopyOp,
    CopyReduceBulkTensorTileS2GOp,
    LoadCacheMode,
    TmaCopyOp,
)
from tilefold.builder.tensors.tma import (
    TmaAtom,
    TmaInfo,
    create_tma_multicast_mask,
    gather4,
    group_bulk_copy_modes,
    make_tiled_tma_atom,
    prefetch_descriptor,
    scatter4,
    tma_partition,
)

from ..public import publish


@dataclass(frozen=True)
class CopyBulkTensorTileG2SNonExecTrait:
    """An atom that an operation of `cute_nvgpu` has made."""

    atom: TmaAtom


class _OfTraits(type):
    """The class of copy atoms as such programs know it: a call with a trait gives the trait's atom."""

    def __call__(cls, op: CopyOp, trait: CopyBulkTensorTileG2SNonExecTrait) -> TmaAtom:  # pyright: ignore[reportIncompatibleMethodOverride]
        return trait.atom

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, copy_atoms.CopyAtom)


if TYPE_CHECKING:
    CopyAtom = copy_atoms.CopyAtom
else:

    class CopyAtom(copy_atoms.CopyAtom, metaclass=_OfTraits):
        """A copy instruction, and the elements that it moves; `CopyAtom(op, trait)` is the atom in a trait."""


ReductionKind = ReductionOp
"""How a TMA copy combines elements with those of global memory."""

__all__ = [
    "CopyBulkG2SOp", "CopyBulkS2GOp", "CopyBulkTensorGather4G2SOp", "CopyBulkTensorScatter4S2GOp",
    "CopyBulkTensorTileG2SMulticastOp", "CopyBulkTensorTileG2SNonExecTrait", "CopyBulkTensorTileG2SOp",
    "CopyBulkTensorTileS2GOp", "CopyDsmemStoreOp", "CopyG2SOp", "CopyReduceBulkTensorTileS2GOp", "LoadCacheMode",
    "ReductionKind", "ReductionOp", "TmaCopyOp", "TmaInfo", "copy_tensormap", "cp_fence_tma_desc_release",
    "create_tma_multicast_mask", "fence_tma_desc_acquire", "fence_tma_desc_release", "gather4", "group_bulk_copy_modes",
    "make_tiled_tma_atom", "make_tma_tile_atom", "prefetch_descriptor", "scatter4", "tma_partition",
    "update_tma_descriptor",
]  # fmt: skip

make_tma_tile_atom = make_tiled_tma_atom
"""Its name in older programs."""

publish(__name__)
