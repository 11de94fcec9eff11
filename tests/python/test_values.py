# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic of values is Python's and NumPy's; what is known of an integer is true of it."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import TilefoldError
from tilefold.builder.scalars.values import Int, convert, wrap
from tilefold.builder.tracing.state import building
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.layout.algebra.integers import Unknown
from xdsl.dialects.builtin import IndexType, f32, i32
from xdsl.ir import Block

from tilefold import cute

Function = Callable[[Any, Any], Any]

INTEGERS: Sequence[Function] = (
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a // b, lambda a, b: a % b,
    lambda a, b: a & b, lambda a, b: a | b, lambda a, b: a ^ b, lambda a, b: a // 3, lambda a, b: a % 3,
    lambda a, b: a % 8, lambda a, b: a // 8, lambda a, b: 100 // b, lambda a, b: 100 % b, lambda a, b: -a,
    lambda a, b: ~a, lambda a, b: abs(a), lambda a, b: a << 3, lambda a, b: a >> 2, lambda a, b: a**3,
    lambda a, b: 7 - a, lambda a, b: a + 0, lambda a, b: a * 1,
)  # fmt: skip

COMPARISONS: Sequence[Function] = (
    lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: a > b, lambda a, b: a >= b, lambda a, b: a == b,
    lambda a, b: a != b, lambda a, b: a > 3, lambda a, b: (a < b) & (b != 0), lambda a, b: (a < b) | ~(b > 0),
    lambda a, b: (a < b) ^ (a > 0),
)  # fmt: skip

FLOATS: Sequence[Function] = (
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b, lambda a, b: a % b,
    lambda a, b: a // b, lambda a, b: -a, lambda a, b: abs(a), lambda a, b: 1 / b, lambda a, b: a**2 + 1,
    lambda a, b: a * 2 - 0.5,
)  # fmt: skip


