# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiplications by atoms of one thread in Python: several types, integers with and without a sign, and dp4a."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import TilefoldError

from tilefold import cute


@cute.kernel
def multiplied(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, op: cute.Constexpr[Any]):
    """C (M,N) += A (M,K) * B (N,K)."""
    t, _, _ = cute.arch.thread_idx()
    mma = cute.make_tiled_mma(op, (8, 4, 1))
    thread = mma.get_slice(t)
    a, b, c = thread.partition_A(A), thread.partition_B(B), thread.partition_C(C)
    rA, rB, rC = mma.make_fragment_A(a), mma.make_fragment_B(b), mma.make_fragment_C(c)
    for source, fragment in ((a, rA), (b, rB), (c, rC)):
        cute.autovec_copy(source, fragment)
    cute.gemm(mma, rA, rB, rC)
    cute.autovec_copy(rC, c)


def random(dtype: Any, shape: tuple[int, int], seed: int) -> NDArray[Any]:
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return rng.integers(-8, 8, shape).astype(np.float32).astype(dtype)


@pytest.mark.parametrize(
    ("op", "a", "b", "c"),
    [
        (cute.nvgpu.MmaUniversalOp(cute.Float32, cute.Float16), np.float16, np.float16, np.float32),
        (cute.nvgpu.MmaUniversalOp(cute.Float32, cute.BFloat16, cute.Float16), ml_dtypes.bfloat16, np.float16,
         np.float32),
        (cute.nvgpu.MmaUniversalOp(cute.Int32, cute.Int8), np.int8, np.int8, np.int32),
        (cute.nvgpu.MmaUniversalOp(cute.Int32, cute.Uint8, cute.Int8), np.uint8, np.int8, np.int32),
        (cute.nvgpu.MmaUniversalOp(cute.Uint64, cute.Uint32, cute.Int16), np.uint32, np.int16, np.uint64),
        ("UniversalFMA<int16_t>", np.int16, np.int16, np.int16),
        ("SM61_DP4A", np.int8, np.int8, np.int32),
    ],
)  # fmt: skip
def test_a_product_of_several_types(op: Any, a: Any, b: Any, c: Any) -> None:
    A, B, C = random(a, (16, 8), 1), random(b, (8, 8), 2), random(c, (16, 8), 3)
    wide = np.dtype(c) if np.dtype(c).kind in "iu" else np.dtype(np.float64)
    expected = (A.astype(wide) @ B.astype(wide).T + C.astype(wide)).astype(c)
    multiplied(A, B, C, op).launch(grid=1, block=32, device="sim")
    assert np.array_equal(C, expected)


def test_dp4a_is_the_instruction() -> None:
    A, B, C = random(np.int8, (16, 8), 1), random(np.int8, (8, 8), 2), random(np.int32, (16, 8), 3)
    multiplied(A, B, C, "SM61_DP4A").launch(grid=1, block=32, device="sim")
    assert multiplied.ptx("sm_80").count("dp4a.s32.s32") == 2 * 2 * 2


@cute.kernel
def of_elements(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor):
    """C (M,N) += A (M) * B (N), by the atom of the elements."""
    rA, rB, rC = (cute.make_fragment_like(x) for x in (A, B, C))
    for source, fragment in ((A, rA), (B, rB), (C, rC)):
        cute.autovec_copy(source, fragment)
    cute.gemm(None, rA, rB, rC)
    cute.autovec_copy(rC, C)


@pytest.mark.parametrize("a", [np.int8, np.uint8, np.uint16])
@pytest.mark.parametrize("c", [np.int32, np.uint32])
def test_without_an_atom_the_elements_say_which_integers_are_unsigned(a: Any, c: Any) -> None:
    A, B = (random(dtype, (1, 4), seed)[0] for seed, dtype in enumerate((a, np.int8)))
    C = random(c, (4, 4), 2)
    expected = A.astype(c)[:, None] * B.astype(c)[None, :] + C
    of_elements(A, B, C).launch(grid=1, block=1, device="sim")
    assert np.array_equal(C, expected)


@pytest.mark.parametrize(
    ("op", "said"),
    [
        (cute.nvgpu.MmaUniversalOp(cute.Float16, cute.Float32), "f32 does not widen to f16"),
        (cute.nvgpu.MmaUniversalOp(cute.Int4), "UniversalFMA does not support Int4"),
    ],
)
def test_types_that_cannot_be_multiplied(op: Any, said: str) -> None:
    A, B, C = random(np.int8, (16, 8), 1), random(np.int8, (8, 8), 2), random(np.int32, (16, 8), 3)
    with pytest.raises(TilefoldError, match=said) as caught:
        multiplied(A, B, C, op).launch(grid=1, block=32, device="sim")
    assert caught.value.code == "E0302"
