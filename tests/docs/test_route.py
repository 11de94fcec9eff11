# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The routes of kernels in docs/architecture.md are those that kernels take: modules are entered in that order."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.tree import ROOT

from .pages import blocks

PAGE = ROOT / "docs" / "architecture.md"
_ROW = re.compile(r"^\| \[(?P<text>[^\]]+)\]\(\.\./(?P<path>[^)]+)\) \| `(?P<function>[^`]+)` \|", re.MULTILINE)

_COMMAND = "import sys; sys.argv = ['tilefold', *{0!r}]; from tilefold.commands.process import main as run"
_KERNEL = """
import numpy as np
from kernel import scale
run = lambda: scale(np.ones(128, np.float32), np.ones(128, np.float32)).launch(grid=1, block=128, device="sim")
"""
_TRACE = """
import json, os, sys
entered, root = {{}}, {root!r} + os.sep
def enter(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(root):
        entered.setdefault((code.co_filename[len(root):], code.co_qualname))
sys.path.insert(0, {folder!r})
{start}
sys.setprofile(enter)
run()
sys.setprofile(None)
with open({result!r}, "w") as file:
    json.dump(list(entered), file)
"""

COPY = "examples/tiled_copy.cute"


def _route(number: int) -> list[tuple[str, str]]:
    """A route of the page: the file and the function of each row."""
    text = PAGE.read_text()
    section = text[text.index("## The route of one kernel") : text.index("## One algebra")]
    table = section.split("| module | enters at | task |")[number + 1]
    rows = [(match["path"], match["function"]) for match in _ROW.finditer(table)]
    assert len(rows) == table.split("\n\n")[0].count("\n|") - 1, "a row has another form"
    return rows


def _kernel(folder: Path) -> None:
    (block,) = (block for block in blocks(PAGE.read_text()) if "def scale" in block.text)
    (folder / "kernel.py").write_text(f"from tilefold import cute\n\n{block.text}")


@pytest.mark.parametrize(
    ("number", "start"),
    [
        (0, _COMMAND.format(["run", COPY, "--device", "sim", "--grid", "1"])),
        (1, _COMMAND.format(["compile", COPY, "--emit", "cubin", "--no-cache", "-o", "{folder}/copy.cubin"])),
        (2, _KERNEL),
    ],
    ids=["simulator", "machine code", "Python"],
)
def test_modules_are_entered_in_the_order_of_the_page(number: int, start: str, tmp_path: Path) -> None:
    _kernel(tmp_path)
    result = tmp_path / "entered.json"
    folder = str(tmp_path)
    code = _TRACE.format(root=str(ROOT), folder=folder, start=start.replace("{folder}", folder), result=str(result))
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, timeout=300)
    entered = [(path, function) for path, function in json.loads(result.read_text())]
    route = _route(number)
    assert [step for step in entered if step in set(route)] == route
