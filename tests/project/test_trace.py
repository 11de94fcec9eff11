# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much of the project a simulated launch from Python enters."""

import subprocess
import sys

from tests.project.tree import ROOT

MOST = 100
"""The most files of the project that the first launch of a small kernel may enter, after the kernel, the rewriting of
functions, and all names of `tilefold.cute` and of the dialects have been imported. A profile function counts them: the
files in which the launch calls a function, a comprehension or a property, and those of modules that it imports, also
where nothing but the module's definitions is executed. A package's file with nothing but a docstring does not count.
"""

_LAUNCH = """
import os, sys
import numpy as np
sys.path.insert(0, "tests/project")
from launched import scale
from tilefold import cute
from tilefold.builder.control import rewrite
from tilefold.dialects import ptx, tile

for package in (cute, ptx, tile):
    for name in package.__all__:
        getattr(package, name)
folder = os.getcwd() + os.sep
files = set()

def enter(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(folder) and set(code.co_names) != {"__doc__"}:
        files.add(code.co_filename)

a, b = np.ones(128, np.float32), np.zeros(128, np.float32)
sys.setprofile(enter)
scale(a, b).launch(grid=1, block=128, device="sim")
sys.setprofile(None)
assert b.sum() == 200
print(len([file for file in files if not file.startswith((folder + ".venv", folder + "tests"))]))
"""


def test_a_simulated_launch_enters_few_files() -> None:
    result = subprocess.run([sys.executable, "-c", _LAUNCH], cwd=ROOT, check=True, capture_output=True, text=True)
    assert 50 < int(result.stdout) <= MOST
