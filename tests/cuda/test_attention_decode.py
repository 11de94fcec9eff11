# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tilefold/kernels/sm90/attention_decode.py on a GPU of compute capability 9.0: right for every depth, rows, masks,
lengths and pages, in every configuration that fits, and the same in every launch.
"""

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from tests.kernels.attention_decode import Problem, example

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("depth", [64, 128, 256])
@pytest.mark.parametrize("shared", [1, 4, 7])
@pytest.mark.parametrize(("rows", "causal"), [(1, False), (3, True), (9, True), (16, False)])
def test_rows_and_shared_heads(depth: int, shared: int, rows: int, causal: bool) -> None:
    dtype = bfloat16 if shared == 4 else np.float16
    Problem(rows, 1111, heads_k=3, shared=shared, batch=2, depth=depth, causal=causal, dtype=dtype).check(device="cuda")


@pytest.mark.parametrize("keys", [1, 15, 63, 64, 65, 127, 128, 129, 1000, 8192])
def test_keys_around_those_of_a_tile(keys: int) -> None:
    Problem(2, keys, heads_k=2, shared=4, depth=128, causal=True).check(device="cuda")


@pytest.mark.parametrize("splits", [1, 2, 4, 8])
@pytest.mark.parametrize(
    "sizes", [(16, 1, 1, 2), (64, 2, 1, 3), (64, 4, 1, 3), (128, 4, 1, 3), (128, 8, 1, 3), (64, 4, 2, 6), (64, 8, 4, 3)]
)
def test_configurations(sizes: tuple[int, ...], splits: int) -> None:
    problem = Problem(5, 777, heads_k=2, shared=8, batch=3, depth=128, causal=True, lengths=(777, 0, 300))
    problem.check(example().Decode(*sizes, splits), "cuda")


@pytest.mark.parametrize("page", [64, 256])
@pytest.mark.parametrize("depth", [64, 128])
def test_pages(page: int, depth: int) -> None:
    keys = example().chosen_decode(3, 2, 1024, 132, 4, depth).keys
    lengths = (1024, 500, 63)
    problem = Problem(1, 1024, heads_k=2, shared=4, batch=3, depth=depth, lengths=lengths, page=max(page, keys))
    problem.check(device="cuda")


@pytest.mark.parametrize("batch", [1, 70, 300])
def test_sequences_of_many_lengths(batch: int) -> None:
    """In one wave and in several ones."""
    random = np.random.default_rng(batch)
    lengths = tuple(int(n) for n in random.integers(0, 1500, batch))
    Problem(1, 1500, heads_k=2, shared=4, batch=batch, depth=128, lengths=lengths).check(device="cuda")


def test_launches_that_overlap_are_bit_equal() -> None:
    torch: Any = pytest.importorskip("torch")
    torch.manual_seed(0)
    Q = torch.randn(8, 1, 32, 128, device="cuda").half()
    K, V = (torch.randn(8, 3000, 8, 128, device="cuda").half() for _ in range(2))
    first, outs = torch.empty_like(Q), [torch.empty_like(Q) for _ in range(200)]
    example().decode_attention(Q, K, V, first, device="cuda")
    for out in outs:
        example().decode_attention(Q, K, V, out, device="cuda")
    assert all(torch.equal(out, first) for out in outs)


def test_heads_before_rows() -> None:
    """Tensors whose heads come before the rows in memory."""
    torch: Any = pytest.importorskip("torch")
    torch.manual_seed(0)
    Q = torch.randn(4, 32, 2, 128, device="cuda").half()
    K, V = (torch.randn(4, 8, 2000, 128, device="cuda").half() for _ in range(2))
    out = torch.empty_like(Q)
    example("attention").attention(*(x.transpose(1, 2) for x in (Q, K, V, out)), device="cuda")
    expected = torch.nn.functional.scaled_dot_product_attention(Q.float(), K.float(), V.float(), enable_gqa=True)
    torch.testing.assert_close(out.float(), expected, rtol=2e-3, atol=2e-3)
