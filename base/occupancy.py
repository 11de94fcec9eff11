# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many blocks of a kernel a multiprocessor of a target holds at a time."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .target import Target

WARP = 32
_REGISTERS = 64 * 1024
"""Registers of a multiprocessor, all targets (CUDA C++ Programming Guide, Technical Specifications)."""
_WARP_REGISTERS = 256
"""Registers are given to a warp in units of so many."""
_PARTITIONS = 4
"""Parts of a multiprocessor, each of which holds whole warps with their registers."""
_SHARED_UNIT = 128
"""Shared memory is given to a block in units of so many bytes."""
_RESERVED_SHARED = 1024
"""Bytes that the system takes of the shared memory of each block, from compute capability 8.0 on."""


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """What a multiprocessor can hold: threads, blocks, and KiB of shared memory."""

    threads: int
    blocks: int
    shared_kib: int


_MULTIPROCESSORS: Mapping[int, Multiprocessor] = MappingProxyType({
    75: Multiprocessor(1024, 16, 64),
    80: Multiprocessor(2048, 32, 164),
    86: Multiprocessor(1536, 16, 100),
    87: Multiprocessor(1536, 16, 164),
    89: Multiprocessor(1536, 24, 100),
    90: Multiprocessor(2048, 32, 228),
    100: Multiprocessor(2048, 32, 228),
    103: Multiprocessor(2048, 32, 228),
    110: Multiprocessor(1536, 24, 228),
    120: Multiprocessor(1536, 24, 100),
    121: Multiprocessor(1536, 24, 100),
})  # fmt: skip
"""By compute capability (the same table)."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How many blocks fit by each resource; what fits in all is what the multiprocessor holds."""

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
        """The resources of which there is not enough for one block more."""
        fit = {
            "threads": self.threads, "blocks": self.blocks, "registers": self.registers, "shared memory": self.shared,
        }  # fmt: skip
        return tuple(name for name, blocks in fit.items() if blocks == self.resident)


def occupancy(target: Target, threads: int, registers: int, shared: int) -> Occupancy:
    """The blocks of `threads` threads, of so many `registers` each, and `shared` bytes that fit on a multiprocessor."""
    unit = _MULTIPROCESSORS[target.sm]
    warps = -(-threads // WARP)
    each = -(-max(registers, 1) * WARP // _WARP_REGISTERS) * _WARP_REGISTERS
    by_registers = _REGISTERS // _PARTITIONS // each * _PARTITIONS // warps
    taken = -(-(shared + (_RESERVED_SHARED if target.sm >= 80 else 0)) // _SHARED_UNIT) * _SHARED_UNIT
    by_shared = unit.shared_kib * 1024 // taken if taken else unit.blocks
    return Occupancy(unit.threads // (warps * WARP), unit.blocks, by_registers, by_shared)