def by_thread(
    functions: Sequence[Function], a: NDArray[Any], b: NDArray[Any], dtype: Any, stage: str | None = None
) -> NDArray[Any]:
    """What each function gives for pairs of elements, one a thread, in the simulator."""
    out = np.zeros((len(functions), len(a)), dtype)

    @cute.kernel
    def compute(A: cute.Tensor, B: cute.Tensor, Out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        for number, function in enumerate(functions):
            Out[number, t] = function(A[t], B[t])

    compute(a, b, out).launch(grid=1, block=len(a), device="sim", stage=stage)
    return out


def test_integers_are_pythons() -> None:
    a = np.array([0, 1, -1, 7, -7, 12, -12, 100, -100, 8, -8, 3, 2, -2, 5, -9], np.int32)
    b = np.array([1, -1, 3, -3, 2, 5, 5, 7, -7, 8, -8, 4, -4, 1, 9, 16], np.int32)
    got = by_thread(INTEGERS, a, b, np.int32)
    for number, function in enumerate(INTEGERS):
        wanted = [function(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        assert got[number].tolist() == wanted, f"function {number}"


@pytest.mark.parametrize("stage", ["cute", "index", "instr"])
def test_coordinates_are_pythons(stage: str) -> None:
    """Coordinates are computed as integers of Python are, also those that are negative on the way."""
    functions: Sequence[Callable[[Any], Any]] = (
        lambda t: t - 5, lambda t: (t - 5) // 3, lambda t: (t - 5) % 3, lambda t: (t - 5) // 4, lambda t: (t - 5) % 4,
        lambda t: t // 3 * 7 % 5, lambda t: t ^ 3, lambda t: (t << 2) >> 1, lambda t: cute.math.max(t - 4, 0),
        lambda t: cute.math.min(7 - t, t), lambda t: cute.ceil_div(t, 3), lambda t: abs(t - 9), lambda t: -t,
        lambda t: cute.where(t < 4, t, 100),
    )  # fmt: skip
    out = np.zeros((len(functions), 16), np.int32)

    @cute.kernel
    def compute(Out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        for number, function in enumerate(functions):
            Out[number, t] = function(t)

    compute(out).launch(grid=1, block=16, device="sim", stage=stage)
    for number, function in enumerate(functions):
        assert out[number].tolist() == [function(t) for t in range(16)], f"function {number}"


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_comparisons(dtype: Any) -> None:
    a, b = np.array([0, 1, -1, 7, 3, 3, 9, -4], dtype), np.array([0, 2, 0, 7, -3, 4, 1, -4], dtype)
    got = by_thread(COMPARISONS, a, b, np.int32)
    for number, function in enumerate(COMPARISONS):
        wanted = [bool(function(x, y)) for x, y in zip(a, b, strict=True)]
        if number == 8:  # ~ of a bool of Python is not its opposite
            wanted = [bool(x < y or not y > 0) for x, y in zip(a, b, strict=True)]
        assert got[number].tolist() == wanted, f"function {number}"


def test_nan_is_unequal_to_everything() -> None:
    nan = np.array([np.nan, 1.0], np.float32)
    got = by_thread(COMPARISONS[:6], nan, nan, np.int32)
    assert got[:, 0].tolist() == [0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats(dtype: Any) -> None:
    a = np.array([0.5, -1.25, 3.0, 7.5, -2.0, 100.0, 0.125, -9.0], dtype)
    b = np.array([2.0, 0.5, -1.5, 4.0, -3.0, 8.0, -0.25, 2.0], dtype)
    got = by_thread(FLOATS, a, b, dtype)
    for number, function in enumerate(FLOATS):
        np.testing.assert_allclose(got[number], function(a, b), rtol=1e-3 if dtype == np.float16 else 1e-6)


def test_promotions() -> None:
    with building(Block(), convert):
        i, h, b = cute.Int32(1), cute.Float16(1), cute.BFloat16(1)
        single, double, wide = cute.Float32(1), cute.Float64(1), cute.Int64(1)
        assert (h + 1).dtype == cute.Float16
        assert (h + 0.1).dtype == cute.Float16
        assert (h + i).dtype == cute.Float16
        assert (h + b).dtype == cute.Float32
        assert (single + h).dtype == cute.Float32
        assert (double + single).dtype == cute.Float64
        assert (i + wide).dtype == cute.Int64
        assert ((1 << 46) | i).dtype == (i + (1 << 40)).dtype == cute.Int64
        assert (i | 0x80008000).dtype == cute.Int32
        assert (i + 0.5).dtype == cute.Float32
        assert (i / 2).dtype == cute.Float32
        assert ((i < 2) & (i < 3)).dtype == cute.Boolean
        assert (cute.TFloat32(1.0) + 1).dtype == cute.Float32


def test_conversions() -> None:
    values = np.array([0.0, 1.0, -1.5, 2.75, -3.999, 100.49, 2048.5, -7.0], np.float32)
    types = (cute.Float16, cute.BFloat16, cute.Float64, cute.Int32, cute.Int64, cute.Int8, cute.Boolean, cute.TFloat32,
             cute.Float8E4M3FN, cute.Float8E5M2)  # fmt: skip
    functions: list[Function] = [lambda a, b, t=t: a.to(t).to(cute.Float64) for t in types]
    got = by_thread(functions, values, values, np.float64, "cute")  # conversions of 8 bits need a newer target
    assert got[0].tolist() == values.astype(np.float16).tolist()
    assert got[1].tolist() == [0, 1, -1.5, 2.75, -4, 100.5, 2048, -7]
    assert got[2].tolist() == values.tolist()
    assert got[3].tolist() == got[4].tolist() == np.trunc(values).tolist()
    assert got[5][:6].tolist() == np.trunc(values[:6]).tolist()
    assert got[6].tolist() == [0, 1, 1, 1, 1, 1, 1, 1]
    assert got[7].tolist() == [0, 1, -1.5, 2.75, -3.998046875, 100.5, 2048, -7]
    assert got[8].tolist() == [0, 1, -1.5, 2.75, -4, 104, 448, -7]
    assert got[9].tolist() == [0, 1, -1.5, 3, -4, 96, 2048, -7]


def test_what_divides_an_integer() -> None:
    block = Block(arg_types=[IndexType(), i32])
    with building(block, convert):
        t: Int = wrap(block.args[0], range=(0, 1023))
        k: Int = wrap(block.args[1])
        assert (t * 8 + 16).known == Unknown(64, 8)
        assert (t * 8 // 4).known == Unknown(64, 2)
        assert (t * 12 % 8).known == Unknown(64, 4)
        assert (t * 4 << 2).known == Unknown(64, 16)
        assert (k * 8).to(cute.Int64).known == Unknown(64, 8)
        assert (t + 1).nonnegative
        assert (k % 8).nonnegative
        assert not (t - 1).nonnegative
        assert not k.nonnegative
        assert (t.to(cute.Int32) * 12).known == Unknown(32, 12)
        assert (k * 12).known == Unknown(32, 4)  # it may wrap


def test_what_range_an_integer_has() -> None:
    block = Block(arg_types=[IndexType(), i32])
    with building(block, convert):
        t: Int = wrap(block.args[0], range=(0, 1023))
        k: Int = wrap(block.args[1])
        narrow = t.to(cute.Int32)
        assert (narrow * 4 + 3).range == (3, 4095)
        assert (narrow * 1103515245 + 12345).range == cute.Int32.limits
        assert t.to(cute.Int8).range == cute.Int8.limits
        assert (t & 127).to(cute.Int8).range == (0, 127)
        assert (k >> 4).range == (-(2**27), 2**27 - 1)
        assert (k % -7).range == (-6, 0)
        assert abs(k).range == cute.Int32.limits
        assert abs(k >> 1).range == (0, 2**30)
        assert k.to(cute.Uint32).range == cute.Uint32.limits
        assert k.to(cute.Uint32).to(cute.Int64).range == (0, 2**32 - 1)
        assert cute.where(k < 0, t, 5).range == (0, 1023)


WRAPPING: Sequence[Function] = (
    lambda t, n: (t * 1103515245 + 12345) % 7, lambda t, n: (t * 1103515245 + 12345) // 10,
    lambda t, n: (t * 1103515245 + 12345) >> 3, lambda t, n: (t * 1103515245 + 12345) > 5 * t,
    lambda t, n: (t << 31) >> 31, lambda t, n: (t * 12 + n) % 24, lambda t, n: (t << 28) // -3,
    lambda t, n: n // -1, lambda t, n: n % -1, lambda t, n: abs(n + t) % 3, lambda t, n: divmod(n - t, 10)[1],
)  # fmt: skip


@pytest.mark.parametrize("stage", ["cute", "index", "instr"])
def test_integers_wrap(stage: str) -> None:
    """A product, a sum or a shift of numbers that are not negative can be negative."""
    out = np.zeros((len(WRAPPING) + 1, 32), np.int32)

    @cute.kernel
    def compute(Out: cute.Tensor, n: cute.Int32):
        t = cute.Int32(cute.arch.thread_idx()[0])
        for number, function in enumerate(WRAPPING):
            Out[number, t] = cute.Int32(function(t, n))
        hash = cute.Int32(1)
        for i in cute.range(10):
            hash = hash * 31 + t + cute.Int32(i)
        Out[len(WRAPPING), t] = hash % 7

    compute(out, -(2**31)).launch(grid=1, block=32, device="sim", stage=stage)
    t, n = np.arange(32, dtype=np.int32), np.full(32, -(2**31), np.int32)
    with np.errstate(over="ignore"):
        for got, function in zip(out, WRAPPING, strict=False):
            assert got.tolist() == function(t, n).astype(np.int32).tolist()
        hash = np.ones(32, np.int32)
        for i in range(10):
            hash = hash * np.int32(31) + t + np.int32(i)
    assert out[-1].tolist() == (hash % 7).tolist()


def test_static_arithmetic_writes_nothing() -> None:
    block = Block(arg_types=[IndexType()])
    with building(block, convert):
        t = wrap(block.args[0])
        assert t + 0 is t
        assert 1 * t is t
        assert t // 1 is t
    assert block.is_empty


MISTAKES: Sequence[tuple[Function, str, str]] = (
    (lambda i, x: bool(i < 2), "E5003", "Python cannot branch on a"),
    (lambda i, x: range(i), "E5003", "Python needs a number"),
    (lambda i, x: float(x), "E5003", "Python needs a number"),
    (lambda i, x: x.to(cute.Float8E5M2) + 1, "E5002", "Float8E5M2 does not support arithmetic"),
    (lambda i, x: i // 0, "E5002", "division by zero"),
    (lambda i, x: cute.Int8(1000), "E5002", "1000 is not a number of type Int8"),
    (lambda i, x: cute.Int32(1.5), "E5002", "1.5 is not a number of type Int32"),
    (lambda i, x: cute.Int32(cast("Any", "1")), "E5002", "expected a value or a number, got str"),
    (lambda i, x: cute.make_rmem_tensor(4, "f32"), "E5002", "expected an element type"),
)


@pytest.mark.parametrize(("mistake", "code", "words"), MISTAKES)
def test_mistakes(mistake: Function, code: str, words: str) -> None:
    block = Block(arg_types=[i32, f32])
    with pytest.raises(ProgramError) as error, building(block, convert):
        mistake(wrap(block.args[0]), wrap(block.args[1]))
    assert error.value.code == code
    assert words in error.value.message  # the line that is shown has the words, too
    place = error.value.diagnostics[0].place
    assert place is not None
    assert place.file == __file__
    assert "lambda i, x:" in place.text


def test_outside_of_a_kernel() -> None:
    with pytest.raises(TilefoldError, match="no kernel is being built") as error:
        cute.arch.thread_idx()
    assert error.value.code == "E5001"


def test_quotients_are_rounded_up() -> None:
    a = np.array([0, 1, -1, 7, -7, 127, -128, 100], np.int8)
    b = np.array([1, 2, 2, -2, -2, 2, 3, -128], np.int8)
    functions: Sequence[Function] = (
        lambda a, b: cute.ceil_div(a, b), lambda a, b: cute.ceil_div(a, 2), lambda a, b: cute.ceil_div(a, -3),
        lambda a, b: cute.ceil_div(a, -1), lambda a, b: cute.ceil_div(a.to(cute.Uint8), 2),
    )  # fmt: skip
    got = by_thread(functions, a, b, np.int8)
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    assert got[0].tolist() == [-(-x // y) for x, y in pairs]
    assert got[1].tolist() == [-(-x // 2) for x, _ in pairs]
    assert got[2].tolist() == [-(-x // -3) for x, _ in pairs]
    assert got[3].tolist() == [signed_byte(-x) for x, _ in pairs]
    assert got[4].tolist() == [signed_byte(-(-(x & 255) // 2)) for x, _ in pairs]


def signed_byte(x: int) -> int:
    """The number of Int8 that has the same bits."""
    return (x + 128) % 256 - 128


@pytest.mark.parametrize("bounds", [(100, -100, -3), (-100, 100, 7), (-128, 127, 50), (127, -128, -100)])
def test_loops_between_narrow_bounds(bounds: tuple[int, int, int]) -> None:
    """Their number does not fit in the type of the bounds."""
    ends, out = np.array(bounds[:2], np.int8), np.zeros(2, np.int64)

    @cute.kernel
    def count(Ends: cute.Tensor, Out: cute.Tensor):
        trips, last = cute.Int32(0), cute.Int64(0)
        for i in cute.range(Ends[0], Ends[1], bounds[2]):
            trips, last = trips + 1, cute.Int64(i)
        Out[0], Out[1] = trips, last

    count(ends, out).launch(1, 1, device="sim")
    assert out.tolist() == [len(range(*bounds)), range(*bounds)[-1]]


def test_a_number_that_the_type_of_the_others_does_not_have() -> None:
    @cute.kernel
    def merged(A: cute.Tensor, B: cute.Tensor):
        x = 200
        if A[0] > 0:
            x = A[0]
        B[0] = x

    @cute.kernel
    def chosen(A: cute.Tensor, B: cute.Tensor):
        B[0] = cute.where(A[0] > 0, A[0], 200)

    for kernel in (merged, chosen):
        with pytest.raises(ProgramError, match="200 is not a number of type Int8"):
            kernel(np.zeros(1, np.int8), np.zeros(1, np.int8)).launch(1, 1, device="sim")


def test_integers_of_64_bits_are_shuffled() -> None:
    out = np.zeros(32, np.int64)

    @cute.kernel
    def compute(Out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        Out[t] = cute.Int64(cute.arch.shuffle_sync(cute.Int64(t) * 2**40 - 3, 1)) // 2

    compute(out).launch(1, 32, device="sim")
    assert set(out.tolist()) == {(2**40 - 3) // 2}
