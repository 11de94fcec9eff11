# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many blocks a multiprocessor holds, by figures of NVIDIA's occupancy calculator."""

import pytest
from tilefold.base.occupancy import occupancy
from tilefold.base.target import Target, known_targets


@pytest.mark.parametrize(("arch", "threads", "registers", "shared", "blocks", "limits"), [
    ("sm_80", 256, 32, 0, 8, ("threads", "registers")),
    ("sm_80", 256, 65, 0, 3, ("registers",)),  # 72 after rounding: 7 warps in each of four partitions
    ("sm_80", 32, 16, 0, 32, ("blocks",)),
    ("sm_80", 1024, 40, 0, 1, ("registers",)),
    ("sm_90a", 128, 168, 0, 3, ("registers",)),
    ("sm_90a", 256, 128, 100 * 1024, 2, ("registers", "shared memory")),
    ("sm_90a", 384, 168, 227 * 1024, 1, ("registers", "shared memory")),
    ("sm_86", 128, 64, 48 * 1024, 2, ("shared memory",)),
    ("sm_86", 128, 64, 99 * 1024, 1, ("shared memory",)),
    ("sm_75", 1024, 64, 0, 1, ("threads", "registers")),
    ("sm_120", 96, 255, 0, 2, ("registers",)),  # eight warps fit, two in each partition
])  # fmt: skip
def test_blocks(arch: str, threads: int, registers: int, shared: int, blocks: int, limits: tuple[str, ...]) -> None:
    found = occupancy(Target(arch), threads, registers, shared)
    assert (found.resident, found.limits) == (blocks, limits)


@pytest.mark.parametrize("arch", known_targets())
def test_one_block_of_the_largest_shared_memory_fits(arch: str) -> None:
    assert occupancy(Target(arch), 128, 64, Target(arch).max_shared_bytes).resident == 1
