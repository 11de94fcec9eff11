# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of other languages that are given to a command: the message says how to run them, or what to write."""

from pathlib import Path

import pytest
from tilefold.base.errors import TilefoldError
from tilefold.runtime.cuda import CudaEngine, CudaUnavailable

from tilefold.commands.cli import main
from tilefold.commands.options import check_language

COMMANDS = {
    "run": "its calls k(...).launch(grid=..., block=...) run on the GPU if there is one, or simulated",
    "compile": "print(k.ptx())", "check": "print(k(...).check(grid, block))", "bisect": "k(...).bisect(grid, block)",
    "explain": "print(k.explain())", "opt": "k(...).build(block).to_cute()",
    "reduce": "k(...).reduce(folder, grid, block)", "export": "k(...).build(block).export(folder)",
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_a_program_in_python(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "kernel.py"
    program.write_text("from tilefold import cute\n")
    options = ["-o", str(tmp_path / "out")] if command == "export" else []
    assert main([command, str(program), *options]) == 1
    error = " ".join(capsys.readouterr().err.split())
    assert "error[E4003]" in error
    assert "is a program in Python, not a .cute file" in error
    assert f"hint: write python {str(program)[:80]}" in error
    assert COMMANDS[command] in error


def test_a_program_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("check", "opt"):
        assert main([command, str(tmp_path / "kernel.py")]) == 1
        assert "error[E4001]" in capsys.readouterr().err


def test_a_command_that_needs_a_gpu() -> None:
    with pytest.raises(TilefoldError, match="E4003") as caught:
        check_language("kernel.PY", "profile")
    assert "k(...).costs(grid, block)" in caught.value.hint


def test_notebooks_and_programs_in_cpp(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, words, hint in (
        ("kernel.ipynb", "is a program in Python", "open it in Jupyter"),
        ("kernel.cpp", "is a program in C++", "write the kernel in Python"),
    ):
        (tmp_path / name).write_text("{}")
        assert main(["run", str(tmp_path / name)]) == 1
        error = capsys.readouterr().err
        assert words in error
        assert hint in error


def test_a_profile_without_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(_: CudaEngine) -> None:
        raise CudaUnavailable("none is here")

    monkeypatch.setattr(CudaEngine, "__init__", refuse)
    assert main(["profile", "examples/copy.cute"]) == 1
    assert "hint: `tilefold explain FILE --costs`" in capsys.readouterr().err
