# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every MMA atom executed once: at all stages, against NumPy, and on a GPU against both."""

from collections.abc import Callable

import numpy as np
import pytest
from tilefold.layout.atoms.mma_table import mma_atom
from tilefold.runtime.engine import LaunchConfig

from tests.kernels.harness import MAX_BYTES, STAGES, simulate
from tests.kernels.mma_probes import ATOMS, expected, probe
from tilefold.arguments import prepare


@pytest.mark.parametrize("name", ATOMS)
def test_every_stage_gives_the_product(name: str) -> None:
    program, launch = probe(name)
    found = [simulate(program, launch, stage) for stage in STAGES]
    result, allowed = expected(mma_atom(name), found[0].after)
    for ran in found:
        assert np.array_equal(ran.array("D"), found[0].array("D"))
    assert (np.abs(found[0].array("D").astype(result.dtype) - result) <= allowed).all()


def test_mnemonics() -> None:
    """One instruction a probe at stage `instr`, by the mnemonic in the atom's table."""
    for name in ("SM70_8x8x4_F32F16F16F32_NT", "SM80_16x8x64_S32S4U4S32_TN_SATURATE", "SM90_16x8x8_F64F64F64F64_TN"):
        program, launch = probe(name)
        counts = simulate(program, launch, "instr").result.counters.instructions
        assert counts[mma_atom(name).ptx].warps == 1


@pytest.mark.gpu
@pytest.mark.parametrize("name", ATOMS)
def test_a_gpu_is_within_the_bound(name: str, record_property: Callable[[str, object], None]) -> None:
    """Random data; the largest distance from the simulator is recorded, in parts of what is allowed."""
    from tilefold.runtime.cuda import CudaEngine

    engine, atom = CudaEngine(), mma_atom(name)
    target = engine.driver.target
    if not target.supports(atom.min_sm, 10 * atom.min_ptx[0] + atom.min_ptx[1]):
        pytest.skip(f"{target} has no {name}")
    worst = 0.0
    for seed in range(4):
        program, launch = probe(name, seed, target)
        arguments = prepare(launch, {}, seed=0, max_bytes=MAX_BYTES)
        given = arguments.launchable()
        config = LaunchConfig(launch.grid, launch.block)
        engine.launch(program.artifact(launch.kernel, target), config, given)
        values = arguments.logical(given)
        simulated = simulate(program, launch, "instr").array("D")
        got = np.asarray(values["D"])
        result, allowed = expected(atom, values)
        assert (np.abs(got.astype(result.dtype) - result) <= allowed).all()
        distance = np.abs(got.astype(np.float64) - simulated.astype(np.float64))
        assert (distance <= allowed).all()
        if result.dtype.kind == "f":
            worst = max(worst, float((distance / allowed).max()))
        else:
            assert np.array_equal(got, simulated)
    record_property("distance", worst)
    print(f"{name}: {worst:.3g} of the allowed distance")
