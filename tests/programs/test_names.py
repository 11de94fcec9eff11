# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The report of the public names that programs use and tilefold lacks."""

import json
from pathlib import Path

from tests.programs.names import report

PROGRAM = """# licence
import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync, tcgen05 as newest
from cutlass.utils.newest import thing

def kernel(x, *more):
    cute.arch.thread_idx(loc=loc, ip=ip)
    cute.arch.thread_indx().y
    newest.Op.ONE
    cute.copy(1, 2, 3, predicate=4)
    cute.copy(*more, pred=4)
    return cpasync.CopyG2SOp(), cutlass.Float32.width, x.cute.nothing
"""


def test_report(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "other.py").write_text(PROGRAM.replace("licence", "none"))
    cell = {"cell_type": "code", "source": ["%time\n", "import cutlass.cute as cute\n", "cute.arch.thread_indx()"]}
    (tmp_path / "notebook.ipynb").write_text(json.dumps({"cells": [{"cell_type": "markdown"}, cell]}))
    lines = [line.split(maxsplit=1) for line in report(tmp_path, "# licence")]
    assert lines == [
        ["2", "cutlass.cute.nvgpu.tcgen05"],
        ["2", "cutlass.cute.arch.thread_indx"],
        ["1", "cutlass.utils.newest"],
        ["1", "cutlass.cute.copy: got an unexpected keyword argument 'predicate'"],
    ]
