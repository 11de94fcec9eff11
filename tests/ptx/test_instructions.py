# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of PTX on the simulator against Python's integers."""

from collections.abc import Callable

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

import tilefold
from tests.ptx.texts import HEAD, STORE_LANE, kernel

M32, M64 = 2**32 - 1, 2**64 - 1
Words = tuple[int, int, int]
EDGES = (0, 1, 2, 5, 31, 32, 33, 63, 64, 200, 2**31 - 1, 2**31, 2**31 + 1, M32 - 1, M32, 0x12345678, 0xDEADBEEF)


def _signed(value: int, bits: int = 32) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _bytes(value: int, *, signed: bool) -> list[int]:
    return [_signed(value >> 8 * k, 8) if signed else value >> 8 * k & 255 for k in range(4)]


def _bfe(words: Words, *, signed: bool) -> int:
    a, b, c = words[0], words[1] & 255, words[2] & 255
    last = 31
    sign = 0 if not signed or c == 0 else a >> min(b + c - 1, last) & 1
    result = 0
    for k in range(32):
        bit = a >> (b + k) & 1 if k < c and b + k <= last else sign
        result |= bit << k
    return result


def _bfi(words: Words) -> int:
    a, result = words[0], words[1]
    place, width = words[2] & 255, words[2] >> 8 & 255
    for k in range(width):
        if place + k < 32:
            result = result & ~(1 << (place + k)) | (a >> k & 1) << (place + k)
    return result


def _bfind(value: int, *, signed: bool) -> int:
    value = ~value & M32 if signed and value >> 31 else value
    return (value.bit_length() - 1) & M32


def _prmt(words: Words, pick: Callable[[int, int], int]) -> int:
    whole, n = words[0] | words[1] << 32, words[2] & 3
    return sum((whole >> 8 * pick(k, n) & 255) << 8 * k for k in range(4))


