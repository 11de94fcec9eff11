# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Notebooks that `python -m tilefold.cutlass` runs as programs."""

import json
import subprocess
import sys
from pathlib import Path

IMPORTS = """%matplotlib inline
import numpy as np
import cutlass.cute as cute
if True:
    !nvidia-smi -L
from cutlass.cute.runtime import from_dlpack"""

KERNEL = """@cute.kernel
def kernel(A: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    if t > 1:
        A[t] = A[t] {operation} 2

@cute.jit
def host(A: cute.Tensor):
    kernel(A).launch(grid=1, block=4)
"""

CALL = "a = np.arange(4, dtype=np.float32)\nhost(from_dlpack(a))\na"


def ran(file: Path, *cells: str) -> subprocess.CompletedProcess[str]:
    text = [{"cell_type": "markdown", "source": ["# A title"]}]
    text += [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    file.write_text(json.dumps({"cells": text, "nbformat": 4}))
    return subprocess.run(
        [sys.executable, "-m", "tilefold.cutlass", str(file)], capture_output=True, text=True, check=False
    )


def test_cells_run_in_order_and_show_their_last_value(tmp_path: Path) -> None:
    first, second = KERNEL.format(operation="*"), KERNEL.format(operation="+")
    shell = "%%bash\nrm -rf something"
    done = ran(tmp_path / "n.ipynb", IMPORTS, first, CALL, shell, second, CALL, "a.sum();", "1 + (7\n% 4)")
    assert done.returncode == 0, done.stderr
    shown = ["array([0., 1., 4., 6.], dtype=float32)", "array([0., 1., 4., 5.], dtype=float32)", "4"]
    assert done.stdout.splitlines() == shown
    assert [line.partition("n.ipynb")[2] for line in done.stderr.splitlines()] == [
        "[2]:1: '%matplotlib inline' is left out: it is a command of IPython",
        "[2]:5: '!nvidia-smi -L' is left out: it is a command of IPython",
        "[5]: '%%bash' is left out: it is a command of IPython",
    ]


def test_a_message_names_the_cell_and_its_line(tmp_path: Path) -> None:
    done = ran(tmp_path / "n.ipynb", IMPORTS, KERNEL.format(operation="@"), CALL)
    assert done.returncode == 1
    assert "n.ipynb[3]:5:16: error[E5002]" in done.stderr
    assert "    A[t] = A[t] @ 2\n                 ^^^^^^^^\n" in done.stderr


def test_a_file_that_is_not_a_notebook(tmp_path: Path) -> None:
    file = tmp_path / "n.ipynb"
    file.write_text("print(1)")
    done = subprocess.run(
        [sys.executable, "-m", "tilefold.cutlass", str(file)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, f"{file} is not a notebook (nbformat 4)\n")
