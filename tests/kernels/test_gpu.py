# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples on a GPU leave the simulator's bits, and take the shared-memory wavefronts that it counts."""

import csv
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tilefold.runtime.cuda import CudaEngine

from tests.kernels.harness import (
    ALL_LAUNCHES,
    LAUNCH_IDS,
    assert_checks_hold,
    example,
    kernel_ptx,
    launches,
    on_gpu,
    program,
    simulate,
    target_of,
)

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).resolve().parents[2]
LOADS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
STORES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"


@pytest.fixture(scope="module")
def engine() -> CudaEngine:
    """The engine of the first device. There is no skip: without a device this fails."""
    return CudaEngine()


@pytest.mark.parametrize(("path", "number"), ALL_LAUNCHES, ids=LAUNCH_IDS)
def test_the_gpu_leaves_the_simulators_bits(engine: CudaEngine, path: Path, number: int) -> None:
    launch, target = launches(path)[number], target_of(path)
    if target.sm >= 100 > engine.driver.target.sm:
        pytest.skip(f"{path.stem} needs {target.arch}, and this GPU is {engine.driver.target.arch}")
    expected = simulate(program(path), launch, "instr").after
    values = on_gpu(program(path), launch, engine)
    text = kernel_ptx(path, launch.kernel.rpartition("::")[2])
    if (
        "mma.sync" in text or "wgmma" in text or ".approx" in text
    ):  # tensor cores round sums otherwise, functions are approximations
        assert_checks_hold(launch, values)
        return
    for name, value in values.items():
        assert np.asarray(value).tobytes() == np.asarray(expected[name]).tobytes(), name


def measured(path: Path) -> dict[str, dict[str, int]]:
    """Nsight Compute's shared-memory wavefronts of each kernel of an example, for one launch of each."""
    ncu = shutil.which("ncu")
    assert ncu is not None
    command = [ncu, "--csv", "--page", "raw", "--clock-control", "none", "--metrics", f"{LOADS},{STORES}"]
    run = [sys.executable, "-m", "tilefold", "run", str(path), "--device", "cuda"]
    done = subprocess.run([*command, *run], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    found: dict[str, dict[str, int]] = {}
    for row in csv.DictReader(lines[first:]):
        if row["ID"]:  # the row after the headings holds units
            found[row["Kernel Name"].partition("(")[0]] = {m: int(row[m].replace(",", "")) for m in (LOADS, STORES)}
    return found


@pytest.mark.skipif(shutil.which("ncu") is None, reason="Nsight Compute's ncu is not installed")
@pytest.mark.parametrize("name", ["ldmatrix", "transpose"])
def test_wavefronts_are_those_that_nsight_compute_counts(name: str) -> None:
    path = example(name)
    counted = measured(path)
    for launch in launches(path):
        kernel = launch.kernel.rpartition("::")[2]
        accesses = simulate(program(path), launch, "instr").result.counters.accesses
        shared = [access for access in accesses if access.space == "shared"]
        loads = sum(access.transactions for access in shared if access.kind in ("load", "matrix"))
        stores = sum(access.transactions for access in shared if access.kind == "store")
        assert counted[kernel][LOADS] == loads, kernel
        if not any(access.kind == "async" for access in shared):  # cp.async writes through another path
            assert counted[kernel][STORES] == stores, kernel
