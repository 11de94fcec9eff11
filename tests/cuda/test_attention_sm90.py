# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tilefold/kernels/sm90/attention.py on a GPU of compute capability 9.0, in the configurations that it chooses."""

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from tests.kernels.attention_sm90 import Problem, example

pytestmark = pytest.mark.gpu
PACKED = (300, 0, 1, 1000, 127, 128, 129), (1000, 40, 65, 0, 256, 128, 8)


def chosen(depth: int, causal: bool) -> dict[str, Any]:
    """The configuration of the example, but for the mask."""
    config = example().chosen_config(depth, causal)
    return {name: getattr(config, name) for name in ("keys", "consumers", "stages", "row_stages")}


@pytest.mark.parametrize(
    ("depth", "causal"), [(64, False), (64, True), (96, True), (128, False), (128, True), (256, False), (256, True)]
)
def test_heads_of_each_size(depth: int, causal: bool) -> None:
    dtype = bfloat16 if depth > 64 and causal else np.float16
    problem = Problem(700, 1025, heads=8, batch=3, depth=depth, shared=2, causal=causal, dtype=dtype)
    problem.check(chosen(depth, causal), 132, launches=3, device="cuda")


@pytest.mark.parametrize("rows", [120, 127, 129, 136])
def test_lengths_around_a_tile(rows: int) -> None:
    Problem(rows, 3 * rows + 1, 5, depth=128, causal=True).check(chosen(128, True), 132, device="cuda")


@pytest.mark.parametrize("causal", [False, True])
def test_packed_sequences(causal: bool) -> None:
    problem = Problem(heads=6, depth=128, shared=3, causal=causal, lengths=PACKED)
    problem.check(chosen(128, causal), 132, launches=2, device="cuda")


def test_a_thousand_launches_are_bit_equal() -> None:
    """Tiles are drawn in another order each time, by launches that overlap."""
    torch = pytest.importorskip("torch")
    module = example()
    torch.manual_seed(0)
    Q, K, V = (torch.randn(2, 1000, 16, 128, device="cuda").half() for _ in range(3))
    first, out, counter = torch.empty_like(Q), torch.empty_like(Q), Q.new_zeros(1).int()
    config = module.chosen_config(128, True)
    module.attention(Q, K, V, first, config, counter=counter)
    for _ in range(1000):
        module.attention(Q, K, V, out, config, counter=counter)
    assert torch.equal(out, first)
    assert int(counter) == 0
