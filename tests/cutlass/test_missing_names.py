# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The list of names that a code base uses and tilefold lacks."""

import json
import sys
from pathlib import Path
from runpy import run_module
from subprocess import run

import pytest

from tilefold.cutlass.missing_names import missing_names

PROGRAM = """import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync, tcgen06 as newest
from cutlass.utils.newest import thing
try:
    from cutlass.cute import perhaps
except ImportError:
    perhaps = None

def kernel(x, *more):
    cute.arch.thread_idx(loc=loc, ip=ip)
    cute.arch.thread_indx().y
    newest.Op.ONE
    cute.copy(1, 2, 3, predicate=4)
    cute.copy(*more, pred=4)
    perhaps()
    return cpasync.CopyG2SOp(), cutlass.Float32.width, x.cute.nothing

def other(cute):
    return cute.nothing()

def local():
    cpasync = cute.arch
    return cpasync.nothing()
"""


def test_names_by_the_files_that_they_stop(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "no_program.py").write_text("import cutlass.cute as cute\ncute.nothing(\n")
    cell = {"cell_type": "code", "source": ["%time\n", "import cutlass.cute as cute\n", "cute.arch.thread_indx()"]}
    (tmp_path / "notebook.ipynb").write_text(json.dumps({"cells": [{"cell_type": "markdown"}, cell]}))
    for folder in ("third_party/quack", ".venv", "lib/cutlass/cute"):  # of others, and the package itself
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "__init__.py").write_text("import cutlass.cute as cute\ncute.unheard_of()\n")
    (tmp_path / "no_notebook.ipynb").write_text("cutlass")
    survey = missing_names(tmp_path)
    assert [(missing.name, missing.files) for missing in survey.missing] == [
        ("cutlass.cute.arch.thread_indx", ("notebook.ipynb:2", "program.py:12")),
        ("cutlass.cute.copy: got an unexpected keyword argument 'predicate'", ("program.py:14",)),
        ("cutlass.cute.nvgpu.tcgen06", ("program.py:13",)),
    ]
    assert survey.programs == 2
    assert survey.unread == ("no_notebook.ipynb: it is not a notebook", "no_program.py:2: '(' was never closed")


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [((), "     1  cutlass.cute.nothing  (program.py:2)\n"),
     (("--json",), '[\n {\n  "name": "cutlass.cute.nothing",\n  "files": [\n   "program.py:2"\n  ]\n }\n]\n')],
)  # fmt: skip
def test_command(tmp_path: Path, arguments: tuple[str, ...], printed: str) -> None:
    (tmp_path / "program.py").write_text("import cutlass.cute as cute\ncute.nothing()\n")
    command = [sys.executable, "-m", "tilefold.cutlass", "--missing", str(tmp_path), *arguments]
    done = run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, printed), done.stderr


def test_a_folder_without_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "program.py").write_text("import numpy\n")
    module = "tilefold.cutlass"
    for arguments, message in (
        ([tmp_path], "no program in"),
        ([tmp_path, tmp_path], "one folder, not 2"),
        ([], "which"),
    ):
        monkeypatch.setattr(sys, "argv", [module, "--missing", *map(str, arguments)])
        with pytest.raises(SystemExit, match=message):
            run_module(module, run_name="__main__")
