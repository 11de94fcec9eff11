# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forms of Hopper and newer GPUs that headers of CUDA and CUTLASS write, with the results of an H200."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tilefold.base.errors import Code, TilefoldError

import tilefold
from tests.ptx.texts import STORE_LANE, kernel


def newer(body: str, arrays: list[Any], threads: int = 32) -> None:
    """Runs a kernel of A and B for sm_100a."""
    text = kernel(body, ", ".join(f".param .u64 {name}" for name in "AB"[: len(arrays)]))
    tilefold.load_ptx(text.replace(".version 8.0", ".version 8.6").replace("sm_80", "sm_100a"))["k"](*arrays).launch(
        1, threads
    )


LOAD_PAIR = """mov.u32 %r1, %tid.x; ld.param.u64 %d1, [A]; ld.param.u64 %d2, [B]; mul.wide.u32 %d3, %r1, SIZE;
    add.s64 %d4, %d1, %d3; add.s64 %d5, %d2, %d3;"""


@pytest.mark.parametrize(("type", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
@pytest.mark.parametrize("form", ["v2.TYPE", "v4.TYPE", "v8.TYPE", "v2.TYPEx2", "v4.TYPEx2"])
@pytest.mark.parametrize("kind", ["min", "max", "add"])
def test_atomic_operations_on_vectors_of_16_bits(kind: str, form: str, type: str, dtype: Any) -> None:
    """A number wins over NaN, and -0 is less than +0: what an H200 does."""
    count, pairs = int(form[1]), form.endswith("x2")
    letter, size = ("r", 4) if pairs else ("h", 2)
    given, old = (", ".join(f"%{letter}{first + i}" for i in range(count)) for first in (1, 10))
    if pairs:
        given = given.replace("%r", "%r2")
    loads = "".join(f"ld.global.b{8 * size} {name}, [%d5+{size * i}];" for i, name in enumerate(given.split(", ")))
    stores = "".join(f"st.global.b{8 * size} [%d5+{size * i}], %{letter}{10 + i};" for i in range(count))
    body = f"""{LOAD_PAIR.replace("SIZE", str(size * count))} {loads}
        atom.global.{kind}.noftz.{form.replace("TYPE", type)} {{{old}}}, [%d4], {{{given}}}; {stores}"""
    special = np.array([0.0, -0.0, np.nan, 1, -2, np.inf, 3, -np.inf], np.float32)
    a, b = (np.resize(x, 32 * size * count // 2).astype(dtype) for x in (special, special[::-1]))
    was, other = a.copy(), b.astype(np.float32)
    wide = was.astype(np.float32)
    expected = {"min": np.fmin, "max": np.fmax, "add": np.add}[kind](wide, other)
    newer(body, [a.view(np.uint16), b.view(np.uint16)])
    np.testing.assert_array_equal(b.view(np.uint16), was.view(np.uint16))
    np.testing.assert_array_equal(a.astype(np.float32), expected.astype(dtype).astype(np.float32))
    zeros = (wide == 0) & (other == 0) & (np.signbit(wide) != np.signbit(other))
    assert (np.signbit(a.astype(np.float32))[zeros] == (kind == "min")).all()


def test_there_are_no_extremes_of_single_halves() -> None:
    for form in ("f16", "f16x2"):
        with pytest.raises(TilefoldError, match="of vectors only") as caught:
            newer(f"ld.param.u64 %d1, [A]; red.global.min.noftz.{form} [%d1], %{'r' if 'x' in form else 'h'}1;",
                  [np.zeros(64, np.uint32)])  # fmt: skip
        assert caught.value.code is Code.PTX_UNSUPPORTED


@pytest.mark.parametrize("type", ["f16", "bf16", "f16x2", "bf16x2"])
def test_a_factor_out_of_bounds_makes_fma_zero(type: str) -> None:
    """The NaN of copies, with any sign, but no other, and not as an addend (measured on an H200)."""
    one = {"f16": 0x3C00, "bf16": 0x3F80}[type.removesuffix("x2")]
    a = np.resize(np.array([one, 0x7FF7, 0xFFF7, 0x7FFF, 0x7FF6, 0], np.uint16), 64)
    b = np.zeros(64, np.uint32)
    pair = type.endswith("x2")
    letter, bits = ("r", 32) if pair else ("h", 16)
    numbers = f"mov.b{bits} %{letter}2, {one * 0x10001 if pair else one};"
    places = LOAD_PAIR.replace("SIZE", str(bits // 8))
    body = f"""{places} {numbers} ld.global.b{bits} %{letter}3, [%d4];
        fma.rn.oob.{type} %{letter}4, %{letter}3, %{letter}2, %{letter}2;
        fma.rn.oob.relu.{type} %{letter}5, %{letter}2, %{letter}2, %{letter}3;
        st.global.b{bits} [%d5], %{letter}4; st.global.b{bits} [%d5+128], %{letter}5;"""
    newer(body, [a, b.view(np.uint16)])
    width = 64 if pair else 32
    found = b.view(np.uint16)
    two = one + (0x400 if "bf" not in type else 0x80)
    expected = {one: two, 0x7FF7: 0, 0xFFF7: 0, 0x7FFF: 0x7FFF, 0x7FF6: 0x7FFF, 0: one}
    assert found[:width].tolist() == [expected[int(x)] for x in a[:width]]
    assert found[64 : 64 + width].tolist() == [{one: two, 0: one}.get(int(x), 0x7FFF) for x in a[:width]]


STORE_MASKED = """.shared .align 16 .b8 s[64]; mov.u32 %r1, %tid.x; mov.u32 %r9, s; add.u32 %r8, %r9, %r1;
    st.shared.u8 [%r8], %r1; add.u32 %r7, %r1, 32; st.shared.u8 [%r8+32], %r7; fence.proxy.async; bar.sync 0;
    setp.ne.u32 %p1, %r1, 0; @%p1 ret; ld.param.u64 %d1, [A]; mov.b16 %h1, MASK;
    cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d1], [%r9], 64, %h1;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"""


def test_a_bulk_copy_of_some_bytes() -> None:
    for mask in (0x0001, 0xF00F, 0, 0xFFFF):
        a = np.full(64, 99, np.uint8)
        newer(STORE_MASKED.replace("MASK", str(mask)), [a])
        chosen = np.resize(mask >> np.arange(16) & 1, 64) > 0
        assert a.tolist() == np.where(chosen, np.arange(64), 99).tolist()
    newer(STORE_MASKED.replace("MASK", "0x00FF"), [np.zeros(56, np.uint8)])  # the last bytes do not exist
    with pytest.raises(TilefoldError) as caught:
        newer(STORE_MASKED.replace("MASK", "0x01FF"), [np.zeros(56, np.uint8)])
    assert caught.value.code is Code.SIM_OUT_OF_BOUNDS


def test_the_rank_of_a_generic_address() -> None:
    """One that came through memory, of the own block and of a peer."""
    body = f"""{STORE_LANE} .shared .align 8 .b8 s[16]; mov.u32 %r9, %cluster_ctarank; mov.u64 %d8, s;
        cvta.shared.u64 %d8, %d8; xor.b32 %r8, %r9, 1; mapa.u64 %d9, %d8, %r8;
        .shared .align 8 .b8 kept[512]; mov.u32 %r7, kept; mad.lo.u32 %r7, %r1, 16, %r7;
        st.shared.v2.u64 [%r7], {{%d8, %d9}}; ld.shared.v2.u64 {{%d8, %d9}}, [%r7];
        getctarank.u64 %r5, %d8; getctarank.u64 %r6, %d9; mad.lo.u32 %r5, %r5, 10, %r6;
        mad.lo.u32 %r4, %r9, 128, 0; cvt.u64.u32 %d7, %r4; add.s64 %d4, %d4, %d7; st.global.u32 [%d4], %r5;"""
    a = np.zeros(64, np.int32)
    text = kernel(body).replace("sm_80", "sm_90")
    tilefold.load_ptx(text)["k"](a).launch(2, 32, cluster=2)
    assert a.tolist() == [1] * 32 + [10] * 32


def test_sums_are_those_of_the_target() -> None:
    """2**25 - 2**25 + 1/4: tensor cores align products, and what lies below is lost."""
    body = f"""{STORE_LANE} mov.b32 %r2, 0; mov.b32 %r3, 0x6C00; mov.b32 %r4, 0; mov.f32 %f1, 0f00000000;
        setp.ne.u32 %p1, %r1, 0; mov.b32 %r5, 0xEC006C00; mov.b32 %r6, 0x6C006C00; mov.b32 %r7, 0x00003400;
        mov.b32 %r8, 0x00003C00; @%p1 mov.b32 %r7, 0; @%p1 mov.b32 %r5, 0;
        mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f5, %f6, %f7, %f8}}, {{%r5, %r2, %r7, %r2}},
        {{%r6, %r8}}, {{%f1, %f1, %f1, %f1}}; st.global.f32 [%d4], %f5;"""
    for numerics, expected in (("hardware", 0), ("exact-sum", 0.25)):
        a = np.ones(32, np.float32)
        tilefold.load_ptx(kernel(body).replace("sm_80", "sm_90"))["k"](a).launch(1, 32, numerics=numerics)
        assert a[0] == expected


CLUSTER = f"""{STORE_LANE} .shared .align 16 .b8 s[512]; .shared .align 8 .b64 bar; mov.u32 %r9, %cluster_ctarank;
    mov.u32 %r10, s; mov.u32 %r11, bar; xor.b32 %r12, %r9, 1; setp.ne.u32 %p1, %r1, 0;
    mad.lo.u32 %r13, %r1, 4, %r10; mad.lo.u32 %r14, %r9, 100, %r1; st.shared.u32 [%r13], %r14;
    st.shared.u32 [%r13+128], 7; @%p1 bra READY; mbarrier.init.shared.b64 [%r11], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r11], 128; READY: fence.proxy.async; barrier.cluster.arrive;
    barrier.cluster.wait;"""
WAIT = """WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r11], 0; @!%p2 bra WAIT; ld.shared.u32 %r20, [%r13+128];
    mad.lo.u32 %r21, %r9, 128, 0; cvt.u64.u32 %d7, %r21; add.s64 %d4, %d4, %d7; st.global.u32 [%d4], %r20;
    barrier.cluster.arrive; barrier.cluster.wait;"""


def in_cluster(body: str) -> list[int]:
    """The words of two blocks of 32 threads."""
    a = np.zeros(64, np.int32)
    tilefold.load_ptx(kernel(f"{CLUSTER}{body}{WAIT}").replace("sm_80", "sm_90"))["k"](a).launch(2, 32, cluster=2)
    return a.tolist()


def test_numbers_are_combined_with_those_of_a_peer() -> None:
    body = """@%p1 bra WAIT; add.u32 %r15, %r10, 128; mapa.shared::cluster.u32 %r16, %r15, %r12;
        mapa.shared::cluster.u32 %r17, %r11, %r12;
        cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.KIND
        [%r16], [%r10], 128, [%r17];"""
    assert in_cluster(body.replace("KIND", "add.u32")) == [107 + t for t in range(32)] + [7 + t for t in range(32)]
    assert in_cluster(body.replace("KIND", "xor.b32")) == [(100 + t) ^ 7 for t in range(32)] + [
        t ^ 7 for t in range(32)
    ]
    with pytest.raises(TilefoldError, match=r"cp\.reduce\.async\.bulk has"):
        in_cluster(body.replace("KIND", "add.f32"))


def test_addresses_of_the_own_block_are_those_of_the_cluster() -> None:
    store = "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r15], %r14, [%r11];"
    body = f"add.u32 %r15, %r13, 128; {store}"
    expected = [*range(32), *range(100, 132)]
    assert in_cluster(body) == expected
    copy = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r15], [%r10], 128, [%r11];"
    assert in_cluster(f"@%p1 bra WAIT; add.u32 %r15, %r10, 128; {copy}") == expected


def test_asynchronous_stores_to_global_memory() -> None:
    body = f"""{STORE_LANE} st.async.mmio.release.sys.global.u32 [%d4], %r1; membar.proxy.alias;
        red.async.mmio.release.gpu.global.add.u32 [%d4], 5; fence.proxy.async.shared::cluster;"""
    a = np.zeros(32, np.int32)
    newer(body, [a])
    assert a.tolist() == list(range(5, 37))


@pytest.mark.parametrize("element", ["e4m3", "e5m2", "e2m1", "e2m3", "e3m2"])
@pytest.mark.parametrize(("pair", "dtype"), [("f16x2", np.float16), ("bf16x2", ml_dtypes.bfloat16)])
def test_conversions_of_pairs_of_16_bits(element: str, pair: str, dtype: Any) -> None:
    """As those of f32, which pairs fit, and back."""
    rng = np.random.default_rng(0)
    a = (rng.standard_normal(64) * 4).astype(dtype)
    b = np.zeros(32 * 4, np.uint32)
    narrow, back = ("%b1", "b8") if element == "e2m1" else ("%h1", "b16")
    single = "%b2" if element == "e2m1" else "%h2"
    of = pair[:-2]
    body = f"""{LOAD_PAIR.replace("SIZE", "4")} .reg .b8 %b<4>; mul.wide.u32 %d3, %r1, 16; add.s64 %d5, %d2, %d3;
        ld.global.b32 %r2, [%d4]; mov.b32 {{%h8, %h9}}, %r2; cvt.f32.{of} %f1, %h8; cvt.f32.{of} %f2, %h9;
        cvt.rn.satfinite.{element}x2.{pair} {narrow}, %r2; cvt.rn.satfinite.{element}x2.f32 {single}, %f2, %f1;
        cvt.rn.{pair}.{element}x2 %r3, {narrow}; cvt.rn.f16x2.{element}x2 %r4, {single}; mov.b32 {{%h4, %h5}}, %r4;
        cvt.f32.f16 %f3, %h4; cvt.f32.f16 %f4, %h5; cvt.rn.{pair}.f32 %r5, %f4, %f3;
        st.global.{back} [%d5], {narrow}; st.global.{back} [%d5+4], {single}; st.global.v2.b32 [%d5+8], {{%r3, %r5}};"""
    newer(body, [a.view(np.uint16), b])
    words = b.reshape(32, 4)
    assert words[:, 0].tolist() == words[:, 1].tolist()
    assert words[:, 2].tolist() == words[:, 3].tolist()
    assert len(set(words[:, 2].tolist())) > 8


def test_saturation_behind_the_types() -> None:
    """As CUTLASS writes products of bytes."""
    mma = "mma.sync.aligned.m8n8k16.row.col.{}s32.s8.s8.s32{} {{%r5, %r6}}, {{%r2}}, {{%r2}}, {{%r3, %r3}};"
    for words in (("satfinite.", ""), ("", ".satfinite")):
        a = np.zeros(32, np.int32)
        body = f"{STORE_LANE} mov.u32 %r2, 0x7F7F7F7F; mov.u32 %r3, 0x7FFFFFF0; {mma.format(*words)}"
        tilefold.load_ptx(kernel(f"{body} st.global.u32 [%d4], %r5;"))["k"](a).launch(1, 32)
        assert a.tolist() == [2**31 - 1] * 32


def test_products_of_8_bit_floats_with_the_smaller_extent() -> None:
    """m16n8k16, whose A and B have 16 elements of 1 byte in a row: registers as those of s8."""
    a, b = (np.random.default_rng(n).integers(-3, 4, (rows, 16)) for n, rows in ((0, 16), (1, 8)))
    lanes, i = np.arange(32)[:, None], np.arange(8)
    bytes_a = a[lanes // 4 + 8 * (i // 4), lanes % 4 * 4 + i % 4].astype(ml_dtypes.float8_e4m3fn)
    bytes_b = b[lanes // 4, lanes % 4 * 4 + i[:4]].astype(ml_dtypes.float8_e5m2)
    words = np.concatenate([np.ascontiguousarray(x).view(np.uint32) for x in (bytes_a, bytes_b)], axis=1)
    given, out = np.pad(words, ((0, 0), (0, 1))).ravel(), np.zeros(128, np.float32)
    body = f"""{LOAD_PAIR.replace("SIZE", "16")} ld.global.v4.b32 {{%r2, %r3, %r4, %r5}}, [%d4];
        mov.f32 %f1, 0f3F800000; mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e5m2.f32 {{%f2, %f3, %f4, %f5}},
        {{%r2, %r3}}, {{%r4}}, {{%f1, %f1, %f1, %f1}}; st.global.v4.f32 [%d5], {{%f2, %f3, %f4, %f5}};"""
    text = (
        kernel(body, ".param .u64 A, .param .u64 B").replace(".version 8.0", ".version 8.7").replace("sm_80", "sm_90")
    )
    tilefold.load_ptx(text)["k"](given, out).launch(1, 32)
    d = a @ b.T + 1
    j = np.arange(4)
    assert out.reshape(32, 4).tolist() == d[lanes // 4 + 8 * (j // 2), lanes % 4 * 2 + j % 2].tolist()


def test_lanes_of_a_group_are_counted() -> None:
    """As cooperative groups count the lanes of a labeled partition: a sum of ones in the lanes of each mask."""
    body = f"""{STORE_LANE} and.b32 %r2, %r1, 3; mov.u32 %r3, 1; match.any.sync.b32 %r4, %r2, -1;
        redux.sync.add.s32 %r5, %r3, %r4; st.global.u32 [%d4], %r5;"""
    a = np.zeros(64, np.int32)
    tilefold.load_ptx(kernel(body))["k"](a).launch(1, 64)
    assert a.tolist() == [8] * 64