CASES: dict[str, Callable[[int, int, int], int]] = {
    "bfe.u32 R, A, B, C": lambda a, b, c: _bfe((a, b, c), signed=False),
    "bfe.s32 R, A, B, C": lambda a, b, c: _bfe((a, b, c), signed=True),
    "shr.u32 %r9, C, 8; bfi.b32 R, A, B, C, %r9": lambda a, b, c: _bfi((a, b, c)),
    "bfind.u32 R, A": lambda a, b, c: _bfind(a, signed=False),
    "bfind.s32 R, A": lambda a, b, c: _bfind(a, signed=True),
    "bfind.shiftamt.u32 R, A": lambda a, b, c: 31 - _bfind(a, signed=False) if a else M32,
    "brev.b32 R, A": lambda a, b, c: int(f"{a:032b}"[::-1], 2),
    "prmt.b32.f4e R, A, B, C": lambda a, b, c: _prmt((a, b, c), lambda k, n: n + k),
    "prmt.b32.b4e R, A, B, C": lambda a, b, c: _prmt((a, b, c), lambda k, n: (n - k) % 8),
    "prmt.b32.rc8 R, A, B, C": lambda a, b, c: _prmt((a, b, c), lambda k, n: n),
    "prmt.b32.ecl R, A, B, C": lambda a, b, c: _prmt((a, b, c), max),
    "prmt.b32.ecr R, A, B, C": lambda a, b, c: _prmt((a, b, c), min),
    "prmt.b32.rc16 R, A, B, C": lambda a, b, c: _prmt((a, b, c), lambda k, n: 2 * (n & 1) + (k & 1)),
    "lop3.b32 R, A, B, C, 0x96": lambda a, b, c: a ^ b ^ c,
    "lop3.or.b32 R|%p1, A, B, C, 0x80, %p2; selp.u32 %r9, 7, 0, %p1; xor.b32 R, R, %r9": lambda a, b, c: (
        (a & b & c) ^ (7 if a & b & c else 0)
    ),
    "sad.u32 R, A, B, C": lambda a, b, c: c + abs(a - b),
    "sad.s32 R, A, B, C": lambda a, b, c: c + abs(_signed(a) - _signed(b)),
    "dp4a.s32.u32 R, A, B, C": lambda a, b, c: (
        c + sum(x * y for x, y in zip(_bytes(a, signed=True), _bytes(b, signed=False), strict=True))
    ),
    "dp2a.lo.s32.s32 R, A, B, C": lambda a, b, c: (
        c + sum(_signed(a >> 16 * k, 16) * _signed(b >> 8 * k, 8) for k in (0, 1))
    ),
    "dp2a.hi.u32.u32 R, A, B, C": lambda a, b, c: (
        c + sum((a >> 16 * k & 0xFFFF) * (b >> 16 + 8 * k & 255) for k in (0, 1))
    ),
    "slct.b32.s32 R, A, B, C": lambda a, b, c: a if _signed(c) >= 0 else b,
    "mul24.lo.u32 R, A, B": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "mad24.hi.s32 R, A, B, C": lambda a, b, c: c + (_signed(a, 24) * _signed(b, 24) >> 16),
    "add.sat.s32 R, A, B": lambda a, b, c: max(-(2**31), min(2**31 - 1, _signed(a) + _signed(b))),
    "sub.sat.s32 R, A, B": lambda a, b, c: max(-(2**31), min(2**31 - 1, _signed(a) - _signed(b))),
    "add.cc.u32 %r9, A, B; addc.u32 R, C, 0": lambda a, b, c: c + (a + b >> 32),
    "add.cc.u32 %r9, A, B; addc.cc.u32 %r9, B, C; addc.u32 R, 0, 0": lambda a, b, c: b + c + (a + b >> 32) >> 32,
    "sub.cc.u32 %r9, A, B; subc.u32 R, C, B": lambda a, b, c: c - b - (a < b),
    "sub.cc.u32 %r9, A, B; addc.u32 R, C, 0": lambda a, b, c: c + (a >= b),
    "add.cc.u32 %r9, A, B; subc.u32 R, C, 0": lambda a, b, c: c - (not a + b >> 32),
    "cvt.sat.u16.s32 %h1, A; cvt.u32.u16 R, %h1": lambda a, b, c: max(0, min(_signed(a), 65535)),
    "cvt.sat.s8.u32 %h1, A; cvt.s32.s16 R, %h1": lambda a, b, c: min(a, 127),
    "cvt.sat.u32.s32 R, A": lambda a, b, c: max(0, _signed(a)),
    "cvt.sat.s32.u32 R, A": lambda a, b, c: min(a, 2**31 - 1),
    "add.u32 %r12, %r12, A; mov.u32 R, B": lambda a, b, c: b,
    "cvt.rn.f32.s32 %f1, A; mul.f32 %f1, %f1, 0f3E800000; cvt.rpi.ftz.s32.f32 R, %f1": lambda a, b, c: int(
        np.ceil(np.float32(_signed(a)) * np.float32(0.25))
    ),
    "sub.cc.u32 %r9, A, B; subc.cc.u32 %r9, B, C; subc.u32 R, 0, 0": lambda a, b, c: -(b - c - (a < b) < 0),
    "mad.lo.cc.u32 %r9, A, B, C; madc.hi.u32 R, A, B, 0": lambda a, b, c: a * b + c >> 32,
    "cvt.pack.sat.u16.s32 R, A, B": lambda a, b, c: (
        max(0, min(_signed(a), 65535)) << 16 | max(0, min(_signed(b), 65535))
    ),
    "add.u16x2 R, A, B": lambda a, b, c: a + b & 0xFFFF | (a >> 16) + (b >> 16) << 16,
    "min.relu.s16x2 R, A, B": lambda a, b, c: sum(
        max(0, min(_signed(a >> 16 * k, 16), _signed(b >> 16 * k, 16))) << 16 * k for k in (0, 1)
    ),
    "lop3.or.b32 _|%p1, A, B, C, 0x80, %p2; selp.u32 R, 1, 0, %p1": lambda a, b, c: a & b & c != 0,
    "mov.b32 V.x, A; mov.b32 V.g, B; add.u32 R, V.x, V.y": lambda a, b, c: a + b,
    "max.xorsign.abs.f32 %f1, -2.0, 1.0; mov.b32 R, %f1": lambda a, b, c: 0xC0000000,
    "set.lt.u32.s32 R, A, B": lambda a, b, c: -(_signed(a) < _signed(b)),
    "set.gt.and.s32.u32 R, A, B, %p2": lambda a, b, c: 0,
    "shf.l.clamp.b32 R, A, B, C": lambda a, b, c: ((a | b << 32) << min(c, 32)) >> 32,
    "shf.r.wrap.b32 R, A, B, C": lambda a, b, c: (a | b << 32) >> (c & 31),
    "testp.finite.f32 %p1, A; selp.u32 R, 1, 0, %p1": lambda a, b, c: a >> 23 & 255 != 255,
    "testp.subnormal.f32 %p1, A; selp.u32 R, 1, 0, %p1": lambda a, b, c: not a >> 23 & 255 and bool(a & 0x7FFFFF),
    "testp.notanumber.f32 %p1, A; selp.u32 R, 1, 0, %p1": lambda a, b, c: a >> 23 & 255 == 255 and bool(a & 0x7FFFFF),
}
"""Instructions on A, B and C that leave a result in R, and that result; %p2 is false."""


