# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Records of measurements: rows of a table, with targets, and files that say where and when."""

import json
import os
import platform
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tilefold.base.errors import TilefoldError

from tilefold.driver.messages import print_error

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value in `unit`. `ratio` is it against `base`; `target` the ratio or value that is asked for.

    With `at_most`, smaller is better and `target` bounds the value; else `target` bounds the ratio from below. `error`
    is the root mean square of what a result is wrong by, relative to that of the exact values.
    """

    name: str
    value: float
    unit: str
    base: str = ""
    ratio: float | None = None
    target: float | None = None
    at_most: bool = False
    note: str = ""
    error: float | None = None
    samples: tuple[float, ...] = field(default=())

    @property
    def details(self) -> str:
        """The note and the error; empty without any."""
        error = "" if self.error is None else f"rms error {self.error:.1e}"
        return ", ".join(filter(None, (self.note, error)))

    @property
    def line(self) -> str:
        """The figure as a line of text."""
        return "  ".join(filter(None, _row(self)))

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if self.target is None:
            return None
        if self.at_most:
            return self.value <= self.target
        return self.ratio is not None and self.ratio >= self.target


@dataclass(frozen=True, slots=True)
class Record:
    """All figures of one run, and the circumstances: device, driver, versions, commit, date.

    `subject` tells the files of several records of one device and day apart.
    """

    title: str
    circumstances: dict[str, str]
    figures: tuple[Figure, ...]
    subject: str = ""

    def rows(self) -> list[tuple[str, ...]]:
        """The figures as rows of text: name, value, ratio, target, and whether it is met."""
        return [_row(figure) for figure in self.figures]

    def markdown(self) -> str:
        """The record as a Markdown section."""
        head = [f"# {self.title}", "", *(f"- {name}: {value}" for name, value in self.circumstances.items()), ""]
        lines = [" | ".join(row) for row in (HEADINGS, ("---",) * len(HEADINGS), *self.rows())]
        return "\n".join([*head, *(f"| {line} |" for line in lines)]) + "\n"

    def json(self) -> str:
        """The record as JSON, with every sample."""
        figures: list[dict[str, Any]] = [{**asdict(figure), "met": figure.met} for figure in self.figures]
        content = {"title": self.title, "circumstances": self.circumstances, "figures": figures}
        return json.dumps(content, indent=1) + "\n"

    def save(self, folder: Path) -> Path:
        """Writes `<date>-<device>[-<subject>].json` and `.md` into a folder; returns the path of the second."""
        folder.mkdir(parents=True, exist_ok=True)
        device = "".join(c if c.isalnum() else "-" for c in self.circumstances["device"].lower()).strip("-")
        stem = "-".join(filter(None, (self.circumstances["date"][:10], device, self.subject)))
        (folder / f"{stem}.json").write_text(self.json(), encoding="utf-8")
        path = folder / f"{stem}.md"
        path.write_text(self.markdown(), encoding="utf-8")
        return path


HEADINGS = ("figure", "measured", "against", "ratio", "target", "met")


def _row(figure: Figure) -> tuple[str, ...]:
    target = ""
    if figure.target is not None:
        target = f"at most {figure.target:g} {figure.unit}" if figure.at_most else f"at least {figure.target:g}"
    met = {None: "", True: "yes", False: "no"}[figure.met]
    name = f"{figure.name} ({figure.details})" if figure.details else figure.name
    ratio = "" if figure.ratio is None else f"{figure.ratio:.3f}"
    return name, f"{figure.value:.4g} {figure.unit}", figure.base, ratio, target, met


def add_options(parser: ArgumentParser) -> None:
    """The options `--out` and `--commit` of a command that keeps a record."""
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="DIR", help="where results go")
    parser.add_argument("--commit", default="", help="the commit of the sources, where this is no git checkout")


def keep_record(record: Record, folder: Path) -> None:
    """Prints the record, writes it into a folder, and says where."""
    print_record(record)
    print(f"kept in {record.save(folder)}")


def take_record(measure: Callable[[], Record], folder: Path, *, strict: bool = False) -> int:
    """Takes a record, prints and keeps it. Returns the exit status: 1 where it cannot be taken, or misses a target
    although `strict`.
    """
    try:
        record = measure()
    except TilefoldError as error:
        print_error(error)
        return 1
    keep_record(record, folder)
    return 1 if strict and any(figure.met is False for figure in record.figures) else 0


def this_machine() -> str:
    """The device of a record of what needs no GPU."""
    return f"{platform.machine()} cpu {os.cpu_count()} cores"


def print_record(record: Record) -> None:
    """Prints the record as a table; in plain text where rich is not installed, as on a bare GPU machine."""
    print(f"{record.title}: " + ", ".join(f"{name} {value}" for name, value in record.circumstances.items()))
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        _print_plain(record.rows())
        return
    table = Table(*HEADINGS)
    for row in record.rows():
        table.add_row(*row, style="" if row[-1] != "no" else "red")
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def _print_plain(rows: Sequence[tuple[str, ...]]) -> None:
    whole = [HEADINGS, *rows]
    widths = [max(len(row[i]) for row in whole) for i in range(len(HEADINGS))]
    for row in whole:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def circumstances(device: str, **more: str) -> dict[str, str]:
    """The circumstances of a run: the device, the caller's facts, the commit (that of the checkout, if not
    among that) and the date.
    """
    commit = more.pop("commit", "") or _commit()
    return {"device": device, **more, "commit": commit, "date": datetime.now(UTC).isoformat(timespec="seconds")}


def _commit() -> str:
    """The commit of the checkout, with a mark where files differ from it; `unknown` where there is no git."""
    try:
        process = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return process.stdout.strip()
