# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is written from accumulators: two numbers are packed at once, and stores are as wide as memory allows."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilefold import cute

K = 16
STAGES = ("cute", "atoms", "instr")


def _columns(count: int) -> Any:
    """A permutation of N by which a thread has 2 * `count` adjacent columns, two of each MMA."""
    return (16, cute.make_layout((2, 4, count), stride=(1, 2 * count, 2)), K)


def _autovec(part: Any, fragment: Any, mma: Any, t: Any, C: Any) -> None:
    cute.autovec_copy(fragment, part)


@cute.kernel
def multiply(
    A: cute.Tensor,
    B: cute.Tensor,
    C: cute.Tensor,
    repetitions: cute.Int32,
    count: cute.Constexpr[int],
    write: cute.Constexpr[Any],
    function: cute.Constexpr[Any],
):
    t, _, _ = cute.arch.thread_idx()
    op = cute.nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, K))
    mma = cute.make_tiled_mma(op, (1, 1, 1), _columns(count))
    thr = mma.get_slice(t)
    tCgA, tCgB, tCgC = thr.partition_A(A), thr.partition_B(B), thr.partition_C(C)
    rA, rB, acc = thr.make_fragment_A(tCgA), thr.make_fragment_B(tCgB), thr.make_fragment_C(tCgC)
    acc.fill(0.0)
    rA.store(tCgA.load())
    rB.store(tCgB.load())
    for _ in cute.range(repetitions):
        cute.gemm(mma, rA, rB, acc)
    result = cute.make_rmem_tensor_like(acc, C.element_type)
    result.store(function(acc.load()).to(C.element_type))
    write(tCgC, result, mma, t, C)


def _same(x: Any) -> Any:
    return x


def _doubled(x: Any) -> Any:
    return x * 2.0


def _shifted(x: Any) -> Any:
    return x * 2.0 + 1.0


def _instructions(dtype: Any, count: int, write: Callable[..., None], function: Any = _same) -> Counter[str]:
    """Multiplies small integers at several stages; the stores, conversions and shifts of the PTX."""
    random = np.random.default_rng(0)
    a, b = (random.integers(-4, 5, (n, K)).astype(np.float16) for n in (16, 8 * count))
    product = function(2 * a.astype(np.float32) @ b.astype(np.float32).T)
    for stage in STAGES:
        c = np.zeros((16, 8 * count), dtype)
        multiply(a, b, c, 2, count, write, function).launch(grid=1, block=32, device="sim", stage=stage)
        assert np.array_equal(c, product.astype(dtype)), stage
    return Counter(re.findall(r"^\s+((?:st|cvt\.rn|shl\.b64|or\.b64|prmt)\S*)", multiply.ptx("sm_80"), re.MULTILINE))


def test_pairs_of_f32_are_stored_without_shifts() -> None:
    assert _instructions(np.float32, 1, _autovec) == {"st.global.v2.b32": 2}


@pytest.mark.parametrize("function", [_same, _doubled, _shifted])
def test_the_sums_of_a_loop_are_rounded_in_pairs(function: Any) -> None:
    """LLVM rounds each alone, on the path of the loop, where it can: the other path brings zeros."""
    assert _instructions(np.float16, 1, _autovec, function) == {"cvt.rn.f16x2.f32": 2, "st.global.b32": 2}
