# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""examples/python/gemm_sm120.py: right at every stage, and the machine code that it becomes."""

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target
from tilefold.compiler.machine.assemble import assemble
from tilefold.compiler.machine.nvdisasm import disassemble

from benchmarks.in_python import example
from tilefold import cute
from tilefold.cute.nvgpu.warp import Field, MmaMXF4NVF4Op

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


@pytest.mark.parametrize("of_atoms", [False, True])
def test_scales_as_fields(of_atoms: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fields of a tiled MMA, or of an atom for each of its executions, say which registers have the scales."""
    multiplied = cute.gemm

    def by_fields(mma: Any, d: Any, a: Any, b: Any, c: Any) -> None:
        (a, scales_a), (b, scales_b) = a, b
        if not of_atoms:
            mma.set(Field.SFA, scales_a.iterator)
            mma.set(Field.SFB, scales_b.iterator)
            multiplied(mma, d, a, b, c)
            return
        atom = cute.make_mma_atom(mma.op)
        for m in range(cute.size(a, mode=[1])):
            for n in range(cute.size(b, mode=[1])):
                atom.set(Field.SFA, scales_a[None, m].iterator)
                atom.set(Field.SFB, scales_b[None, n].iterator)
                multiplied(atom, d[None, m, n], a[None, m], b[None, n], c[None, m, n])

    expected, product = multiply(16, 128, "instr")
    monkeypatch.setattr(cute, "gemm", by_fields)
    d, _ = multiply(16, 128, "instr")
    assert np.array_equal(d, expected)
    assert np.allclose(d, product, rtol=2e-3, atol=2e-2)


def test_fields_that_an_atom_with_scales_lacks() -> None:
    atom = cute.make_mma_atom(MmaMXF4NVF4Op(cute.Float4E2M1FN, cute.Float32, cute.Float8E4M3FN))
    with pytest.raises(TilefoldError, match=r"no field Field\.ACCUMULATE"):
        atom.set(Field.ACCUMULATE, True)


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
