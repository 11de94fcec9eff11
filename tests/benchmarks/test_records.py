# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the benchmarks run, print and keep."""

import json
from pathlib import Path

import pytest

from benchmarks import simulated
from benchmarks.__main__ import main
from benchmarks.record import Figure, Record, circumstances, print_record

FIGURES = (
    Figure("base", 4.0, "TB/s"),
    Figure("ours", 3.9, "TB/s", "base", 0.975, 0.97, samples=(1.0, 2.0)),
    Figure("exact", 3.5, "TB/s", note="of two", error=0.00128),
    Figure("slow", 3.0, "TB/s", "base", 0.75, 0.85),
    Figure("quick", 40.0, "ms", target=60.0, at_most=True),
    Figure("late", 80.0, "ms", target=60.0, at_most=True),
)


def test_targets() -> None:
    assert [figure.met for figure in FIGURES] == [None, True, None, False, True, False]


def test_records_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = Record("a run", circumstances("GPU X-1", driver="13"), FIGURES)
    path = record.save(tmp_path)
    assert path.name == f"{record.circumstances['date'][:10]}-gpu-x-1.md"
    text = path.read_text()
    assert "| ours | 3.9 TB/s | base | 0.975 | at least 0.97 | yes |" in text
    assert "| exact (of two, rms error 1.3e-03) | 3.5 TB/s |" in text
    assert "| late | 80 ms |  |  | at most 60 ms | no |" in text
    kept = json.loads(path.with_suffix(".json").read_text())
    assert kept["circumstances"]["driver"] == "13"
    assert kept["figures"][1]["samples"] == [1.0, 2.0]
    print_record(record)
    assert "at least 0.85" in capsys.readouterr().out


def test_times_of_the_simulator_are_compared_with_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated, "GEMMS", ())
    monkeypatch.setattr(simulated, "STAGE_NAMES", ("folded",))
    monkeypatch.setattr(simulated, "LOOP", simulated.LOOP.replace("1000000", "10000"))
    before, after = tmp_path / "before", tmp_path / "after"
    simulated.main(["--out", str(before), "--commit", "one"])
    (first,) = before.glob("*-simulator.json")
    simulated.main(["--out", str(after), "--commit", "two", "--before", str(first)])
    (second,) = after.glob("*-simulator.json")
    earlier, kept = json.loads(first.read_text())["figures"], json.loads(second.read_text())
    assert (kept["circumstances"]["before"], kept["circumstances"]["commit"]) == ("one", "two")
    assert [figure["name"] for figure in kept["figures"]] == [figure["name"] for figure in earlier]
    assert all(figure["ratio"] is not None and figure["base"].endswith("before") for figure in kept["figures"])
    assert earlier[0]["value"] > 0


def test_a_gpu_is_asked_for_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        assert main(["--device", "cuda"]) == 1
        assert "pip install torch" in capsys.readouterr().err
