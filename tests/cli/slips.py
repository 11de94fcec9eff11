# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slips of the kind that people make, made in programs that are right: each says on which line it is."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.project.tree import ROOT

PROGRAMS = tuple(sorted((ROOT / "examples").glob("*.cute")))


@dataclass(frozen=True)
class Slip:
    """A damaged text, the name of what was done to it, and the line (from 1) on which it was done."""

    name: str
    text: str
    line: int


def _made(name: str, text: str, spot: tuple[int, int, str], change: Callable[[str], str]) -> Slip:
    start, end, word = spot
    changed = text[:start] + change(word) + text[end:]
    return Slip(name, changed.partition("\0")[0], text.count("\n", 0, start) + 1)


def _spots(pattern: str, text: str, group: int | str = 0) -> list[tuple[int, int, str]]:
    """Where a pattern is in the text, outside comments and conditions."""
    found: list[tuple[int, int, str]] = []
    for match in re.finditer(pattern, text, re.MULTILINE):
        line = text[text.rfind("\n", 0, match.start(group)) + 1 : match.start(group)]
        if "//" not in line:
            found.append((match.start(group), match.end(group), match[group]))
    return found


_OPERATION = r"^ *(?:%[\w:, %]+= )?(?P<name>(?:tile|ptx|gpu|arith|scf|math|vector|run)\.[\w.]+)"


def _misspelt(word: str) -> str:
    return word[:-2] + word[-1] + word[-2] if word[-1] != word[-2] else word[:-1]


KINDS: dict[str, tuple[str, int | str, Callable[[str], str]]] = {
    "closing brace missing": (r"^ *\}$", 0, lambda word: ""),
    "opening brace missing": (r"(?<=\)) \{$|(?<=\w) \{$", 0, lambda word: ""),
    "colon missing": (r" : (?=[!if])", 0, lambda word: " "),
    "comma missing": (r"(?<=[\w\"]), (?=[%\"])", 0, lambda word: " "),
    "closing parenthesis missing": (r"(?<=%\w)\)", 0, lambda word: ""),
    "equals sign missing": (r"^ *%\w+( =) ", 1, lambda word: ""),
    "comment of Python": (r"^ *(?=%\w+ =)", 0, lambda word: f"{word}# a comment\n"),
    "comment of Python after an operation": (r"$(?<=[\w\"])", 0, lambda word: "  # a comment"),
    "operation misspelt": (_OPERATION, "name", _misspelt),
    "operation without dialect": (_OPERATION, "name", lambda word: word.partition(".")[2]),
    "dialect unknown": (_OPERATION, "name", lambda word: "tiles" + word[word.index(".") :]),
    "value misspelt": (r"(?<=[ (,])%\w+(?=[,)\n])", 0, lambda word: word + "x"),
    "value without percent": (r"(?<=[ (,])%(?=\w+[,)])", 0, lambda word: ""),
    "operand missing": (r"(?<=[ (])%\w+, ", 0, lambda word: ""),
    "all operands missing": (r"^ *(?:%\w+ = )?tile\.\w+( %\w+.*)$", 1, lambda word: ""),
    "type unknown": (r" : (i32|f32|index|f16)\b", 1, lambda word: "int"),
    "type wrong": (r" : (i32|f32|index|f16)\b", 1, lambda word: "f64" if word != "f64" else "i8"),
    "type alias unknown": (r"(?<=: )!\w+$", 0, lambda word: word + "x"),
    "type alias without mark": (r"(?<=: )!(?=\w+$)", 0, lambda word: ""),
    "string open": (r"\"(?=[),> \n])", 0, lambda word: ""),
    "string without quotes": (r"\"\([\d,]+\)\"", 0, lambda word: word.strip('"')),
    "layout open": (r"\)(?=:\(?[\d(]+)", 0, lambda word: ""),
    "value defined twice": (r"^( *)(%\w+) = .*\n", 0, lambda line: line + line),
    "attribute misspelt": (r"\b(threads|grid|thr|val)(?= ?[(\"])", 0, _misspelt),
    "attribute of a hash missing": (r"#(?=tile\.)", 0, lambda word: ""),
    "symbol without at": (r"(?<=kernel |launch )@", 0, lambda word: ""),
    "return missing": (r"^ *return\n", 0, lambda word: ""),
    "semicolon": (r"(?<=[\w\"])$", 0, lambda word: ";"),
    "operation twice on a line": (r"\n +(?=%\w+ =)", 0, lambda word: " "),
    "letter lost": (r"(?<=\w)\w(?=\w)", 0, lambda word: ""),
    "number for a value": (r"(?<=[ (,])%\w+(?=[,)\n])", 0, lambda word: "7"),
    "arrow wrong": (r"->", 0, lambda word: "=>"),
    "text of C": (r"^ *(?=%\w+ =)", 0, lambda word: f"{word}int i = 0;\n"),
    "text ends": (r"\n +(?=%\w+ =)", 0, lambda word: "\0"),
}
"""What people do, as a place and what it becomes."""


def slips(random: Random, text: str, count: int = 1) -> Iterator[Slip]:
    """For each kind that a text has places for, some slips of that kind."""
    for name, (pattern, group, change) in KINDS.items():
        spots = _spots(pattern, text, group)
        for spot in random.sample(spots, min(count, len(spots))):
            yield _made(name, text, spot, change)


def one_slip(random: Random, text: str) -> Slip | None:
    """A slip of any kind; None where the text has no place for it."""
    pattern, group, change = KINDS[name := random.choice((*KINDS,))]
    spots = _spots(pattern, text, group)
    return _made(name, text, random.choice(spots), change) if spots else None


def program(path: Path) -> str:
    """The text of a program."""
    return path.read_text(encoding="utf-8")
