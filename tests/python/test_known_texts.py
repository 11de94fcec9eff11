# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions as text that the simulator executes without a function: arithmetic, and accesses with an order."""

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tests.kernels.harness import STAGES
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
MORE_INTEGERS: Sequence[tuple[str, Callable[[Any, Any], Any]]] = (
    ("lop3.b32 $0, $1, $2, 0x0f0f0f0f, 0xe8;", lambda a, b: (a & b) | (a & 0x0F0F0F0F) | (b & 0x0F0F0F0F)),
    ("mul.hi.s32 $0, $1, $2;", lambda a, b: (a.astype(np.int64) * b >> 32).astype(np.int32)),
    ("{ .reg .b32 t; not.b32 t, $1; popc.b32 $0, t; }", lambda a, b: np.bitwise_count(~a.view(np.uint32))),
    ("mov.b32 $0, 0f3F800000;", lambda a, b: np.full(32, 0x3F800000)),
    (
        """{   // the greater of two unsigned numbers, at most 1000
            .reg .pred p, q; .reg .u32 t;
            setp.hi.u32 p, $1, $2; selp.b32 t, $1, $2, p;
            setp.lo.u32 q, t, 1000U; and.pred q, p, q; /* of the first */
            selp.b32 $0, t, 0xFFFFFFFF, q;
        }""",
        lambda a, b: np.where((a.view(np.uint32) > b.view(np.uint32)) & (a.view(np.uint32) < 1000), a, -1),
    ),
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
def texts(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, text: cute.Constexpr, letter: cute.Constexpr) -> None:
    t, _, _ = cute.arch.thread_idx()
    C[t] = cute.arch.inline_ptx(text, f"={letter},{letter},{letter}", A[t], B[t], results=C.element_type)


@pytest.mark.parametrize(("text", "expected"), MORE_INTEGERS)
def test_texts_of_several_instructions(text: str, expected: Any) -> None:
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-(1 << 31), 1 << 31, 32).astype(np.int32) for _ in range(2))
    a[:16] = rng.integers(0, 1200, 16)
    b[:8] = 5
    c = np.zeros(32, np.int32)
    texts(a, b, c, text, "r").launch(grid=1, block=32, device="sim")
    assert c.tolist() == expected(a, b).tolist()


