# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold.load`: a `.cute` program in Python shows, compiles, runs and launches what the command does."""

from pathlib import Path

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.runtime.errors import LaunchError

import tilefold
from tests.cli.kernels import SCALE, write
from tilefold.cute.loaded import LoadedProgram

TRANSPOSE = Path(__file__).parents[2] / "examples" / "transpose.cute"
DYNAMIC = """\
!g = !tile.tensor<i32, gmem, align<4>, "(?,4):(?,1)">
gpu.module @kernels {
  tile.kernel @negate(%A: !g, %B: !g) threads(4) {
    %t = gpu.thread_id x
    %m = gpu.block_id x
    %a = tile.load %A(%m, %t)
    %zero = arith.constant 0 : i32
    %b = arith.subi %zero, %a : i32
    tile.store %b, %B(%m, %t)
    return
  }
}
"""
NESTED = """\
!g = !tile.tensor<f32, gmem, align<4>, "((2,4),2):((4,8),1)">
gpu.module @kernels {
  tile.kernel @one(%A: !g, %B: !g) threads(8) {
    %t = gpu.thread_id x
    %zero = arith.constant 0 : index
    %a = tile.load %A(%t, %zero)
    tile.store %a, %B(%t, %zero)
    return
  }
}
"""


@pytest.fixture(scope="module")
def program() -> LoadedProgram:
    return tilefold.load(TRANSPOSE)


def test_a_kernel_is_launched_on_arrays(program: LoadedProgram) -> None:
    values, result = np.random.default_rng(0).random((256, 128), np.float32), np.empty((128, 256), np.float32)
    run = program.kernel("swizzled_f32")(values, B=result).launch((8, 4), device="sim")
    assert np.array_equal(result, values.T)
    assert run.counters.wavefronts() == (2048, 2048)


def test_an_array_of_the_host_may_have_any_strides(program: LoadedProgram) -> None:
    values = np.asfortranarray(np.random.default_rng(1).random((256, 128), np.float32))
    result = np.empty((256, 128), np.float32).T
    program.kernel("padded_f32")(values, result).launch((8, 4), device="sim", stage="cute")
    assert np.array_equal(result, values.T)


def test_a_program_shows_itself(program: LoadedProgram) -> None:
    assert program.kernels[1] == "kernels::swizzled_f32"
    assert "tile.copy" in program.ir()
    assert "ptx.entry" in program.ir("instr")
    assert "ld.shared.b32" in program.ptx("sm_90a")
    assert "define ptx_kernel" in program.llvm()
    assert program.cubin().startswith(b"\x7fELF")
    assert "swizzled_f32" in program.report()
    assert "transpose.cute" in program.explain()


def test_the_launches_of_the_file_run(program: LoadedProgram) -> None:
    outcomes = program.run("sim", launch="swizzled_f16", stage="all")
    assert [outcome.where for outcome in outcomes] == [
        f"stage {stage}" for stage in ("cute", "folded", "atoms", "index", "instr", "ptx")
    ]
    assert all(outcome.passed and len(outcome.checks) == 1 for outcome in outcomes)
    assert np.array_equal(outcomes[0].values["B"], outcomes[0].values["A"].T)
    assert str(outcomes[-1]).endswith("ok")


def test_a_check_that_fails_is_an_outcome() -> None:
    (outcome,) = tilefold.load(SCALE.replace("A * 2", "A")).run("sim")
    assert not outcome.passed


def test_parameters_and_files(tmp_path: Path) -> None:
    program = tilefold.load(write(tmp_path), {"M": 64})
    (outcome,) = program.run("sim")
    assert outcome.values["A"].shape == (64, 8)


def test_run_time_extents() -> None:
    a = np.arange(12, dtype=np.int32).reshape(3, 4)
    b = np.zeros((3, 4), np.int32)
    tilefold.load(DYNAMIC).kernel()(a, b).launch(3, device="sim")
    assert np.array_equal(b, -a)
    with pytest.raises(LaunchError, match="E3106"):
        tilefold.load(DYNAMIC).kernel()(a, np.zeros((3, 5), np.int32)).launch(3, device="sim")


def test_arrays_have_the_logical_shape() -> None:
    a, b = np.arange(16, dtype=np.float32).reshape(8, 2), np.full((8, 2), 7, np.float32)
    tilefold.load(NESTED).kernel("one")(a, b).launch(1, device="sim")
    assert np.array_equal(b[:, 0], a[:, 0])
    assert (b[:, 1] == 7).all()


def test_one_array_given_twice_is_one_tensor() -> None:
    a = np.arange(12, dtype=np.int32).reshape(3, 4)
    tilefold.load(DYNAMIC).kernel()(a, a).launch(3, device="sim")
    assert np.array_equal(a, -np.arange(12).reshape(3, 4))


@pytest.mark.parametrize(
    ("array", "told"),
    [(np.zeros((128, 256), np.float32), "shape"), (np.zeros((256, 128), np.float64), "float64")],
)
def test_arrays_that_do_not_fit(program: LoadedProgram, array: np.ndarray[tuple[int, int]], told: str) -> None:
    with pytest.raises(LaunchError, match=told):
        program.kernel("padded_f32")(array, np.zeros((128, 256), np.float32)).launch((8, 4), device="sim")


def test_kernels_that_do_not_exist(program: LoadedProgram) -> None:
    with pytest.raises(TilefoldError, match="E3107"):
        program.kernel("other")
    with pytest.raises(TilefoldError, match="more than one kernel"):
        program.kernel()
    with pytest.raises(TypeError, match="A, B"):
        program.kernel("padded_f32")(1)


@pytest.mark.gpu
def test_on_a_gpu(program: LoadedProgram) -> None:
    values, result = np.random.default_rng(0).random((256, 128), np.float32), np.empty((128, 256), np.float32)
    program.kernel("swizzled_f32")(values, result).launch((8, 4), device="cuda")
    assert np.array_equal(result, values.T)
    assert all(outcome.passed for outcome in program.run("cuda"))
