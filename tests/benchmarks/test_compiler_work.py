# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler and the simulator stay within their work: the calls of functions that they make, on any machine.

`python -m benchmarks.compiler` measures times, and fails where one is three times its target. A limit here is half as
much again as was counted with Python 3.11.
"""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import compiler, python_gemm
from benchmarks.workloads import Workload
from tests.project.tree import ROOT
from tests.work import calls

COMPILATIONS = ((compiler.COPY, 300_000), (compiler.GEMM, 2_500_000), (compiler.ATTENTION, 4_700_000))
"""From text to PTX, in a process that has compiled before."""
PROCESSES = {
    (
        "from tilefold.commands.cli import main; main(['compile', 'examples/tiled_copy.cute', '-o', '/dev/null'])"
    ): 1_450_000,
    "import tilefold.cute": 980_000,
}
"""All that a new process does, its imports included."""
COUNTED = "from tests.work import calls\ndef run():\n    {code}\nprint(calls(run))"


@pytest.mark.parametrize(("workload", "most"), COMPILATIONS, ids=lambda each: getattr(each, "name", ""))
@pytest.mark.sampled(2)
def test_compiling_in_a_warm_process(workload: Workload, most: int) -> None:
    def compile_it() -> None:
        program, _ = workload.loaded()
        assert program.ptx(compiler.TARGET)

    compile_it()
    assert calls(compile_it) <= most


@pytest.mark.parametrize("code", PROCESSES)
def test_a_new_process(code: str) -> None:
    command = [sys.executable, "-c", COUNTED.format(code=code)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(ran.stdout) <= PROCESSES[code]


def test_a_kernel_of_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilefold.cute.kernel import Kernel

    monkeypatch.setenv("TILEFOLD_CACHE_DIR", str(tmp_path))
    build = python_gemm.prepared()
    assert calls(lambda: build().artifact(python_gemm.ARCH)) <= 3_000_000
    on_disk = build()
    assert calls(lambda: on_disk.artifact(python_gemm.ARCH)) <= 18_000
    kernel = Kernel(import_module("gemm").gemm_kernel.function)
    build(kernel).artifact(python_gemm.ARCH)
    assert calls(lambda: build(kernel).artifact(python_gemm.ARCH)) <= 700


def test_simulating_a_tile() -> None:
    compiler.simulate_tiles()
    assert calls(compiler.simulate_tiles) <= 330_000


def test_simulating_a_tile_of_the_gemm() -> None:
    compiler.simulate_gemm()
    assert calls(compiler.simulate_gemm) <= 2_300_000
