# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runner of public programs: no program is left out in silence, and sizes are those that the table says."""

from pathlib import Path

import pytest

from . import command_line
from .__main__ import main, not_run, resized
from .left_out import LEFT_OUT
from .table import PROGRAMS, Program


def test_programs_that_are_not_in_the_table(tmp_path: Path) -> None:
    known = next(iter(PROGRAMS)).path
    for path in (known, "helpers/one.py", "helpers/two.py", "helpers/README.md", "cute/ampere/new.py", "new.ipynb"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    assert list(not_run(tmp_path, "")) == [
        ("helpers", 2, LEFT_OUT["helpers"]), ("cute/ampere/new.py", 1, ""), ("new.ipynb", 1, ""),
    ]  # fmt: skip
    assert list(not_run(tmp_path, "two")) == [("helpers", 1, LEFT_OUT["helpers"])]


def test_a_program_that_is_in_neither_list_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "new.py").touch()
    monkeypatch.setattr(command_line, "find_spec", bool)
    assert main([str(tmp_path), "--only", "new.py"]) == 1
    assert "unlisted new.py" in capsys.readouterr().out


def test_sizes_in_the_text(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("n = 1024\nm = 1024\n")
    assert resized(Program("p.py", sizes=(("n = 1024", "n = 8"),)), tmp_path) == "n = 8\nm = 1024\n"
    with pytest.raises(ValueError, match="it has no '2048'"):
        resized(Program("p.py", sizes=(("2048", "8"),)), tmp_path)


def test_a_program_is_either_run_or_left_out() -> None:
    assert not [p.path for p in PROGRAMS if any(p.path == out or p.path.startswith(f"{out}/") for out in LEFT_OUT)]
