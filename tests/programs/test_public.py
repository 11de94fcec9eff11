# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of public programs, and its runner."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from . import command_line, public
from .public import Public, main, programs
from .table import Program


def test_the_table_lists_enough_and_says_why() -> None:
    listed = list(programs())
    assert len(listed) == len({p.text for p in listed}) >= 330
    assert len({p.repository for p in listed}) >= 50
    assert all(p.program.reason for p in listed if p.program.ends or not p.program.races)
    of_tilefold = [p for p in listed if p.program.reason.startswith("not supported")]
    assert len(of_tilefold) <= len(listed) // 10


def test_programs_of_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ends, fails = Program("a.py", sizes=(("= 9", "= 2"),)), Program("b.py", ends="no luck", reason="it is unlucky")
    changed, missing = replace(ends, ends="no luck", reason="it is unlucky"), replace(fails, path="c.py")
    listed = [Public("one/two", "abc", program) for program in (ends, fails, changed, missing)]
    monkeypatch.setattr(public, "programs", lambda: [*listed, Public("one/three", "abc", ends)])
    monkeypatch.setattr(command_line, "find_spec", bool)
    (tmp_path / "one+two-abc").mkdir()
    (tmp_path / "one+two-abc" / "beside.py").write_text("m = 2\n")
    (tmp_path / "one+two-abc" / "a.py").write_text("from beside import m\nn = 9\nassert n == m\n")
    (tmp_path / "one+two-abc" / "b.py").write_text("raise SystemExit('no luck')\n")
    assert main([str(tmp_path), "--json", str(tmp_path / "out.json")]) == 1
    results = json.loads((tmp_path / "out.json").read_text())
    assert [result["state"] for result in results] == ["runs", "known", "changed", "missing", "missing"]
    assert results[0].items() >= {"repository": "one/two", "commit": "abc", "path": "a.py", "size": "(= 2)"}.items()
    printed = capsys.readouterr().out
    assert "it ends well, where the table says: it is unlucky" in printed
    assert f"git clone https://github.com/one/three {tmp_path / 'one+three-abc'} &&" in printed
    assert printed.splitlines()[-1] == "1 changed, 1 known, 2 missing, 1 runs"


def test_what_a_runner_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = tmp_path / "absent"
    for installed, arguments, message in (
        (True, [str(absent)], f"there is no folder {absent}; it is the folder of the checkouts"),
        (False, [str(tmp_path)], "torch is not installed"),
        (True, [str(tmp_path), "--json", str(absent / "out.json")], f"there is no folder {absent} for the results"),
    ):
        present = dict.fromkeys(["torch"], "here") if installed else dict[str, str]()
        monkeypatch.setattr(command_line, "find_spec", present.get)
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 2
        assert message in capsys.readouterr().err
    monkeypatch.setattr(command_line, "find_spec", bool)
    assert main([str(tmp_path), "--only", "no such program"]) == 2


def test_an_interrupted_run_writes_what_has_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = list[Public]()

    def run(public: Public, _folder: Path, _seconds: int) -> tuple[str, str]:
        if ran:
            raise KeyboardInterrupt
        ran.append(public)
        return "runs", ""

    monkeypatch.setattr(public, "programs", lambda: [Public("one/two", "abc", Program("a.py"))] * 3)
    monkeypatch.setattr(public, "run", run)
    monkeypatch.setattr(command_line, "find_spec", bool)
    assert main([str(tmp_path), "--json", str(tmp_path / "out.json")]) == 130
    assert len(json.loads((tmp_path / "out.json").read_text())) == 1
    assert "interrupted: 1 of 3 have run" in capsys.readouterr().out
