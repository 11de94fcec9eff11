# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The costs of lines: against the simulator's counters, and remedies against launches of changed kernels."""

from pathlib import Path

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.spaces import find_worst_bank, wavefronts
from tilefold.compiler.frontend.params import expand
from tilefold.runtime.engine import LaunchConfig
from tilefold.runtime.sim.sim_engine import SimEngine

from tests.kernels.harness import EXAMPLES
from tests.profiling.kernels import CONFLICT, NAIVE, NEEDED, REDUNDANT
from tests.tcgen05.kernels import PROGRAM as MULTIPLY
from tilefold import cute
from tilefold.commands.cli import main
from tilefold.driver.filled_arguments import prepare
from tilefold.driver.launches import Changes, read_launches
from tilefold.driver.line_costs import Costs
from tilefold.driver.lowering import load
from tilefold.driver.trial import Trial
from tilefold.tools.profiling.simulated_costs import costs_of

Capture = pytest.CaptureFixture[str]


def costs(text: str, name: str = "naive.cute", *, tries: bool = True) -> Costs:
    program = load(expand(text, name, {}))
    launch = read_launches(program.module, program.source, Changes())[0]
    arguments = prepare(launch, {}, seed=0, max_bytes=1 << 30)
    trial = Trial(launch.kernel, LaunchConfig(launch.grid, launch.block), arguments.launchable, SimEngine())
    return costs_of(program, launch.label, trial, tries=tries)


def notes(found: Costs, line: int) -> str:
    return "\n".join(note for cost in found.lines if cost.line == line for note in cost.notes)


def test_a_conflict_is_named_with_its_lanes_and_the_layouts_that_remove_it() -> None:
    found = costs(NAIVE)
    worst = found.lines[0]
    assert worst.line == CONFLICT
    (access,) = worst.accesses
    assert (access.transactions, access.minimum, access.requests) == (2048, 64, 64)
    assert access.waste == "32-way bank conflict: lanes 0, 1, 2 ... 31 want different words of bank 0"
    text = notes(found, CONFLICT)
    for layout in ("S<5,0,5> o 0 o (32,32):(32,1)", "(32,32):(33,1)"):
        assert f'"{layout}" takes 128 wavefronts instead of 2112' in text
        better = costs(NAIVE.replace('smem, align<16>, "(32,32):(32,1)"', f'smem, align<16>, "{layout}"'))
        rows = [row for line in better.lines for row in line.accesses if row.space == "shared"]
        assert sum(row.transactions for row in rows) == 128
        assert not any(row.waste for row in rows)
        assert not notes(better, CONFLICT)


def test_a_barrier_too_many_is_named_and_the_needed_one_is_not() -> None:
    found = costs(NAIVE)
    assert "no race and the same results without this barrier" in notes(found, REDUNDANT)
    assert not notes(found, NEEDED)


def test_bytes_stand_against_those_that_are_distinct() -> None:
    text = NAIVE.replace("grid(2, 1)", "grid(2, 1)").replace("(%m, %n)", "(0, %n)")  # both blocks read the first tile
    read = next(row for line in costs(text, tries=False).lines for row in line.accesses if "ld.global" in row.mnemonic)
    assert (read.bytes, read.distinct) == (2 * 32 * 32 * 4, 32 * 32 * 4)


def test_narrow_accesses_have_their_reason() -> None:
    found = costs((EXAMPLES[0].parent / "hgemm.cute").read_text(), "hgemm.cute", tries=False)
    assert "128 bits rejected: 2 elements are adjacent" in "\n".join(n for line in found.lines for n in line.notes)


