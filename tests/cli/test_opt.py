# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold opt`: pipelines, printing on the way, split files and announced diagnostics."""

import re
from pathlib import Path

import pytest

from tests.cli.kernels import SCALE, write
from tilefold.commands.cli import main

Capture = pytest.CaptureFixture[str]
CONST = "gpu.module @m {\n  ptx.entry @k() threads(32) {\n    %c = arith.constant 1 : i32\n    ptx.ret\n  }\n}\n"
BROKEN = CONST.replace("threads(32)", "threads(0)")


def test_prints_a_program_that_reads_back(tmp_path: Path, capsys: Capture) -> None:
    assert main(["opt", write(tmp_path)]) == 0
    first = capsys.readouterr().out
    assert main(["opt", write(tmp_path, first)]) == 0
    assert capsys.readouterr().out == first
    assert main(["opt", write(tmp_path, first), "--mlir-print-op-generic"]) == 0
    assert main(["opt", write(tmp_path, capsys.readouterr().out)]) == 0
    assert capsys.readouterr().out == first


def test_runs_passes_and_prints_on_the_way(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path, CONST)
    assert main(["opt", path, "-p", "cse,dce", "--print-ir-after-all", "--print-ir-before", "cse"]) == 0
    said = capsys.readouterr()
    assert "arith.constant" not in said.out
    headings = [line for line in said.err.splitlines() if line.startswith("// -----//")]
    assert [" ".join(line.split()[2:7]) for line in headings] == [
        "IR before pass 1: cse", "IR after pass 1: cse", "IR after pass 2: dce:",
    ]  # fmt: skip
    assert "// -----// IR after pass 2: dce: no change //----- //" in headings


def test_prints_the_lines_that_a_pass_changes(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path)
    assert main(["opt", path, "-p", "lower-tensors,cse,cse", "--print-ir-changes", "--print-ir-after", "dce"]) == 1
    capsys.readouterr()
    assert main(["opt", path, "-p", "lower-tensors,cse,cse", "--print-ir-changes"]) == 0
    said = capsys.readouterr().err
    _, lowered, same, again = said.split("// -----// IR ")
    assert lowered.startswith("changes of pass 1: lower-tensors: -")
    assert re.search(r"^-\s+%v = tile.load %A", lowered, re.MULTILINE)
    assert re.search(r"^\+\s+%v = ptx.ld", lowered, re.MULTILINE)
    assert same.startswith("changes of pass 2: cse: -") or same == "after pass 2: cse: no change //----- //\n"
    assert again == "after pass 3: cse: no change //----- //\n"


def test_the_time_of_passes_is_printed(tmp_path: Path, capsys: Capture) -> None:
    assert main(["opt", write(tmp_path), "-p", "lower-tensors,cse", "--timing"]) == 0
    heading, *rows = capsys.readouterr().err.splitlines()
    assert heading.split() == ["step", "ms", "verifier", "ms", "share", "operations"]
    assert [row.split()[0] for row in rows] == ["parse", "lower-tensors", "cse", "print", "total"]
    shares = [float(row.split()[3].rstrip("%")) for row in rows]
    assert sum(shares[:-1]) == pytest.approx(100, abs=0.3)
    assert shares[-1] == 100
    assert int(rows[1].split()[4]) > 10


def test_dumps_every_step_with_its_source_lines(tmp_path: Path) -> None:
    path, folder = write(tmp_path), tmp_path / "ir"
    assert main(["opt", path, "-p", "fold-layouts,cse", "--dump-dir", str(folder), "-o", str(tmp_path / "out")]) == 0
    assert sorted(file.name for file in folder.iterdir()) == ["00-input.cute", "01-fold-layouts.cute", "02-cse.cute"]
    for file in folder.iterdir():
        assert f'loc("{path}":11:12)' in file.read_text()  # the load
        assert main(["run", str(file), "--device", "sim"]) == 0


@pytest.mark.parametrize(
    ("pipeline", "said"),
    [
        ("fold-layout", "did you mean fold-layouts"),
        ("fold-layout", "error[E2002]"),
        ("cse{x=1}", "pass 'cse'"),
        ("cse,,", "error[E2003]"),
        ("a{", "error[E2003]"),
        ('cse{"', "error[E2003]"),
        ("check-stage{stage=ptx}", "unknown stage 'ptx'"),
        ("check-stage{stage=instr}", "error[E"),
    ],
)
def test_bad_pipelines(pipeline: str, said: str, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out"
    assert main(["opt", write(tmp_path), "-p", pipeline, "-o", str(out)]) == 1
    assert said in capsys.readouterr().err
    assert not out.exists()


def test_printing_around_a_pass_that_does_not_run_is_a_mistake(tmp_path: Path, capsys: Capture) -> None:
    assert main(["opt", write(tmp_path), "-p", "cse", "--print-ir-after", "dce"]) == 1
    assert "the pipeline does not run it" in capsys.readouterr().err


def test_split_files_keep_their_lines(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path, f"{CONST}// -----\n{BROKEN}// -----\n{CONST}")
    assert main(["opt", path, "--split-input-file"]) == 1
    assert f"{path}:9:3: error[E1003]" in capsys.readouterr().err
    path = write(tmp_path, f"{CONST}// -----\n{CONST}")
    assert main(["opt", path, "--split-input-file"]) == 0
    assert capsys.readouterr().out.count("// -----") == 1


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (BROKEN.replace("{\n", "{ // expected-error@+1 {{at least 1}}\n", 1), 0, ""),
        (BROKEN.replace("(0) {\n", "(0) { // expected-error {{E1003}}\n"), 0, ""),
        (BROKEN.replace("(0) {\n", "(0) {\n    // expected-error@above {{threads}}\n"), 0, ""),
        ("// expected-error@below {{threads}}\n" + BROKEN, 1, "was not produced"),
        (BROKEN.replace("(0) {\n", "(0) { // expected-error {{other words}}\n"), 1, "unexpected error"),
        (BROKEN, 1, "unexpected error"),
        (CONST + "// expected-warning {{anything}}\n", 1, "expected warning was not produced: anything"),
        (CONST, 0, ""),
    ],
)
def test_announced_diagnostics(text: str, status: int, said: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["opt", write(tmp_path, text), "--verify-diagnostics", "--split-input-file"]) == status
    assert said in capsys.readouterr().err


def test_standard_input(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    with Path(write(tmp_path, SCALE + "%")).open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        assert main(["opt", "-"]) == 1
    assert "<stdin>:24:1: error" in capsys.readouterr().err


def test_a_flag_of_a_pass_may_carry_its_options(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path, "gpu.module @m {\n}\n")
    assert main(["opt", path, "-attach-nvvm-target=chip=sm_90 features=+ptx81 opt-level=3"]) == 0
    assert '[#nvvm.target<O = 3, chip = "sm_90", features = "+ptx81">]' in capsys.readouterr().out
    assert main(["opt", path, "--attach-nvvm-target=nothing=1"]) == 1
    assert "error[E2003]" in capsys.readouterr().err
