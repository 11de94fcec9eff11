# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Markdown pages of the project and the fenced blocks in them."""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

from tests.project.tree import ROOT

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=indent)```[ \t]*$", re.MULTILINE | re.DOTALL
)
_HEADING = re.compile(r"^#{1,6} +(?P<title>.+?) *$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, what follows that (a file's name), and its text without indentation.

    `line` is where the text begins in the page, `start` and `end` its character offsets there.
    """

    language: str
    name: str
    text: str
    line: int
    start: int
    end: int


def pages() -> list[Path]:
    """Every page that is written by hand."""
    top = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
    return [*top, *sorted((ROOT / "docs").glob("*.md"))]


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    for match in _FENCE.finditer(text):
        language, _, name = match["info"].strip().partition(" ")
        line = text.count("\n", 0, match.start("body")) + 1
        body = textwrap.dedent(match["body"])
        found.append(Block(language, name.strip(), body, line, match.start("body"), match.end("body")))
    return found


def prose(text: str) -> str:
    """The page without its fenced blocks; lines keep their numbers."""
    return _FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    found: set[str] = set()
    for match in _HEADING.finditer(prose(text)):
        title = re.sub(r"[^\w\- ]", "", match["title"].replace("`", "").lower())
        found.add(title.replace(" ", "-"))
    return found
