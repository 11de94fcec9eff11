# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runner of public programs: no program is left out in silence, and sizes are those that the table says."""

import fcntl
import os
import sys
from pathlib import Path
from subprocess import TimeoutExpired
from time import sleep

import pytest

from . import command_line
from .__main__ import main, not_run, resized
from .command_line import reason_of, run_program
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


@pytest.mark.parametrize("ends", [True, False])
def test_processes_of_a_program_end_with_it(tmp_path: Path, ends: bool) -> None:
    lock = tmp_path / "lock"
    program = (
        "import fcntl, subprocess, sys, time\nlock = open(sys.argv[1], 'w')\nfcntl.flock(lock, fcntl.LOCK_EX)\n"
        "quiet = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}\n"
        "subprocess.Popen(['sleep', '600'], pass_fds=[lock.fileno()], **quiet)\nprint('started')\n"
    )
    command = [sys.executable, "-c", program if ends else f"{program}time.sleep(600)", str(lock)]
    if ends:
        assert run_program(command, os.environ, 60).stdout == "started\n"
    else:
        with pytest.raises(TimeoutExpired):
            run_program(command, os.environ, 0.5)
    with lock.open("w") as held:
        for _ in range(100):
            try:
                return fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                sleep(0.05)
    pytest.fail("a process of the program still runs")


def test_the_reason_is_the_line_with_the_code() -> None:
    assert reason_of("  File 'a.py'\nE3205: a race\n  hint: record an event\n") == "E3205: a race"
    assert reason_of("a.py:1:2: error[E3202]: reads\n  hint: check\n") == "a.py:1:2: error[E3202]: reads"
    assert reason_of("ValueError: E3205: no\n\n") == "ValueError: E3205: no"
