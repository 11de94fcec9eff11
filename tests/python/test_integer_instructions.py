# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers and registers by the names of PTX's instructions, compared with Python's integers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target
from tilefold.compiler.machine.assemble import assemble

from tilefold import cute

GENERATOR = np.random.default_rng(5)
WORDS = GENERATOR.integers(-(2**31), 2**31, (3, 32)).astype(np.int32)
WORDS[0, :5] = (0, -1, 1, -(2**31), 2**31 - 1)
WORDS[1, :5] = (2**31 - 1, -1, 0, 1, 2**31 - 1)
PLACES = GENERATOR.integers(0, 70, (2, 32)).astype(np.int32)


@cute.kernel
def integers(words: cute.Tensor, places: cute.Tensor, signed: cute.Tensor, unsigned: cute.Tensor, wide: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    a, b, c = words[0, t], words[1, t], words[2, t]
    x, y = cute.arch.bitcast(a, cute.Uint32), cute.arch.bitcast(b, cute.Uint32)
    at, n = places[0, t], places[1, t]
    arch = cute.arch
    for i, value in enumerate(
        cute.const_expr(
            [
                arch.bfe(a, at, n), arch.bfi(a, b, at, n), arch.mul_hi(a, b), arch.mul24(a, b),
                arch.mul24(a, b, hi=True), arch.mad24(a, b, c), arch.add_sat_int(a, b), arch.sub_sat_int(a, b),
                arch.lop3(a, b, c, 0x96), arch.lop3(a, b, c, 0xE8),
            ]
        )
    ):  # fmt: skip
        signed[i, t] = value
    for i, value in enumerate(
        cute.const_expr(
            [
                arch.bfe(x, at, n), arch.bfind(a), arch.bfind(x), arch.mul24(x, y, hi=True), arch.shf(x, y, at),
                arch.shf(x, y, at, "r"), arch.shf(x, y, at, "clamp_left"), arch.shf(x, y, at, "clamp_right"),
                arch.lanemask_lt(), arch.lanemask_le(), arch.lanemask_eq(), arch.lanemask_ge(), arch.lanemask_gt(),
            ]
        )
    ):  # fmt: skip
        unsigned[i, t] = value
    wide[0, t] = arch.mul_wide(a, b)
    wide[1, t] = arch.bfe(cute.Int64(a) * 65537, at, n)


def bits(x: int, of: int = 32, signed: bool = False) -> int:
    low = x % (1 << of)
    return low - (1 << of) if signed and low >> (of - 1) else low


def extract(x: int, at: int, n: int, of: int, signed: bool) -> int:
    """The example of the PTX ISA for bfe, bit by bit."""
    sign = bits(x, of) >> min(at + n - 1, of - 1) & 1 if signed and n else 0
    made = [bits(x, of) >> (at + i) & 1 if i < n and at + i < of else sign for i in range(of)]
    return bits(sum(bit << i for i, bit in enumerate(made)), of, signed)


def insert(new: int, old: int, at: int, n: int) -> int:
    made = [bits(new) >> (i - at) & 1 if at <= i < at + n else bits(old) >> i & 1 for i in range(32)]
    return bits(sum(bit << i for i, bit in enumerate(made)), signed=True)


def find(x: int) -> int:
    return bits((x if x >= 0 else ~x).bit_length() - 1)


def test_integers() -> None:
    signed, unsigned, wide = np.zeros((10, 32), np.int32), np.zeros((13, 32), np.uint32), np.zeros((2, 32), np.int64)
    integers(WORDS, PLACES, signed, unsigned, wide).launch(grid=1, block=32, device="sim")
    for t in range(32):
        a, b, c = (int(word) for word in WORDS[:, t])
        at, n = (int(place) for place in PLACES[:, t])
        x, y = bits(a), bits(b)
        low = bits(a, 24, True) * bits(b, 24, True)
        expected = [
            extract(a, at, n, 32, True), insert(a, b, at, n), bits(a * b >> 32, signed=True), bits(low, signed=True),
            bits(low >> 16, signed=True), bits(low + c, signed=True), min(max(a + b, -(2**31)), 2**31 - 1),
            min(max(a - b, -(2**31)), 2**31 - 1), a ^ b ^ c, a & b | a & c | b & c,
        ]  # fmt: skip
        assert signed[:, t].tolist() == expected
        both, wrapped, clamped = x << 32 | y, at % 32, min(at, 32)
        assert unsigned[:, t].tolist() == [
            extract(x, at, n, 32, False), find(a), find(x), bits((x % 2**24) * (y % 2**24) >> 16),
            bits(both << wrapped >> 32), bits(both >> wrapped), bits(both << clamped >> 32), bits(both >> clamped),
            (1 << t) - 1, (2 << t) - 1, 1 << t, bits(-(1 << t)), bits(-(2 << t)),
        ]  # fmt: skip
        assert wide[:, t].tolist() == [a * b, extract(a * 65537, at, n, 64, True)]
    assert "integers" in assemble(integers.ptx("sm_80"), Target("sm_80")).kernels


@cute.kernel
def lanes(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    out[0, t] = cute.arch.match_sync(cute.arch.FULL_MASK, x[t])
    out[1, t] = cute.arch.match_sync(cute.arch.FULL_MASK, x[t], "all")
    out[2, t] = cute.arch.match_sync(cute.arch.FULL_MASK, x[0], kind="all")
    y[1, t] = cute.arch.warp_redux_sync(y[0, t], "fmax", abs=True)
    y[2, t] = cute.arch.warp_redux_sync(cute.where(t == 3, float("nan"), y[0, t]), "fmin", nan=True)
    y[3, t] = cute.arch.fmax(y[0, t], -0.5, abs=True)
    y[4, t] = cute.arch.fmin(cute.where(t == 3, float("nan"), y[0, t]), 0.5, nan=True)
    y[5, t] = cute.arch.fmax(1e-40, y[0, t], ftz=True)


def test_lanes_and_extremes() -> None:
    x, out = np.arange(32, dtype=np.int32) % 3, np.zeros((3, 32), np.uint32)
    y = np.zeros((6, 32), np.float32)
    y[0] = np.random.default_rng(1).standard_normal(32)
    y[0, :2] = (-7, 0)
    lanes(x, y, out).launch(grid=1, block=32, device="sim")
    assert out[0].tolist() == [sum(1 << lane for lane in range(t % 3, 32, 3)) for t in range(32)]
    assert not out[1].any()
    assert (out[2] == 0xFFFFFFFF).all()
    assert (y[1] == 7).all()
    assert np.isnan(y[2]).all()
    assert (y[3] == np.where(y[0] < 0, 1, -1) * np.maximum(abs(y[0]), np.float32(0.5))).all()
    assert np.isnan(y[4, 3])
    assert (np.delete(y[4], 3) == np.minimum(np.delete(y[0], 3), np.float32(0.5))).all()
    assert (y[5] == np.maximum(y[0], 0)).all()


@cute.kernel
def registers(out: cute.Tensor, times: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    out[0, t] = cute.arch.smid()
    out[1, t] = cute.arch.nsmid()
    out[2, t] = cute.arch.physical_warp_id()
    out[3, t] = cute.arch.nwarpid()
    out[4, t] = cute.arch.clock()
    out[5, t] = cute.arch.globaltimer_lo()
    times[0, t] = cute.arch.clock64()
    times[1, t] = cute.arch.globaltimer()


def test_registers_of_the_multiprocessor() -> None:
    out, times = np.full((6, 64), -1, np.int32), np.full((2, 64), -1, np.int64)
    registers(out, times).launch(grid=1, block=64, device="sim")
    assert out[:4, [0, 63]].T.tolist() == [[0, 1, 0, 64], [0, 1, 1, 64]]
    assert (out[4] > 0).all()
    assert (out[4] < out[5]).all()
    assert (times[0] < times[1]).all()
    assert "registers" in assemble(registers.ptx("sm_80"), Target("sm_80")).kernels


MISTAKES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a table of more than 8 bits": (lambda x: cute.arch.lop3(x, x, x, 300), "the table of lop3 is 300"),
    "16 bits": (lambda x: cute.arch.bfe(cute.Int16(x), 0, 1), "of 32 or 64 bits, got a Int16"),
    "a kind of shift": (lambda x: cute.arch.shf(x, x, 1, "left"), "the mode 'left'"),
    "a kind of match": (lambda x: cute.arch.match_sync(-1, x, "some"), "the kind 'some'"),
    "a reduction of floats": (
        lambda x: cute.arch.warp_redux_sync(cute.Float32(x), "add"),
        "do not support 'add' of floats",
    ),
    "a rounding": (lambda x: cute.arch.add_packed_f32x2((1.0, 1.0), (1.0, 1.0), rnd="up"), "the rounding mode 'up'"),
}


@cute.kernel
def mistaken(x: cute.Tensor, call: cute.Constexpr) -> None:
    call(x[0])


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    call, words = MISTAKES[name]
    with pytest.raises(TilefoldError, match=words) as caught:
        mistaken(np.zeros(4, np.int32), call).launch(grid=1, block=32, device="sim")
    assert caught.value.code == "E5002"
