# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps in memory, by which a kernel copies tiles of tensors that it chooses itself (sm_90a), such as those of a
group of products.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ...dialects import ptx
from ...dialects.tile import CopyTensorMapOp, UpdateTensorMapOp
from ...layout.algebra.core import plain_layout
from ...layout.algebra.inttuple import congruent, leaves, unflatten
from ...layout.tma.tensor_map import UNIT
from ..control.control_functions import if_
from ..instructions.arch import cp_async_bulk_commit_group, cp_async_bulk_wait_group, sync_warp, warp_idx
from ..tensors.layouts import assume, make_layout
from ..tensors.pointers import make_tensor, recast_tensor
from ..tensors.tensors import Tensor, address_of
from ..tensors.tma import TmaAtom
from ..tensors.views import as_tensor
from ..tracing.state import emit


def copy_tensormap(tma_atom: TmaAtom, tensormap_ptr: object) -> None:
    """Copies the tensor map of an atom to 128 bytes of global or shared memory, at a multiple of 128."""
    emit(CopyTensorMapOp(tma_atom.ssa, address_of(tensormap_ptr).ssa))


def update_tma_descriptor(tma_atom: TmaAtom, gmem_tensor: Tensor, tma_desc_ptr: object) -> None:
    """Adapts the tensor map in memory, a copy of the atom's, to another tensor with the same modes: its address, its
    extents and its strides. A tensor of narrower elements, such as pairs of 4 bits for a map of bytes, is recast.
    Several threads of a warp may do so together.
    """
    tensor = _in_elements_of(tma_atom, as_tensor(gmem_tensor))
    emit(UpdateTensorMapOp(tma_atom.ssa, tensor.ssa, address_of(tma_desc_ptr).ssa))


def _in_elements_of(atom: TmaAtom, tensor: Tensor) -> Tensor:
    """A tensor in the elements of an atom's map: the stride that is 1 in the map is 1, and the others are multiples of
    16 bytes, as maps have them (PTX ISA, tensormap.replace: global_stride).
    """
    of_map = plain_layout(atom.type.gmem.data)
    if tensor.element_type.bits >= atom.dtype.bits or not congruent(of_map.stride, tensor.stride):
        return tensor
    pairs = zip(leaves(of_map.stride), leaves(tensor.stride), strict=True)
    granule = 8 * UNIT // tensor.element_type.bits
    strides = unflatten([1 if was == 1 else assume(stride, granule) for was, stride in pairs], tensor.stride)
    return recast_tensor(make_tensor(tensor.iterator, make_layout(tensor.shape, stride=strides)), atom.dtype)


def fence_tma_desc_acquire(tma_desc_ptr: object) -> None:
    """Makes the map in global memory that other threads have released visible to the thread's TMA copies."""
    emit(ptx.FenceTensorMapAcquireOp(address_of(tma_desc_ptr).ssa))


def fence_tma_desc_release() -> None:
    """Releases the thread's changes of tensor maps in global memory."""
    emit(ptx.FenceTensorMapReleaseOp())


def cp_fence_tma_desc_release(tma_desc_global_ptr: object, tma_desc_shared_ptr: object) -> None:
    """Copies a tensor map from shared to global memory and releases it: all threads of a warp together, after
    `cute.arch.sync_warp()`.
    """
    emit(ptx.TensorMapCpFenceOp(address_of(tma_desc_global_ptr).ssa, address_of(tma_desc_shared_ptr).ssa))


class TensorMapUpdateMode(Enum):
    """The place where tensor maps change: global memory, or shared memory, from where the warp copies them."""

    GMEM = 1
    SMEM = 2


@dataclass(frozen=True)
class TensorMapManager:
    """Keeps tensor maps of `bytes_per_tensormap` bytes each in memory, and adapts them to other tensors."""

    tensormap_update_mode: TensorMapUpdateMode
    bytes_per_tensormap: int = ptx.MAP_BYTES

    def get_tensormap_ptr(self, ptr: object, address_space: object = None) -> Any:
        """The pointer in the form for `cute.copy`, whatever its address space."""
        return ptr

    def init_tensormap_from_atom(self, copy_atom: TmaAtom, dst_ptr: object, warp_id: int) -> None:
        """A warp of the block writes the map of an atom to a pointer."""
        if_(warp_idx() == warp_id, lambda: copy_tensormap(copy_atom, dst_ptr))

    def fence_tensormap_initialization(self) -> None:
        """Releases the maps that the thread has put into memory."""
        fence_tma_desc_release()

    def fence_tensormap_update(self, tensormap_ptr: object) -> None:
        """Makes an updated map visible to the thread's TMA copies."""
        fence_tma_desc_acquire(tensormap_ptr)

    def update_tensormap(
        self,
        tensor_gmem: Sequence[Tensor],
        tma_copy_atom: Sequence[TmaAtom],
        tensormap_gmem_ptr: Sequence[object],
        warp_id: int,
        tensormap_smem_ptr: Sequence[object],
    ) -> None:
        """A warp adapts maps to tensors after its own TMA copies are complete, and releases them. In mode SMEM it
        changes the maps at `tensormap_smem_ptr` and then copies them.
        """
        in_shared = self.tensormap_update_mode is TensorMapUpdateMode.SMEM
        changed = tensormap_smem_ptr if in_shared else tensormap_gmem_ptr

        def update() -> None:
            cp_async_bulk_commit_group()
            cp_async_bulk_wait_group(0, read=True)
            for atom, tensor, pointer in zip(tma_copy_atom, tensor_gmem, changed, strict=True):
                update_tma_descriptor(atom, tensor, pointer)
            sync_warp()
            if not in_shared:
                fence_tma_desc_release()
                return
            for target, source in zip(tensormap_gmem_ptr, tensormap_smem_ptr, strict=True):
                cp_fence_tma_desc_release(target, source)

        if_(warp_idx() == warp_id, update)
