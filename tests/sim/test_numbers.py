# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers that go wrong, each beside its corrected twin, in the text and in Python."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.runtime.options import SimOptions

from tests.sim.harness import SimEngine, entry, fault, launch, unwritten
from tilefold import cute
from tilefold.commands.cli import main

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@cute.kernel
def computed(A: cute.Tensor, C: cute.Tensor, case: cute.Constexpr):
    """A case of numbers that go wrong, or its twin."""
    t, _, _ = cute.arch.thread_idx()
    x, n = A[t], cute.Int32(t)
    if case == "log of a negative number":
        C[t] = cute.math.log(x - 3.5)
    if case == "log of positive numbers":
        C[t] = cute.math.log(x + 3)
    if case == "infinity less infinity":
        C[t] = x * float("inf") - x * float("inf")
    if case == "a maximum that starts from infinity":
        C[t] = cute.math.max(cute.Float32(float("-inf")), x)
    if case == "exp of large numbers":
        C[t] = cute.math.exp(x * 100)
    if case == "exp of small numbers":
        C[t] = cute.math.exp(x * -100)
    if case == "division by zero":
        C[t] = 1 / (x - A[0])
    if case == "division":
        C[t] = 1 / (x - A[0] + 1)
    if case == "beyond f16":
        C[t] = (x * 70000).to(cute.Float16).to(cute.Float32)
    if case == "within bf16":
        C[t] = (x * 70000).to(cute.BFloat16).to(cute.Float32)
    if case == "an index of 32 bits":
        wide = n * (1 << 27)
        C[cute.where(wide == 1, wide, n)] = x
    if case == "an index of 64 bits":
        wide = cute.Int64(t) * (1 << 27)
        C[cute.where(wide == 1, wide, cute.Int64(t))] = x
    if case == "a hash":
        C[cute.Int32(((n * 747796405 + 1) ^ 5) & 0) + n] = x
    if case == "an integer of 26 digits":
        C[t] = (n + (1 << 25) + 1).to(cute.Float32)
    if case == "an integer of 24 digits":
        C[t] = (n + (1 << 23) + 1).to(cute.Float32)
    if case == "beyond i32":
        C[t] = (x * 1e12).to(cute.Int32).to(cute.Float32)
    if case == "a fraction that is dropped":
        C[t] = (x * 1.7).to(cute.Int32).to(cute.Float32)
    if case == "bits that are dropped":
        C[t] = (n * 70000).to(cute.Int16).to(cute.Float32)
    if case == "bits that fit":
        C[t] = (n * 700).to(cute.Int16).to(cute.Float32)
    if case == "digits that cancel":
        C[t] = (x * 3e7 + x) - x * 3e7
    if case == "equal digits":
        C[t] = (x - A[0]) + (x * 2 - x * 2)
    if case == "an exponent":
        C[t] = cute.math.exp2(((x * 3e7 + x) - x * 3e7) * 0.125)


CASES = [
    ("log of a negative number", "E3251", "from -2.5 it produces nan"),
    ("log of positive numbers", "", ""),
    ("infinity less infinity", "E3251", "from inf, inf it produces nan"),
    ("a maximum that starts from infinity", "", ""),
    ("exp of large numbers", "E3252", "from 100 it produces inf"),
    ("exp of small numbers", "", ""),
    ("division by zero", "E3252", "thread (0,0,0): produces infinity from finite operands: from 1, 0 it produces inf"),
    ("division", "", ""),
    ("beyond f16", "E3252", "from 70000 it produces inf"),
    ("within bf16", "", ""),
    ("an index of 32 bits", "E3253", "thread (16,0,0): wraps an index at 32 bits: from 16, "),
    ("an index of 64 bits", "", ""),
    ("a hash", "", ""),
    ("an integer of 26 digits", "E3254", "from 33554433 it produces 33554432"),
    ("an integer of 24 digits", "", ""),
    ("beyond i32", "E3254", "is beyond the range of 32 bits: from 9.99999996e+11 it produces 2147483647"),
    ("a fraction that is dropped", "", ""),
    ("bits that are dropped", "E3254", "thread (1,0,0): does not fit in 16 bits: from 70000 it produces 4464"),
    ("bits that fit", "", ""),
    ("digits that cancel", "E3255", "cancels at least 18 of the 24 digits"),
    ("equal digits", "", ""),
    ("an exponent", "", ""),
]


