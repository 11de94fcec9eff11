# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of public programs, and its runner."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from . import public
from .public import Public, main, programs
from .table import Program


def test_the_table_lists_enough_and_says_why() -> None:
    listed = list(programs())
    assert (
        len(listed) == len({(p.checkout, p.program.path, p.program.arguments, p.program.call) for p in listed}) >= 330
    )
    assert len({p.repository for p in listed}) >= 50
    assert all(p.program.reason for p in listed if p.program.ends or not p.program.races)
    of_tilefold = [p for p in listed if p.program.reason.startswith("not supported")]
    assert len(of_tilefold) <= len(listed) // 10


def test_programs_of_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ends, fails = Program("a.py", sizes=(("= 9", "= 2"),)), Program("b.py", ends="no luck", reason="it is unlucky")
    three = [Public("one/two", "abc", program) for program in (ends, fails, replace(fails, path="c.py"))]
    monkeypatch.setattr(public, "programs", lambda: three)
    (tmp_path / "one+two-abc").mkdir()
    (tmp_path / "one+two-abc" / "beside.py").write_text("m = 2\n")
    (tmp_path / "one+two-abc" / "a.py").write_text("from beside import m\nn = 9\nassert n == m\n")
    (tmp_path / "one+two-abc" / "b.py").write_text("raise SystemExit('no luck')\n")
    assert main([str(tmp_path), "--json", str(tmp_path / "out.json")]) == 1
    states = [result["state"] for result in json.loads((tmp_path / "out.json").read_text())]
    assert states == ["runs", "known", "missing"]
    assert "it is unlucky" in capsys.readouterr().out
    assert Counter(states) == Counter(("runs", "known", "missing"))