@pytest.mark.parametrize("text", CASES)
def test_an_instruction_is_as_python_computes_it(text: str) -> None:
    random = np.random.default_rng(0)
    picked = random.choice(np.array(EDGES, np.uint32), (3, 128))
    anything = random.integers(0, 2**32, (3, 128), np.uint32)
    words = np.where(random.random((3, 128)) < 0.7, picked, anything).astype(np.uint32)
    body = f"""{STORE_LANE}
        ld.param.u64 %d5, [X];
        add.s64 %d6, %d5, %d3;
        ld.global.u32 %r2, [%d6];
        ld.global.u32 %r3, [%d6+512];
        ld.global.u32 %r4, [%d6+1024];
        setp.ne.u32 %p2, %r1, %r1;
        .reg .v2 .b32 V;
        {text.replace("A", "%r2").replace("B", "%r3").replace("C", "%r4").replace("R", "%r5")};
        st.global.u32 [%d4], %r5;
        ret;"""
    out = np.zeros(128, np.uint32)
    tilefold.load_ptx(kernel(body, ".param .u64 A, .param .u64 X"))["k"](out, words).launch(grid=1, block=128)
    expected = [int(CASES[text](*map(int, column))) & M32 for column in words.T]
    assert out.tolist() == expected


@pytest.mark.parametrize("signed", [False, True])
def test_fields_of_64_bits(signed: bool) -> None:
    letter = "s" if signed else "u"
    places = [(0, 64), (60, 10), (3, 0), (64, 3), (255, 255), (10, 20), (0, 1), (63, 1)]
    value = 0xF123456789ABCDEF
    lines = [
        f"mov.u32 %r2, {at}; mov.u32 %r3, {width}; bfe.{letter}64 %d8, %d7, %r2, %r3; st.global.u64 [%d2+{8 * n}], %d8;"
        for n, (at, width) in enumerate(places)
    ]
    body = f"{STORE_LANE} mov.u64 %d7, {value}; {' '.join(lines)} ret;"
    out = np.zeros(len(places), np.uint64)
    tilefold.load_ptx(kernel(body))["k"](out).launch(grid=1, block=1)
    for (at, width), found in zip(places, out.tolist(), strict=True):
        extended = _signed(value, 64) if signed else value
        field = (extended >> at) & ((1 << width) - 1)
        field = field if not signed or not width or width >= 64 else _signed(field, width)
        assert found == field & M64, (at, width)


