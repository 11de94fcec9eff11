# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold reduce`: programs become small, and fail as they did."""

import sys
from pathlib import Path

import pytest
from tilefold.compiler.frontend.params import expand
from tilefold.compiler.frontend.source import plain_source
from xdsl.dialects.builtin import ModuleOp

from tests.bisection.test_bisect import planted, subtracted, without_barrier
from tests.cli.kernels import SCALE, write
from tilefold.commands.cli import main
from tilefold.tools.joined import Bisection
from tilefold.tools.reduction.failure import Conditions, Failure, FailureKind

Capture = pytest.CaptureFixture[str]
OUTSIDE = SCALE.replace("%B(%t, %j)", "%B(%j, %t)")


def reduced(path: str, tmp_path: Path, *options: str) -> str:
    """The program that remains."""
    out = tmp_path / "small.cute"
    assert main(["reduce", path, "-o", str(out), *options]) == 0
    return out.read_text()


def failure(text: str) -> Failure | None:
    return Conditions(Bisection()).failure(expand(text, "small.cute", {}))


def lines(text: str) -> int:
    return len(text.splitlines())


def test_a_fault_stays(tmp_path: Path, capsys: Capture) -> None:
    small = reduced(write(tmp_path, OUTSIDE), tmp_path)
    assert failure(small) == Failure(FailureKind.FAULT, "E3202")
    assert lines(small) <= 14
    assert "tile.load" not in small
    assert "%A" not in small
    assert "grid(1)" in small
    said = capsys.readouterr().err
    assert said.startswith(
        "failure to keep: it has a fault as written: E3202\nthe program: 23 lines\nfewer operations: "
    )
    assert "\nnothing more can be removed: " in said


def test_a_pass_that_changes_the_program_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with planted(monkeypatch, "convert-index", subtracted):
        small = reduced(write(tmp_path), tmp_path)
        assert failure(small) == Failure(FailureKind.PASS, "convert-index")
    assert failure(small) is None or failure(small) != Failure(FailureKind.PASS, "convert-index")
    assert "arith.addf" in small
    assert "scf.for" not in small


REVERSED = """\
!g = !tile.tensor<f32, gmem, align<16>, "(64,4):(1,64)">
!s = !tile.tensor<f32, smem, align<16>, "64:1">
gpu.module @kernels {
  tile.kernel @reversed(%A: !g, %B: !g) threads(64) {
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %last = arith.constant 63 : index
    %s = tile.alloc : !s
    %a = tile.load %A(%t, %b)
    tile.store %a, %s(%t)
    ptx.bar.sync 0
    %r = arith.subi %last, %t : index
    %v = tile.load %s(%r)
    %w = arith.mulf %v, %v : f32
    tile.store %w, %B(%t, %b)
    return
  }
}
run.launch @kernels::@reversed grid(4) {
  run.arg "A" : !g = "normal"
  run.arg "B" : !g = "poison"
}
"""


def test_a_fault_that_a_pass_makes_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with planted(monkeypatch, "lower-tensors", without_barrier):
        small = reduced(write(tmp_path, REVERSED), tmp_path)
        assert failure(small) == Failure(FailureKind.PASS, "lower-tensors")
    assert "ptx.bar.sync 0" in small
    assert lines(small) <= 16
    assert "mulf" not in small
    assert "block_id" not in small


def test_a_pass_that_fails_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(module: ModuleOp) -> None:
        if "arith.addf" in str(module):
            raise RuntimeError("no sums")

    with planted(monkeypatch, "lower-tensors", fails):
        small = reduced(write(tmp_path), tmp_path)
        assert failure(small) == Failure(FailureKind.CRASH, "lower-tensors: RuntimeError")
    assert "arith.addf" in small
    assert lines(small) <= 11


def test_a_refusal_stays(tmp_path: Path) -> None:
    text = SCALE.replace("tile.store %w, %B(%t, %j)", "tile.store %w, %B(%t, %j)\n      ptx.griddepcontrol.wait")
    small = reduced(write(tmp_path, text), tmp_path, "--target", "sm_80")
    assert Conditions(Bisection(), target="sm_80").failure(plain_source(small, "small.cute")) == Failure(
        FailureKind.REFUSED, "E2102"
    )
    assert "griddepcontrol" in small
    assert "arith.addf" not in small


def test_a_check_fails_for_no_larger_part(tmp_path: Path) -> None:
    """The first element is wrong: a program that writes nothing would fail in another way."""
    unused = "%one = arith.constant 1 : index\n    %unused = arith.addi %one, %one : index"
    wrong = SCALE.replace("%one = arith.constant 1 : index", unused)
    wrong = wrong.replace('"normal"', '"arange(1)"').replace("B == A * 2", "B == where(A == 1, 3, A * 2)")
    before = failure(wrong)
    assert before is not None
    assert (before.kind, before.share) == (FailureKind.CHECK, 1 / 256)
    small = reduced(write(tmp_path, wrong), tmp_path)
    after = failure(small)
    assert before.is_kept_by(after)
    assert "%unused" not in small
    assert "tile.load" in small
    assert "tile.store" in small


def test_a_command_says_which_programs_fail(tmp_path: Path, capsys: Capture) -> None:
    script = tmp_path / "fails.py"
    script.write_text("import sys\nsys.exit('arith.addf' in open(sys.argv[1]).read())\n")
    small = reduced(write(tmp_path), tmp_path, "--test", f"{sys.executable} -S {script}")
    assert "arith.addf" in small
    assert "tile.store" not in small
    assert main(["reduce", write(tmp_path), "--test", "true"]) == 1
    assert "the command succeeds for the whole program" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "does not fail: no fault, every check holds, and no pass changes it"),
        (["--seconds", "0"], "--seconds 0: must be more than 0"),
        (["--test", ""], "--test: no command"),
        (["--test", "'"], "--test ': No closing quotation"),
        (["--test", "/nowhere"], "--test /nowhere: No such file or directory"),
    ],
)
def test_programs_that_cannot_be_reduced(options: list[str], message: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["reduce", write(tmp_path), *options]) == 1
    captured = capsys.readouterr()
    assert "error[E4003]: " in captured.err
    assert message in captured.err
    assert not captured.out


def test_the_time_is_limited(tmp_path: Path, capsys: Capture) -> None:
    small = reduced(write(tmp_path, OUTSIDE), tmp_path, "--seconds", "1e-6")
    assert failure(small) == Failure(FailureKind.FAULT, "E3202")
    assert "the time is up: " in capsys.readouterr().err
