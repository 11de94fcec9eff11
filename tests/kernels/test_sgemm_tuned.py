# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tuned multiplication by ordinary arithmetic: its ring of stages, its main loop, registers and shared memory."""

from functools import cache

import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target
from tilefold.compiler.frontend.params import expand
from tilefold.compiler.machine.assemble import assemble
from tilefold.compiler.reports.kernel_report import count_instructions

from tests.kernels.harness import assert_checks_hold, example, simulate
from tilefold.driver.launches import Changes, read_launches
from tilefold.driver.lowering import Program, load

SM90 = Target("sm_90a")
LARGE = (("M", "4096"), ("N", "4096"), ("K", "4096"))
TALL = (("TILE_M", "256"), ("WARPS_M", "4"), ("WARPS_N", "2"), ("LANES_M", "4"), ("MIN_BLOCKS", "1"))
ONE_WARP = (("M", "64"), ("N", "64"), ("TILE_M", "32"), ("TILE_N", "32"), ("WARPS_M", "1"), ("WARPS_N", "1"))


@cache
def tuned(given: tuple[tuple[str, str], ...]) -> Program:
    path = example("sgemm_tuned")
    return load(expand(path.read_text(), path.name, dict(given)))


@pytest.mark.parametrize(("stages", "tiles"), [(2, 1), (2, 5), (3, 5), (4, 6)])
def test_the_ring_of_stages(stages: int, tiles: int) -> None:
    program = tuned((*ONE_WARP, ("STAGES", str(stages)), ("TILE_K", "8"), ("K", str(8 * tiles)), ("GROUP", "2")))
    (launch,) = read_launches(program.module, program.source, Changes())
    assert launch.grid == (4, 1, 1)
    assert_checks_hold(launch, simulate(program, launch, "instr").after)


@pytest.mark.parametrize("shape", [(), TALL], ids=["128 x 128", "256 x 128"])
def test_accesses_are_free_of_bank_conflicts(shape: tuple[tuple[str, str], ...]) -> None:
    program = tuned((("M", "256"), *shape))
    (launch,) = read_launches(program.module, program.source, Changes(grid=(1, 1, 1)))
    counters = simulate(program, launch, "instr").result.counters
    shared = [access for access in counters.accesses if access.space == "shared"]
    assert shared
    assert all(access.excess == 0 for access in shared)


@pytest.mark.parametrize(("shape", "rows"), [((), 8), (TALL, 16)], ids=["128 x 128", "256 x 128"])
def test_a_tile_of_k(shape: tuple[tuple[str, str], ...], rows: int) -> None:
    ptx = tuned((*LARGE, *shape)).ptx(SM90)
    counts = count_instructions(ptx)["sgemm"]
    loads = (rows + 8) // 4
    assert counts["fma.rn.f32"] == rows * 8 * 16
    assert counts["ld.shared.v4.b32"] == loads * 17  # of each step, and of the first before the loop
    assert counts["cp.async.cg.shared.global"] == 3 * loads  # of two stages before the loop, and of one in it
    assert counts["bar.sync"] == 2
    assert ".local" not in ptx
    resources = assemble(ptx, SM90).kernels["sgemm"]
    assert resources.spill_stores == resources.spill_loads == 0
    assert resources.registers <= (255 if shape else 128)


def test_what_the_parameters_must_fulfil() -> None:
    for given, message in (
        ((("M", "200"),), "do not cover"),
        ((("K", "16"),), "at least STAGES - 1 = 2 tiles"),
        ((("LANES_N", "8"),), "32 lanes"),
        ((("TILE_M", "32"), ("M", "32")), "a tile is a multiple of 64 x 64"),
    ):
        with pytest.raises(TilefoldError, match=message):
            tuned(given)
