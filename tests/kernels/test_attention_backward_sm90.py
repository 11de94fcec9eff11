# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tilefold/kernels/sm90/attention_backward.py: gradients for masks, shared heads and packed sequences against NumPy in
f64, without a fault that `check` finds; and its machine code.
"""

from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from ml_dtypes import bfloat16
from tilefold.base.target import Target

from tests.kernels.attention_reference import gradients, reference, weights
from tests.ptxas import installed, needs_ptxas
from tests.sass import instructions
from tilefold.kernels.replay import Launch
from tilefold.kernels.sm90 import attentions
from tilefold.kernels.sm90.attention_backward import attention_backward_kernel
from tilefold.kernels.sm90.attention_backward_rows import THREADS, Backward, chosen_backward

SM90A = Target("sm_90a")
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Problem:
    """Sequences by their rows and keys, packed if there are several; heads of Q to the one head of K; D."""

    rows: tuple[int, ...] = (20,)
    keys: tuple[int, ...] = (40,)
    heads: int = 1
    depth: int = 128
    causal: bool = False
    dtype: Any = np.float16

    def arrays(self) -> tuple[list[Array], Any, Any]:
        """dO, Q, K and V, and the rows and keys of each sequence."""
        random, ends, ends_k = np.random.default_rng(0), np.cumsum(self.rows), np.cumsum(self.keys)
        shapes = [(1, ends[-1], self.heads, self.depth)] * 2 + [(1, ends_k[-1], 1, self.depth)] * 2
        given = [random.standard_normal(shape, np.float32).astype(self.dtype) for shape in shapes]
        parts, parts_k = (
            [slice(b - n, b) for b, n in zip(e, c, strict=True)] for e, c in ((ends, self.rows), (ends_k, self.keys))
        )
        return given, parts, parts_k

    def check(self, monkeypatch: pytest.MonkeyPatch, config: Backward, is_checked: bool = False) -> None:
        """Compares the gradients, which begin as NaN."""
        chosen = replace(config, causal=self.causal)
        monkeypatch.setattr(attentions, "chosen_backward", Mock(return_value=chosen))
        (do, q, k, v), parts, parts_k = self.arrays()
        out, lse = np.empty(q.shape), np.empty((1, self.heads, q.shape[1]), np.float32)
        wanted = [np.empty(x.shape) for x in (q, k, v)]
        for i, j in zip(parts, parts_k, strict=True):
            out[:, i], lse[:, :, i] = (
                reference(q[:, i], k[:, j], v[:, j], self.causal),
                logarithms(q[:, i], k[:, j], self.causal),
            )
            each = gradients(q[:, i], k[:, j], v[:, j], do[:, i], self.causal)
            wanted[0][:, i], wanted[1][:, j], wanted[2][:, j] = each
        starts = [None, None]
        if len(self.rows) > 1:
            starts = [np.cumsum([0, *n]).astype(np.int32) for n in (self.rows, self.keys)]
        places = tuple(np.full_like(x, np.nan) for x in (q, k, v))
        given = places, do, q, k, v, out.astype(self.dtype), lse, self.causal, self.depth**-0.5, *starts
        for launch in attentions.backward(*given):
            if isinstance(launch, Launch):
                if is_checked:
                    report = launch.kernel(*launch.args).check(launch.grid, launch.block)
                    assert report.passed, str(report)
                launch.run(q, "sim")
        error = 2e-2 if self.dtype is bfloat16 else 4e-3
        for found, right in zip(places, wanted, strict=True):
            np.testing.assert_allclose(found.astype(np.float64), right, rtol=error, atol=error)


def logarithms(q: Array, k: Array, causal: bool) -> Array:
    """Those to base 2 of the rows' sums of exponentials, as the forward kernel leaves them: (batch, heads, rows)."""
    q64, k64, power = weights(q, k, causal)
    scores = q64 @ np.swapaxes(k64, 2, 3) / np.sqrt(q.shape[3])
    highest = power.argmax(-1)[..., None]
    top, share = (np.take_along_axis(x, highest, -1)[..., 0] for x in (scores, power))
    return np.where(share > 0, top / np.log(2) - np.log2(np.where(share > 0, share, 1)), 0)


@pytest.mark.parametrize(
    ("problem", "config"),
    [
        (Problem(heads=2, causal=True), Backward(16)),
        (Problem((20, 0, 3, 17), (5, 16, 0, 24), causal=True, dtype=bfloat16), Backward(16)),
        (Problem((40,), (150,)), Backward(32, keeps_single=False)),
        (Problem((40,), (24,), causal=True), Backward(16)),  # rows without a key
        (Problem((150,), (20,), depth=64, causal=True), chosen_backward(64, True)),
    ],
    ids=str,
)
@pytest.mark.sampled(1)
def test_masks_heads_and_packed_sequences(problem: Problem, config: Backward, monkeypatch: pytest.MonkeyPatch) -> None:
    problem.check(monkeypatch, config)


def test_launches_have_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    Problem((20,), (24,), causal=True).check(monkeypatch, Backward(16), is_checked=True)


@needs_ptxas
@pytest.mark.parametrize(("depth", "causal"), [(128, False), (128, True), (64, True)])
@pytest.mark.sampled(1)
def test_machine_code(depth: int, causal: bool) -> None:
    """Multiplications run at the same time: the assembler puts no wait behind each of them, for which it has few enough
    registers; what does not fit are some addresses.
    """
    config = chosen_backward(depth, causal)
    q, tiles = np.empty((1, 4096, 32, depth), np.float16), config.tiles(4096, None)
    statistics, sums = (np.empty((32, tiles, n), np.float32) for n in (2 * config.rows, config.rows * depth))
    call = attention_backward_kernel(q, q, q, q, statistics, sums, q, q, 1.0, config)
    found = installed()
    assert found is not None
    cubin = found.assemble(call.build(THREADS).ptx("sm_90a"), SM90A)
    counts = instructions(cubin.code)["attention_backward_kernel"]
    steps, of_dq, sums_of = depth // 16, 8, config.rows // 16
    assert counts["HGMMA"] == 3 * steps + of_dq + 2 * sums_of
    assert counts["WARPGROUP"] < 16
    assert cubin.kernels["attention_backward_kernel"].spill_stores < 128
