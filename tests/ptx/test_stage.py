# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stage `ptx` of programs: the examples' PTX does what their operations at stage `instr` do, bit for bit."""

from pathlib import Path

import numpy as np
import pytest
from tilefold.base.errors import Code
from tilefold.runtime.engine import LaunchConfig
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine

from tests.kernels.harness import EXAMPLES, MAX_BYTES, program, program_of, target_of
from tilefold import cute
from tilefold.commands.cli import main
from tilefold.driver.filled_arguments import prepare
from tilefold.driver.launches import Changes, read_launches
from tilefold.driver.lowering import SIMULATED_STAGES

SHIFT = """
!t = !tile.tensor<f32, gmem, align<16>, "128:1">
gpu.module @kernels {
  tile.kernel @shift(%A: !t, %B: !t) threads(128) {
    %t = gpu.thread_id x
    %c1 = arith.constant 1 : index
    %next = arith.addi %t, %c1 : index
    %a = tile.load %A(%next)
    tile.store %a, %B(%t)
    return
  }
}
run.launch @kernels::@shift grid(1) {
  run.arg "A" : !t = "arange"
  run.arg "B" : !t = "poison"
}
"""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.sampled(3)
def test_the_ptx_of_an_example_does_the_same(path: Path) -> None:
    example, target = program(path), target_of(path)
    for launch in read_launches(example.module, example.source, Changes()):
        seen: list[tuple[list[bytes], str]] = []
        for stage in ("instr", "ptx"):
            arguments, printed = prepare(launch, {}, seed=0, max_bytes=MAX_BYTES), list[str]()
            module = example.reached(stage, target)
            engine = SimEngine(sink=printed.append)
            given, config = arguments.launchable(), LaunchConfig(launch.grid, launch.block)
            result = engine.launch(SimProgram(module, launch.kernel), config, given)
            after = arguments.logical(given, result.exact)
            seen.append(([np.asarray(after[name]).tobytes() for name in sorted(after)], "".join(printed)))
        assert seen[0] == seen[1], launch.label
        before = arguments.logical(arguments.launchable(), {})
        assert seen[1][0] != [np.asarray(before[name]).tobytes() for name in sorted(before)] or seen[1][1]


def test_run_names_the_stage_and_all_has_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    example = next(path for path in EXAMPLES if path.stem == "reduce")
    assert main(["run", str(example), "--stage", "all"]) == 0
    said = capsys.readouterr().out
    assert [line.split()[1].rstrip(":") for line in said.splitlines() if line.startswith("  stage")] == [
        *SIMULATED_STAGES
    ]
    assert main(["run", str(example), "--stage", "ptx", "--counters"]) == 0
    assert "red.relaxed.gpu.global.add.f32" in capsys.readouterr().out
    assert main(["check", str(example), "--stage", "ptx"]) == 0


def test_a_fault_has_the_line_of_the_program(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "shift.cute"
    file.write_text(SHIFT)
    assert main(["run", str(file), "--stage", "ptx"]) == 1
    said = capsys.readouterr().err
    assert "shift.cute:8:10: error[E3202]: ptx.ld: block (0,0,0), thread (127,0,0)" in said
    assert "past the end of argument A (512 bytes)" in said


def test_all_says_why_the_ptx_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    example = next(path for path in EXAMPLES if path.stem == "reduce")
    assert main(["run", str(example), "--stage", "all", "--exact"]) == 0
    assert "stage ptx: left out, since exact numbers have no bits" in capsys.readouterr().out


def test_a_kernel_of_python_runs_at_the_stage() -> None:
    @cute.kernel
    def double(a: cute.Tensor, b: cute.Tensor) -> None:
        t = cute.arch.thread_idx()[0]
        if t < 100:
            b[t] = a[t] * 2.0

    a, b = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    double(a, b).launch(grid=1, block=128, device="sim", stage="ptx")
    assert (b[:100] == 2 * a[:100]).all()
    assert not b[100:].any()


def test_files_still_have_kernels_of_one_block() -> None:
    text = """
ptx.entry @k(%A: !ptx.ptr<global> align 4) threads(1, 1, 1) {
  cf.br ^next
^next:
  ptx.ret
}
"""
    with pytest.raises(Exception, match="a kernel's body is one block") as error:
        program_of(text)
    assert getattr(error.value, "code", None) == Code.IR_VERIFY