FUNCTIONS = """
.func (.param .b32 result) twice(.param .b32 x)
{
    .reg .b32 %r<3>;
    .reg .pred %p<2>;
    ld.param.u32 %r1, [x];
    setp.gt.u32 %p1, %r1, 100;
    @%p1 bra DONE;
    add.u32 %r1, %r1, %r1;
DONE:
    st.param.b32 [result], %r1;
    ret;
}
.func (.param .align 8 .b8 result[8]) pair(.param .align 8 .b8 given[8])
{
    .reg .b32 %r<4>;
    ld.param.v2.u32 {%r1, %r2}, [given];
    add.u32 %r3, %r1, %r2;
    st.param.b32 [result], %r3;
    st.param.b32 [result+4], %r1;
    ret;
}
"""


def test_functions_are_called() -> None:
    body = f"""{STORE_LANE}
        setp.lt.u32 %p1, %r1, 20;
        mov.u32 %r2, %r1;
        {{ .param .b32 given; .param .b32 back; st.param.b32 [given], %r1;
          @%p1 call.uni (back), twice, (given); ld.param.b32 %r2, [back]; }}
        {{ .param .align 8 .b8 given[8]; .param .align 8 .b8 back[8]; st.param.v2.b32 [given], {{%r2, %r1}};
          call (back), pair, (given); ld.param.v2.b32 {{%r3, %r4}}, [back]; }}
        selp.u32 %r4, %r4, 0, %p1;
        add.u32 %r5, %r3, %r4;
        st.global.u32 [%d4], %r3;
        ret;"""
    a = np.zeros(32, np.uint32)
    text = kernel(body).replace(HEAD, HEAD + FUNCTIONS)
    with pytest.raises(TilefoldError, match="undefined"):
        tilefold.load_ptx(text)["k"](a).launch(grid=1, block=32)
    tilefold.load_ptx(text.replace("@%p1 call.uni", "call.uni"))["k"](a).launch(grid=1, block=32)
    assert a.tolist() == [3 * lane for lane in range(32)]


def test_a_register_names_the_function() -> None:
    thrice = FUNCTIONS.split(".func")[1].replace("twice", "thrice")
    thrice = thrice.replace("add.u32 %r1, %r1, %r1", "mul.lo.u32 %r1, %r1, 3")
    table = ".global .align 8 .u64 table[2] = {twice, thrice};\n"
    body = f"""{STORE_LANE}
        and.b32 %r2, %r1, 1;
        mul.wide.u32 %d5, %r2, 8;
        mov.u64 %d6, table;
        add.s64 %d7, %d6, %d5;
        ld.global.u64 %d8, [%d7];
        {{ .param .b32 given; .param .b32 back; st.param.b32 [given], %r1;
          kind: .callprototype (.param .b32 _) _ (.param .b32 _);
          call (back), %d8, (given), kind; ld.param.b32 %r3, [back]; }}
        st.global.u32 [%d4], %r3;
        ret;"""
    a = np.zeros(32, np.uint32)
    text = kernel(body).replace(HEAD, f"{HEAD}{FUNCTIONS}.func{thrice}{table}")
    tilefold.load_ptx(text)["k"](a).launch(grid=1, block=32)
    assert a.tolist() == [(2 + lane % 2) * lane for lane in range(32)]


def test_jumps_through_a_table() -> None:
    body = f"""{STORE_LANE}
        and.b32 %r2, %r1, 3;
        brx.idx %r2, places;
    places: .branchtargets ZERO, ONE, TWO, ONE;
    ZERO: mov.u32 %r3, 10; bra END;
    ONE: mov.u32 %r3, 11; bra END;
    TWO: mov.u32 %r3, 12;
    END: st.global.u32 [%d4], %r3; ret;"""
    a = np.zeros(32, np.uint32)
    tilefold.load_ptx(kernel(body))["k"](a).launch(grid=1, block=32)
    assert a.tolist() == [10, 11, 12, 11] * 8


