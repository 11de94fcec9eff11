# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of matrix instructions in whole programs: alike at all stages, as the target's tensor cores take them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tilefold
from tilefold.cute.loaded import LoadedProgram

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {"M": 128, "N": 128, "K": 64}
STAGES = ("cute", "folded", "atoms", "index", "instr")


def product(program: LoadedProgram, output: str = "C", **options: Any) -> NDArray[Any]:
    """The output of the only launch of a GEMM."""
    (outcome,) = program.run(**options)
    return np.asarray(outcome.values[output])


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_stages_agree_on_the_sums_of_a_target(target: str) -> None:
    program = tilefold.load(EXAMPLES / "hgemm.cute", SMALL, target=target)
    products = [product(program, device="sim", stage=stage) for stage in STAGES]
    for other in products[1:]:
        assert np.array_equal(other, products[0])


def test_targets_differ_and_the_exact_sum_is_neither() -> None:
    def run(target: str, numerics: str) -> NDArray[Any]:
        program = tilefold.load(EXAMPLES / "hgemm.cute", SMALL, target=target)
        return product(program, device="sim", numerics=numerics)

    ampere, hopper, exact = run("sm_80", "hardware"), run("sm_90a", "hardware"), run("sm_80", "exact-sum")
    assert np.array_equal(exact, run("sm_90a", "exact-sum"))
    assert not np.array_equal(ampere, hopper)
    assert not np.array_equal(ampere, exact)
    np.testing.assert_allclose(ampere.astype(float), exact.astype(float), rtol=2e-2, atol=2e-2)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("name", "output", "parameters"),
    [
        ("hgemm", "C", {"M": 512, "N": 512, "K": 2048}),
        ("gemm", "D", {"M": 256, "N": 512, "K": 1024}),
        ("gemm", "D", {"M": 256, "N": 512, "K": 1024, "AB": "bf16"}),
        ("gemm", "D", {"M": 256, "N": 512, "K": 1024, "AB": "f64"}),
        ("gemm_sm90", "D", {"M": 512, "N": 512, "K": 1024}),
        ("gemm_sm90", "D", {"M": 512, "N": 512, "K": 1024, "AB": "bf16"}),
    ],
    ids=str,
)
def test_a_gpu_has_the_same_bits(name: str, output: str, parameters: dict[str, object]) -> None:
    """GEMMs whose other arithmetic is exact or rounds once."""
    from tilefold.runtime.cuda import CudaEngine

    target = CudaEngine().driver.target
    if name.endswith("sm90") and target.arch != "sm_90a":
        pytest.skip(f"{target} has no wgmma")
    program = tilefold.load(EXAMPLES / f"{name}.cute", parameters, target=target.arch)
    found, simulated = [product(program, output, device=device) for device in ("cuda", "sim")]
    assert found.tobytes() == simulated.tobytes()
