# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""examples/python/gemm_sm120.py: right at every stage, and the machine code that it becomes."""

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tilefold.base.target import Target
from tilefold.compiler.machine.assemble import assemble
from tilefold.compiler.machine.nvdisasm import disassemble

from benchmarks.in_python import example

STAGES = ("cute", "folded", "atoms", "index", "ptx")
KINDS = {16: ml_dtypes.float8_e4m3fn, 32: ml_dtypes.float8_e8m0fnu}


def operands(scaled: int, k: int) -> tuple[list[Any], np.ndarray]:
    """A, B and their scales as the example takes them, and their product."""
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((128, k)).astype(np.float32) for _ in "ab")
    if not scaled:
        halves = [x.astype(np.float16) for x in (a, b)]
        return halves, halves[0].astype(np.float32) @ halves[1].astype(np.float32).T
    scales = [(2.0 ** rng.integers(-2, 2, (128, k // scaled))).astype(KINDS[scaled]) for _ in "ab"]
    module = example("gemm_sm120")
    wide = [
        x.astype(ml_dtypes.float4_e2m1fn).astype(np.float32) * s.astype(np.float32).repeat(scaled, 1)
        for x, s in zip((a, b), scales, strict=True)
    ]
    return [*map(module.packed, (a, b)), *map(module.blocked, scales)], wide[0] @ wide[1].T


def multiply(scaled: int, k: int, stage: str) -> tuple[np.ndarray, np.ndarray]:
    """D of a stage, and the product."""
    (a, b, *scales), product = operands(scaled, k)
    d = np.zeros((128, 128), np.float16)
    example("gemm_sm120").gemm(a, b, d, *scales, scaled=scaled, stages=2, device="sim", stage=stage)
    return d, product


@pytest.mark.parametrize("stage", STAGES[::-1])
@pytest.mark.sampled(1)
def test_every_stage_is_right(stage: str) -> None:
    d, product = multiply(16, 384, stage)
    assert np.allclose(d, product, rtol=2e-3, atol=2e-2)
    assert np.array_equal(d, multiply(16, 384, "instr")[0])


@pytest.mark.parametrize(
    ("scaled", "instruction"),
    [(16, "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"), (32, "OMMA.SF.16864.F32.E2M1.E2M1.E8"), (0, "HMMA.16816.F32")],
)
@pytest.mark.sampled(1)
def test_machine_code(scaled: int, instruction: str) -> None:
    """A step of K takes 4 rows and 8 columns of instructions of a warp: 16 rows and 8 columns each."""
    (a, b, *scales), _ = operands(scaled, 256)
    d = np.zeros((128, 128), np.float16)
    kernel = example("gemm_sm120").gemm_kernel(a, b, d, *(scales or (None, None)), scaled, 2)
    target = Target("sm_120a")
    text = disassemble(assemble(kernel.build(288).ptx(target.arch), target).code)
    steps = 2 if scaled else 4
    assert len(re.findall(rf"\b{re.escape(instruction)} ", text)) == 16 * steps
