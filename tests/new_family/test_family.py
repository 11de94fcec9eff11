# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A package brings a memory and instructions: its kernel runs at every stage, without a change to tilefold."""

import numpy as np
import pytest

from tests.kernels.harness import STAGES, program_of, simulate
from tests.new_family.kernels import PROGRAM
from tilefold.driver.launches import Changes, read_launches


@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage != "ptx"])
def test_numbers_at_every_stage(stage: str) -> None:
    program = program_of(PROGRAM)
    (launch,) = read_launches(program.module, program.source, Changes())
    after = simulate(program, launch, stage).after
    a, b, c, d = (after[name].T.astype(np.float64) for name in "ABCD")
    assert np.allclose(d, c + 2 * a @ b.T, atol=1e-3)