@pytest.mark.parametrize("name", ["transpose", "sgemm", "ldmatrix", "copy_atoms", "attention"])
@pytest.mark.sampled(3)
def test_lines_add_up_to_the_counters_of_the_launch(name: str) -> None:
    path = next(path for path in EXAMPLES if path.stem == name)
    found = costs(path.read_text(), path.name, tries=False)
    program = load(expand(path.read_text(), path.name, {}))
    launch = read_launches(program.module, program.source, Changes())[0]
    arguments = prepare(launch, {}, seed=0, max_bytes=1 << 30)
    from tilefold.runtime.options import SimOptions

    from tilefold.driver.devices import executable

    run = executable(program, launch.kernel, "sim", "instr", SimOptions())
    counters = run.launch(LaunchConfig(launch.grid, launch.block), arguments.launchable()).counters
    for space, totals in (("shared", counters.wavefronts()), ("global", counters.sectors())):
        rows = [row for line in found.lines for row in line.accesses if row.space == space]
        assert (sum(row.transactions for row in rows), sum(row.minimum for row in rows)) == totals
    assert sum(line.issued for line in found.lines) == sum(count.warps for count in counters.instructions.values())
    cycles = [line.cycles for line in found.lines]
    assert cycles == sorted(cycles, reverse=True)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_the_worst_bank_is_one_that_holds_up_the_access(width: int) -> None:
    chance = np.random.default_rng(width)
    for _ in range(50):
        lanes = np.flatnonzero(chance.random(32) < 0.8)
        addresses = chance.integers(0, 64, lanes.size) * width
        ways, bank, met = find_worst_bank(addresses.tolist(), lanes.tolist(), width)
        assert len(met) <= ways
        words = {int(a) // 4 + n for a in addresses for n in range(max(1, width // 4))}
        assert any(word % 32 == bank for word in words)
        total, least = wavefronts(addresses.tolist(), lanes.tolist(), width)
        assert -(-total // least) <= ways <= total


def test_the_command_prints_the_table(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "naive.cute"
    path.write_text(NAIVE)
    assert main(["explain", str(path), "--costs"]) == 0
    out = capsys.readouterr().out
    for words in ("naive.cute:25", "32-way bank conflict", "S<5,0,5>", "without this barrier"):
        assert words in out
    assert main(["explain", str(path)]) == 0
    assert "32 wavefronts each time a warp executes it where 1 would do" in capsys.readouterr().out
    assert main(["explain", str(path), "--costs", "--launch", "other"]) == 1
    assert main(["explain", str(tmp_path / "none.cute")]) == 1
    assert main(["explain", "E9999"]) == 1


@cute.kernel
def columns(A: cute.Tensor, B: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_smem_tensor(cute.make_layout((32, 32), stride=(32, 1)), cute.Float32)
    for row in cute.range(32):
        s[row, t] = A[row, t]
    cute.arch.sync_threads()
    for column in cute.range(32):
        B[column, t] = s[t, column]


@cute.kernel
def scattered(A: cute.Tensor, B: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    B[t] = A[t * 8] + A[t + 1]


def test_sectors_that_a_kernel_wastes() -> None:
    call = scattered(np.zeros(256, np.float32), np.zeros(32, np.float32))
    (line,) = [line for line in call.costs(grid=1, block=32).lines if line.accesses]
    strided, shifted, good = (access.waste for access in line.accesses)
    assert strided.startswith("32 sectors a request where 4 would do, an efficiency of 12 %: neighbouring lanes access")
    assert strided.endswith("elements 32 bytes apart")
    assert shifted.startswith("5 sectors a request where 4 would do, an efficiency of 80 %: it begins 4 bytes after")
    assert not good


def test_a_multiplication_reads_core_matrices_of_a_swizzle_without_conflicts() -> None:
    swizzled = MULTIPLY
    for before, after in (
        ("((8,16),(8,2)):((8,64),(1,1024))", "S<3,3,3> o 0 o (128,16):(64,1)"),
        ("((8,8),(8,2)):((8,64),(1,512))", "S<3,3,3> o 0 o (64,16):(64,1)"),
        ("leading 128 stride 8 swizzling 0", "leading 1 stride 64 swizzling 2"),
        ("leading 64 stride 8 swizzling 0", "leading 1 stride 64 swizzling 2"),
    ):
        assert before in swizzled
        swizzled = swizzled.replace(before, after)
    rows = [row for line in costs(swizzled, tries=False).lines for row in line.accesses if ".mma." in row.mnemonic]
    (row,) = rows
    assert (row.transactions, row.minimum) == (48, 48)  # of 128 bytes: 128 + 64 rows of 32 bytes


def test_copies_of_tensors_have_no_lanes_whose_banks_conflict() -> None:
    found = costs((EXAMPLES[0].parent / "tma_copy.cute").read_text())
    rows = [row for line in found.lines for row in line.accesses if ".tensor" in row.mnemonic]
    assert any(row.transactions > row.minimum for row in rows if row.space == "shared")
    assert not any(row.waste for row in rows if row.space == "shared")


def test_a_kernel_in_python_has_costs_too() -> None:
    A = np.random.default_rng(0).random((32, 32), np.float32)
    B = np.zeros_like(A)
    call = columns(A, B)
    found = call.costs(grid=1, block=32)
    assert not B.any()
    assert found.lines[0].text == "B[column, t] = s[t, column]"
    assert "-way bank conflict: lanes 0, 1, 2" in str(found)
    assert '"(32,32):(36,1)" takes 64 wavefronts instead of 288, 496 bytes more' in str(found)
    with pytest.raises(TilefoldError):
        call.costs(grid=0, block=32)
