# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much of the project a simulated launch from Python enters."""

import subprocess
import sys

from tests.project.tree import ROOT

MOST = 175
"""The most files that the first launch of a small kernel may enter: those in which it calls a function or, since a
module is imported when it is needed first, executes the module. 205 before dispatch was above the
engines, 181 before the rules of the simulator were loaded by families of operations.
"""

_LAUNCH = """
import os, sys
import numpy as np
sys.path.insert(0, "tests/project")
from launched import scale

folder = os.getcwd() + os.sep
files = set()

def enter(frame, event, _):
    if event == "call" and frame.f_code.co_filename.startswith(folder):
        files.add(frame.f_code.co_filename)

a, b = np.ones(128, np.float32), np.zeros(128, np.float32)
sys.setprofile(enter)
scale(a, b).launch(grid=1, block=128, device="sim")
sys.setprofile(None)
assert b.sum() == 200
print(len([file for file in files if ".venv" not in file]))
"""


def test_a_simulated_launch_enters_few_files() -> None:
    result = subprocess.run([sys.executable, "-c", _LAUNCH], cwd=ROOT, check=True, capture_output=True, text=True)
    assert 50 < int(result.stdout) <= MOST
