# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the pages show is what happens: console sessions print it, Python sessions evaluate to it, files parse."""

import doctest
import json
from pathlib import Path

import pytest

from tests.project.tree import ROOT

from .console import SessionError, commands, matches, run
from .pages import blocks, pages
from .sessions import pictures, prepare

EXCERPTS = ("tutorial.md",)
"""The pages whose Python is that of the examples."""


def _name(page: Path) -> str:
    return page.stem


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_console_sessions_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    prepare(tmp_path, text)
    for block in blocks(text):
        if block.language != "console":
            continue
        for command, printed in run(commands(block.text, block.line), tmp_path):
            assert matches(command.expected, printed), (
                f"{page.name}:{command.line}: `{command.text}` prints something else (to accept it: "
                f"python -m tests.docs {page}):\n{printed}"
            )
    for picture in pictures(page, text):
        assert picture.read_bytes() == (tmp_path / picture.name).read_bytes(), (
            f"{page.name}: {picture.name} is not what the commands make (to write it: python -m tests.docs {page})"
        )


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_python_sessions_evaluate_to_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page.read_text()
    prepare(tmp_path, text)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    for block in blocks(text):
        if block.language == "pycon":
            test = doctest.DocTestParser().get_doctest(block.text, names, page.name, str(page), block.line - 1)
            runner.run(test, clear_globs=False)
            names.update(test.globs)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_excerpts_of_python_stand_in_an_example(page: Path) -> None:
    """A block that is no file of its own is part of a file of the page or of the examples, up to indentation."""
    text = page.read_text()
    named = [block.text for block in blocks(text) if block.language == "python" and block.name]
    files = [*named, *(path.read_text() for path in (ROOT / "examples").rglob("*.py"))]
    for block in blocks(text):
        if block.language == "python" and not block.name and page.name in EXCERPTS:
            assert any(_flat(block.text) in _flat(file) for file in files), f"{page.name}:{block.line}"


def _flat(code: str) -> str:
    """Code without indentation and blank lines, a line feed before and after each line."""
    lines = [line.strip() for line in code.splitlines()]
    return "".join(f"\n{line}\n" for line in lines if line)


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_every_block_says_its_language(page: Path) -> None:
    known = {"console", "pycon", "python", "mlir", "sh", "text", "ptx", "json", "toml", "diff", "lua", "elisp"}
    for block in blocks(page.read_text()):
        assert block.language in known, f"{page.name}:{block.line}: language '{block.language}'"
        if block.language == "json":
            json.loads(block.text)


def test_dots_stand_for_lines_and_for_characters() -> None:
    assert matches("a\n...\nd\n", "a\nb\nc\nd\n")
    assert matches("a\n...\n", "a\n")
    assert matches("ptx.ld ... align 16\n", "ptx.ld %3 align 16  \n")
    assert not matches("a\n...\nd\n", "a\nb\nc\n")
    assert not matches("a b\n", "a c\n")


def test_durations_and_addresses_may_differ() -> None:
    assert matches("stage atoms: 1.2 s\n", "stage atoms: 17 ms\n")
    assert matches("ptr(0x7f0000000100)\n", "ptr(0x7fff12345678)\n")
    assert not matches("12 elements\n", "13 elements\n")


def test_a_failure_must_be_shown(tmp_path: Path) -> None:
    failing = commands("$ tilefold explain E9999\n", 1)
    with pytest.raises(SessionError, match="status 1"):
        list(run(failing, tmp_path))
    shown = commands("$ tilefold explain E9999\n$ echo $?\n1\n", 1)
    assert [printed for _, printed in run(shown, tmp_path)][1] == "1\n"
    with pytest.raises(SessionError, match="cannot run"):
        list(run(commands("$ rm -r examples\n", 1), tmp_path))
