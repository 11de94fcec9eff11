# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions beside multiplications into tensor memory: its allocation, waits for loads and stores, and commits (PTX
ISA, tcgen05; sm_100a and sm_103a)."""

from ...base.errors import Code, TilefoldError
from ...base.spaces import TMEM
from ...dialects import ptx
from ...dialects.ptx.tcgen05.memory import MAX_COLUMNS, MIN_COLUMNS
from ..scalars.dtypes import Int32, Uint16, as_dtype
from ..scalars.operators import Operand
from ..scalars.values import Int, convert
from ..tensors.nvgpu import CtaGroup
from ..tensors.tensors import Pointer, Tensor, address_of, pointed, tensor_at
from ..tracing.state import emit


def get_max_tmem_alloc_cols(compute_capability: str = "sm_100") -> int:
    """The most columns that a block can allocate, on every target with tensor memory."""
    return MAX_COLUMNS


def get_min_tmem_alloc_cols(compute_capability: str = "sm_100") -> int:
    """The least columns that a block can allocate, of all targets with tensor memory."""
    return MIN_COLUMNS


def alloc_tmem(num_columns: "Int | int", smem_ptr_to_write_address: object, is_two_cta: bool | None = None) -> None:
    """Allocates 32, 64, 128, 256 or 512 columns of tensor memory; their address goes to shared memory. It waits until
    as many are free (PTX ISA, tcgen05.alloc).

    A whole warp executes it, in a pair one warp of each block.
    """
    slot = address_of(smem_ptr_to_write_address).ssa
    emit(ptx.TensorAllocOp(_blocks(is_two_cta), slot, convert(num_columns, Int32).ssa))


def relinquish_tmem_alloc_permit(is_two_cta: bool | None = None) -> None:
    """The block allocates no more tensor memory (PTX ISA, tcgen05.relinquish_alloc_permit). A whole warp does it."""
    emit(ptx.TensorRelinquishOp(_blocks(is_two_cta)))


def retrieve_tmem_ptr(element_type: object, alignment: int, ptr_to_buffer_holding_addr: object) -> Pointer:
    """The pointer to elements of tensor memory whose address `alloc_tmem` has written to shared memory. A barrier of
    the threads stands between.
    """
    number = convert(pointer_to(ptr_to_buffer_holding_addr).load(), Int32)
    return tensor_at(number, as_dtype(element_type), TMEM.name, alignment).iterator


def pointer_to(place: object) -> Pointer:
    """A pointer, or that to where a tensor begins. Raises TilefoldError (E5002) for anything else."""
    pointer = place.iterator if isinstance(place, Tensor) else pointed(place)
    if not isinstance(pointer, Pointer):
        message = f"expected a pointer to shared memory, got {type(place).__name__}"
        raise TilefoldError(Code.BUILD_VALUE, message, "write tensor.iterator")
    return pointer


def dealloc_tmem(tmem_ptr: Pointer, num_columns: "Int | int", is_two_cta: bool | None = None) -> None:
    """Frees columns as `alloc_tmem` has allocated them, after all their uses (PTX ISA, tcgen05.dealloc). A whole warp
    executes it, in a pair one warp of each block.
    """
    cell = address_of(tmem_ptr).ssa
    emit(ptx.TensorDeallocOp(_blocks(is_two_cta), cell, convert(num_columns, Int32).ssa))


def fence_view_async_tmem_load() -> None:
    """Waits until the warp's loads from tensor memory are complete (PTX ISA, tcgen05.wait::ld)."""
    emit(ptx.TensorWaitOp("ld"))


def fence_view_async_tmem_store() -> None:
    """Waits until the warp's stores to tensor memory are complete (PTX ISA, tcgen05.wait::st)."""
    emit(ptx.TensorWaitOp("st"))


def commit(mbar_ptr: object, mask: Operand = None, cta_group: CtaGroup = CtaGroup.ONE) -> None:
    """Arrives at an mbarrier once the multiplications and the copies to tensor memory are complete that the thread has
    issued; with a mask, at the mbarriers at this place in the blocks of the cluster that its bits name (PTX ISA,
    tcgen05.commit). One thread of a warp that calls it executes it.
    """
    multicast = None if mask is None else convert(mask, Uint16).ssa
    emit(ptx.TensorCommitOp(CtaGroup(cta_group).value, address_of(mbar_ptr).ssa, multicast))


def _blocks(is_two_cta: bool | None) -> int:
    return 2 if is_two_cta else 1
