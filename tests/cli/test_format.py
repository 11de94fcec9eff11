# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The version of the format: written in every file, read before all else of it."""

from pathlib import Path

import pytest
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.frontend.file_format import FORMAT, HEADER
from tilefold.compiler.frontend.params import expand
from tilefold.compiler.frontend.program import parse_program
from tilefold.compiler.frontend.source import plain_source
from tilefold.compiler.pipeline import make_context

from tests.cli.kernels import write
from tests.project.tree import ROOT
from tilefold import cute
from tilefold.commands.cli import main


@pytest.mark.parametrize(
    "text",
    [
        "",
        HEADER,
        "  //cute-format   1 \r\n",
        "// what it is for\n\n// param N = 1\n// cute-format 1",
        "// cute-formats are for later, and cute-format 7 is not meant in prose",
        "module {} // cute-format 7",
    ],
)
def test_text_that_is_read(text: str) -> None:
    assert parse_program(expand(text, "x.cute"), make_context()) is not None
    assert parse_program(plain_source(text, "x.cute"), make_context()) is not None


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        (f"// cute-format {FORMAT + 1}", "1:1", f"version {FORMAT + 1} of the .cute format; this tilefold reads"),
        ("// cute-format 1\n\n  // cute-format 12  \r\n", "3:3", "the file is in version 12"),
        ("// param = broken\n// cute-format 999999999\n}", "2:1", "the file is in version 999999999"),
        ("// cute-format", "1:1", "malformed version"),
        ("// cute-format 0", "1:1", "malformed version"),
        ("// cute-format 1.5", "1:1", "malformed version"),
        ("// cute-format: 1", "1:1", "malformed version"),
        ("// cute-format 12345678901234567890", "1:1", "malformed version"),
        ("// cute-format 1 or so", "1:1", "malformed version"),
    ],
)
def test_text_of_another_version(text: str, place: str, said: str) -> None:
    for read in (expand, plain_source):
        with pytest.raises(ProgramError) as caught:
            parse_program(read(text, "x.cute"), make_context())
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.render().startswith(f"x.cute:{place}: error[E1007]: ")
        assert said in diagnostic.message
        assert "tilefold" in diagnostic.hint or HEADER.strip() in diagnostic.hint
        assert diagnostic.place is not None
        assert diagnostic.place.text.rstrip()[-1] == text.splitlines()[diagnostic.place.line - 1].rstrip()[-1]


def test_written_files_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved, passed, dumps = (str(tmp_path / name) for name in ("saved.cute", "passed.cute", "ir"))
    path = write(tmp_path)
    assert main(["compile", path, "--emit", "atoms", "-o", saved]) == 0
    assert main(["opt", path, "-p", "cse", "--dump-dir", dumps, "-o", passed]) == 0
    written = [Path(saved), Path(passed), *Path(dumps).iterdir()]
    assert len(written) == 4
    for each in written:
        assert each.read_text().count(HEADER) == 1
        assert each.read_text().startswith(HEADER)
        assert main(["compile", str(each), "-o", str(tmp_path / "ptx")]) == 0
    capsys.readouterr()
    assert main(["opt", path]) == 0
    assert HEADER not in capsys.readouterr().out


def test_programs_of_python_say_it() -> None:
    @cute.kernel
    def nothing() -> None: ...

    text = nothing().build(block=1).to_cute()
    assert text.startswith(HEADER)


def test_examples_say_it() -> None:
    for path in (ROOT / "examples").glob("*.cute"):
        assert path.read_text().startswith(HEADER), path
