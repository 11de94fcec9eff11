# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in Python whose blocks wait for each other, and their files."""

import re
from pathlib import Path

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute
from tilefold.commands.cli import main

BLOCKS = 6


@cute.kernel
def turned(X: cute.Tensor, Y: cute.Tensor, arrived: cute.Tensor, release: cute.Constexpr):
    """Each block doubles an element of X; all meet; each stores in Y that of the next block."""
    block, _, _ = cute.arch.block_idx()
    count, _, _ = cute.arch.grid_dim()
    X[block] = X[block] * 2
    cute.arch.atomic_add(arrived.ptr(0), 1, sem=release)
    while cute.arch.load_acquire(arrived.ptr(0)) < count:
        pass
    Y[block] = X[(block + 1) % count]


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.arange(BLOCKS, dtype=np.float32), np.empty(BLOCKS, np.float32), np.zeros(1, np.int32)


@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("stage", ["cute", "instr"])
def test_a_barrier_of_the_grid(stage: str, seed: int) -> None:
    for options in ({"resident": BLOCKS}, {"cooperative": True}):
        x, y, arrived = arrays()
        turned(x, y, arrived, "release").launch(grid=BLOCKS, block=1, device="sim", stage=stage, seed=seed, **options)
        assert y.tolist() == [2, 4, 6, 8, 10, 0]


def test_a_program_that_does_not_say_runs_as_many_blocks_as_its_environment_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TILEFOLD_SIM_RESIDENT", str(BLOCKS))
    x, y, arrived = arrays()
    turned(x, y, arrived, "release").launch(grid=BLOCKS, block=1, device="sim")
    assert y.tolist() == [2, 4, 6, 8, 10, 0]
    monkeypatch.setenv("TILEFOLD_SIM_RESIDENT", "all")
    with pytest.raises(TilefoldError, match="TILEFOLD_SIM_RESIDENT=all is not a number from 1 to 65536"):
        turned(x, y, arrived, "release").launch(grid=BLOCKS, block=1, device="sim")


@pytest.mark.parametrize("seed", [0, 5])
def test_one_that_releases_nothing_is_a_race_at_each_stage(seed: int) -> None:
    report = turned(*arrays(), "relaxed").check(grid=BLOCKS, block=1, resident=BLOCKS, seed=seed)
    assert {fault.code for fault in report.faults} == {"E3205"}
    assert {stage for fault in report.faults for stage in fault.stages} == {"cute", "instr"}
    assert turned(*arrays(), "release").check(grid=BLOCKS, block=1, outputs=["Y"], resident=BLOCKS, seed=seed).passed


def test_blocks_that_wait_for_those_that_have_not_begun() -> None:
    report = turned(*arrays(), "release").check(grid=BLOCKS, block=1, resident=2)
    assert {fault.code for fault in report.faults} == {"E3231"}
    assert "4 of 6 blocks have not begun" in str(report)
    assert "all 6 of them, by launch(..., resident=...)" in str(report)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = turned(*arrays(), "release").build(1)
    text = kernel.to_cute()
    types = {name: re.search(rf'%{name}: (!tile\.tensor<.*?">)', text) for name in ("X", "Y", "arrived")}
    fills = {"X": "arange", "Y": "poison", "arrived": "zeros"}
    filled = "".join(f'  run.arg "{n}" : {m and m[1]} = "{fills[n]}"\n' for n, m in types.items())
    launched = f'run.launch @kernels::@{kernel.name} grid({BLOCKS}) {{\n{filled}  run.check "sum(Y) == 30"\n}}\n'
    path = tmp_path / "k.cute"
    path.write_text(text.rstrip().removesuffix("}") + launched + "}\n")
    assert main(["run", str(path), "--device", "sim", "--resident", "6"]) == 0
    assert main(["check", str(path), "--resident", "6"]) == 0
    capsys.readouterr()
    assert main(["check", str(path)]) == 1
    assert "E3231" in capsys.readouterr().out
    assert main(["check", str(path), "--resident", "0"]) == 1
    assert "--resident 0: must be at least 1" in capsys.readouterr().err
    assert main(["run", str(path), "--device", "sim", "--resident", "6", "--processes", "2"]) == 0
    assert main(["run", str(path), "--device", "sim", "--processes", "0"]) == 1
    assert "--processes 0: must be at least 1" in capsys.readouterr().err


def test_options_that_are_no_numbers() -> None:
    for value in (0, -1, 2.0, None):
        with pytest.raises(TilefoldError, match="resident is") as caught:
            turned(*arrays(), "release").launch(grid=1, block=1, device="sim", resident=value)  # pyright: ignore[reportArgumentType]
        assert caught.value.code == "E3105"
