# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults of public kernels, rebuilt as small as they show: tables as those of `tests.planted`, where each kernel also
has a link to the report, and lines that begin with `fault:` and `fix:`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.planted.planting import Planted, planted

HERE = Path(__file__).parent
TABLES = ("classic", "hopper", "blackwell")
PAGE = HERE.parents[1] / "docs" / "found.md"
_PROJECT = re.compile(r"https://github\.com/[^/]+/([^/]+)/(?:pull|issues|commit)/(\w+)")


@dataclass(frozen=True)
class Found:
    """A fault of a public kernel: where it was reported, in words, its fix, and the kernel with and without it."""

    link: str
    fault: str
    fix: str
    kernel: Planted

    @property
    def row(self) -> str:
        """The fault as a row of the page."""
        project, number = _link(self.link)
        sign = "#" if number.isdigit() else "@"
        return f"| [{project}{sign}{number}]({self.link}) | {self.fault} | {self.fix} | {self.kernel.code} |"


def _link(link: str) -> tuple[str, str]:
    match = _PROJECT.fullmatch(link)
    assert match is not None, link
    return match[1], match[2]


def found() -> Iterator[Found]:
    """The faults of all tables."""
    for table in TABLES:
        _, *entries = (HERE / f"{table}.txt").read_text().split("\n## ")
        kernels = {kernel.title: kernel for kernel in planted(HERE, (table,))}
        for entry in entries:
            title, _, link, fault, fix, *_ = entry.splitlines()
            yield Found(link, fault.removeprefix("fault: "), fix.removeprefix("fix: "), kernels[title])


def table() -> str:
    """The table of the page."""
    rows = ["| report | fault | fix | `check` says |", "|---|---|---|---|", *(case.row for case in found())]
    return "\n".join(rows)