@pytest.mark.parametrize("stage", ["cute", "instr"])
@pytest.mark.parametrize(("case", "code", "text"), CASES)
def test_python(case: str, code: str, text: str, stage: str) -> None:
    a, c = np.arange(1, 33, dtype=np.float32), np.zeros(32, np.float32)
    call = computed(a, c, case)
    report = call.check(grid=1, block=32, stages=[stage], numbers=True)
    assert {str(one.code) for one in report.faults} == ({code} if code else set())
    if not code:
        call.launch(grid=1, block=32, device="sim", stage=stage, numbers=True)
        return
    with pytest.raises(TilefoldError) as caught:
        call.launch(grid=1, block=32, device="sim", stage=stage, numbers=True)
    assert caught.value.code == code
    assert text in str(caught.value)
    assert f"{Path(__file__).name}:" in str(caught.value)
    call.launch(grid=1, block=32, device="sim", stage=stage)


def test_an_argument_with_nan() -> None:
    """Its padding may be NaN, and what has no values yet."""
    engine = SimEngine(SimOptions(numbers=True), sink=lambda _: None)
    text, pointer = entry("", "%A: !ptx.ptr<global> align 16"), np.full(4, np.nan, np.float32)
    error = fault(text, "E3251", engine=engine, A=pointer)
    assert "argument A holds NaN at (0) before the launch, and 4 in all" in error.message
    launch(text, engine=engine, A=unwritten(pointer))
    a, c = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    a[7] = np.nan
    report = computed(a, c, "division").check(grid=1, block=32, stages=["instr"], numbers=True)
    assert [str(one.code) for one in report.faults] == ["E3251"]
    assert "argument A holds NaN at (7)" in str(report)


@cute.kernel
def product(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor):
    """C = A @ B.T by one matrix instruction that accumulates in f16."""
    t, _, _ = cute.arch.thread_idx()
    mma = cute.make_tiled_mma(cute.make_mma_atom("SM80_16x8x16_F16F16F16F16_TN"))
    mine = mma.get_slice(t)
    a, b, c = mine.partition_A(A), mine.partition_B(B), mine.partition_C(C)
    left, right, total = mma.make_fragment_A(a), mma.make_fragment_B(b), mma.make_fragment_C(c)
    cute.autovec_copy(a, left)
    cute.autovec_copy(b, right)
    total.fill(0.0)
    cute.gemm(mma, total, left, right, total)
    cute.autovec_copy(total, c)


@pytest.mark.parametrize("stage", ["cute", "instr"])
def test_a_matrix_instruction(stage: str) -> None:
    a, b, c = np.full((16, 16), 200, np.float16), np.full((8, 16), 200, np.float16), np.empty((16, 8), np.float16)
    options: dict[str, Any] = {"grid": 1, "block": 32, "device": "sim", "stage": stage, "numbers": True}
    with pytest.raises(TilefoldError) as caught:
        product(a, b, c).launch(**options)
    assert caught.value.code == "E3252"
    assert "produces infinity from operands without one: |A| up to 200, |B| up to 200, |C| up to 0" in str(caught.value)
    product(a, b / np.float16(16), c).launch(**options)
    assert (c == 40000).all()


@pytest.mark.parametrize("name", ["softmax", "rmsnorm", "reduce", "attention", "hgemm", "transpose", "ragged_copy"])
@pytest.mark.sampled(2)
def test_examples_have_none(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(EXAMPLES / f"{name}.cute"), "--numbers"]) in (0, 3), capsys.readouterr().out