def test_floats_in_texts_of_several_instructions() -> None:
    a, b = (np.random.default_rng(seed).standard_normal(32).astype(np.float32) for seed in (1, 2))
    a[:2] = b[1:3] = np.nan
    c = np.zeros(32, np.float32)
    text = """{ .reg .pred p; .reg .f32 t; setp.ltu.f32 p, $1, $2; fma.rn.f32 t, $1, $2, 0fBF800000;
        ex2.approx.ftz.f32 t, t; selp.f32 $0, t, $1, p; }"""
    texts(a, b, c, text, "f").launch(grid=1, block=32, device="sim")
    exact = np.exp2((a.astype(np.float64) * b - 1).astype(np.float32).astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(c, np.where(~(a >= b), exact, a), rtol=3e-7)  # ex2.approx rounds inexactly


@cute.kernel
def voting(C: cute.Tensor, mode: cute.Constexpr) -> None:
    t, _, _ = cute.arch.thread_idx()
    if t >= 16:
        text = f"{{ .reg .pred p, q; setp.eq.b32 p, $1, 20; vote.sync.{mode}.pred q, p, $2; selp.b32 $0, 1, 0, q; }}"
        if mode == "ballot":
            text = "{ .reg .pred p; setp.gt.s32 p, $1, 20; vote.sync.ballot.b32 $0, p, $2; }"
        C[t] = cute.arch.inline_ptx(text, "=r,r,r", t, cute.Int32(-65536), results=cute.Int32)


@pytest.mark.parametrize(("mode", "expected"), [("any", 1), ("all", 0), ("uni", 0), ("ballot", -(1 << 21))])
def test_votes_in_texts(mode: str, expected: int) -> None:
    c = np.full(32, 7, np.int32)
    voting(c, mode).launch(grid=1, block=32, device="sim")
    assert c.tolist() == [7] * 16 + [expected] * 16


def test_a_vote_of_lanes_that_do_not_take_part() -> None:
    @cute.kernel
    def voting(C: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        if t < 16:
            text = "{ .reg .pred p; setp.ne.s32 p, $1, 0; vote.sync.ballot.b32 $0, p, 0xffffffff; }"
            C[t] = cute.arch.inline_ptx(text, "=r,r", t, results=cute.Int32)

    with pytest.raises(TilefoldError, match=r"E3208.*vote.sync: its mask names lanes that do not execute it"):
        voting(np.zeros(16, np.int32)).launch(grid=1, block=32, device="sim")


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


@cute.kernel
def vectors(A: cute.Tensor, B: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    four = [(t + k).to(cute.Uint32) for k in range(4)]
    cute.arch.inline_ptx("st.global.wt.v4.u32 [$0], {$1, $2, $3, $4};", "l,r,r,r,r", A.ptr(4 * t), *four, results=())
    cute.arch.inline_ptx("fence.acq_rel.gpu;", "", results=())
    text = "ld.global.nc.L1::no_allocate.v2.b32 {$0, $1}, [$2];"
    x, y = cute.arch.inline_ptx(text, "=r,=r,l", B.ptr(2 * t), results=(cute.Uint32, cute.Uint32))
    cute.arch.inline_ptx("st.global.cs.u32 [$0], $1;", "l,r", A.ptr(128 + t), x * y, results=())


def test_accesses_with_cache_hints_and_fences() -> None:
    a, b = np.zeros(160, np.uint32), np.arange(64, dtype=np.uint32)
    vectors(a, b).launch(grid=1, block=32, device="sim")
    assert (a[:128].reshape(32, 4) == np.arange(32)[:, None] + np.arange(4)).all()
    assert (a[128:] == b[::2] * b[1::2]).all()
    ptx = vectors(a, b).build(32).ptx("sm_90a")
    for word in ("st.global.wt.v4.b32", "ld.global.nc.L1::no_allocate.v2.b32", "st.global.cs.b32", "fence.acq_rel.gpu"):
        assert word in ptx


@cute.kernel
def waiting(A: cute.Tensor, B: cute.Tensor) -> None:
    """The first warp writes words of four, and the second waits until none of a word's elements is 0."""
    t, _, _ = cute.arch.thread_idx()
    at = A.ptr(4 * (t % 32))
    if t < 32:
        four = [(t + k).to(cute.Uint32) for k in range(1, 5)]
        store = "st.relaxed.gpu.global.v4.u32 [$0], { $1, $2, $3, $4 };"
        cute.arch.inline_ptx(store, "l,r,r,r,r", at, *four, results=())
    else:
        found = cute.Uint32(0)
        while found == 0:
            load = "ld.relaxed.gpu.global.v4.u32 {$0, $1, $2, $3}, [$4];"
            x, y, z, w = cute.arch.inline_ptx(load, "=r,=r,=r,=r,l", at, results=(cute.Uint32,) * 4)
            found = x * y * z * w
        cute.arch.inline_ptx("st.weak.global.u32 [$0], $1;", "l,r", B.ptr(t - 32), found, results=())


def test_vectors_of_accesses_with_an_order() -> None:
    a, b = np.zeros(128, np.uint32), np.zeros(32, np.uint32)
    for seed in (0, 1, 2):
        a[:] = b[:] = 0
        waiting(a, b).launch(grid=1, block=64, device="sim", seed=seed)
        n = np.arange(1, 33)
        assert (a.reshape(32, 4) == n[:, None] + np.arange(4)).all()
        assert (b == n * (n + 1) * (n + 2) * (n + 3)).all()
    ptx = waiting(a, b).build(64).ptx("sm_90a")
    assert "ld.relaxed.gpu.global.v4.b32" in ptx
    assert "st.relaxed.gpu.global.v4.b32" in ptx


@cute.kernel
def half_a_word(A: cute.Tensor) -> None:
    text = "st.release.gpu.global.v2.u32 [$0], {$1, $2};"
    one = cute.Uint32(1)
    cute.arch.inline_ptx(text, "l,r,r", A.ptr(1), one, one, results=())


def test_a_vector_with_an_order_is_aligned_as_a_whole() -> None:
    with pytest.raises(TilefoldError, match="not a multiple of the 8 bytes") as caught:
        half_a_word(np.zeros(4, np.uint32)).launch(grid=1, block=1, device="sim")
    assert caught.value.code == "E3203"


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


@cute.kernel(cluster=2)
def storing_four(A: cute.Tensor) -> None:
    t, rank = cute.arch.thread_idx()[0], cute.arch.block_idx_in_cluster()
    memory, bar = cute.arch.alloc_smem(cute.Int32, 4, 16), cute.arch.alloc_smem(cute.Int64, 1)
    if t == 0:
        cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_arrive_and_expect_tx(bar, 16)
    cute.arch.mbarrier_init_fence()
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    if t == 0:
        at, peer = (cute.arch.map_dsmem_ptr(place, 1 - rank).toint() for place in (memory, bar))
        moves = "".join(f"mov.s32 v.{member}, {{$r{2 + i}}};\n" for i, member in enumerate("xyzw"))
        store = "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.s32 [{$r0}], v, [{$r1}];"
        values = [cute.Int32(10 * rank + i) for i in range(4)]
        cute.arch.inline_ptx(f"{{\n.reg .v4 .s32 v;\n{moves}{store}\n}}\n", read_only_args=[at, peer, *values])
    cute.arch.mbarrier_wait(bar, 0)
    if t < 4:
        A[4 * rank + t] = (memory + t).load()
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


def test_a_vector_is_stored_to_a_peer() -> None:
    a = np.zeros(8, np.int32)
    storing_four(a).launch(grid=2, block=32, device="sim")
    assert a.tolist() == [10, 11, 12, 13, 0, 1, 2, 3]


@cute.kernel
def adding(A: cute.Tensor, B: cute.Tensor, form: cute.Constexpr[str]) -> None:
    t = cute.arch.thread_idx()[0]
    memory, bar = cute.arch.alloc_smem(cute.Float32, 32, 16), cute.arch.alloc_smem(cute.Int64, 1)
    if t == 0:
        cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_arrive_and_expect_tx(bar, 64)
        load = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [$1], [$0], $3, [$2];"
        source = A.iterator.toint() if form == "numbers" else A.iterator
        cute.arch.inline_ptx(load, "l,r,r,r", source, memory.toint(), bar.toint(), cute.Int32(64))
    cute.arch.sync_threads()
    cute.arch.mbarrier_wait(bar, 0)
    if t >= 16:
        (memory + t).store(t.to(cute.Float32))
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    if t == 0:
        target, count = B.iterator.toint() if form == "numbers" else B.iterator, cute.Int32(128)
        way = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32"
        if form == "stored":
            way = "cp.async.bulk.global.shared::cta.bulk_group"
        if form == "hinted":
            way, hint = way.replace(".add", ".L2::cache_hint.add"), cute.Int64(0x14F0000000000000)
            cute.arch.inline_ptx(f"{way} [$0], [$1], $2, $3;", "l,r,r,l", target, memory.toint(), count, hint)
        else:
            cute.arch.inline_ptx(f"{way} [$0], [$1], $2;", "l,r,r", target, memory.toint(), count)
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0)


@pytest.mark.parametrize("form", ["pointers", "numbers", "stored", "hinted"])
def test_bulk_copies(form: str) -> None:
    a, b = np.arange(100, 132, dtype=np.float32), np.arange(32, dtype=np.float32) * 1000
    ptx = adding(a, b, form).build(32).ptx("sm_90a")
    assert "cp.async.bulk.shared::c" in ptx
    assert f"bulk_group{'.L2::cache_hint' if form == 'hinted' else ''}{'' if form == 'stored' else '.add.f32'} [" in ptx
    expected = np.concatenate([a[:16], np.arange(16, 32)]) + (0 if form == "stored" else b)
    adding(a, b, form).launch(grid=1, block=32, device="sim")
    assert b.tolist() == expected.tolist()


@pytest.mark.parametrize("name", ["lop3.b32", "txq.width.b32"])
def test_other_texts_are_refused(name: str) -> None:
    a = np.zeros(32, np.int32)
    with pytest.raises(TilefoldError, match="does not execute text"):
        computing(a, a, a, name, "r").launch(grid=1, block=32, device="sim")


_UNKNOWN, _UNWRITTEN = "does not execute text", r"E3204.*reads a register, which is unwritten"


@pytest.mark.parametrize(("text", "said"), [
    ("{ add.s32 $0, $1, $2;", _UNKNOWN),
    ("add.s32 u, $1, $2; mov.b32 $0, u;", _UNKNOWN),
    ("L: bra L;", _UNKNOWN),
    ("mov.b32 $0, %pm0;", _UNKNOWN),
    ("add.s32 $0, $1;", _UNKNOWN),
    ("{ .reg .b32 t; add.s32 $0, t, $1; }", _UNWRITTEN),
    ("mov.b32 $1, $2;", _UNWRITTEN),
    ("{ .reg .pred p; setp.ne.s32 p, $1, $2; @p add.s32 $0, $1, $2; }", _UNWRITTEN),
])  # fmt: skip
def test_texts_that_are_refused(text: str, said: str) -> None:
    a = np.zeros(32, np.int32)
    with pytest.raises(TilefoldError, match=said):
        texts(a, a, a, text, "r").launch(grid=1, block=32, device="sim")


@cute.kernel
def by_words(A: cute.Tensor, B: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    words = cute.arch.inline_ptx(
        "ld.relaxed.gpu.global.v4.u32 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,l", A.ptr(4 * t), results=(cute.Int32,) * 4
    )
    total = cute.arch.inline_ptx(
        "{ .reg .b32 r<2>; .reg .pred p; setp.gt.s32 p, $1, 5; mov.b32 r0, $1; @p mad.lo.s32 r0, $2, 10, r0; "
        "shl.b32 $0, r0, $3; }",
        "=r,r,r,r", words[0], words[1], 2, results=cute.Int32,
    )  # fmt: skip
    cute.arch.inline_ptx("st.global.v2.u32 [$0], {$1, $2};", "l,r,r", B.ptr(2 * t), total, words[3])


@pytest.mark.parametrize("stage", STAGES)
def test_texts_become_the_operations_of_their_instructions(stage: str) -> None:
    A, B = np.arange(16, dtype=np.int32), np.zeros(8, np.int32)
    by_words(A, B).launch(grid=1, block=4, device="sim", stage=stage)
    assert B.tolist() == [0, 3, 16, 7, 392, 11, 568, 15]


WORDS = """{
    .reg .b16 low, high; .reg .b32 word;
    cvt.rn.satfinite.e4m3x2.f32 low, $1, $0;  // the first operand is the upper byte
    cvt.rn.satfinite.e4m3x2.f32 high, $3, $2;
    mov.b32 word, {low, high};
    st.global.b32 [$4], word;
}"""
BYTE = """{ .reg .b16 pair; .reg .f32 zero; mov.f32 zero, 0f00000000;
    cvt.rn.satfinite.e5m2x2.f32 pair, zero, $1; st.global.b8 [$0], pair; }"""
HALVES = (
    "{ .reg .b32 a, b; .reg .b64 pair; mov.b64 pair, {$0, $1}; mov.b64 {b, a}, pair; st.global.v2.b32 [$2], {a, b}; }"
)


@cute.kernel
def storing_words(x: cute.Tensor, words: cute.Tensor, bytes: cute.Tensor, pairs: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    given = [x[t, number] for number in range(4)]
    cute.arch.inline_ptx(WORDS, "f,f,f,f,l", *given, words.ptr(t, 0))
    cute.arch.inline_ptx(BYTE, "l,f", bytes.ptr(t), x[t, 0])
    cute.arch.inline_ptx(HALVES, "r,r,l", t, t + 1, pairs.ptr(t, 0))


@pytest.mark.parametrize("stage", ["instr", "ptx"])
def test_texts_that_end_with_a_store(stage: str) -> None:
    x = (np.random.default_rng(0).standard_normal((32, 4)) * 200).astype(np.float32)
    words, bytes, pairs = np.zeros((32, 4), np.uint8), np.zeros(32, np.uint8), np.zeros((32, 2), np.int32)
    storing_words(x, words, bytes, pairs).launch(grid=1, block=32, device="sim", stage=stage)
    assert np.array_equal(words, np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8))
    assert np.array_equal(bytes, x[:, 0].astype(ml_dtypes.float8_e5m2).view(np.uint8))
    assert pairs.tolist() == [[t + 1, t] for t in range(32)]


NARROW = """{
    .reg .b8 low, high; .reg .b16 pair, scales; .reg .b32 halves;
    cvt.rn.satfinite.e2m1x2.f32 low, $3, $2;
    cvt.rn.satfinite.e2m1x2.f32 high, $2, $3;
    mov.b16 pair, {low, high};
    cvt.rp.satfinite.ue8m0x2.f32 scales, $3, $2;
    mov.b32 $0, {pair, scales};
    cvt.rn.f16x2.e2m1x2 halves, low;
    mov.b32 $1, halves;
}"""


@cute.kernel
def narrowing(x: cute.Tensor, words: cute.Tensor, halves: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    results = (cute.Int32, cute.Int32)
    words[t], halves[t] = cute.arch.inline_ptx(NARROW, "=r,=r,f,f", x[t, 0], x[t, 1], results=results)


def test_conversions_to_several_narrow_floats() -> None:
    x = (np.random.default_rng(1).standard_normal((32, 2)) * 3).astype(np.float32)
    words, halves = np.zeros(32, np.int32), np.zeros((32, 2), np.float16)
    narrowing(x, words, halves.view(np.int32)[:, 0]).launch(grid=1, block=32, device="sim")
    small = np.clip(x, -6, 6).astype(ml_dtypes.float4_e2m1fn)
    codes = small.view(np.uint8) & 15
    scales = np.ceil(np.log2(np.abs(x))).astype(np.int32) + 127
    low, high = codes[:, 0] | codes[:, 1] << 4, codes[:, 1] | codes[:, 0] << 4
    assert words.view(np.uint8).reshape(32, 4).tolist() == np.stack([low, high, *scales.T], axis=1).tolist()
    assert np.array_equal(halves, small.astype(np.float16))


@cute.kernel
def of_pairs(x: cute.Tensor, out: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    word = cute.Int32
    brain = cute.arch.inline_ptx("cvt.rn.satfinite.bf16x2.f32 $0, $1, $2;", "=r,f,f", x[t, 1], x[t, 0], results=word)
    out[t, 0] = brain
    out[t, 1] = cute.arch.inline_ptx(
        "movmatrix.sync.aligned.m8n8.trans.b16 {$w0}, {$r0};", write_only_types=[word], read_only_args=[brain]
    )
    out[t, 2] = cute.arch.inline_ptx(HALVES_COMPARED, "=r,r,r", brain, 0x3F800000, results=word)
    out[t, 3] = cute.arch.inline_ptx(BOTH, "=r,r,r", t, 7, results=word)


HALVES_COMPARED = """{ .reg .pred p, q; .reg .b32 low; setp.eq.bf16x2 p|q, $1, $2;
    selp.b32 low, 1, 0, p; selp.b32 $0, 2, low, q; }"""
BOTH = "{ .reg .pred p, q; .reg .b32 u; setp.lt.s32 p|q, $1, $2; selp.b32 u, 5, 0, p; selp.b32 $0, 6, u, q; }"


@pytest.mark.parametrize("stage", ["cute", "ptx"])
def test_texts_of_pairs(stage: str) -> None:
    x = np.random.default_rng(2).standard_normal((32, 2)).astype(np.float32)
    x[:4] = [[0, 1], [0, 2], [-0.0, 1], [1, 3e38 * 1.1]]
    x[4:7] = [[3.4e38, -3.4e38], [np.inf, -np.inf], [np.nan, 1]]
    out = np.zeros((32, 4), np.int32)
    of_pairs(x, out).launch(grid=1, block=32, device="sim", stage=stage)
    greatest = 3.3895313892515355e38  # the greatest bfloat16
    brain = np.clip(x, -greatest, greatest).astype(ml_dtypes.bfloat16)
    given = np.ascontiguousarray(out[:, 0]).view(ml_dtypes.bfloat16).reshape(32, 2)
    np.testing.assert_array_equal(given.astype(np.float32), brain.astype(np.float32))
    matrix = np.ascontiguousarray(out[:, 0]).view(np.uint16).reshape(8, 8)
    assert np.ascontiguousarray(out[:, 1]).view(np.uint16).reshape(8, 8).tolist() == matrix.T.tolist()
    low, high = given[:, 0].astype(np.float32) == 0, given[:, 1].astype(np.float32) == 1
    assert out[:, 2].tolist() == np.where(high, 2, low).tolist()
    assert out[:, 3].tolist() == [5] * 7 + [6] * 25


@pytest.mark.parametrize("text", [
    "{ .reg .pred p; setp.eq.f16x2 p, $1, $2; selp.b32 $0, 1, 0, p; }",  # a pair decides two predicates
    "{ .reg .pred p, q, r; setp.eq.s32 p|q|r, $1, $2; selp.b32 $0, 1, 0, p; }",
    "{ .reg .pred p; setp.eq.s32 p|q, $1, $2; selp.b32 $0, 1, 0, p; }",
    "{ .reg .b32 p, q; add.s32 p|q, $1, $2; mov.b32 $0, p; }",
])  # fmt: skip
def test_predicates_that_do_not_fit_their_instruction(text: str) -> None:
    a = np.zeros(32, np.int32)
    with pytest.raises(TilefoldError, match="does not execute text"):
        texts(a, a, a, text, "r").launch(grid=1, block=32, device="sim")


def test_a_text_that_stores_outside_of_its_array_is_a_fault() -> None:
    x, pairs = np.zeros((32, 4), np.float32), np.zeros((31, 2), np.int32)
    with pytest.raises(TilefoldError, match="E3202"):
        storing_words(x, np.zeros((32, 4), np.uint8), np.zeros(32, np.uint8), pairs).launch(
            grid=1, block=32, device="sim"
        )
