# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in exact arithmetic: right ones equal their expectation at every stage, wrong ones do not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.runtime.check.condition import check_results
from tilefold.runtime.exact.number import exact_array
from tilefold.runtime.options import SimOptions
from tilefold.runtime.sim.exact.patterns import Patterns, Table
from tilefold.runtime.sim.faults import SimulationError

import tilefold
from tests.sim.harness import SimEngine, entry, launch
from tilefold import cute
from tilefold.commands.cli import main
from tilefold.driver.lowering import EXECUTABLE_STAGES

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("softmax", {"M": 2, "N": 256}),
        ("rmsnorm", {"M": 2, "N": 512}),
        ("reduce", {"M": 8}),
        ("hgemm", {"K": 32}),
        ("sgemm", {}),
    ],
)
@pytest.mark.sampled(2)
def test_examples_are_right_at_every_stage(name: str, parameters: dict[str, Any], capsys: Capture) -> None:
    given = [word for key, value in parameters.items() for word in ("-D", f"{key}={value}")]
    if name == "sgemm":
        given = ["-D", "M=64", "-D", "N=64", "-D", "K=16"]
    assert main(["run", str(EXAMPLES / f"{name}.cute"), "--exact", "--stage", "all", *given]) == 0
    assert capsys.readouterr().out.count("in exact arithmetic: ok") >= len(EXECUTABLE_STAGES)


def test_attention_that_rescales_its_sums_equals_softmax(capsys: Capture) -> None:
    options = ["-D", "S=32", "-D", "TILE_Q=32", "-D", "TILE_K=16", "-D", "HEADS=1", "-D", "CAUSAL=1"]
    assert main(["run", str(EXAMPLES / "attention.cute"), "--exact", "--device", "sim", *options]) == 0
    assert "in exact arithmetic: ok" in capsys.readouterr().out


def test_a_number_equals_a_sum_that_numpy_returns_as_an_array() -> None:
    numbers = exact_array(np.array([0.1, 0.2, 0.3], np.float32))
    total = numbers[2] + numbers[1] + numbers[0]
    assert total / 3 == numbers.sum() / 3
    assert total / 3 != numbers[:2].sum() / 3


def test_checks_of_equal_numbers_are_exact() -> None:
    numbers = exact_array(np.array([0.1, 0.2, 0.3], np.float32))
    assert check_results("A / 3 == B", {"A": numbers, "B": numbers / 3})[0].passed
    assert not check_results("A / 3 == B", {"A": numbers, "B": numbers / 4})[0].passed


@cute.kernel
def gemm(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, order: cute.Constexpr):
    """C = A @ B.T, an element for each thread; `order` has the columns in the order in which they are added."""
    t, _, _ = cute.arch.thread_idx()
    for n in range(B.shape[0]):
        total = cute.Float32(0)
        for k in order:
            total = total + A[t, k].to(cute.Float32) * B[n, k].to(cute.Float32)
        C[t, n] = total.to(cute.Float16)


