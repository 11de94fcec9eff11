# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold run`: fills, stages, checks, files, and what the exit status says."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tilefold.base.target import Target
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, ModuleOp

from tests.bisection.test_bisect import planted, without_barrier
from tests.cli.kernels import SCALE, write
from tests.project.tree import ROOT
from tilefold.commands.cli import main
from tilefold.driver.lowering import Program

Capture = pytest.CaptureFixture[str]


def run(path: str, *options: str) -> int:
    """The exit status of a run on the simulator."""
    return main(["run", path, "--device", "sim", *options])


def test_a_file_checks_itself(tmp_path: Path, capsys: Capture) -> None:
    assert run(write(tmp_path)) == 0
    out = capsys.readouterr().out
    assert "kernels::double: grid 1x1x1, block 32x1x1, on the simulator" in out
    assert "B == A * 2: 256 elements: ok" in out


def test_every_stage_runs_and_agrees(tmp_path: Path, capsys: Capture) -> None:
    assert run(write(tmp_path), "--stage", "all") == 0
    out = capsys.readouterr().out
    assert [line.split(":")[0].strip() for line in out.splitlines() if "stage" in line] == [
        "stage cute", "stage folded", "stage atoms", "stage index", "stage instr", "stage ptx",
    ]  # fmt: skip
    assert out.count(": ok") == 6


def test_stages_that_differ_are_an_error(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Program.at

    def wrong(self: Program, stage: str, target: Target | None = None, *, explain: bool = True) -> ModuleOp | None:
        module = real(self, stage, target, explain=explain)
        for op in module.walk() if module is not None and stage == "index" else ():
            if isinstance(op, arith.ConstantOp) and isinstance(op.value, FloatAttr):
                op.properties["value"] = FloatAttr(3.0, op.value.type)
        return module

    monkeypatch.setattr(Program, "at", wrong)
    twice = "%two = arith.constant 2.0 : f32\n%w = arith.mulf %v, %two : f32"
    path = write(tmp_path, SCALE.replace("%w = arith.addf %v, %v : f32", twice))
    assert run(path, "--stage", "all") == 1
    said = capsys.readouterr()
    assert "error[E3108]: stage index leaves " in said.err
    assert " in B[0, 0] instead of " in said.err
    assert "; 256 of 256 elements differ: the kernel is right at stage atoms, and a pass after it changes" in said.err
    assert "hint: `tilefold bisect` names the pass" in said.err
    assert "stage instr" not in said.out


def test_a_stage_that_is_at_fault_is_told_apart(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with planted(monkeypatch, "lower-tensors", without_barrier):
        path = str(ROOT / "examples" / "transpose.cute")
        assert run(path, "--stage", "all", "--launch", "padded_f32") == 1
    said = capsys.readouterr().err
    assert "error[E3108]: the next stage is at fault: the kernel is right at stage atoms, and a pass" in said
    assert "error[E32" in said


def test_a_failed_check_names_the_first_wrong_element(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path, SCALE.replace("A * 2", "where(A == A[3, 1], 0, A * 2)"))
    assert run(path) == 1
    said = capsys.readouterr()
    assert "FAILED" in said.out
    assert f"{path}:22:3: error[E3104]" in said.err
    assert "1 wrong; first B[3, 1] is" in said.err
    assert "expected 0.0" in said.err


def test_parameters_grids_fills_and_checks_of_the_command_line(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path)
    assert run(path, "-D", "M=64", "--fill", "A=arange", "--fill", "B=zeros", "--grid", "2,1") == 1
    assert "E3205" in capsys.readouterr().err  # both blocks write the same elements
    assert run(path, "-D", "M=40", "--fill", "A=arange", "--fill", "B=zeros", "--check", "n == 40") == 1
    assert "first B[32, 0] is 0.0, expected 64.0" in capsys.readouterr().err
    assert run(path, "--check", "n == 31") == 1
    assert "n == 31: 1 element: FAILED" in capsys.readouterr().err


def test_arrays_come_from_and_go_to_files(tmp_path: Path) -> None:
    path = write(tmp_path)
    a = np.arange(256, dtype=np.float32).reshape(32, 8)
    np.save(tmp_path / "a.npy", a)
    assert run(path, "--arg", f"A={tmp_path / 'a.npy'}", "--save", f"B={tmp_path / 'b.npy'}") == 0
    assert (np.load(tmp_path / "b.npy") == 2 * a).all()


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((8, 32), np.float32), "shape (8, 32)"),
        (np.zeros((32, 8), np.float64), "float64"),
        (np.array([{}], dtype=object), "not an array file"),
    ],
)
def test_arrays_must_fit(
    array: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]", said: str, tmp_path: Path, capsys: Capture
) -> None:
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    assert run(write(tmp_path), "--arg", f"A={tmp_path / 'a.npy'}") == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--arg", "Q=x.npy"], "no launch of this run has an argument"),
        (["--arg", "A"], "not NAME=VALUE"),
        (["--arg", "A=missing.npy"], "error[E4001]"),
        (["--fill", "A=normal", "--fill", "A=zeros"], "given twice"),
        (["--fill", "A=foo("], "in 'foo(', at character 5"),
        (["--fill", "A=foo()"], "no function 'foo'"),
        (["--check", "B"], "a check states comparisons"),
        (["--grid", "0"], "not one to three sizes"),
        (["--grid", "1,1,1,1"], "not one to three sizes"),
        (["--block", "64"], "written for a block of (32, 1, 1) threads"),
        (["--stage", "sass"], "stages: cute, folded"),
        (["--launch", "nothing"], "choose from: kernels::double"),
        (["--max-steps", "0"], "must be at least 1"),
        (["--max-steps", "10"], "error[E3210]"),
        (["-D", "X=1"], "does not declare it"),
        (["--save", "B=/missing/b.npy"], "error[E4002]"),
    ],
)
def test_refused_options(options: list[str], said: str, tmp_path: Path, capsys: Capture) -> None:
    assert run(write(tmp_path), *options) == 1
    assert said in capsys.readouterr().err


