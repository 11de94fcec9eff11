# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions as text that the simulator executes without a function: arithmetic, and accesses with an order."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute

INTEGERS: Sequence[tuple[str, Callable[[Any, Any], Any]]] = (
    ("add.s32", lambda a, b: a + b),
    ("sub.u32", lambda a, b: a - b),
    ("mul.lo.s32", lambda a, b: a * b),
    ("max.s32", np.maximum),
    ("min.u32", lambda a, b: np.minimum(a.view(np.uint32), b.view(np.uint32)).view(np.int32)),
    ("xor.b32", lambda a, b: a ^ b),
    ("shr.s32", lambda a, b: a >> np.minimum(b.view(np.uint32), 31).astype(np.int32)),
    ("shl.b32", lambda a, b: np.where(b.view(np.uint32) < 32, a << (b & 31), 0)),
)  # fmt: skip
FLOATS: Sequence[tuple[str, Callable[[Any, Any], Any]]] = (
    ("add.f32", np.add),
    ("div.rn.f32", np.divide),
    ("min.f32", np.fmin),
    ("max.f32", np.fmax),
)


@cute.kernel
def computing(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, name: cute.Constexpr, letter: cute.Constexpr) -> None:
    t, _, _ = cute.arch.thread_idx()
    texts = f"{name} $0, $1, $2;", f"={letter},{letter},{letter}"
    C[t] = cute.arch.inline_ptx(*texts, A[t], B[t], results=C.element_type)


@pytest.mark.parametrize(("name", "expected"), INTEGERS)
def test_integers(name: str, expected: Any) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-(1 << 31), 1 << 31, 32).astype(np.int32) for _ in range(2))
    b[:24] = np.arange(24) * 2 - 4
    c = np.zeros(32, np.int32)
    computing(a, b, c, name, "r").launch(grid=1, block=32, device="sim")
    with np.errstate(over="ignore"):
        assert c.tolist() == expected(a, b).tolist()


@pytest.mark.parametrize(("name", "expected"), FLOATS)
def test_floats(name: str, expected: Any) -> None:
    a, b = (np.random.default_rng(seed).standard_normal(32).astype(np.float32) for seed in (1, 2))
    a[:2] = b[1:3] = np.nan
    c = np.zeros(32, np.float32)
    computing(a, b, c, name, "f").launch(grid=1, block=32, device="sim")
    np.testing.assert_array_equal(c, expected(a, b))


@cute.kernel
def accessing(A: cute.Tensor, B: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    at = A.iterator.toint()
    B[t] = cute.arch.inline_ptx("atom.add.release.gpu.u32 $0, [$1], $2;", "=r,l,r", at, t, results=cute.Int32)
    cute.arch.inline_ptx("red.relaxed.gpu.global.max.s32 [$0], $1;", "l,r", A.ptr(1), t)
    if t == 0:
        cute.arch.inline_ptx("st.global.release.gpu.b32 [$0], $1;", "l,r", A.ptr(2), cute.Int32(7))
        B[32] = cute.arch.inline_ptx("ld.global.acquire.gpu.b32 $0, [$1];", "=r,l", A.ptr(2), results=cute.Int32)


def test_accesses_with_an_order() -> None:
    a, b = np.zeros(3, np.int32), np.zeros(33, np.int32)
    accessing(a, b).launch(grid=1, block=32, device="sim")
    assert a.tolist() == [496, 31, 7]
    assert b[32] == 7
    assert b[:32].tolist() == [n * (n - 1) // 2 for n in range(32)]
    ptx = accessing(a, b).build(32).ptx("sm_90a")
    for word in ("atom.release.gpu.global.add.u32", "red.relaxed.gpu.global.max.s32", "st.release.gpu.global.b32"):
        assert word in ptx


@cute.kernel(cluster=2)
def storing(A: cute.Tensor) -> None:
    t, rank = cute.arch.thread_idx()[0], cute.arch.block_idx_in_cluster()
    memory, bar = cute.arch.alloc_smem(cute.Float32, 2), cute.arch.alloc_smem(cute.Int64, 1)
    if t == 0:
        cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_arrive_and_expect_tx(bar, 8)
    cute.arch.mbarrier_init_fence()
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    if t < 2:
        mapped = "mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r"
        at = cute.arch.inline_ptx(*mapped, (memory + rank).toint(), t, results=cute.Int32)
        peer = cute.arch.inline_ptx(*mapped, bar.toint(), t, results=cute.Int32)
        text = "st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [$0], $1, [$2];"
        cute.arch.inline_ptx(text, "r,f,r", at, (rank + 10).to(cute.Float32), peer)
    cute.arch.mbarrier_wait(bar, 0)
    if t < 2:
        A[2 * rank + t] = (memory + t).load()
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


def test_stores_to_peers() -> None:
    a = np.zeros(4, np.float32)
    storing(a).launch(grid=2, block=32, device="sim")
    assert a.tolist() == [10, 11, 10, 11]
    ptx = storing(a).build(32).ptx("sm_90a")
    assert "mapa.shared::cluster.u32" in ptx
    assert "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32" in ptx


@pytest.mark.parametrize("name", ["add.sat.s32", "add.cc.s32", "lop3.b32"])
def test_other_texts_are_refused(name: str) -> None:
    a = np.zeros(32, np.int32)
    with pytest.raises(TilefoldError, match="does not execute text"):
        computing(a, a, a, name, "r").launch(grid=1, block=32, device="sim")
