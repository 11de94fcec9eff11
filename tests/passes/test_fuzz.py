# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels compute the same at every stage. `python -m tests.passes.fuzz` runs as many as one likes, and
`python -m tests.passes.fuzz_integers` as many integer programs.
"""

import pytest

from tests.passes import fuzz_integers, integers
from tests.passes.fuzz import attempt
from tests.passes.generate import generate

BATCHES = range(6)
IN_BATCH = 6


@pytest.mark.parametrize("batch", BATCHES)
def test_random_kernels(batch: int) -> None:
    seeds = range(batch * IN_BATCH, (batch + 1) * IN_BATCH)
    refused = [code for seed in seeds if (code := attempt(seed, generate(seed))) is not None]
    assert len(refused) < IN_BATCH, f"the compiler refuses every kernel: {refused}"


@pytest.mark.parametrize("seed", range(12))
def test_random_integer_programs(seed: int) -> None:
    problem = integers.generate(seed)
    assert problem is not None
    fuzz_integers.attempt(problem)
