# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the simulator executes at stage `instr` is what stands in the PTX, once for each thread."""

import re
from pathlib import Path

import pytest

from tests.kernels.harness import ALL_LAUNCHES, LAUNCH_IDS, kernel_ptx, launches, loops, ptx_counts, simulated, small

_BRANCH = re.compile(r"^\s+(?:@|bra)", re.MULTILINE)
_COUNTED = re.compile(
    r"(?:ld|st|cp|mbarrier|ldmatrix|stmatrix|movmatrix|mma|wgmma|setmaxnreg|elect|fence|griddepcontrol|prefetch|bar|barrier"
    r"|shfl|red|tcgen05|clusterlaunchcontrol|ex2|rcp|rsqrt|call|ret)(?:\.(?!param|local)|$)"
)
"""Memory, matrices, barriers, exchange, functions and calls; parameters, and printf's arguments on the stack, are the
calling convention's.
"""


def is_straight_line(path: Path, number: int) -> bool:
    """Whether the PTX of a launch's kernel has neither a branch nor a predicated instruction."""
    return not _BRANCH.search(kernel_ptx(path, kernel_of(path, number)))


def kernel_of(path: Path, number: int) -> str:
    """The name of a launch's kernel."""
    return launches(path)[number].kernel.rpartition("::")[2]


@pytest.mark.parametrize(("path", "number"), ALL_LAUNCHES, ids=LAUNCH_IDS)
@pytest.mark.sampled(9)
def test_counts_equal_those_of_the_ptx(path: Path, number: int) -> None:
    launch = small(launches(path)[number])
    threads = launch.grid[0] * launch.grid[1] * launch.grid[2] * launch.block[0] * launch.block[1] * launch.block[2]
    standing = {
        mnemonic.replace("shared::cta.global", "shared::cluster.global"): count  # the spelling of sm_120 (TensorLoadOp)
        for mnemonic, count in ptx_counts(path)[kernel_of(path, number)].items()
        if _COUNTED.match(mnemonic)
    }
    executed = simulated(path, number, "instr").result.counters.instructions
    assert set(executed) == set(standing)
    if is_straight_line(path, number):
        assert {name: count.threads for name, count in executed.items()} == {
            name: count * threads for name, count in standing.items()
        }
    elif loops(kernel_ptx(path, kernel_of(path, number))):
        assert all(executed[name].threads > 0 for name in standing)
    else:
        assert all(0 < executed[name].threads <= count * threads for name, count in standing.items())


def test_kernels_without_control_flow_are_straight_lines() -> None:
    wanted = {"index_arithmetic", "tiled_copy", "ldmatrix", "ldmatrix_trans", "swizzled_f32", "padded_f32"}
    known = [(path, number) for path, number in ALL_LAUNCHES if kernel_of(path, number) in wanted]
    assert {kernel_of(path, number) for path, number in known if is_straight_line(path, number)} == wanted
