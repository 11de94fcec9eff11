# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The verdict of a check: faults, clean, or incomplete with the reasons; its JSON, and the replay of a report."""

import json
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

import tilefold
from tests.checking.test_check import HALF, REVERSED, check, kernel
from tests.cli.kernels import write
from tests.ptx.test_cuda_source import needs_nvrtc
from tests.ptx.texts import STORE_LANE
from tests.ptx.texts import kernel as ptx_kernel
from tilefold import cute
from tilefold.commands.cli import main
from tilefold.driver.faults import Report

Capture = pytest.CaptureFixture[str]
VALIDATOR: Any = import_module("jsonschema").Draft202012Validator

BRANCHES = """\
%a = tile.load %A(%t)
%n = arith.cmpi ugt, %t, %c63 : index
%x = scf.if %n -> (f32) {
  %y = arith.addf %a, %a : f32
  scf.yield %y : f32
} else {
  scf.yield %a : f32
}
tile.store %x, %B(%t)
"""
"""The first branch is for threads that the block does not have."""


def validated(text: str) -> dict[str, Any]:
    """A report as JSON, which fits the published schema."""
    schema = json.loads(files("tilefold.tools.checking").joinpath("check.schema.json").read_text())
    VALIDATOR.check_schema(schema)
    report = json.loads(text)
    VALIDATOR(schema).validate(report)
    return report


def kinds(report: Report) -> list[str]:
    return [gap.kind.value for gap in report.gaps]


@pytest.mark.parametrize(
    ("body", "options", "status", "verdict", "gap"),
    [
        (REVERSED, [], 0, "clean", None),
        (REVERSED.replace("ptx.bar.sync 0\n", ""), [], 1, "faults", None),
        (REVERSED.replace("ptx.bar.sync 0\n", ""), ["--no-races"], 1, "faults", "assumption"),
        (REVERSED, ["--no-races"], 3, "incomplete", "assumption"),
        (REVERSED, ["--max-steps", "5"], 3, "incomplete", "budget"),
        (BRANCHES, [], 3, "incomplete", "coverage"),
        (BRANCHES, ["--stage", "instr"], 3, "incomplete", "coverage"),
        (HALF.format(place="%t"), ["--outputs", "partial"], 0, "clean", None),
    ],
)
def test_the_verdict_and_the_exit_status(
    tmp_path: Path, capsys: Capture, body: str, options: list[str], status: int, verdict: str, gap: str | None
) -> None:
    path = write(tmp_path, kernel(body))
    assert check(path, "--json", *options) == status
    report = validated(capsys.readouterr().out)
    assert report["verdict"] == verdict
    assert [found["kind"] for found in report["gaps"]] == ([] if gap is None else [gap] * len(report["gaps"]))
    assert bool(report["gaps"]) is (gap is not None)
    if gap == "coverage":
        (found,) = report["gaps"]
        assert found["message"] == "no thread executes the branch of line 10 for a condition that holds"
        assert found["place"]["line"] == 11
        assert report["coverage"]["missed_lines"] == [{"file": path, "line": 11}]
        assert report["coverage"]["branches"] == {"reached": 1, "total": 2}


def test_a_grid_that_is_cut(tmp_path: Path, capsys: Capture) -> None:
    text = kernel("%a = tile.load %A(%t)\ntile.store %a, %B(%t)").replace("grid(1)", "grid(2)")
    text = text.replace('"poison"', '"zeros"')
    assert check(write(tmp_path, text), "--grid", "1") == 3
    assert "warning: incomplete: the file launches a grid of 2x1x1; 1x1x1 ran" in capsys.readouterr().out


@cute.kernel
def chosen(a: cute.Tensor, b: cute.Tensor, n: cute.Int32) -> None:
    t, _, _ = cute.arch.thread_idx()
    if t < n:
        b[t] = a[t]
    else:
        b[t] = a[63 - t]


@pytest.mark.parametrize(("n", "verdict"), [(64, "incomplete"), (0, "incomplete"), (32, "clean")])
def test_code_that_a_call_does_not_reach(n: int, verdict: str) -> None:
    a = np.arange(64, dtype=np.float32)
    report = chosen(a, np.zeros_like(a), n).check(grid=1, block=64)
    assert report.verdict == verdict
    assert kinds(report) == ["coverage"] * (verdict != "clean")


UNKNOWN = ptx_kernel(
    STORE_LANE + "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d4, {%r1}];\nst.global.f32 [%d4], %f1;\nret;"
)


KNOWN = ptx_kernel(STORE_LANE + "{guard}st.global.u32 [%d4], %r1;\nret;")


@pytest.mark.parametrize(("guard", "elements", "verdict"), [
    ("", 32, "clean"), ("", 16, "faults"),
    ("setp.lt.u32 %p1, %r1, 99; @%p1 bra END;\nst.global.u32 [%d4], 1;\nEND: ", 32, "incomplete"),
])  # fmt: skip
def test_reports_on_ptx_fit_the_schema(
    tmp_path: Path, capsys: Capture, guard: str, elements: int, verdict: str
) -> None:
    """Those of the command and of a call."""
    text = KNOWN.replace("{guard}", guard)
    (path := tmp_path / "k.ptx").write_text(text)
    status = check(str(path), "--json", "--block", "32", "--arg", f"A=i32[{elements}]")
    report = validated(capsys.readouterr().out)
    assert (report["verdict"], status) == (verdict, {"clean": 0, "faults": 1, "incomplete": 3}[verdict])
    called = tilefold.load_ptx(text)["k"](np.zeros(elements, np.int32)).check(grid=1, block=32)
    assert validated(called.json())["verdict"] == verdict


