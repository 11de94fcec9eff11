# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One multiplication by the tensor core: at every stage, and as machine code."""

import numpy as np
import pytest
from tilefold.base.target import Target
from tilefold.compiler.machine.assemble import assemble

from tests.kernels.harness import STAGES, program_of, simulate
from tests.sass import instructions
from tests.tcgen05.kernels import PROGRAM
from tilefold.driver.launches import Changes, read_launches

TARGET = Target("sm_100a")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("stage", STAGES)
def test_numbers_at_every_stage(stage: str) -> None:
    program = program_of(PROGRAM)
    (launch,) = read_launches(program.module, program.source, Changes())
    after = simulate(program, launch, stage).after
    a, b = after["A"].astype(np.float64), after["B"].astype(np.float64)
    assert np.allclose(after["D"], a @ b.T, atol=1e-4)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("target", [TARGET, Target("sm_103a"), Target("sm_100f")], ids=str)
def test_machine_code(target: Target) -> None:
    program = program_of(PROGRAM)
    counts = instructions(assemble(program.ptx(target), target).code)["multiply"]
    assert counts["UTCHMMA"] == 1
    assert counts["LDTM"] == 16  # the loop is unrolled
    assert counts["UTCBAR"] == 1


def test_another_target_is_refused_before_llvm() -> None:
    with pytest.raises(Exception, match=r"tcgen05.alloc.* is an instruction of sm_10x only, not of sm_120a"):
        program_of(PROGRAM).ptx(Target("sm_120a"))
