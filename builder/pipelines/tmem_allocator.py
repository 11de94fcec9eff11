# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tensor memory of a block, which one of its warps allocates and frees (cute/arch/tmem_allocator_sm100.hpp)."""

from dataclasses import dataclass, field
from typing import Any, cast

from ...dialects.ptx.tcgen05.memory import MAX_COLUMNS, MIN_COLUMNS
from ..control.control_functions import if_
from ..instructions import cluster
from ..instructions.arch import warp_idx
from ..instructions.mbarriers import mbarrier_arrive, mbarrier_init, mbarrier_wait
from ..instructions.tensor_core import alloc_tmem, dealloc_tmem, relinquish_tmem_alloc_permit, retrieve_tmem_ptr
from ..instructions.warp import elect_one
from ..scalars.dtypes import Float32, Int32, Int64
from ..tensors.tensors import Pointer, Tensor
from .allocator import alloc_smem
from .barriers import NamedBarrier
from .groups import pipeline_error

ALIGNMENT = 16
"""The alignment of the address of an allocation, in bytes, on which programs rely."""


def _own_word() -> Pointer:
    """An Int32 of shared memory."""
    return alloc_smem(Int32, 1, 16)


@dataclass(frozen=True)
class TmemAllocator:
    """Tensor memory whose address a warp of the block writes to `alloc_result_dst_smem_ptr`, an Int32 of shared memory,
    by default one of its own. All threads call the methods; the warp `allocator_warp_id` allocates and frees, and
    `barrier_for_retrieve` is where it meets those that need the address.

    With `is_two_cta` the blocks of a pair allocate together. They meet at the mbarrier
    `two_cta_tmem_dealloc_mbar_ptr`, by default one of their own, before they free; where a cluster barrier follows,
    both see it. All targets with tensor memory have the same, so `arch` changes nothing.
    """

    alloc_result_dst_smem_ptr: Pointer = field(default_factory=_own_word)
    barrier_for_retrieve: NamedBarrier | None = None
    allocator_warp_id: int = 0
    is_two_cta: bool = False
    num_allocated_columns: int = 0
    two_cta_tmem_dealloc_mbar_ptr: Pointer | None = None
    arch: str = "sm_100"
    columns: list[int] = field(default_factory=list[int], init=False)
    """Those that are allocated."""

    def __post_init__(self) -> None:
        if self.num_allocated_columns:
            self.columns.append(self.num_allocated_columns)
        if not self.is_two_cta:
            return
        bar = self.two_cta_tmem_dealloc_mbar_ptr
        if bar is None:
            bar = alloc_smem(Int64, 1, 8)
            object.__setattr__(self, "two_cta_tmem_dealloc_mbar_ptr", bar)

        def make() -> None:
            mbarrier_init(bar, 1)
            cluster.mbarrier_init_fence()

        self._by_warp(lambda: if_(elect_one(), make))

    def allocate(self, num_columns: int) -> None:
        """Allocates columns, 32, 64, 128, 256 or 512."""
        self.columns.append(num_columns)
        self._by_warp(lambda: alloc_tmem(num_columns, self.alloc_result_dst_smem_ptr, self.is_two_cta))

    def wait_for_alloc(self) -> None:
        """Waits until the address is known. Raises TilefoldError (E5011) without a barrier."""
        if self.barrier_for_retrieve is None:
            hint = "give barrier_for_retrieve=pipeline.NamedBarrier(1, threads)"
            raise pipeline_error("the allocator was created without a barrier", hint)
        self.barrier_for_retrieve.arrive_and_wait()

    def retrieve_ptr(self, dtype: object = Float32) -> Pointer:
        """The pointer to elements of a type at the first column, after `wait_for_alloc`."""
        return retrieve_tmem_ptr(dtype, ALIGNMENT, self.alloc_result_dst_smem_ptr)

    def relinquish_alloc_permit(self) -> None:
        """The block allocates no more."""
        self._by_warp(lambda: relinquish_tmem_alloc_permit(self.is_two_cta))

    def free(self, tmem_ptr: Pointer, num_columns: int = 0) -> None:
        """Frees the columns, `num_columns` or those of the last allocation, after all their uses in the block; of a
        pair, once the other block is as far.
        """
        columns = num_columns or (self.columns[-1] if self.columns else MAX_COLUMNS)

        def act() -> None:
            bar = self.two_cta_tmem_dealloc_mbar_ptr
            if self.is_two_cta and bar is not None:
                rank = cluster.block_idx_in_cluster()
                if_(elect_one(), lambda: mbarrier_arrive(bar, rank ^ 1))
                mbarrier_wait(bar, 0, "cluster")
            dealloc_tmem(tmem_ptr, columns, self.is_two_cta)

        self._by_warp(act)

    def _by_warp(self, action: Any) -> None:
        if_(cluster.make_warp_uniform(warp_idx()) == self.allocator_warp_id, action)


def get_num_tmem_alloc_cols(tmem_tensors: object, rounding: bool = True, *, arch: str = "sm_100") -> int:
    """The columns that tensors in tensor memory need together, rounded up to a number that can be allocated. All
    targets with tensor memory have as many, so `arch` changes nothing. Raises TilefoldError (E5011) for more than 512.
    """
    from ..tensors.tensor_memory import find_tmem_tensor_col_offset

    given = cast("list[Tensor]", tmem_tensors if isinstance(tmem_tensors, list | tuple) else [tmem_tensors])
    needed = sum(find_tmem_tensor_col_offset(tensor) for tensor in given)
    columns = max(MIN_COLUMNS, 1 << (needed - 1).bit_length()) if rounding else needed
    if columns > MAX_COLUMNS:
        raise pipeline_error(f"the tensors need {needed} columns", f"tensor memory has {MAX_COLUMNS}")
    return columns
