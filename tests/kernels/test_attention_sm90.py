# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tilefold/kernels/sm90/attention.py: right for heads of every size, lengths, masks and packed sequences, at every
stage and however its warps and copies are ordered, and its machine code has the instructions that it should have.
"""

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16
from tilefold.base.target import Target

from tests.kernels.attention_sm90 import Problem, example
from tests.kernels.harness import STAGES
from tests.ptxas import installed, needs_ptxas
from tests.sass import instructions

SM90A = Target("sm_90a")
TWO: dict[str, Any] = {"keys": 16, "consumers": 2}
THREE: dict[str, Any] = {"keys": 32, "consumers": 3, "stages": 3}
ONE_STAGE: dict[str, Any] = {**TWO, "row_stages": 1}
PACKED = (40, 0, 1, 130), (24, 16, 0, 25)
"""Lengths of sequences, of rows and of keys: an empty one, one without keys, fewer keys than rows."""


@pytest.mark.parametrize(
    ("problem", "config"),
    [
        (Problem(136, 40, causal=True), TWO),
        (Problem(136, heads=2, shared=2, causal=True), TWO),
        (Problem(65, 33, depth=96, dtype=bfloat16, causal=True), ONE_STAGE),
        (Problem(1), TWO),
        (Problem(64, 24, depth=128, dtype=bfloat16), ONE_STAGE),
        (Problem(8, 24, depth=256, causal=True), ONE_STAGE),
        (Problem(129, 17), TWO),
        (Problem(200, 64, heads=2, batch=2), THREE),
    ],
    ids=str,
)
@pytest.mark.sampled(2)
def test_heads_of_each_size_and_masks(problem: Problem, config: dict[str, Any]) -> None:
    problem.check(config, launches=2 if config is TWO else 1)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.sampled(1)
def test_packed_sequences(causal: bool) -> None:
    blocks = 9 if causal else 2  # more than there are tiles, too
    Problem(heads=2, shared=2, causal=causal, lengths=PACKED).check({**TWO, "group": 1}, blocks)


@pytest.mark.parametrize(("rows", "consumers"), [(0, 3), (64, 2), (77, 2), (192, 3), (512, 2), (4096, 3)])
def test_rows_that_fill_few_tiles_take_smaller_ones(rows: int, consumers: int) -> None:
    assert example().chosen_config(64, False, rows).consumers == consumers


@pytest.mark.sampled(0)
def test_the_first_and_the_last_stage_give_the_same_bytes() -> None:
    """test_attention_sm90_text.py has all stages, of a smaller kernel."""
    problem = Problem(causal=True, lengths=((3, 80), (20, 40)))
    results = {problem.check(ONE_STAGE, 1, stage=stage).tobytes() for stage in (STAGES[0], STAGES[-1])}
    assert len(results) == 1


def ptx_of(depth: int, **config: Any) -> str:
    """The PTX for 32 heads of 4096 rows."""
    module = example()
    made = module.Config(**config)
    Q, K, V, out = (np.empty((1, 4096, 32, depth), np.float16) for _ in range(4))
    return module.attention_kernel(Q, K, V, out, 1.0, np.zeros(1, np.int32), made).build(made.threads).ptx("sm_90a")


@needs_ptxas
def test_machine_code() -> None:
    """Registers are handed over and none is spilled; the loop over keys multiplies twice, Q by K and P by V."""
    found = installed()
    assert found is not None
    cubin = found.assemble(ptx_of(128, keys=128, consumers=2), SM90A)
    used = cubin.kernels["attention_kernel"]
    assert (used.registers, used.spill_stores, used.stack) == (168, 0, 0)
    counts = instructions(cubin.code)["attention_kernel"]
    # the first tile, the loop, and the last values with and without the next rows
    assert counts["HGMMA"] == 8 * (1 + 2 + 2 + 1)
    assert counts["USETMAXREG"] == 2
    assert counts["LDL"] == counts["STL"] == 0