def matrices() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The last column counts for little."""
    a, b = np.random.default_rng(0).normal(size=(2, 32, 8))
    b[:, 7] *= 1e-4
    return a.astype(np.float16), b[:4].astype(np.float16), np.zeros((32, 4), np.float16)


def product(a: Any, b: Any) -> Any:
    return (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16)


@pytest.mark.parametrize("stage", EXECUTABLE_STAGES)
@pytest.mark.parametrize(
    ("order", "right"),
    [((0, 1, 2, 3, 4, 5, 6, 7), True), ((7, 3, 5, 1, 6, 2, 4, 0), True), ((0, 1, 2, 3, 4, 5, 6, 0)[:7], False)],
)
def test_a_sum_in_another_order_is_equal_and_one_that_lacks_a_product_is_not(
    stage: str, order: tuple[int, ...], right: bool
) -> None:
    """The tolerance of f16 hides the product that is lost."""
    a, b, c = matrices()
    run = gemm(a, b, c, order).launch(grid=1, block=32, device="sim", stage=stage, exact=True)
    assert run is not None
    expected = cute.testing.exact(product, a, b)
    assert np.allclose(c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64).T, rtol=1e-3, atol=2e-3)
    assert (run.exact["C"] == expected).all() == right
    assert right or not (run.exact["C"] == expected).any()


@cute.kernel
def online(X: cute.Tensor, Y: cute.Tensor, rescale: cute.Constexpr):
    """The softmax of each row by one pass that rescales its sum, or does not."""
    t, _, _ = cute.arch.thread_idx()
    most, total = X[t, 0], cute.Float32(1)
    for k in range(1, X.shape[1]):
        x = X[t, k]
        new = cute.where(x > most, x, most)
        scale = cute.math.exp2((most - new) * 1.4426950408889634)
        total = (total * scale if rescale else total) + cute.math.exp(x - new)
        most = new
    for k in range(X.shape[1]):
        Y[t, k] = cute.math.exp(X[t, k] - most) / total


@pytest.mark.parametrize("stage", ["cute", "instr"])
@pytest.mark.parametrize("rescale", [True, False])
def test_softmax_in_one_pass(stage: str, rescale: bool) -> None:
    x = np.random.default_rng(1).normal(size=(32, 6)).astype(np.float32)
    y = np.empty_like(x)
    run = online(x, y, rescale).launch(grid=1, block=32, device="sim", stage=stage, exact=True)
    assert run is not None

    def softmax(x: Any) -> Any:
        e = np.exp(x)
        return e / e.sum(axis=1, keepdims=True)

    assert (run.exact["Y"] == cute.testing.exact(softmax, x)).all() == rescale


def test_the_laws_of_functions() -> None:
    numbers = np.random.default_rng(2).normal(size=(2, 64))
    x, y = exact_array(numbers)
    positive = np.abs(x) + 1
    assert (np.exp(x + y) == np.exp(x) * np.exp(y)).all()
    assert (np.exp(x - x) == 1).all()
    assert (np.log(np.exp(x)) == x).all()
    assert (np.log(positive * np.abs(y)) == np.log(positive) + np.log(np.abs(y))).all()
    assert (np.exp2(x * np.float32(np.log2(np.e))) == np.exp(x)).all()
    assert (np.exp(x * np.log(2)) == np.exp2(x)).all()
    assert (np.log2(exact_array([1.0, 2.0, 0.125])) == [0, 1, -3]).all()
    assert (np.tanh(x) == 2 / (1 + np.exp(-2 * x)) - 1).all()
    assert (np.sin(x) ** 2 + np.cos(x) ** 2 == 1).all()
    assert (1 / np.sqrt(positive) == positive**-0.5).all()
    assert (x**3 == x * x * x).all()
    assert (x / y * y == x).all()
    assert (x.mean() == x.sum() / 64).all()
    assert not (np.exp(x) == np.exp(y)).any()
    assert not (np.sin(x) == np.sin(y)).any()


def test_numbers_beside_infinities_are_those_of_floats() -> None:
    x = exact_array([np.inf, -np.inf, np.nan, 0.0, 2.0, -4e9])
    assert (np.exp(x)[[0, 1, 3, 5]] == [np.inf, 0, 1, 0]).all()
    assert (1 / x)[0] == 0
    assert np.isnan(x - x)[:3].all()
    assert np.isnan((x - x)[0].near)
    assert (np.maximum(x, 1)[[1, 3, 4]] == [1, 1, 2]).all()


def test_whole_numbers_are_whole() -> None:
    thirds = exact_array([1.0, 2.0, 4.0, 8.0]) / 3
    assert (np.floor(thirds) == [0, 0, 1, 2]).all()
    assert (np.rint(thirds) == [0, 1, 1, 3]).all()
    assert (np.trunc(-thirds) == [0, 0, -1, -2]).all()
    assert (thirds * 3).astype(np.int64).tolist() == [1, 2, 4, 8]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_each_number_has_one_pattern(dtype: Any) -> None:
    patterns, table = Patterns(np.dtype(dtype)), Table()
    kept = np.array([0.5, 1.0, 1.5, -2.0], dtype)
    patterns.keep(kept)
    values = exact_array([1.0, 0.0, 1.0, -2.0]) / 3
    placed = patterns.place(np.array([one.element for one in values], object), np.array([1 / 3, 0, 1 / 3, -2 / 3]))
    assert placed[0] == placed[2] == dtype(1 / 3)
    assert placed[1] == 0
    assert (patterns.numbers(placed) == values).all()
    near_one = exact_array([1.0]) + exact_array([1.0]) / 2**200
    taken = patterns.place(np.array([near_one[0].element], object), np.array([1.0]))
    assert taken[0] == np.nextafter(dtype(1), dtype(2))
    assert (patterns.numbers(np.array([1.0], dtype)) == 1).all()
    assert (table.numbers(np.array([3, 4])) == [3, 4]).all()


def test_small_types_have_few_patterns() -> None:
    text = entry(
        """%t = gpu.thread_id x
%i = arith.index_cast %t : index to i32
%zero = arith.constant 0 : index
%one = arith.constant 1 : index
%many = arith.constant 4000 : index
%first = arith.sitofp %i : i32 to f16
%half = arith.constant 0.333 : f16
%end = scf.for %k = %zero to %many step %one iter_args(%x = %first) -> (f16) {
  %y = arith.mulf %x, %half : f16
  %z = arith.addf %y, %half : f16
  scf.yield %z : f16
}
"""
    )
    with pytest.raises(SimulationError) as caught:
        launch(text, engine=SimEngine(SimOptions(exact=True), sink=lambda _: None))
    assert caught.value.code == "E3240"
    assert "more different numbers of type float16" in caught.value.message


def test_bisect_compares_numbers(capsys: Capture) -> None:
    assert main(["bisect", str(EXAMPLES / "softmax.cute"), "--exact", "-D", "M=2", "-D", "N=256"]) == 0
    capsys.readouterr()


def test_the_check_of_a_file(tmp_path: Path, capsys: Capture) -> None:
    """The tolerance hides an addend that is too large."""
    path = tmp_path / "k.cute"
    path.write_text("""\
!g = !tile.tensor<f32, gmem, align<16>, "32:1">
gpu.module @kernels {
  tile.kernel @k(%A: !g, %B: !g) threads(32) {
    %t = gpu.thread_id x
    %c = arith.constant 1.0001 : f32
    %a = tile.load %A(%t)
    %b = arith.addf %a, %c : f32
    %d = arith.addf %b, %a : f32
    tile.store %d, %B(%t)
    return
  }
}
run.launch @kernels::@k grid(1) {
  run.arg "A" : !g = "arange(1, 3)"
  run.arg "B" : !g = "poison"
  run.check "B ~= 2 * A + 1" rtol 1.0e-3
}
""")
    for command in ("run", "check"):
        assert main([command, str(path)]) == 0
        assert main([command, str(path), "--exact"]) == 1
        output = capsys.readouterr()
        assert "in exact arithmetic: FAILED, 32 wrong; first B[0] is 3.0001" in output.out + output.err
    run = tilefold.load(path).run(device="sim", exact=True)[0]
    assert not run.passed


def test_the_option_is_a_truth_value() -> None:
    a, b, c = matrices()
    with pytest.raises(TilefoldError, match="exact is 2") as caught:
        gemm(a, b, c, (0,)).launch(grid=1, block=32, device="sim", exact=2)  # pyright: ignore[reportArgumentType]
    assert caught.value.code == "E3105"