def test_a_kernel_without_a_launch_runs_by_options(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path, SCALE[: SCALE.index("run.launch")])
    assert run(path) == 1
    assert "argument 'A' has no value" in capsys.readouterr().err
    fills = [option for text in ("A=arange", "B=poison", "n=0") for option in ("--fill", text)]
    assert run(path, "--launch", "double", *fills, "--check", "B == A * 2") == 0


def test_a_saved_stage_goes_on_from_there(tmp_path: Path, capsys: Capture) -> None:
    path, saved = write(tmp_path), tmp_path / "saved.cute"
    for stage in ("folded", "atoms", "index", "instr"):
        assert main(["compile", path, "--emit", stage, "-o", str(saved)]) == 0
        assert run(str(saved), "--stage", stage) == 0
        assert run(str(saved)) == 0
    assert main(["run", str(saved), "--stage", "folded"]) == 0  # nothing in it that 'folded' forbids
    capsys.readouterr()
    broken = saved.read_text().replace("B == A * 2", "B == A * 3")
    assert run(write(tmp_path, broken, "broken.cute")) == 1
    assert f"{path}:22:3: error[E3104]" in capsys.readouterr().err  # the line of the first file


def test_seeds_change_what_is_filled(tmp_path: Path) -> None:
    path = write(tmp_path)
    saved: list[bytes] = []
    for seed in ("0", "0", "1"):
        assert run(path, "--seed", seed, "--save", f"B={tmp_path / 'b.npy'}") == 0
        saved.append((tmp_path / "b.npy").read_bytes())
    assert saved[0] == saved[1] != saved[2]


def test_the_module_is_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tilefold", "run", write(tmp_path), "--device", "sim"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "ok" in done.stdout