@needs_nvrtc
@pytest.mark.parametrize(("body", "verdict"), [
    ("A[threadIdx.x] = 1;", "clean"), ("A[threadIdx.x + 1] = 1;", "faults"),
    ("A[threadIdx.x] = 1;\nif (threadIdx.x > 99)\nfor (int i = 0; i < 9; i++)\natomicAdd(A + i * i, 2);", "incomplete"),
])  # fmt: skip
def test_reports_on_cuda_fit_the_schema(tmp_path: Path, capsys: Capture, body: str, verdict: str) -> None:
    (path := tmp_path / "k.cu").write_text(f"__global__ void k(int *A) {{\n{body}\n}}\n")
    check(str(path), "--json", "--block", "32", "--arg", "A=i32[32]")
    assert validated(capsys.readouterr().out)["verdict"] == verdict


def test_an_instruction_without_a_model(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(UNKNOWN)
    assert check(str(path), "--json", "--block", "32", "--arg", "A=f32[32]") == 3
    report = validated(capsys.readouterr().out)
    (gap,) = report["gaps"]
    assert (report["verdict"], gap["kind"], gap["code"], gap["place"]["file"]) == (
        "incomplete", "unsupported", "E1009", str(path)
    )  # fmt: skip
    (name,) = tilefold.load_ptx(UNKNOWN).kernels
    report = tilefold.load_ptx(UNKNOWN)[name](np.zeros(32, np.float32)).check(grid=1, block=32)
    assert (report.verdict, kinds(report)) == ("incomplete", ["unsupported"])


def repeated(report: str, folder: Path, capsys: Capture) -> dict[str, Any]:
    """The report of the replay of a report."""
    path = folder / "report.json"
    path.write_text(report)
    capsys.readouterr()
    status = main(["check", "--replay", str(path), "--json"])
    again = validated(capsys.readouterr().out)
    assert status == {"clean": 0, "faults": 1, "incomplete": 3}[again["verdict"]]
    return again


@pytest.mark.parametrize("n", [64, 32])
def test_a_report_repeats_a_call(tmp_path: Path, capsys: Capture, n: int) -> None:
    a = np.random.default_rng(1).random(64, np.float32)
    report = chosen(a, np.zeros_like(a), n).check(grid=1, block=64, seed=3)
    text = report.json()
    assert repeated(text, tmp_path, capsys) == validated(text)


def test_a_report_repeats_a_file(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.cute").write_text(kernel(REVERSED.replace("ptx.bar.sync 0\n", "")))
    np.save("a.npy", np.ones(64, np.float32))
    check("k.cute", "--arg", "A=a.npy", "--seed", "2", "--format", "json", "-o", "first.json")
    (tmp_path / "elsewhere").mkdir()
    text = Path("first.json").read_text()
    for name in ("k.cute", "a.npy"):
        Path(name).unlink()
    first = validated(text)
    assert first["verdict"] == "faults"
    assert repeated(text, tmp_path / "elsewhere", capsys) == first


def test_a_report_repeats_ptx(tmp_path: Path, capsys: Capture) -> None:
    text = ptx_kernel(f"{STORE_LANE}st.global.u32 [%d4], %r1;\nret;")
    (name,) = tilefold.load_ptx(text).kernels
    for array, verdict in ((np.zeros(32, np.int32), "clean"), (np.zeros(31, np.int32), "faults")):
        for outputs in ([], ["A"]):
            report = tilefold.load_ptx(text)[name](array).check(grid=1, block=32, outputs=outputs)
            assert report.verdict == verdict
            first = validated(report.json())
            assert repeated(report.json(), tmp_path, capsys) == first


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"replay": null}', '{"replay": {"checks": [{"name": 1}]}}'])
def test_what_is_no_report_is_refused(tmp_path: Path, capsys: Capture, text: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(text)
    assert main(["check", "--replay", str(path)]) == 1
    assert "E4003" in capsys.readouterr().err


def test_a_program_beside_a_replay_is_refused(tmp_path: Path, capsys: Capture) -> None:
    assert main(["check", write(tmp_path, kernel(REVERSED)), "--replay", "report.json"]) == 1
    assert "--replay has the program with it" in capsys.readouterr().err


def test_outputs_that_stay_partial() -> None:
    a = np.arange(64, dtype=np.float32)
    call = half(a, np.zeros_like(a))
    assert [fault.code.id for fault in call.check(grid=1, block=64).faults] == ["E3230"]
    assert call.check(grid=1, block=64, outputs="partial").verdict == "clean"
    with pytest.raises(TilefoldError, match="outputs: 'c' is not a tensor argument"):
        call.check(grid=1, block=64, outputs=["c"])


@cute.kernel
def half(a: cute.Tensor, b: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    if t < 32:
        b[t] = a[t]
