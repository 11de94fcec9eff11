# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every MMA atom executed once: at all stages, against NumPy, and on a GPU against both."""

from collections.abc import Callable

import numpy as np
import pytest
from tilefold.compiler.machine.assemble import assemble
from tilefold.compiler.reports.kernel_report import count_instructions
from tilefold.layout.atoms.mma_table import mma_atom
from tilefold.layout.atoms.ptx_text import mma_mnemonic

from tests.kernels.harness import STAGES, simulate
from tests.kernels.mma_probes import ATOMS, NEWEST, expected, is_supported, measure, probe


@pytest.mark.parametrize("name", ATOMS)
@pytest.mark.sampled(15)
def test_every_stage_gives_the_product(name: str) -> None:
    program, launch = probe(name)
    found = [simulate(program, launch, stage) for stage in STAGES]
    result, allowed = expected(mma_atom(name), found[0].after)
    for ran in found:
        assert np.array_equal(ran.array("D"), found[0].array("D"))
    assert (np.abs(found[0].array("D").astype(result.dtype) - result) <= allowed).all()


OF_EACH_KIND = [
    "UniversalFMA<half_t>",
    "UniversalFMA<double>",
    "UniversalFMA<bfloat16_t>",
    "UniversalFMA<float,half_t>",
    "UniversalFMA<half_t,float_e4m3_t,float_e5m2_t,half_t>",
    "UniversalFMA<uint32_t>",
    "UniversalFMA<int,uint8_t,int8_t,int16_t>",
    "UniversalFMA<int16_t,uint8_t>",
    "SM61_DP4A",
    "SM70_8x8x4_F16F16F16F16_NT",
    "SM70_8x8x4_F32F16F16F32_TT",
    "SM75_8x8x16_S32S8S8S32_TN",
    "SM80_16x8x16_F16F16F16F16_TN",
    "SM80_16x8x16_F32BF16BF16F32_TN",
    "SM80_16x8x4_F32TF32TF32F32_TN",
    "SM80_8x8x4_F64F64F64F64_TN",
    "SM80_16x8x32_S32U8S8S32_TN_SATURATE",
    "SM80_16x8x64_S32S4U4S32_TN",
    "SM80_16x8x256_S32U1U1S32_TN_XORPOPC",
    "SM89_16x8x32_F16E4M3E5M2F16_TN",
    "SM90_16x8x16_F64F64F64F64_TN",
]


@pytest.mark.parametrize("name", OF_EACH_KIND)
def test_the_instruction_in_ptx(name: str) -> None:
    """One instruction a probe, by the mnemonic in the atom's table, on registers that never leave them."""
    program, launch = probe(name)
    ptx, instruction = program.ptx(NEWEST), mma_mnemonic(mma_atom(name))
    assert count_instructions(ptx)["mma_probe"][instruction] == 1
    assert assemble(ptx, NEWEST).kernels["mma_probe"].stack == 0
    if not name.startswith("UniversalFMA"):  # which is arithmetic
        counts = simulate(program, launch, "instr").result.counters.instructions
        assert counts[instruction].warps == 1


EXTREMES = [
    ("SM80_16x8x32_S32S8S8S32_TN", "full(127)", "full(127)", "full(2147483647)"),
    ("SM80_16x8x32_S32S8S8S32_TN_SATURATE", "full(127)", "full(127)", "full(2147483647)"),
    ("SM80_16x8x32_S32S8U8S32_TN_SATURATE", "full(-128)", "full(-1)", "full(-2147483648)"),
    ("SM80_16x8x64_S32S4S4S32_TN", "full(-8)", "full(7)", "full(-2147483648)"),
    ("SM80_16x8x64_S32U4U4S32_TN_SATURATE", "full(15)", "full(15)", "full(2147483647)"),
    ("SM80_16x8x256_S32U1U1S32_TN_XORPOPC", "full(1)", "full(0)", "full(2147483647)"),
]
"""Sums that wrap or are clamped."""


@pytest.mark.parametrize(("name", "a", "b", "c"), EXTREMES)
def test_extreme_sums(name: str, a: str, b: str, c: str) -> None:
    program, launch = probe(name, fills=(a, b, c))
    ran = simulate(program, launch, "instr")
    result, _ = expected(mma_atom(name), ran.after)
    assert np.array_equal(ran.array("D"), result)
    limit = -(2**31) if c.startswith("full(-") else 2**31 - 1
    assert (result == limit).all() == ("SATURATE" in name)


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "a", "b", "c"), EXTREMES)
def test_extreme_sums_on_a_gpu(name: str, a: str, b: str, c: str) -> None:
    from tilefold.runtime.cuda import CudaEngine

    assert measure(name, CudaEngine(), (0,), (a, b, c)).of_allowed == 0


@pytest.mark.gpu
@pytest.mark.parametrize("name", ATOMS)
def test_a_gpu_is_within_the_bound(name: str, record_property: Callable[[str, object], None]) -> None:
    """Random data; the largest distance from the simulator is recorded."""
    from tilefold.runtime.cuda import CudaEngine

    engine = CudaEngine()
    if not is_supported(name, engine.driver.target):
        pytest.skip(f"{engine.driver.target} has no {name}")
    found = measure(name, engine)
    record_property("of_allowed", found.of_allowed)
    record_property("ulps", found.ulps)
    print(f"{name}: {found.of_allowed:.3g} of the allowed distance, {found.ulps:.3g} ulps")
