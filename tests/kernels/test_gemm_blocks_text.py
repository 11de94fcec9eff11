# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""examples/gemm_fp8_scaled.cute and gemm_grouped.cute: right in their variants, at every stage, and their machine code
has the instructions of their twins in Python.
"""

from typing import Any

import numpy as np
import pytest
from tilefold.base.target import Target
from tilefold.compiler.frontend.diagnostics import ProgramError

from tests.kernels.harness import STAGES, changed_program, check_changed, simulate
from tests.ptxas import installed, needs_ptxas
from tests.sass import instructions
from tilefold.driver.launches import Changes, read_launches

SM90A = Target("sm_90a")
SCALED, GROUPED = "gemm_fp8_scaled", "gemm_grouped"


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    ("name", "changed"),
    [(SCALED, {"M": 136, "N": 136, "K": 128}), (GROUPED, {"GROUPS": 2, "M": 128, "N": 136, "K": 72, "MASKED": 0})],
    ids=[SCALED, GROUPED],
)
@pytest.mark.sampled(3)
def test_every_stage(name: str, changed: dict[str, Any], stage: str) -> None:
    check_changed(name, stage, BLOCKS=1, **changed)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        (SCALED, {"TILE_N": 192, "STAGES": 2}), (SCALED, {"OUT": "bf16", "M": 1, "N": 8, "K": 640}),
        (SCALED, {"M": 300, "N": 456, "TILE_N": 192, "BLOCKS": 3, "GROUP": 1}),
        (GROUPED, {"TILE_N": 256, "STAGES": 4, "BLOCKS": 3}), (GROUPED, {"AB": "bf16", "M": 72, "N": 72, "K": 8}),
        (GROUPED, {"MASKED": 0, "AB": "bf16", "GROUPS": 1}),
        (GROUPED, {"GROUPS": 5, "M": 130, "BLOCKS": 1, "GROUP": 1}),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.sampled(1)
def test_variants(name: str, changed: dict[str, Any]) -> None:
    check_changed(name, "instr", **changed)


def _run(name: str, fills: dict[str, str], **changed: str) -> dict[str, Any]:
    """The arguments of a variant after it has run with some of them filled by other expressions."""
    found = changed_program(name, **changed)
    (launch,) = read_launches(found.module, found.source, Changes(fills=fills))
    return simulate(found, launch, "instr").after


def test_scales_multiply_their_blocks_alone() -> None:
    """Sums of ones whose scales differ by row, column and block of K are exact in f32."""
    fills = {"A": "ones()", "B": "ones()", "scale_a": "arange(1, 1)", "scale_b": "arange(1, 2)"}
    after = _run(SCALED, fills, M="136", N="264", K="256", OUT="bf16", TILE_N="192")
    a, b = (np.asarray(after[name], np.float64) for name in ("scale_a", "scale_b"))
    expected = 128 * (a @ b.T)[:, np.arange(264) // 128]
    np.testing.assert_allclose(np.asarray(after["D"], np.float64), expected, rtol=2**-8)


def test_groups_of_any_sizes_follow_each_other() -> None:
    """Each begins at the next multiple of 128 rows; rows behind the last tile are not written."""
    after = _run(GROUPED, {"rows": "arange(0, 55)"}, GROUPS="4", M="128", N="72", K="72", MASKED="0", BLOCKS="3")
    A, B, D = (np.asarray(after[name], np.float64) for name in ("A", "B", "D"))
    assert np.asarray(after["rows"]).tolist() == [0, 55, 110, 165]
    for first, g in ((0, 1), (128, 2), (256, 3)):
        part = slice(first, first + 55 * g)
        np.testing.assert_allclose(D[part, :, 0], A[part, :, 0] @ B[:, :, g].T, rtol=2e-3, atol=2e-3)


@needs_ptxas
@pytest.mark.parametrize(
    ("name", "changed", "multiplications", "sums"),
    [
        (SCALED, {"M": "4096", "N": "7168", "K": "2048", "TILE_N": "192", "STAGES": "4"}, "QGMMA", 96),
        (GROUPED, {"GROUPS": "6", "M": "1024", "N": "4096", "K": "7168", "TILE_N": "256", "STAGES": "4"}, "HGMMA", 0),
        (SCALED, {"M": "4096", "N": "4096", "K": "4096", "STAGES": "6"}, "QGMMA", 64),
    ],
    ids=["scaled-192", "grouped", "scaled-128"],
)
@pytest.mark.sampled(2)
def test_machine_code(name: str, changed: dict[str, str], multiplications: str, sums: int) -> None:
    """One iteration multiplies 128 bytes of K; each product is scaled once; nothing is spilled."""
    found = installed()
    assert found is not None
    cubin = found.assemble(changed_program(name, BLOCKS="132", **changed).ptx(SM90A), SM90A)
    assert "C75" not in cubin.log
    used, counts = cubin.kernels["gemm"], instructions(cubin.code)["gemm"]
    assert (used.registers, used.spill_stores, used.stack) == (168, 0, 0)
    assert (counts[multiplications], counts["FFMA"]) == (4, sums)
    assert (counts["UTMALDG"], counts["USETMAXREG"], counts["LDL"], counts["STL"]) == (2, 2, 0, 0)


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        (SCALED, {"K": "192"}, "K is a multiple of 128"), (SCALED, {"TILE_N": "256"}, "TILE_N is 128 or 192"),
        (SCALED, {"OUT": "f32"}, "OUT is f16 or bf16"), (SCALED, {"N": "100"}, "multiples of 16 bytes"),
        (GROUPED, {"MASKED": "0", "M": "200"}, "M = 200 is not a multiple"),
        (GROUPED, {"K": "100"}, "multiples of 16 bytes"), (GROUPED, {"AB": "f32"}, "AB is f16 or bf16"),
        (GROUPED, {"STAGES": "1"}, "one group and two stages"),
    ],
    ids=str,
)  # fmt: skip
def test_parameters_that_are_refused(name: str, changed: dict[str, str], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        changed_program(name, **changed)
