# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Markdown pages of the project and the fenced blocks in them."""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.project.tree import ROOT

_FENCE = re.compile(r"^```(?P<info>[^`\n]*)\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6} +(?P<title>.+?) *$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, what follows the language (a file's name), its text and first line.

    `start` and `end` are the character offsets of the text in the page.
    """

    language: str
    name: str
    text: str
    line: int
    start: int
    end: int


def pages() -> list[Path]:
    """Every page that is written by hand."""
    top = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return [*top, *sorted((ROOT / "docs").glob("*.md"))]


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    for match in _FENCE.finditer(text):
        language, _, name = match["info"].strip().partition(" ")
        line = text.count("\n", 0, match.start("body")) + 1
        found.append(Block(language, name.strip(), match["body"], line, match.start("body"), match.end("body")))
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
