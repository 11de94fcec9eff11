# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions on parts of words, and on pairs of floats, against Python and NumPy."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target

import tilefold
from tests.ptx.test_instructions import EDGES, M32
from tests.ptx.test_printing import check_printed
from tests.ptx.texts import HEAD, STORE_LANE, kernel


def _parts(word: int, count: int, *, signed: bool) -> list[int]:
    bits = 32 // count
    values = [word >> bits * k & (1 << bits) - 1 for k in range(count)]
    return [v - (1 << bits) if signed and v >> bits - 1 else v for v in values]


def _joined(parts: list[int], count: int) -> int:
    bits = 32 // count
    return sum((part & (1 << bits) - 1) << bits * k for k, part in enumerate(parts))


def _by_parts(a: int, b: int, count: int, signed: bool, made: Callable[[int, int], int]) -> list[int]:
    return [made(x, y) for x, y in zip(_parts(a, count, signed=signed), _parts(b, count, signed=signed), strict=True)]


def _bound(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


CASES: dict[str, Callable[[int, int, int], int]] = {
    "vabsdiff4.u32.u32.u32 R, A, B, C": lambda a, b, c: _joined(_by_parts(a, b, 4, False, lambda x, y: abs(x - y)), 4),
    "vabsdiff4.u32.s32.s32.add R, A, B, C": lambda a, b, c: c + sum(_by_parts(a, b, 4, True, lambda x, y: abs(x - y))),
    "vadd4.u32.u32.u32.sat R, A, B, C": lambda a, b, c: _joined(
        _by_parts(a, b, 4, False, lambda x, y: min(x + y, 255)), 4
    ),
    "vsub2.s32.s32.s32.sat R, A, B, C": lambda a, b, c: _joined(
        _by_parts(a, b, 2, True, lambda x, y: _bound(x - y, -(2**15), 2**15 - 1)), 2
    ),
    "vmax2.s32.s32.s32 R, A, B, C": lambda a, b, c: _joined(_by_parts(a, b, 2, True, max), 2),
    "vmin.s32.s32.s32 R, A, B": lambda a, b, c: _by_parts(a, b, 1, True, min)[0],
    "vadd.u32.u32.u32.sat.max R, A, B, C": lambda a, b, c: max(min(a + b, M32), c),
    "vadd.s32.u32.s32.sat R, A.b1, B.h1": lambda a, b, c: (a >> 8 & 255) + _parts(b, 2, signed=True)[1],
    "vsub.u32.u32.u32.sat.min R, A.h0, B.b3, C": lambda a, b, c: min(max((a & 0xFFFF) - (b >> 24), 0), c),
    "vabsdiff.s32.s32.s32.add R, A, B.b2, C": lambda a, b, c: (
        abs(_parts(a, 1, signed=True)[0] - _parts(b, 4, signed=True)[2]) + c
    ),
    "vmax.s32.u32.s32.sat R.b1, A.b2, B, C": lambda a, b, c: (
        c & ~0xFF00 | min(max(a >> 16 & 255, _parts(b, 1, signed=True)[0]), 127) << 8
    ),
    "vshl.u32.u32.u32.clamp R, A, B": lambda a, b, c: a << min(b, 32),
    "vshl.u32.u32.u32.wrap.add R, A, B.b0, C": lambda a, b, c: (a << (b & 31) & M32) + c,
    "vshr.s32.s32.u32.clamp R, A.h1, B": lambda a, b, c: _parts(a, 2, signed=True)[1] >> min(b, 32),
    "vmad.s32.u32.s32.sat.shr7 R, A.b1, B.b2, C": lambda a, b, c: (
        (a >> 8 & 255) * _parts(b, 4, signed=True)[2] + _parts(c, 1, signed=True)[0]
    ) >> 7,
    "vmad.u32.u32.u32.po R, A.h0, B.h0, C": lambda a, b, c: (a & 0xFFFF) * (b & 0xFFFF) + c + 1,
    "vmad.s32.s32.s32 R, A.b0, -B.b0, C": lambda a, b, c: (
        c - _parts(a, 4, signed=True)[0] * _parts(b, 4, signed=True)[0]
    ),
    "vset.u32.s32.lt R, A.b0, B": lambda a, b, c: int((a & 255) < _parts(b, 1, signed=True)[0]),
    "vset.s32.s32.ge.add R, A, B, C": lambda a, b, c: c + int(_parts(a, 1, signed=True) >= _parts(b, 1, signed=True)),
    "vadd2.u32.u32.u32.sat R.h1, A.h10, B.h23, C": lambda a, b, c: (
        c & 0xFFFF | min((a >> 16) + (b & 0xFFFF), 0xFFFF) << 16
    ),
    "vsub4.s32.s32.s32 R.b20, A.b7012, B.b7654, C": lambda a, b, c: (
        c & 0xFF00FF00 | ((a >> 16) - b & 255) | (a - (b >> 16) & 255) << 16
    ),
    "vavrg4.u32.u32.u32 R, A, B, C": lambda a, b, c: _joined(_by_parts(a, b, 4, False, lambda x, y: x + y + 1 >> 1), 4),
    "vavrg2.s32.s32.s32.add R, A, B, C": lambda a, b, c: c + sum(
        _by_parts(a, b, 2, True, lambda x, y: x + y + (x + y >= 0) >> 1)
    ),
    "vset2.u32.u32.ne R, A, B, C": lambda a, b, c: _joined(_by_parts(a, b, 2, False, lambda x, y: int(x != y)), 2),
    "vset4.u32.u32.lt.add R, A, B, C": lambda a, b, c: c + sum(_by_parts(a, b, 4, False, lambda x, y: int(x < y))),
    "bmsk.clamp.b32 R, A, B": lambda a, b, c: ((1 << min(b, 32)) - 1) << min(a, 32),
    "bmsk.wrap.b32 R, A, B": lambda a, b, c: ((1 << (b & 31)) - 1) << (a & 31),
    "szext.clamp.u32 R, A, B": lambda a, b, c: a & (1 << min(b, 32)) - 1,
    "szext.wrap.s32 R, A, B": lambda a, b, c: (a & (1 << (b & 31)) - 1) - (
        (1 << (b & 31)) if b & 31 and a >> (b & 31) - 1 & 1 else 0
    ),
    "cnot.b32 R, A": lambda a, b, c: int(a == 0),
}  # fmt: skip


def test_what_is_printed_assembles() -> None:
    names = {"R": "%r13", "A": "%r1", "B": "%r2", "C": "%r3"}
    lines = [re.sub(r"\b[RABC]\b", lambda found: names[found[0]], text) for text in CASES]
    body = "; ".join(f"{line}; st.volatile.global.u32 [%d4], %r13" for line in lines)
    text = kernel(f"{STORE_LANE} mov.u32 %r2, %ctaid.x; mov.u32 %r3, %nctaid.x; {body}; ret;")
    check_printed(text, Target("sm_80"))


@pytest.mark.parametrize("form", ["vadd.u32.u32.u32 %r3, %r1.b4, %r2", "vadd2.u32.u32.u32 %r3, %r1.b10, %r2, %r2",
                                  "vmin.u32.u32.u32 %r3, %r1.b10, %r2", "vset.u32.u32 %r3, %r1, %r2"])  # fmt: skip
def test_other_parts_are_refused(form: str) -> None:
    with pytest.raises(TilefoldError, match="E1009"):
        tilefold.load_ptx(kernel(f"{STORE_LANE} {form}; ret;"))["k"](np.zeros(32, np.int32)).launch(1, 32)


@pytest.mark.parametrize("text", CASES)
def test_words(text: str) -> None:
    rng = np.random.default_rng(0)
    words = np.array([(a, b, c) for a in EDGES for b in EDGES for c in (7, M32)], np.uint32)
    words = np.concatenate([words, rng.integers(0, 2**32, (128, 3), np.uint32)])
    body = f"""{STORE_LANE} ld.param.u64 %d10, [X]; mul.wide.u32 %d11, %r1, 12; add.s64 %d12, %d10, %d11;
    ld.global.u32 %r10, [%d12]; ld.global.u32 %r11, [%d12+4]; ld.global.u32 %r12, [%d12+8];
    {text.replace("R", "%r13").replace("A", "%r10").replace("B", "%r11").replace("C", "%r12")};
    st.global.u32 [%d4], %r13; ret;"""
    out = np.zeros(len(words), np.uint32)
    call = tilefold.load_ptx(kernel(body, ".param .u64 A, .param .u64 X"))["k"](out, words)
    call.launch(grid=1, block=len(words))
    assert out.tolist() == [CASES[text](*row) & M32 for row in words.tolist()]


PAIRS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add.sat.f16x2 R, A, B": lambda a, b: np.where(np.isnan(a + b), 0, np.clip(a + b, 0, 1)),
    "fma.rn.relu.f16x2 R, A, B, B": lambda a, b: np.where(np.isnan(a * b + b), np.nan, np.maximum(a * b + b, 0)),
    "set.lt.f16x2.f16x2 R, A, B": lambda a, b: (a < b).astype(np.float16),
    "set.neu.f16x2.f16x2 R, A, B": lambda a, b: (~(a == b)).astype(np.float16),
}


