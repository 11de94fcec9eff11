# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared-memory wavefronts: the least possible where a layout is swizzled or padded, more where it is neither."""

from pathlib import Path

import pytest

from tests.kernels.harness import STAGES, example, launches, program_of, simulate, simulated, small
from tilefold.driver.launches import Changes, read_launches


def launch_number(path: Path, kernel: str) -> int:
    """The first launch of a kernel in an example."""
    return next(i for i, launch in enumerate(launches(path)) if launch.kernel.endswith(f"::{kernel}"))


CONFLICT_FREE = [
    ("ldmatrix", "ldmatrix"),
    ("ldmatrix", "ldmatrix_trans"),
    *(("transpose", f"{how}_{type}") for how in ("padded", "swizzled") for type in ("f32", "f16")),
]


@pytest.mark.parametrize(("name", "kernel"), CONFLICT_FREE)
def test_no_access_has_a_bank_conflict(name: str, kernel: str) -> None:
    path = example(name)
    for stage in STAGES:
        counters = simulated(path, launch_number(path, kernel), stage).result.counters
        shared = [access for access in counters.accesses if access.space == "shared"]
        assert len(shared) >= 2
        assert [access.excess for access in shared] == [0] * len(shared), stage


# Example, kernel, its swizzled layout and the plain one; how many times the least wavefronts each copy then takes.
CONTROLS = [
    ("ldmatrix", "ldmatrix", "S<3,3,3> o 0 o (64,64):(64,1)", "(64,64):(64,1)", [1, 8]),
    ("ldmatrix", "ldmatrix_trans", "S<3,3,3> o 0 o (64,64):(64,1)", "(64,64):(64,1)", [1, 8]),
    ("transpose", "swizzled_f32", "S<5,0,5> o 0 o (32,32)", "(32,32)", [1, 32]),
]


@pytest.mark.parametrize(("name", "kernel", "swizzled", "plain", "factors"), CONTROLS)
def test_without_the_swizzle_accesses_conflict(
    name: str, kernel: str, swizzled: str, plain: str, factors: list[int]
) -> None:
    text = example(name).read_text()
    assert swizzled in text
    program = program_of(text.replace(swizzled, plain))
    launch = read_launches(program.module, program.source, Changes(name=kernel))[0]
    counters = simulate(program, small(launch), "instr").result.counters
    by_line: dict[str, tuple[int, int]] = {}
    for access in counters.accesses:
        if access.space == "shared":
            total, least = by_line.get(access.location, (0, 0))
            by_line[access.location] = total + access.transactions, least + access.minimum
    assert [total / least for total, least in by_line.values()] == factors
