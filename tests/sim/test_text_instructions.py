# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of texts on halves, conversions to integers, and predicates, by the function of each."""

import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tilefold.runtime.sim.faults import Site
from tilefold.runtime.sim.rules.inline_instructions import instruction_of
from tilefold.runtime.sim.rules.ptx_inline import meaning_of

from tilefold import cute


def multiply_add(a: Any, b: Any, c: Any) -> Any:
    return a * b + c


SITE, WARP = Site("a text"), None
SUMS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "fma.rn": multiply_add,
    "max": np.maximum, "min": np.minimum,
}  # fmt: skip
WORDS: Any = np.dtype(np.uint32)


def run(word: str, *given: Any) -> Any:
    instruction = instruction_of(word, SITE)
    assert instruction is not None
    return instruction.run(WARP, *given)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)])
def test_halves_are_rounded_once(name: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    numbers = [rng.standard_normal((64, 2)).astype(dtype) for _ in range(3 if name == "fma.rn" else 2)]
    expected = SUMS[name](*[x.astype(np.float64) for x in numbers])
    suffix = "f16" if dtype == np.float16 else "bf16"
    found = run(f"{name}.{suffix}x2", *[x.view(np.uint32)[:, 0] for x in numbers])
    assert np.array_equal(found.view(dtype).reshape(-1, 2), expected.astype(np.float32).astype(dtype))
    one = run(f"{name}.{suffix}", *[x[:, 0].copy().view(np.uint16) for x in numbers])
    assert np.array_equal(one.view(dtype), found.view(dtype).reshape(-1, 2)[:, 0])


def test_extremes_of_nan_and_of_magnitudes() -> None:
    a, b = np.array([np.nan, -3, 2, -0.0], np.float32), np.array([1, 2, -5, 0.0], np.float32)
    words = a.view(np.uint32), b.view(np.uint32)
    assert np.isnan(run("max.NaN.f32", *words).view(np.float32)).tolist() == [True, False, False, False]
    assert run("max.xorsign.abs.f32", *words).view(np.float32)[1:].tolist() == [-3, -5, -0.0]
    relu = run("fma.rn.relu.bf16x2", *[np.array([0xBF803F80], np.uint32)] * 2, np.array([0xC0000000], np.uint32))
    assert relu.tolist() == [0x00003F80]  # 1 * 1 + 0, and -1 * -1 - 2


def test_pairs_of_singles() -> None:
    pair = np.array([1.5, -2.25], np.float32).view(np.uint64)
    assert run("fma.rn.ftz.f32x2", pair, pair, pair).view(np.float32).tolist() == [3.75, 2.8125]
    large = np.array([1.0, 1 + 2.0**-23], np.float32).view(np.uint64)
    assert run("add.rm.f32x2", large, np.full(1, 0x3300000033000000, np.uint64)).view(np.float32)[0] == 1.0


@pytest.mark.parametrize(("word", "given", "expected"), [
    ("cvt.u16.u32", np.array([0x12345], np.uint32), 0x2345),
    ("cvt.u32.u8", np.array([0xF0], np.uint8), 0xF0),
    ("cvt.s32.s8", np.array([-3], np.int8), -3),
    ("cvt.sat.s8.s32", np.array([300], np.int32), 127),
    ("cvt.sat.u8.s32", np.array([-300], np.int32), 0),
    ("cvt.rpi.s32.f32", np.array([1.25], np.float32).view(np.uint32), 2),
    ("cvt.rzi.s32.f32", np.array([-1e12], np.float32).view(np.uint32), -(1 << 31)),
    ("cvt.rni.u32.f32", np.array([np.nan], np.float32).view(np.uint32), 0),
    ("cvt.rni.s64.f32", np.array([1e30], np.float32).view(np.uint32), (1 << 63) - 1),
    ("cvt.rni.s64.f32", np.array([np.nan], np.float32).view(np.uint32), -(1 << 63)),
    ("cvt.rn.bf16.s8", np.array([-7], np.int8), -7),
    ("prmt.b32", np.array([0x03020100], np.uint32), 0x00010203),
])  # fmt: skip
def test_conversions_and_bytes(word: str, given: Any, expected: int) -> None:
    more = (given, np.array([0x0123], np.uint32)) if word == "prmt.b32" else ()
    assert run(word, given, *more).tolist() == [expected]


@pytest.mark.parametrize(
    "word", ["add.ftz.f16x2", "fma.bf16x2", "max.abs.f32", "cvt.u8.f32", "max.rn.f32x2", "add.relu.f16"]
)
def test_what_is_no_instruction(word: str) -> None:
    assert instruction_of(word, SITE) is None


def test_predicates_decide_about_instructions() -> None:
    text = (
        "{ .reg .pred p; .reg .b32 v; setp.eq.s32 p, $2, 0; @p mov.b32 v, $1; @!p shr.b32 v, $1, 16; mov.b32 $0, v; }"
    )
    meaning = meaning_of(text, 2, [WORDS], SITE)
    assert meaning is not None
    words, halves = np.full(2, 0x00070005, np.uint32), np.array([0, 1], np.int32)
    (found,) = meaning(WARP, words, halves)
    assert found.tolist() == [0x00070005, 7]
    unwritten = text.replace("@!p", "@p")
    assert meaning_of(unwritten, 2, [WORDS], SITE) is None
    assert meaning_of("{ .reg .pred p; @p mov.b32 $0, $1; }", 1, [WORDS], SITE) is None


@cute.kernel
def exchanging(x: cute.Tensor, most: cute.Tensor, first: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    text = "redux.sync.max.s32 $0, $1, 0xffffffff;"
    most[t] = cute.arch.inline_ptx(text, "=r,r", x[t], results=cute.Int32)
    text = "shfl.sync.idx.b32 $0, $1, $2, 0x1f, 0xffffffff;"
    first[t] = cute.arch.inline_ptx(text, "=r,r,r", x[t], 3, results=cute.Int32)


def test_exchange_between_lanes() -> None:
    x = np.random.default_rng(2).integers(-99, 99, 32).astype(np.int32)
    most, first = np.zeros_like(x), np.zeros_like(x)
    exchanging(x, most, first).launch(grid=1, block=32, device="sim")
    assert (most == x.max()).all()
    assert (first == x[3]).all()
