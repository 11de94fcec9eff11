# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every file of `bad/` is refused as its comments say: place and code of each error, and part of its text.

// command: run --device sim          (compile, if there is no such line)
// error: 7:12 E0302 part of the text      (- for an error without a place)
"""

import random
import re
from contextlib import suppress
from pathlib import Path

import pytest
from tilefold.base.errors import TilefoldError
from tilefold.compiler.frontend.params import expand

from tests.project.tree import ROOT
from tilefold.commands.cli import main
from tilefold.driver.lowering import load

BAD = Path(__file__).parent / "bad"
_ERROR = re.compile(r"^// error: (?P<place>\S+) (?P<code>E\d{4}) ?(?P<text>.*)$", re.MULTILINE)
_COMMAND = re.compile(r"^// command: (.*)$", re.MULTILINE)


@pytest.mark.parametrize("path", sorted(BAD.glob("*.cute")), ids=lambda path: path.stem)
def test_bad_file(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(BAD)
    text = path.read_text()
    command = _COMMAND.search(text)
    name, *options = (command[1] if command else "compile").split()
    out = tmp_path / "out"
    if name == "compile":
        options += ["-o", str(out)]
    assert main([name, path.name, *options]) == 1
    said = capsys.readouterr().err
    expected = [(match["place"], match["code"]) for match in _ERROR.finditer(text)]
    assert expected, f"{path.name} announces no error"
    reported = re.findall(rf"^(?:{re.escape(path.name)}:(\d+:\d+): )?error\[(E\d+)\]: ", said, re.MULTILINE)
    assert [(place or "-", code) for place, code in reported] == expected
    for match in _ERROR.finditer(text):
        assert match["text"] in said
    assert "Traceback" not in said
    assert ".py" not in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"gpu.module @k {\n} // \xff\n", ":2:6: error[E1006]: byte 0xff is not UTF-8"),
        (b"gpu.module @k {\n}\n\0", ":3:1: error[E1006]: the file contains a NUL"),
        (b"\xef\xbb\xbfgpu.module", "x.cute:1:11: error[E1001]"),
        (b" " * (16 * 2**20 + 1), "larger than 16777216 bytes"),
    ],
)
def test_files_that_are_no_programs(
    content: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.cute"
    file.write_bytes(content)
    assert main(["compile", str(file)]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("name", ["missing.cute", ".", "missing/../x.cute", "a\0b", "x" * 5000])
def test_files_that_cannot_be_read(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", name]) == 1
    assert "error[E4001]" in capsys.readouterr().err


_TOKEN = re.compile(r"\s+|[\w.%!@#$]+|.", re.DOTALL)
_JUNK = [
    *("0", "-1", "7", "1.0", "99999999999999999999", "(", ")", '"', "_", "?", "%A", "{", "}", "<", ">", ":", ","),
    *("i32", "f64", "index", "tuple<", "gmem", "smem", "S<3,4,3> o 0 o ", "loc(", "!ptx.ptr<shared>", "\\", "\n"),
]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.sampled(15)
def test_damaged_programs_are_compiled_or_refused(seed: int) -> None:
    """A few tokens of an example are dropped, doubled or replaced; nothing but a TilefoldError may come of it."""
    chance = random.Random(seed)
    text = chance.choice(sorted((ROOT / "examples").glob("*.cute"))).read_text()
    tokens = _TOKEN.findall(text)
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(len(tokens))
        tokens[at : at + 1] = chance.choice(([], [chance.choice(tokens)], [chance.choice(_JUNK)], [tokens[at]] * 2))
    with suppress(TilefoldError):
        load(expand("".join(tokens), "damaged.cute")).at("instr")
