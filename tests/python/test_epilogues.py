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
STAGES = ("atoms", "instr")


def _columns(count: int) -> Any:
    """A permutation of N by which a thread has 2 * `count` adjacent columns, two of each MMA."""
    return (16, cute.make_layout((2, 4, count), stride=(1, 2 * count, 2)), K)


def _store(part: Any, fragment: Any, mma: Any, t: Any, C: Any) -> None:
    part.store(fragment.load())


def _autovec(part: Any, fragment: Any, mma: Any, t: Any, C: Any) -> None:
    cute.autovec_copy(fragment, part)


def _retiled(part: Any, fragment: Any, mma: Any, t: Any, C: Any) -> None:
    copy = cute.make_tiled_copy_C(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), C.element_type), mma).get_slice(t)
    cute.copy(copy, copy.retile(fragment), copy.partition_D(C))


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


@pytest.mark.parametrize("write", [_store, _autovec, _retiled])
@pytest.mark.parametrize(
    ("dtype", "count", "stores"),
    [
        (np.float32, 2, {"st.global.v4.b32": 2}),
        (np.float16, 2, {"st.global.v2.b32": 2, "cvt.rn.f16x2.f32": 4}),
        (np.float16, 4, {"st.global.v4.b32": 2, "cvt.rn.f16x2.f32": 8}),
    ],
)
def test_columns_of_several_multiplications_are_stored_at_once(
    write: Callable[..., None], dtype: Any, count: int, stores: dict[str, int]
) -> None:
    assert _instructions(dtype, count, write) == stores


@cute.kernel
def turn(A: cute.Tensor, B: cute.Tensor, by_columns: cute.Constexpr[bool]):
    t, _, _ = cute.arch.thread_idx()
    fragment = cute.make_rmem_tensor(cute.make_layout((4, 4), stride=(1, 4) if by_columns else (4, 1)), A.element_type)
    swizzled = cute.make_composed_layout(cute.make_swizzle(1, 2, 3), 0, cute.make_layout((128, 8), stride=(8, 1)))
    shared = cute.make_smem_tensor(swizzled, A.element_type, alignment=1024)
    ours = cute.local_tile(shared, (4, 4), (t, 0))
    cute.autovec_copy(cute.local_tile(A, (4, 4), (t, 0)), fragment)
    fragment.store(fragment.load() + fragment.load())
    cute.autovec_copy(fragment, ours)
    cute.autovec_copy(ours, fragment)
    cute.autovec_copy(fragment, cute.local_tile(B, (4, 4), (t, 0)))


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize(("dtype", "width"), [
    (np.int8, "b32"), (np.int16, "v2.b32"), (np.float16, "v2.b32"), (np.int32, "v4.b32"), (np.float64, "v2.b64")
])  # fmt: skip
def test_the_order_of_registers_narrows_no_access(dtype: Any, width: str, by_columns: bool) -> None:
    a = np.arange(32 * 4 * 8).reshape(-1, 8).astype(np.int8).astype(dtype)
    a[:, 4:] = 0  # a thread turns a tile of 4 x 4, the left half of its rows
    for stage in STAGES:
        b = np.zeros_like(a)
        turn(a, b, by_columns).launch(grid=1, block=32, device="sim", stage=stage)
        assert np.array_equal(b, a + a), stage
    ptx = turn.ptx("sm_80")
    count = 8 if dtype is np.float64 else 4
    accesses = Counter(re.findall(r"^\s+((?:ld|st)\.(?:global|shared)\S*)", ptx, re.MULTILINE))
    kinds = ("ld.global", "st.global", "ld.shared", "st.shared")
    assert accesses == {f"{kind}.{width}": count for kind in kinds}
    assert not re.search(r"(?:shl|or)\.b64", ptx)
