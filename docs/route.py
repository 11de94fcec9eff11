# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The picture of README.md: one copy of examples/tiled_copy.cute at each stage, and the simulator beside all stages."""

import re
from collections.abc import Iterator
from pathlib import Path

from tilefold.compiler.pipeline import STAGES
from tilefold.layout.drawing.scene import Box, Label, Line, Picture, Primitive, Shape, text_width

import tilefold

ROUTE = Path(__file__).parent / "pictures" / "route.svg"
"""The file of the picture."""
EXAMPLE = Path(__file__).parents[1] / "examples" / "tiled_copy.cute"
TARGET = "sm_80"

_SHOWN = {
    "cute": r"tile\.copy %load.*",
    "folded": r"%tAgA = (tile\.view .*?) :",
    "atoms": r"tile\.atom_call .*?(?= \{)",
    "index": r"(ptx\.ptr_add %\d+, %\d+) :",
    "instr": r"ptx\.cp\.async \".*",
    "PTX": r"cp\.async\.\w+\.shared.*",
}
"""The operation to show of each stage: the first match in its text, or the group in it."""
_STEP, _HEIGHT, _TOP = 62, 34, 44
_LEFT, _NAME, _WIDTH = 16, 84, 610
_SIMULATOR = 690
_GREY, _BLUE, _GREEN = "#5b6475", "#1d4f91", "#1f6b3a"


def operations() -> dict[str, str]:
    """The same copy at each stage, as the compiler writes it."""
    program = tilefold.load(str(EXAMPLE))
    texts = {stage.name: program.ir(stage.name) for stage in STAGES} | {"PTX": program.ptx(TARGET)}
    shown: dict[str, str] = {}
    for stage, text in texts.items():
        match = re.search(_SHOWN[stage], text, re.MULTILINE)
        assert match, f"stage {stage} of {EXAMPLE.name} has no such operation"
        shown[stage] = " ".join((match[1] if match.re.groups else match[0]).split())
    return shown


def _passes(stage: str) -> str:
    """The passes that lead to a stage, without checks and cleaning."""
    if stage == "PTX":
        return "LLVM"
    (passes,) = (each.passes for each in STAGES if each.name == stage)
    names = [name.partition("{")[0] for name in passes]
    return ", ".join(name for name in names if not name.startswith(("check-", "cse")))


def _row(number: int, stage: str, text: str) -> Iterator[Primitive]:
    top = _TOP + number * _STEP
    yield Box(_LEFT, top, _WIDTH, _HEIGHT, "#eef3fb" if stage != "PTX" else "#fbf3e6", "#9aa3b2")
    yield Label(_LEFT + 12, top + 22, stage, 14, anchor="start", bold=True)
    text = _fitted(text, 11, _WIDTH - _NAME - 12)
    yield Label(_LEFT + _NAME, top + 21, text, 11, anchor="start")
    yield from _arrow((_LEFT + _WIDTH, top + _HEIGHT / 2), (_SIMULATOR, top + _HEIGHT / 2), _GREEN)
    if number:
        x = _LEFT + 40
        yield from _arrow((x, top - _STEP + _HEIGHT), (x, top), _BLUE)
        passes = _fitted(_passes(stage), 10, _WIDTH - 80)
        yield Label(x + 14, top - 10, passes, 10, _BLUE, anchor="start")


def _fitted(text: str, size: float, width: float) -> str:
    """A text, cut short where it is wider."""
    if text_width(text, size) <= width:
        return text
    return text[: int(len(text) * width / text_width(text, size)) - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _arrow(start: tuple[float, float], end: tuple[float, float], colour: str) -> Iterator[Primitive]:
    (x0, _), (x1, y1) = start, end
    if x0 == x1:
        yield Line(start, (x1, y1 - 7), 2, colour)
        yield Shape(((x1 - 5, y1 - 8), (x1 + 5, y1 - 8), end), colour)
    else:
        yield Line(start, (x1 - 7, y1), 2, colour)
        yield Shape(((x1 - 8, y1 - 5), (x1 - 8, y1 + 5), end), colour)


def picture() -> Picture:
    """The stages from top to bottom, with the passes between them."""
    shown = operations()
    parts: list[Primitive] = [Label(_LEFT, 26, "one copy, from Python to PTX", 13, _GREY, anchor="start")]
    for number, (stage, text) in enumerate(shown.items()):
        parts += _row(number, stage, text)
    height = (len(shown) - 1) * _STEP + _HEIGHT
    parts.append(Box(_SIMULATOR, _TOP, 170, height, "#eef7ee", "#8fb89c"))
    checks = ("runs every stage", "without a GPU,", "checks each access,", "compares the bytes:")
    lines = ("the simulator", "", *checks, "", "a difference names", "the wrong pass")
    for number, line in enumerate(lines):
        y = _TOP + height / 2 - len(lines) * 9 + number * 18 + 12
        parts.append(Label(_SIMULATOR + 85, y, line, 14 if not number else 12, _GREEN, bold=not number))
    bottom = _TOP + height
    x = _LEFT + 40
    parts += _arrow((x, bottom), (x, bottom + 28), _BLUE)
    parts.append(Label(x + 14, bottom + 18, "assembler, driver", 10, _BLUE, anchor="start"))
    parts.append(Label(_LEFT, bottom + 46, "NVIDIA GPU", 14, anchor="start", bold=True))
    title = "The stages " + ", ".join(shown) + "; the simulator runs each of them and compares the results"
    return Picture(title, _SIMULATOR + 170 + 16, bottom + 62, tuple(parts))
