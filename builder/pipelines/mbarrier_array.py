# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mbarriers by number, and groups of bulk stores, with the methods of `std::barrier`."""

from dataclasses import dataclass, replace
from typing import Any

from ..control.control_functions import if_
from ..instructions import arch, mbarriers
from ..instructions.tensor_core import commit
from ..instructions.warp import elect_one
from ..scalars.operators import Operand
from ..scalars.values import Bool
from ..tensors.nvgpu import CtaGroup
from ..tensors.tensors import Address, Pointer, Tensor
from . import barriers
from .groups import CooperativeGroup, PipelineOp, pipeline_error


@dataclass(frozen=True)
class MbarrierArray:
    """`num_stages` mbarriers from `barrier_storage` on, elements of 8 bytes of shared memory. A phase of each ends with
    as many arrivals as the group of `agent` has, which arrive as its kind of work says: threads by themselves
    (`AsyncThread`), with their `cp.async` (`AsyncLoad`), expecting `tx_count` bytes of copies (`TmaLoad`), or with
    multiplications into tensor memory (`TCGen05Mma`).

    One thread makes them where this is written, unless `is_made`; the block waits elsewhere, by
    `pipeline.pipeline_init_wait`. `first` is the number of the first one in a tensor of mbarriers. In the mbarriers of
    a pipeline whole warps expect bytes (`of_warps`). Raises TilefoldError (E5011) for another kind of work, and for too
    little memory.
    """

    barrier_storage: Pointer | Tensor
    num_stages: int
    agent: tuple[PipelineOp, CooperativeGroup]
    tx_count: int = 0
    is_made: bool = False
    first: int = 0
    of_warps: bool = False

    def __post_init__(self) -> None:
        if self.agent[0] is PipelineOp.TmaStore:
            raise pipeline_error("stores have no mbarriers", "write pipeline.TmaStoreFence")
        if not self.is_made:
            self.mbarrier_init()

    def mbarrier_init(self) -> None:
        """One thread makes the mbarriers anew."""
        counts = [(self.place(i), self.agent[1].size, None) for i in range(self.num_stages)]
        barriers.init(counts, False, counts_bytes=self.agent[0] is PipelineOp.TmaLoad)

    def recast_to_new_op_type(self, new_op_type: PipelineOp) -> "MbarrierArray":
        """The same mbarriers for another kind of work."""
        return replace(self, agent=(new_op_type, self.agent[1]), is_made=True)

    def get_barrier(self, index: Operand) -> Pointer:
        """The pointer to an mbarrier."""
        return self._bars().iterator + (index + self.first)

    def place(self, index: Operand) -> Address:
        """The address of an mbarrier."""
        return self._bars().ptr(index + self.first if self.first else index)

    def arrive(self, index: object, dst: object = None, cta_group: CtaGroup | None = None) -> None:
        """Arrives as the kind of work says, in the own block or, of threads by themselves, in that of rank `dst`. Of
        multiplications into tensor memory `dst` is the mask of blocks, of which `cta_group` multiply together.
        """
        if self.agent[0] is PipelineOp.TmaLoad:
            self.arrive_and_expect_tx(index, self.tx_count)
        elif self.agent[0] is PipelineOp.AsyncLoad:
            self.arrive_cp_async_mbarrier(index)
        elif self.agent[0] is PipelineOp.TCGen05Mma:
            self.arrive_tcgen05mma(index, dst, cta_group or CtaGroup.ONE)
        else:
            self.arrive_mbarrier(index, dst)

    def arrive_mbarrier(self, index: Operand, dst_rank: Operand = None) -> None:
        """The thread arrives, in the own block or in that of a rank."""
        mbarriers.mbarrier_arrive(self.get_barrier(index), dst_rank)

    def arrive_tcgen05mma(self, index: object, mask: object = None, cta_group: CtaGroup = CtaGroup.ONE) -> None:
        """A warp arrives once its multiplications so far are complete, in the own block or in those of a mask."""
        commit(self.get_barrier(index), mask, cta_group)

    def arrive_cp_async_mbarrier(self, index: object) -> None:
        """The thread arrives once its `cp.async` so far are complete."""
        mbarriers.cp_async_mbarrier_arrive_noinc(self.get_barrier(index))

    def arrive_and_expect_tx(self, index: object, tx_count: object) -> None:
        """The thread arrives, and bytes of copies are expected."""
        self.arrive_and_expect_tx_with_dst(index, tx_count)

    def arrive_and_expect_tx_with_dst(self, index: object, tx_count: Operand, dst: Any = None) -> None:
        """The thread arrives, and bytes of copies are expected, in the own block or in that of a rank. In
        a pipeline one thread of the warp does.
        """
        at = self.get_barrier(index)
        is_one = elect_one() if self.of_warps else True
        if_(is_one, lambda: mbarriers.mbarrier_arrive_and_expect_tx(at, tx_count, dst))

    def try_wait(self, index: Operand, phase: Operand) -> Bool:
        """Whether the phase of a parity has ended, after a short wait at most."""
        return mbarriers.mbarrier_try_wait(self.get_barrier(index), phase)

    def test_wait(self, index: Operand, phase: Operand) -> Bool:
        """Whether the phase of a parity has ended."""
        return mbarriers.mbarrier_test_wait(self.get_barrier(index), phase)

    def wait(self, index: Operand, phase: Operand) -> None:
        """Waits until the phase of a parity has ended."""
        mbarriers.mbarrier_wait(self.get_barrier(index), phase)

    def arrive_and_wait(
        self, index: object, phase: object, dst: object = None, cta_group: CtaGroup | None = None
    ) -> None:
        """Arrives, then waits until the phase of a parity has ended."""
        self.arrive(index, dst, cta_group)
        self.wait(index, phase)

    def max(self) -> int:
        """The most arrivals of a phase."""
        return (1 << 20) - 1

    def _bars(self) -> Tensor:
        if self.is_made and isinstance(self.barrier_storage, Tensor):
            return self.barrier_storage
        return barriers.mbarriers(self.barrier_storage, self.num_stages)


@dataclass(frozen=True)
class TmaStoreFence:
    """Groups of the bulk stores of `num_stages` stages, of the thread that starts them (sm_90).

    Raises TilefoldError (E5011) for no stages.
    """

    num_stages: int = 0

    def __post_init__(self) -> None:
        if self.num_stages < 1:
            raise pipeline_error(f"stores of {self.num_stages} stages", "there is at least one stage")

    def arrive(self) -> None:
        """Makes a group of the stores of a stage."""
        arch.cp_async_bulk_commit_group()

    def wait(self) -> None:
        """Waits until one of the stages can be written again."""
        arch.cp_async_bulk_wait_group(self.num_stages - 1, read=True)

    def arrive_and_wait(self) -> None:
        """`arrive`, then `wait`."""
        self.arrive()
        self.wait()

    def tail(self) -> None:
        """Waits until all stages have been read."""
        arch.cp_async_bulk_wait_group(0, read=True)
