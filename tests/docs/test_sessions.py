# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the pages show is what happens: console sessions print it, Python sessions evaluate to it, files parse."""

import ast
import doctest
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.tree import ROOT

from .console import SessionError, commands, matches, run
from .pages import blocks, pages
from .sessions import pictures, prepare

PIECES = ("extending.md",)
"""The pages whose blocks without a file's name are lines to add to files of the project, which the text names."""
ANSWERS = "how-do-i.md"
ELSEWHERE = {"torch", "cupy", "cuda", "dask", "ray"}
"""Packages of programs for machines with a GPU or with several processes, which do not run here."""


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


def _programs(page: Path) -> list[tuple[int, str, str]]:
    """The line, the name and the text of each block of Python that is a program."""
    found = [block for block in blocks(page.read_text()) if block.language == "python"]
    return [(block.line, block.name, block.text) for block in found if block.name or page.name not in PIECES]


def _imported(code: str) -> set[str]:
    """The packages that a program imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return names


@pytest.mark.parametrize("page", [page for page in pages() if _programs(page)], ids=_name)
def test_blocks_of_python_are_programs(page: Path, tmp_path: Path) -> None:
    """A reader can paste each block: it defines or imports its names, and runs without an error. Files with a name run
    in the console sessions.
    """
    prepare(tmp_path, page.read_text())
    listed = tmp_path / "listed"
    listed.mkdir()
    for line, _, code in _programs(page):
        (listed / f"line{line}.py").write_text(code)
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821", str(listed)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, f"{page.name}: {checked.stdout}{checked.stderr}"
    for line, name, code in _programs(page):
        if name or _imported(code) & ELSEWHERE:
            continue
        (tmp_path / "program.py").write_text(code)
        status, said = (_in_a_process_of_its_own if "pytest" in _imported(code) else _in_this_process)(tmp_path)
        assert status == 0, f"{page.name}:{line}: {said}"


def _in_a_process_of_its_own(folder: Path) -> tuple[int, str]:
    ran = subprocess.run(
        [sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    return ran.returncode, ran.stderr


def _in_this_process(folder: Path) -> tuple[int, str]:
    try:
        ((_, said),) = run(commands("$ python program.py\n", 1), folder)
    except SessionError as error:
        return 1, str(error)
    return 0, said


def test_every_answer_has_code_that_runs() -> None:
    answers = re.split(r"^### How do I ", (ROOT / "docs" / ANSWERS).read_text(), flags=re.MULTILINE)[1:]
    assert len(answers) >= 40
    for answer in answers:
        languages = {block.language for block in blocks(answer)}
        assert languages & {"console", "python"}, answer.partition("\n")[0]


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_named_programs_are_run(page: Path) -> None:
    """Each file of Python on a page occurs in a console session or in another file of the page."""
    text = page.read_text()
    files = {block.name: block.text for block in blocks(text) if block.name.endswith(".py")}
    used = "".join(block.text for block in blocks(text) if block.language != "python" or not block.name)
    for name in files:
        others = used + "".join(other for each, other in files.items() if each != name)
        assert name.removesuffix(".py") in others, f"{page.name}: {name}"


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
