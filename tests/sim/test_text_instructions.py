# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of texts on halves and pairs, conversions to integers, and predicates, as launches execute them."""

import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute


def multiply_add(a: Any, b: Any, c: Any) -> Any:
    return a * b + c


SUMS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "fma.rn": multiply_add,
    "max": np.maximum, "min": np.minimum,
}  # fmt: skip
LETTERS = {2: "h", 4: "r", 8: "l"}


@cute.kernel(preprocessor=False)
def executing(
    A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, Out: cute.Tensor, text: cute.Constexpr, letters: cute.Constexpr
) -> None:
    t, _, _ = cute.arch.thread_idx()
    given = [X[t] for X in (A, B, C)][: letters.count(",")]
    Out[t] = cute.arch.inline_ptx(text, letters, *given, results=Out.element_type)


def run(text: str, *given: Any, result: Any = None) -> Any:
    """The result of an instruction, or of a text, in the threads of a block: as unsigned words of the operands' size,
    or as such a type.
    """
    text = text if " " in text else f"{text} {', '.join(f'${n}' for n in range(len(given) + 1))};"
    given = tuple(x.view(f"u{max(x.itemsize, 2)}") if x.itemsize > 1 else x.astype(np.uint16) for x in given)
    out = np.zeros(len(given[0]), given[0].dtype if result is None else result)
    letters = "=" + ",".join(LETTERS[x.itemsize] for x in (out, *given))
    operands = [*given, *[out] * (3 - len(given))]
    executing(*operands, out, text, letters).launch(grid=1, block=len(out), device="sim")
    return out


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)])
def test_halves_are_rounded_once(name: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    numbers = [rng.standard_normal((64, 2)).astype(dtype) for _ in range(3 if name == "fma.rn" else 2)]
    expected = SUMS[name](*[x.astype(np.float64) for x in numbers])
    suffix = "f16" if dtype == np.float16 else "bf16"
    found = run(f"{name}.{suffix}x2", *[x.view(np.uint32)[:, 0].copy() for x in numbers])
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


@pytest.mark.parametrize(("word", "given", "expected", "result"), [
    ("cvt.u16.u32", np.array([0x12345], np.uint32), 0x2345, np.uint16),
    ("cvt.u32.u8", np.array([0xF0], np.uint8), 0xF0, np.uint32),
    ("cvt.s32.s8", np.array([-3], np.int8), -3, np.int32),
    ("cvt.sat.s8.s32", np.array([300], np.int32), 127, np.int32),
    ("cvt.sat.u8.s32", np.array([-300], np.int32), 0, np.int32),
    ("cvt.rpi.s32.f32", np.array([1.25], np.float32), 2, np.int32),
    ("cvt.rzi.s32.f32", np.array([-1e12], np.float32), -(1 << 31), np.int32),
    ("cvt.rni.u32.f32", np.array([np.nan], np.float32), 0, np.uint32),
    ("cvt.rni.s64.f32", np.array([1e30], np.float32), (1 << 63) - 1, np.int64),
    ("cvt.rni.s64.f32", np.array([np.nan], np.float32), -(1 << 63), np.int64),
    ("prmt.b32", np.array([0x03020100], np.uint32), 0x00010203, np.uint32),
    ("mov.b32", np.array([7], np.uint32), 7, np.uint32),
    ("fma.rn.oob.bf16", np.array([0x3F80], np.uint16), 0x3F80, np.uint16),
    ("fma.rn.oob.bf16", np.array([0x7FF7], np.uint16), 0, np.uint16),
    ("fns.b32", np.array([5], np.uint32), 2, np.uint32),
])  # fmt: skip
def test_conversions_and_bytes(word: str, given: Any, expected: int, result: Any) -> None:
    more = {
        "prmt.b32": (given, np.array([0x0123], np.uint32)),
        "fns.b32": (np.array([1], np.uint32), np.array([1], np.int32)),
        "fma.rn.oob.bf16": (given, np.array([0], np.uint16)),
    }
    assert run(word, given, *more.get(word, ()), result=result).tolist() == [expected]


@pytest.mark.parametrize("word", ["cvt.u8.f32", "max.rn.f32x2", "add.frob.f16"])
def test_what_is_no_instruction(word: str) -> None:
    with pytest.raises(TilefoldError, match=f"E3201.*{word}"):
        run(word, *[np.zeros(1, np.uint64 if "f32x2" in word else np.uint32)] * (1 + (word[0] != "c")))


def test_predicates_decide_about_instructions() -> None:
    text = (
        "{ .reg .pred p; .reg .b32 v; setp.eq.s32 p, $2, 0; @p mov.b32 v, $1; @!p shr.b32 v, $1, 16; mov.b32 $0, v; }"
    )
    words, halves = np.full(2, 0x00070005, np.uint32), np.array([0, 1], np.int32)
    assert run(text, words, halves).tolist() == [0x00070005, 7]
    with pytest.raises(TilefoldError, match="E3204"):
        run(text.replace("@!p", "@p"), words, halves)


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
