# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiplications into tensor memory in the words of `tile`: of each kind, by one block and by a pair, with A in shared
and in tensor memory, at every stage; their machine code, and their mistakes.
"""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tilefold.base.errors import Code
from tilefold.base.target import Target
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.machine.assemble import assemble
from tilefold.runtime.sim.faults import SimulationError

from tests.kernels.harness import STAGES, assert_checks_hold, program_of, simulate
from tests.sass import instructions
from tests.tcgen05.scaled_kernel import Scaled
from tests.tcgen05.tile_kernels import Tile
from tilefold.driver.launches import Changes, read_launches

FP8 = Tile(family="F8F6F4", cxx="float_e4m3_t", element="f8E4M3FN", bits=8)
KINDS = {
    "f16": Tile(),
    "bf16": Tile(cxx="bfloat16_t", element="bf16", n=128),
    "f16 into f16": Tile(d_cxx="half_t", d="f16", load="32dp32b16x_16b", tolerance="rtol 1.0e-2 atol 1.0e-1"),
    "tf32": Tile(family="TF32", cxx="tfloat32_t", element="f32", bits=32, tolerance="rtol 2.0e-2 atol 4.0e-2"),
    "fp8": FP8,
    "s8": Tile(
        family="S8", cxx="int8_t", element="i8", bits=8, d_cxx="int32_t", d="i32", fill="integers(-9, 9, seed={})",
        tolerance="",
    ),
    "64 rows": Tile(m=64, load="16dp256b4x"),
    "a pair": Tile(blocks=2, m=256),
    "64 rows of each block": Tile(blocks=2, m=128),
    "A in tensor memory": Tile(source="TS"),
    "fp8 in tensor memory": Tile(family="F8F6F4", cxx="float_e4m3_t", element="f8E4M3FN", bits=8, source="TS"),
}  # fmt: skip


def run(text: str, stage: str) -> None:
    program = program_of(text)
    (launch,) = read_launches(program.module, program.source, Changes())
    assert_checks_hold(launch, simulate(program, launch, stage).after)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_at_every_stage(kind: str, stage: str) -> None:
    run(KINDS[kind].text, stage)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["f16", "a pair"])
def test_machine_code(kind: str) -> None:
    target = Target("sm_100a")
    counts = instructions(assemble(program_of(KINDS[kind].text).ptx(target), target).code)["multiply"]
    assert counts["UTCHMMA"] == 4
    assert counts["LDTM"] == 4
    assert counts["UTCBAR"] == 1


MISTAKES = {
    "issued by a whole warp": ("scf.if %issues {", "scf.if %leads {", Code.SIM_TENSOR_ISSUE, "tcgen05.mma"),
    "not freed": ("    tile.tmem_dealloc %x\n", "", Code.SIM_TENSOR_COLUMNS, "column"),
    "freed by one warp": (
        "    tile.tmem_dealloc %x\n",
        "    %n32 = arith.constant 32 : index\n    %low = arith.cmpi ult, %t, %n32 : index\n"
        "    scf.if %low {\n      tile.tmem_dealloc %x\n    }\n",
        Code.SIM_TENSOR_COLUMNS, "without warp 1",
    ),
    "no wait for the commit": (
        "    ptx.mbarrier.wait %bar, %zero\n", "", Code.SIM_TENSOR_BUSY, "of tensor memory",
    ),
    "no fence of the async proxy": ("    ptx.fence.proxy.async\n", "", Code.SIM_PROXY, "proxy"),
    "D is added to": (" accumulate %fresh", "", Code.SIM_UNINITIALISED, "tensor memory"),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_found_in_the_text_as_written(name: str) -> None:
    old, new, code, said = MISTAKES[name]
    text = KINDS["f16"].text
    assert text.count(old) == 1
    with pytest.raises(SimulationError, match=said) as caught:
        run(text.replace(old, new), "cute")
    assert caught.value.code == code.id, str(caught.value)


def test_another_target_is_refused() -> None:
    with pytest.raises(Exception, match=r"needs sm_100 and PTX 8\.6; sm_90a is older"):
        program_of(FP8.text).ptx(Target("sm_90a"))


FP4 = ("float_e2m1_t", "f4E2M1FN", 4)
KINDS_WITH_SCALES = {
    "mxf8": Scaled("MXF8F6F4", "float_e4m3_t", "f8E4M3FN", 8, "float_ue8m0_t", 32, 32),
    "mxf4": Scaled("MXF4", *FP4, "float_ue8m0_t", 32, 64, "32,"),
    "nvf4": Scaled("MXF4", *FP4, "float_ue4m3_t", 16, 64, "16,", "integers(40, 90, seed={})"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("kind", KINDS_WITH_SCALES)
def test_scale_factors(kind: str, stage: str) -> None:
    given = KINDS_WITH_SCALES[kind]
    program = program_of(given.text)
    (launch,) = read_launches(program.module, program.source, Changes())
    after = simulate(program, launch, stage).after
    a, b = (np.asarray(after[name]).astype(np.float64) * _factors(given, after[f"SF{name}"]) for name in "AB")
    assert np.allclose(after["D"], a @ b.T, atol=1e-4)


def _factors(given: Scaled, codes: Any) -> Any:
    """The factors (128, K) of a block of codes, of which a row has four."""
    rows, values = np.ogrid[:128, : 4 * given.vector]
    found = np.asarray(codes).astype(np.uint8)[16 * (rows % 32) + 4 * (rows // 32) + values // given.vector]
    type = ml_dtypes.float8_e8m0fnu if given.scale == "float_ue8m0_t" else ml_dtypes.float8_e4m3fn
    return found.view(type).astype(np.float64)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("kind", "name", "count"), [("mxf8", "UTCQMMA", 4), ("nvf4", "UTCOMMA", 1)])
def test_machine_code_of_scale_factors(kind: str, name: str, count: int) -> None:
    target = Target("sm_100a")
    counts = instructions(assemble(program_of(KINDS_WITH_SCALES[kind].text).ptx(target), target).code)["multiply"]
    assert sum(number for found, number in counts.items() if found.startswith(name)) == count
    assert counts["UTCCP"] == 2


def test_scale_factors_elsewhere_are_refused() -> None:
    text = KINDS_WITH_SCALES["mxf8"].text
    assert text.count("((((262144,4)") == 2
    text = text.replace("((((262144,4)", "((((262144,8)", 1)
    with pytest.raises(ProgramError, match=r"scales of A of .* are in tensor memory at"):
        program_of(text)
