# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many blocks of a kernel a multiprocessor of a target holds at a time."""

from dataclasses import dataclass

from .target import WARP, Target

REGISTERS = 64 * 1024
"""Registers of a multiprocessor, all targets (CUDA C++ Programming Guide, Technical Specifications)."""
_WARP_REGISTERS = 256
"""The granularity of a warp's registers."""
_PARTITIONS = 4
"""The parts of a multiprocessor; each holds whole warps with their registers."""
_SHARED_UNIT = 128
"""The granularity of a block's shared memory, in bytes."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How many blocks fit by each resource; the multiprocessor holds the least of them."""

    threads: int
    blocks: int
    registers: int
    shared: int

    @property
    def resident(self) -> int:
        """The blocks that a multiprocessor holds."""
        return min(self.threads, self.blocks, self.registers, self.shared)

    @property
    def limits(self) -> tuple[str, ...]:
        """The resources that are too few for one more block."""
        fit = {
            "threads": self.threads, "blocks": self.blocks, "registers": self.registers, "shared memory": self.shared,
        }  # fmt: skip
        return tuple(name for name, blocks in fit.items() if blocks == self.resident)


def blocks_at_once(target: Target, threads: int, shared: int) -> int:
    """The blocks that a common GPU of the target holds, at least 1, as far as threads and shared memory decide."""
    return max(occupancy(target, threads, 1, shared).resident, 1) * target.capability.units


def occupancy(target: Target, threads: int, registers: int, shared: int) -> Occupancy:
    """The blocks of `threads` threads with `registers` registers each, and `shared` bytes, that fit on a
    multiprocessor."""
    holds = target.capability
    warps = -(-threads // WARP)
    per_warp = -(-max(registers, 1) * WARP // _WARP_REGISTERS) * _WARP_REGISTERS
    by_registers = REGISTERS // _PARTITIONS // per_warp * _PARTITIONS // warps
    allocated = -(-(shared + target.reserved_shared_bytes) // _SHARED_UNIT) * _SHARED_UNIT
    by_shared = holds.shared_kib * 1024 // allocated if allocated else holds.blocks
    return Occupancy(holds.threads // (warps * WARP), holds.blocks, by_registers, by_shared)
