# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""examples/attention_sm90.cute: right in its variants, at every stage, and its machine code has what it should."""

from typing import Any

import pytest
from tilefold.base.target import Target
from tilefold.compiler.frontend.diagnostics import ProgramError

from tests.kernels.harness import STAGES, changed_program, check_changed
from tests.ptxas import installed, needs_ptxas
from tests.sass import instructions

NAME = "attention_sm90"
SM90A = Target("sm_90a")
LARGE = {"S": "4096", "D": "128", "HEADS": "32", "BLOCKS": "132"}


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage(stage: str) -> None:
    check_changed(NAME, stage, S=70, HEADS=1, TILE_K=16, CAUSAL=1)


@pytest.mark.parametrize(
    "changed",
    [
        {"D": 96, "T": "bf16", "S": 33}, {"S": 300, "CAUSAL": 1, "BATCH": 2, "HEADS": 1, "GROUP": 1, "BLOCKS": 2},
        {"D": 128, "TILE_K": 32, "CAUSAL": 1}, {"D": 256, "TILE_K": 16, "S": 20}, {"S": 1}, {"S": 128, "TILE_K": 64},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.sampled(1)
def test_variants(changed: dict[str, Any]) -> None:
    check_changed(NAME, "instr", **changed)


@needs_ptxas
@pytest.mark.parametrize("changed", [{"TILE_K": "176"}, {"TILE_K": "128", "CAUSAL": "1"}], ids=str)
@pytest.mark.sampled(0)
def test_machine_code(changed: dict[str, str]) -> None:
    """Registers are handed over and none is spilled; Q K^T is multiplied twice, and P V twice."""
    found = installed()
    assert found is not None
    cubin = found.assemble(changed_program(NAME, **LARGE | changed).ptx(SM90A), SM90A)
    assert "C75" not in cubin.log
    used = cubin.kernels["attention"]
    assert (used.registers, used.spill_stores, used.stack) == (168, 0, 0)
    counts = instructions(cubin.code)["attention"]
    assert counts["HGMMA"] == 2 * (8 + int(changed["TILE_K"]) // 16)
    assert (counts["USETMAXREG"], counts["LDL"], counts["STL"]) == (2, 0, 0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"D": "80"}, "D is 64, 96, 128 or 256"), ({"T": "f32"}, "T is f16 or bf16"),
        ({"TILE_K": "40"}, "a multiple of 16"), ({"TILE_K": "256"}, "do not fit into the registers"),
        ({"D": "256", "TILE_K": "96"}, "do not fit into shared memory"),
    ],
    ids=str,
)  # fmt: skip
def test_parameters_that_are_refused(changed: dict[str, str], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        changed_program(NAME, **changed)
