# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of a folder, and the check of one of them in a process of its own."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tilefold.base.errors import Code, TilefoldError

_LAUNCHES = re.compile(r"\brun\.launch\b|@main\b")
_PROGRAM = re.compile(r"^if __name__ == ['\"]__main__['\"]:", re.MULTILINE)
_IMPORTS = re.compile(r"^\s*(from|import)\s+(tilefold|cutlass)\b", re.MULTILINE)
GRACE = 60
"""Seconds that a process has beyond its limit, to say that it has ended."""


@dataclass(frozen=True, slots=True)
class Job:
    """A program to check: its path as the user wrote it, and options of `tilefold check` for a `.cute` file."""

    path: str
    words: tuple[str, ...] = ()
    seconds: int = 600


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict on a program: `clean`, `faults` or `incomplete`; or `error` for one that was refused or did not end.

    `lines` say why it is not clean, a line each; `launches` counts those that were checked.
    """

    path: str
    verdict: str
    lines: tuple[str, ...] = ()
    launches: int = 0


def collect(roots: Sequence[str]) -> list[str]:
    """The programs at paths: files, and below folders each `.cute` file that has launches and each program in Python
    that imports tilefold or cutlass. Raises TilefoldError (E4001) for a path that does not exist.
    """
    found: list[str] = []
    for root in roots:
        path = Path(root)
        if path.is_file():
            found.append(root)
        elif not path.is_dir():
            raise TilefoldError(Code.CLI_READ, f"{root}: no such file or folder")
        else:
            files = (each for suffix in ("cute", "py") for each in path.rglob(f"*.{suffix}"))
            found += [str(each) for each in sorted(files) if _is_program(each)]
    return list(dict.fromkeys(found))


def libraries(roots: Sequence[str]) -> int:
    """The number of files in Python below paths that import tilefold or cutlass and run nothing by themselves."""
    files = (each for root in roots for each in Path(root).rglob("*.py"))
    return sum(_IMPORTS.search(each.read_text(errors="replace")) is not None for each in files if not _is_program(each))


def _is_program(path: Path) -> bool:
    if any(part.startswith(".") for part in path.parts[1:]):
        return False
    text = path.read_text(errors="replace")
    if path.suffix == ".cute":
        return _LAUNCHES.search(text) is not None
    return _PROGRAM.search(text) is not None and _IMPORTS.search(text) is not None


def check(job: Job) -> Outcome:
    """Checks a program in a process of its own, on the simulator. It raises nothing: a failure is an outcome."""
    with TemporaryDirectory() as folder:
        out = str(Path(folder, "report.json"))
        limit = str(job.seconds)
        if job.path.endswith(".py"):
            command = [sys.executable, "-m", "tilefold.cute.checked_launches", job.path, out]
        else:
            words = ["--json", "-o", out, "--max-seconds", limit, *job.words]
            command = [sys.executable, "-m", "tilefold", "check", job.path, *words]
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
        try:
            run = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=job.seconds + GRACE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome(job.path, "error", (f"did not end within {job.seconds} s",))
        try:
            found: list[dict[str, Any]] | dict[str, Any] = json.loads(Path(out).read_text())
        except (OSError, ValueError):
            return Outcome(job.path, "error", _last_lines(run.stderr, run.returncode))
    return _outcome(job, run, found if isinstance(found, list) else [found])


def _outcome(job: Job, run: "subprocess.CompletedProcess[str]", reports: Sequence[dict[str, Any]]) -> Outcome:
    launches = sum(len(report["launches"]) for report in reports)
    faults = [_line(fault) for report in reports for fault in report["faults"]]
    if faults:
        return Outcome(job.path, "faults", tuple(dict.fromkeys(faults)), launches)
    if run.returncode not in (0, 3):
        return Outcome(job.path, "error", _last_lines(run.stderr, run.returncode), launches)
    gaps = [gap["message"] for report in reports for gap in report["gaps"]]
    if not launches:
        gaps.append("it launches nothing on the simulator")
    verdict = "incomplete" if gaps else "clean"
    return Outcome(job.path, verdict, tuple(dict.fromkeys(gaps)), launches)


def _line(fault: dict[str, Any]) -> str:
    place = fault.get("place")
    where = f"{place['file']}:{place['line']}: " if place else ""
    return f"{where}{fault['code']}: {fault['message']}"


def _last_lines(text: str, status: int) -> tuple[str, ...]:
    """The message of a process that failed: the last line of its errors that names one, or the last at all."""
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\bE\d{4}\b|Error", line)]
    return ((errors or lines or [f"exit status {status}"])[-1],)
