# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every page of `tilefold explain`: its example gives exactly its code, and the cured form gives no error."""

import re
import runpy
import shlex
from pathlib import Path

import pytest
from tilefold.base.errors import Code, TilefoldError
from tilefold.base.explanations import Sample, explanation

from tests.project.tree import ROOT
from tilefold.commands.cli import main

DESCRIBED = frozenset(
    {"E0320", "E2203", "E2204", "E2205", "E2302", "E2304", "E2305", "E3108", "E3301", "E3302", "E4004", "E4005"}
)
"""Codes whose example is a description: each needs a broken machine, a GPU, or a bug of tilefold."""

Capture = pytest.CaptureFixture[str]


def _command(words: str, capsys: Capture) -> tuple[int, set[str]]:
    program, *arguments = shlex.split(words)
    assert program == "tilefold"
    capsys.readouterr()
    status = main(arguments)
    return status, set(re.findall(r"error\[(E\d{4})\]", "".join(capsys.readouterr())))  # a report is the output


def _codes(sample: Sample, capsys: Capture) -> set[str]:
    """The error codes that a sample gives, which is executed in the current folder."""
    if sample.kind == "python":
        Path("example.py").write_text(sample.text + "\n")
        try:
            runpy.run_path(str(Path("example.py").resolve()))
        except TilefoldError as error:
            return {error.code}
        return set()
    if sample.kind == "cute":
        Path("example.cute").write_text(sample.text + "\n")
        first = re.match(r"// \$ (.*)", sample.text)
        commands = [first[1] if first else "tilefold opt example.cute"]
    else:
        assert sample.kind == "console"
        commands = re.findall(r"^\$ (.*)$", sample.text, re.MULTILINE)
        assert commands
    found: set[str] = set()
    for command in commands:
        status, codes = _command(command, capsys)
        assert (status == 0) == (not codes)
        found |= codes
    return found


def _cured(example: Sample, cured: Sample) -> Sample:
    """The sample after the cure: the `-` lines of a diff, each at or after the place of the last one, give way to the
    `+` lines below them.
    """
    if cured.kind != "diff":
        return cured
    lines = example.text.splitlines()
    at = deeper = 0
    for line in cured.text.splitlines():
        sign, text = line[0], line[1:].strip()
        if sign == "-":
            at = next(number for number in range(at, len(lines)) if lines[number].strip() == text)
            deeper = lines[at].index(text) - line.index(text) + 1
            del lines[at]
        else:
            assert sign == "+"
            lines.insert(at, " " * deeper + line[1:])
            at += 1
    return Sample(example.kind, "\n".join(lines))


@pytest.mark.parametrize("code", Code, ids=lambda code: code.id)
@pytest.mark.sampled(27)
def test_page(code: Code, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    page = explanation(code)
    assert page.cause
    assert page.cure
    assert (page.example.kind == "text") == (code.id in DESCRIBED)
    if code.id not in DESCRIBED:
        assert _codes(page.example, capsys) == {code.id}
        assert page.cured is not None
        assert _codes(_cured(page.example, page.cured), capsys) == set()


def test_pages_are_of_codes_of_the_catalogue() -> None:
    text = "".join([path.read_text() for path in sorted((ROOT / "base/explanations").glob("*.md"))])
    assert sorted(re.findall("^## (.*)$", text, re.MULTILINE)) == sorted(code.id for code in Code)


def test_output_fits_a_terminal(capsys: Capture) -> None:
    assert main(["explain", *[code.id for code in Code]]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 120


def test_list_has_every_code(capsys: Capture) -> None:
    assert main(["explain"]) == 0
    listed = re.findall(r"^  (E\d{4})  \S", capsys.readouterr().out, re.MULTILINE)
    assert listed == sorted(code.id for code in Code)


def test_unknown_code_names_the_nearest(capsys: Capture) -> None:
    assert main(["explain", "E0299"]) == 1
    said = capsys.readouterr().err
    assert "error[E4003]: unknown error code 'E0299'" in said
    assert "did you mean E02" in said


@pytest.mark.parametrize("word", ["203", "e203", "0203", "E0203"])
def test_a_code_may_lack_its_letter_and_zeros(word: str, capsys: Capture) -> None:
    assert main(["explain", word]) == 0
    assert capsys.readouterr().out.startswith("E0203 ")