def test_generic_addresses_of_unknown_memory_relaxed_accesses_and_policies() -> None:
    body = f"""
        .shared .align 8 .b8 s[256];
        {STORE_LANE}
        mov.u32 %r2, s;
        shl.b32 %r3, %r1, 2;
        add.u32 %r4, %r2, %r3;
        cvt.u64.u32 %d5, %r4;
        cvta.shared.u64 %d6, %d5;
        and.b32 %r5, %r1, 1;
        setp.eq.u32 %p1, %r5, 0;
        selp.b64 %d7, %d6, %d4, %p1;
        createpolicy.fractional.L2::evict_last.b64 %d9, 0.5;
        st.u32 [%d7], %r1;
        ld.u32 %r6, [%d7];
        atom.add.u32 %r7, [%d7], 1;
        ld.relaxed.gpu.global.L2::cache_hint.u32 %r8, [%d4], %d9;
        add.u32 %r9, %r6, %r7;
        st.volatile.global.u32 [%d4], %r9;
        ld.volatile.global.v2.u32 {{%r10, %r11}}, [%d4];
        st.global.L2::cache_hint.u32 [%d4], %r10, %d9;
        ret;"""
    a = np.zeros(34, np.uint32)
    call = tilefold.load_ptx(kernel(body))["k"](a)
    with pytest.raises(TilefoldError, match=r"E3204|E3202|E3203|E3205|E3206"):
        call.launch(grid=1, block=32)  # the neighbour of a pair writes its element weakly
    right = kernel(body.replace(".v2.u32 {%r10, %r11}", ".u32 %r10"))
    tilefold.load_ptx(right)["k"](a).launch(grid=1, block=32)
    assert a[:32].tolist() == [2 * lane for lane in range(32)]


def test_addresses_are_initial_values_of_variables() -> None:
    data = ".global .align 4 .u32 x[2] = {5, 7};\n.global .align 8 .u64 place[2] = {0, generic(x)+4};\n"
    body = f"""{STORE_LANE}
        ld.global.u64 %d5, [place+8];
        ld.u32 %r2, [%d5];
        st.global.u32 [%d4], %r2;
        ret;"""
    a = np.zeros(32, np.uint32)
    tilefold.load_ptx(kernel(body).replace(HEAD, HEAD + data))["k"](a).launch(grid=1, block=32)
    assert (a == 7).all()


def test_trap_and_assertions_are_faults() -> None:
    body = f"{STORE_LANE} setp.gt.u32 %p1, %r1, 7; @%p1 trap; st.global.u32 [%d4], %r1; ret;"
    a = np.zeros(32, np.uint32)
    with pytest.raises(TilefoldError, match=r"thread \(8,0,0\).*trap"):
        tilefold.load_ptx(kernel(body))["k"](a).launch(grid=1, block=32)


def test_lanes_of_one_store_race_also_where_others_store_halves() -> None:
    body = f"""{STORE_LANE} .shared .align 4 .b8 s[256]; cvt.u16.u32 %h1, %r1; add.u32 %r2, %r1, 1;
        st.shared.u16 [s+128], 0; st.shared.u32 [s], %r2; ret;"""
    with pytest.raises(TilefoldError, match="E3205"):
        tilefold.load_ptx(kernel(body))["k"](np.zeros(32, np.uint32)).launch(grid=1, block=32)


def test_all_bits_of_a_register_that_is_never_written_are_undefined() -> None:
    """Added to a number, an undefined one whose lowest bits alone differed would be lost."""
    body = f"{STORE_LANE} mov.b32 %r2, 0f40A00000; add.f32 %r2, %r2, %r3; st.global.b32 [%d4], %r2; ret;"
    with pytest.raises(TilefoldError, match="stores a value that depends on undefined bytes"):
        tilefold.load_ptx(kernel(body))["k"](np.zeros(32, np.uint32)).launch(grid=1, block=32)
