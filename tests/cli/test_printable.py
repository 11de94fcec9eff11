# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Text of others (source lines, names of files, `loc`, texts that a kernel prints) neither steers the terminal nor
looks like a message of tilefold, whatever command shows it.
"""

import io
import unicodedata
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefold.base.errors import Code, TilefoldError
from tilefold.base.printable import message_text, printable, printable_line, shown

from tilefold.commands.cli import main
from tilefold.driver.output import PrintableStream

HOSTILE = "\x1b[31m\x1b]0;t\x07\x7f\x9b2J\u202e\u2066\u2028\ufeff\u200f"
FORGED = "error[E9999]: forged"
SCRIPT = "<script>alert(1)</script>"

KERNEL = """\
// @COMMENT@
!A = !tile.tensor<f32, gmem, align<16>, "32:1">
gpu.module @k {
  tile.kernel @f(%A: !A) threads(32) {
    %t = gpu.thread_id x loc("@STRING@":3:1)
    %i = arith.index_cast %t : index to i32
    ptx.printf "printed @STRING@ %d"(%i) : i32
    %v = tile.load %A(%t) loc("@LINES@":3:1)
    %w = arith.addf %v, %v : f32
    @FAULT@ // @COMMENT@
    tile.store %w, %A(%t) loc("@STRING@":4:1)
    tile.return
  }
}
run.launch @k::@f name "label @LINES@" grid(1) {
  run.arg "A" : !A = "ones"
  run.check "A == 0"
}
"""
ALLOC = '%s = tile.alloc : !tile.tensor<f32, smem, align<16>, "32:1">'
PAGE_NAME = "<script>alert(1)<script>.cute"
FAULTS = {
    "none": "",
    "syntax": "%x = %% 5",
    "unknown": '"@STRING@"() : () -> ()',
    "undefined": "%x = arith.addf %nowhere, %nowhere : f32",
    "bounds": '%x = tile.load %A(32) loc("@LINES@":5:1)',
    "type": '%x = arith.constant "@STRING@" : i32',
    "atom": '%x = tile.tiled_copy #tile.copy_atom<"@STRING@", f16> thr "32:1" val "8:1"',
    "layout": '%x = tile.slice %A, "@STRING@"',
    "assert": 'ptx.assert %nowhere, "@STRING@"',
}
COMMANDS = [
    ("run", "--device", "sim"), ("run", "--device", "sim", "--stage", "all"), ("check",),
    ("check", "--format", "sarif"),
    ("compile",), ("compile", "--emit", "atoms"), ("compile", "--report"), ("opt", "-p", "cse", "--print-ir-after-all"),
    ("bisect",), ("explain",), ("explain", "--costs"), ("explain", "--source"), ("explain", "--source=ptx"),
    ("compile", "--remarks"),
]  # fmt: skip


def hostile_kernel(fault: str) -> str:
    """A kernel with hostile text wherever a file can have it."""
    text = KERNEL.replace("@FAULT@", fault).replace("@LINES@", f"\x1b[31m\\n{FORGED}{SCRIPT}")
    return text.replace("@STRING@", HOSTILE + SCRIPT).replace("@COMMENT@", HOSTILE + SCRIPT)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, whose own name is hostile, too."""
    path = tmp_path / f"a{HOSTILE}\n{FORGED}"
    path.mkdir()
    monkeypatch.chdir(path)
    return path


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.sampled(32)
def test_hostile_program(
    command: tuple[str, ...], fault: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "kernel.cute"
    path.write_text(hostile_kernel(FAULTS[fault]))
    status = main([command[0], str(path), *command[1:], *(() if command[0] == "opt" else ("--target", "sm_80"))])
    captured = capsys.readouterr()
    assert status in (0, 1), captured.err
    assert captured.out or captured.err
    for text in captured:
        assert hidden(text) == set()
        assert [line for line in text.split("\n") if line.startswith(FORGED)] == []


@pytest.mark.parametrize(
    "command", ["run", "check", "compile", "opt", "bisect", "explain", "reduce", "show", "export", "layout"]
)
def test_hostile_words(command: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = f"{HOSTILE}\n{FORGED}"
    for words in ((hostile,), ("kernel.cute", f"--{hostile}"), ("-D", hostile, "x")):
        with suppress(SystemExit):
            main([command, *words])
        for text in capsys.readouterr():
            assert hidden(text) == set()
            assert [line for line in text.split("\n") if line.startswith(FORGED)] == []


class _Tags(HTMLParser):
    """The names of all elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._inside = tag == "script"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._inside = False


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "-o", "x.html"), ("explain", "--costs", "-o", "x.html"), ("explain", "--source", "-o", "x.HTM"),
        ("check", "-o", "x.html"), ("check", "--format", "json", "-o", "x.html"), ("opt", "-p", "cse", "-o", "x.xhtml"),
        ("compile", "--emit", "atoms", "-o", "x.html"), ("show", "-o", "x.html", "--accesses"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_hostile_pages(words: tuple[str, ...], folder: Path) -> None:
    (folder / PAGE_NAME).write_text(hostile_kernel(ALLOC))
    assert main([words[0], PAGE_NAME, *words[1:]]) in (0, 1)
    (path,) = folder.glob("x.*")
    text = path.read_text()
    assert hidden(text) == set()
    assert text.lower().startswith("<!doctype html>")
    assert not [script for script in _Tags(text).scripts if "alert(1)" in script]


def test_hostile_picture(folder: Path) -> None:
    (folder / "k.cute").write_text(hostile_kernel(ALLOC))
    assert main(["show", "k.cute", "-o", "x.svg", "--accesses"]) == 0
    text = (folder / "x.svg").read_text()
    assert hidden(text) == set()
    ElementTree.fromstring(text)


def test_internal_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    from tilefold.driver.messages import print_internal_error

    print_internal_error(ValueError(HOSTILE), ["run", f"a{HOSTILE}\n{FORGED}"])
    assert hidden(text := capsys.readouterr().err) == set()
    assert text.count("\n") == 1


def hidden(text: str) -> set[str]:
    """The characters of a text that steer a terminal."""
    return {c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}


@given(st.text())
def test_every_text_is_printable(text: str) -> None:
    assert not hidden(printable(text))
    line = printable_line(text)
    assert not hidden(line)
    assert "\n" not in line
    assert "\t" not in line
    assert all(not later or later[0].isspace() for later in message_text(text).split("\n")[1:])
    assert len(shown(text).split("\n")) == 1
    stream = io.StringIO()
    assert PrintableStream(stream).write(text) == len(text)
    assert stream.getvalue() == printable(text)


def test_what_is_readable_stays() -> None:
    text = "a\tb\nÅ ä 中文 𒀀 ~ °"
    assert printable(text) == text
    assert printable(HOSTILE) == (
        r"\x1b[31m\x1b]0;t\x07\x7f\x9b2J\u202e\u2066\u2028\ufeff\u200f"
    )  # fmt: skip
    assert printable("\ud800") == r"\ud800"


def test_text_of_an_error() -> None:
    error = TilefoldError(Code.CLI_READ, f"a{HOSTILE}\n{FORGED}", f"b\n{FORGED}")
    assert not hidden(str(error))
    assert [line for line in str(error).split("\n") if line.startswith("error")] == []