@pytest.mark.parametrize("text", PAIRS)
def test_pairs(text: str) -> None:
    values = np.array([0, 0.25, 0.5, -0.5, 1, 2, -2, np.nan, np.inf, -np.inf], np.float16)
    a, b = (x.reshape(-1) for x in np.meshgrid(values, values))
    out = np.zeros_like(a)
    body = f"""{STORE_LANE} ld.param.u64 %d10, [X]; ld.param.u64 %d11, [Y]; mul.wide.u32 %d12, %r1, 4;
    add.s64 %d13, %d10, %d12; add.s64 %d14, %d11, %d12; ld.global.b32 %r10, [%d13]; ld.global.b32 %r11, [%d14];
    {text.replace("R", "%r13").replace("A", "%r10").replace("B", "%r11")};
    st.global.b32 [%d4], %r13; ret;"""
    parameters = ".param .u64 A, .param .u64 X, .param .u64 Y"
    with np.errstate(invalid="ignore", over="ignore"):
        wanted = PAIRS[text](a, b).astype(np.float16)
    tilefold.load_ptx(kernel(body, parameters))["k"](out, a, b).launch(grid=1, block=len(a) // 2)
    np.testing.assert_array_equal(out, wanted)


def test_lanes_of_masks() -> None:
    """Halves of a warp with masks of their own: a barrier, a match of all, and an election that tells the lane."""
    body = f"""{STORE_LANE} and.b32 %r2, %r1, 16; mov.u32 %r3, 0xffff; shl.b32 %r4, %r3, %r2;
    mov.u32 %r20, shared_words; shl.b32 %r21, %r1, 2; add.u32 %r22, %r20, %r21; st.shared.u32 [%r22], %r1;
    bar.warp.sync %r4;
    xor.b32 %r23, %r21, 4; add.u32 %r24, %r20, %r23; ld.shared.u32 %r5, [%r24];
    match.all.sync.b32 %r6|%p1, %r2, %r4; match.all.sync.b64 %r7|%p2, %d4, %r4; elect.sync %r8|%p3, %r4;
    selp.u32 %r9, 1000, 0, %p1; add.u32 %r5, %r5, %r9; selp.u32 %r9, 2000, 0, %p2; add.u32 %r5, %r5, %r9;
    mul.lo.u32 %r8, %r8, 10000; add.u32 %r5, %r5, %r8; add.u32 %r5, %r5, %r7;
    st.global.u32 [%d4], %r5; ret;"""
    head = HEAD.replace("8.0", "8.7").replace("sm_80", "sm_90a")
    text = kernel(body, registers=".shared .align 4 .b8 shared_words[128];").replace(HEAD, head)
    out, lanes = np.zeros(32, np.int32), np.arange(32)
    tilefold.load_ptx(text)["k"](out).launch(grid=1, block=32)
    assert out.tolist() == ((lanes ^ 1) + 1000 + 10000 * (lanes & 16)).tolist()
    with pytest.raises(TilefoldError, match="E3205"):
        tilefold.load_ptx(text.replace("bar.warp.sync %r4;", ""))["k"](out).launch(grid=1, block=32)


def test_constant_memory_is_not_written() -> None:
    body = "mov.u64 %d1, table; cvta.const.u64 %d2, %d1; mov.u32 %r1, 1; st.u32 [%d2+4], %r1; ret;"
    text = kernel(body).replace(HEAD, HEAD + ".const .align 4 .b8 table[16];\n")
    with pytest.raises(TilefoldError, match=r"E1009.*constant memory, which no kernel writes"):
        tilefold.load_ptx(text)["k"](np.zeros(1, np.int32)).launch(grid=1, block=1)


def test_lanes_that_write_the_same() -> None:
    """Lanes that write one element race unless they agree there, whatever lanes write elsewhere."""
    body = f"""{STORE_LANE} shr.u32 %r2, %r1, 1; mul.wide.u32 %d5, %r2, 4; add.s64 %d6, %d2, %d5;
    st.global.u32 [%d6], %r2; ret;"""
    out = np.zeros(32, np.int32)
    tilefold.load_ptx(kernel(body))["k"](out).launch(grid=1, block=32)
    assert out.tolist() == [*range(16), *[0] * 16]
    with pytest.raises(TilefoldError, match="E3205"):
        tilefold.load_ptx(kernel(body.replace("[%d6], %r2", "[%d6], %r1")))["k"](out).launch(grid=1, block=32)
