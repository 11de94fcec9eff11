# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""examples/gemm_sm90.cute: right in its variants, at every stage, and its machine code has the loop that it should."""

import re
from typing import Any

import pytest
from tilefold.base.target import Target
from tilefold.compiler.frontend.diagnostics import ProgramError

from tests.kernels.harness import STAGES, changed_program, check_changed
from tests.ptxas import installed, needs_ptxas
from tests.sass import disassemble

NAME = "gemm_sm90"
SM90A = Target("sm_90a")
LARGE = {"M": "4096", "N": "4096", "K": "4096", "BLOCKS": "132", "TILE_N": "256", "STAGES": "4"}


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage(stage: str) -> None:
    check_changed(NAME, stage, M=136, N=136, K=72, BLOCKS=1)


@pytest.mark.parametrize(
    "changed",
    [
        {"A_MAJOR": "M", "B_MAJOR": "N"}, {"B_MAJOR": "N", "AB": "bf16"}, {"TILE_M": 256, "STAGES": 2},
        {"TILE_N": 256, "STAGES": 4, "BLOCKS": 1}, {"M": 1, "N": 8, "K": 8}, {"GROUP": 1, "BLOCKS": 3},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.sampled(1)
def test_variants(changed: dict[str, Any]) -> None:
    check_changed(NAME, "instr", **changed)


@needs_ptxas
@pytest.mark.parametrize(("changed", "multiplications"), [({}, 4), ({"TILE_M": "256", "TILE_N": "128"}, 8)], ids=str)
@pytest.mark.sampled(1)
def test_machine_code(changed: dict[str, str], multiplications: int) -> None:
    """The loop waits, multiplies and moves nothing; registers are handed over, and none is spilled."""
    found = installed()
    assert found is not None
    cubin = found.assemble(changed_program(NAME, **LARGE | changed).ptx(SM90A), SM90A)
    used = cubin.kernels["gemm"]
    assert (used.registers, used.spill_stores, used.stack) == (168, 0, 0)
    text = disassemble(cubin.code)
    assert text.count("UTMALDG.2D") == text.count("USETMAXREG") == 2
    at = [match.start() for match in re.finditer("HGMMA", text)]
    assert len(at) == multiplications
    loop = text[text.rindex("SYNCS.PHASECHK", 0, at[0]) : at[-1]]
    assert not re.search(r"\b(?:MOV|IMAD\.MOV\S*|CS2R|SHFL|LDS|STS|R2UR|LDL)\b", loop)
    assert text.index("WARPGROUP.ARRIVE") < at[0] < at[-1] < text.index("WARPGROUP.DEPBAR.LE gsb0, 0x1")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"TILE_N": "192"}, "TILE_N is 128 or 256"), ({"TILE_M": "256", "TILE_N": "256"}, "does not fit the registers"),
        ({"K": "100"}, "multiples of 16 bytes"), ({"AB": "f32"}, "AB is f16 or bf16"),
    ],
    ids=str,
)  # fmt: skip
def test_parameters_that_are_refused(changed: dict[str, str], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        changed_program(NAME, **changed)
