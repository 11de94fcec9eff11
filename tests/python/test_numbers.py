# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers as arguments: what each becomes in a kernel, and which a kernel cannot be given; constants are told apart."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tests.runtime.fakes import Tensor
from tilefold import cute

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportInvalidTypeForm=false
# pyright: reportArgumentType=false


@cute.kernel
def written(out, value, dtype: cute.Constexpr):
    assert value.dtype == dtype
    out[0] = value


NUMBERS: Sequence[tuple[Any, Any]] = (
    (True, cute.Boolean), (7, cute.Int32), (2**31, cute.Int64), (-(2**63), cute.Int64), (0.5, cute.Float32),
    (np.bool_(True), cute.Boolean), (np.int8(-3), cute.Int8), (np.uint8(200), cute.Uint8), (np.int64(3), cute.Int64),
    (np.uint32(2**32 - 1), cute.Uint32), (np.float16(0.5), cute.Float16), (np.float32(2), cute.Float32),
    (np.float64(0.25), cute.Float32), (ml_dtypes.bfloat16(3), cute.BFloat16),
)  # fmt: skip


@pytest.mark.parametrize(("number", "dtype"), NUMBERS)
def test_numbers(number: Any, dtype: Any) -> None:
    out = np.zeros(1, np.float64 if dtype.kind == "float" else np.int64)
    written(out, number, dtype).launch(1, 1, device="sim")
    assert out[0] == number


SCALARS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType({
    "on the left": lambda t, x: np.float32(2) * x,
    "on the right, of integers": lambda t, x: t // np.int64(4) + np.uint8(200) - t % np.int32(4),
    "compared": lambda t, x: cute.where((np.int32(4) < t) & np.bool_(True), np.float16(0.5), x),
    "powers": lambda t, x: np.float32(2) ** x + x ** np.int32(2) + x ** np.float32(0.5),
    "functions": lambda t, x: cute.fma(x, np.float32(2), np.exp(np.float32(1))) + cute.math.max(np.float64(3), x),
    "without arithmetic": lambda t, x: np.float32(0.25),
})  # fmt: skip
"""What is computed in the same way of values, of fragments and, by NumPy, of arrays."""


@pytest.mark.parametrize("what", SCALARS)
def test_scalars_of_numpy_within_kernels(what: str) -> None:
    function = SCALARS[what]

    @cute.kernel
    def values(A, out, T):
        t, _, _ = cute.arch.thread_idx()
        out[t] = function(t, A[t])
        if t == 0:
            every = cute.full((8,), np.float32(0), cute.Float32)
            T.store(every + function(T.load().to(cute.Int32), A.load()))

    a, out, every = np.arange(8, dtype=np.float32), np.zeros(8, np.float32), np.arange(8, dtype=np.float32)
    values(a, out, every).launch(1, 8, device="sim")
    cases = [function(t, x) for t, x in zip(range(8), a.tolist(), strict=True)]
    assert np.allclose(out, cases, rtol=1e-5)
    assert np.allclose(every, cases, rtol=1e-5)


def test_annotations_say_the_type() -> None:
    @cute.kernel
    def kernel(out, i: cute.Int64, u: cute.Uint64, x: cute.Float64, b: cute.Boolean, h: cute.Float16, z: cute.Uint8):
        values = (i, u, x, b, h, z)
        assert [each.dtype for each in values] == [
            cute.Int64, cute.Uint64, cute.Float64, cute.Boolean, cute.Float16, cute.Uint8,
        ]  # fmt: skip
        for number, each in enumerate(values):
            out[number] = each.to(cute.Float64)

    out = np.zeros(6)
    kernel(out, 1, 2**64 - 2048, 0.1, True, np.float64(0.1), np.array(255)).launch(1, 1, device="sim")
    assert out.tolist() == [1, 2.0**64 - 2048, 0.1, 1, float(np.float16(0.1)), 255]


@cute.kernel
def annotated(out, n: cute.Uint32 = 0, k: cute.Int8 = 0, x: cute.Float32 = 0.0, w: cute.Float8E5M2 = None, other=1):
    out[0] = n.to(cute.Int32) + k + x + other


WRONG: Sequence[tuple[Mapping[str, Any], str]] = (
    ({"n": -1}, "argument 'n' is -1, which is not a number of type Uint32"),
    ({"n": 2**32}, "argument 'n' is 4294967296, which is not a number of type Uint32"),
    ({"n": 1.0}, "argument 'n' is 1.0, which is not a number of type Uint32"),
    ({"n": float("nan")}, "argument 'n' is nan, which is not a number of type Uint32"),
    ({"k": 128}, "argument 'k' is 128, which is not a number of type Int8"),
    ({"k": np.float32(2)}, "argument 'k' is 2.0, which is not a number of type Int8"),
    ({"n": "3"}, "argument 'n' is of type str"),
    ({"x": 1j}, "argument 'x' is "),
    ({"w": 1.0}, "argument 'w' cannot be of type Float8E5M2"),
    ({"other": 2**63}, "argument 'other' is 9223372036854775808, which is not a number of type Int64"),
    ({"other": 1j}, "argument 'other' is complex"),
    ({"other": np.complex64(1)}, "argument 'other' "),
    ({"other": np.datetime64("2020-01-01")}, "argument 'other' "),
    ({"other": [1, {"a": 2**70}]}, "argument 'other1_a' is"),
    ({"other": np.array(["a"])}, "argument 'other' has elements of type"),
    ({"other": bytearray(b"x")}, "argument 'other' is a constant of type bytearray, which has no hash"),
    ({"other": Tensor(0)}, "argument 'other' "),
)


@pytest.mark.parametrize(("given", "words"), WRONG)
def test_arguments_that_are_refused(given: Mapping[str, Any], words: str) -> None:
    with pytest.raises(TilefoldError, match=words) as error:
        annotated(np.zeros(1, np.float32), **given).launch(1, 1, device="sim")
    assert error.value.code == "E3106"


def test_constants_are_told_apart() -> None:
    @dataclass
    class Config:
        scale: Any

    built: list[Any] = []

    @cute.kernel
    def kernel(out, constant: cute.Constexpr):
        built.append(constant)
        found: Any = constant.scale if isinstance(constant, Config) else constant
        out[0] = float(found[0] if isinstance(found, list | np.ndarray) else found)

    wide = np.zeros(5000, np.float32)
    other = wide.copy()
    other[2500] = 1.0  # which a text of it does not show
    kinds = [1, 1.0, True, 0.0, -0.0, [1.0], [1], wide, other, Config(1), Config(1.0), Config([2])]
    out = np.zeros(1)
    for _ in range(2):
        for constant in kinds:
            out.fill(np.nan)
            kernel(out, constant).launch(1, 1, device="sim")
            found: Any = getattr(constant, "scale", constant)
            wanted = float(found[0] if isinstance(found, list | np.ndarray) else found)
            assert str(out[0]) == str(wanted), constant
    assert len(built) == len(kinds)
    changed = Config([2])
    kernel(out, changed).launch(1, 1, device="sim")
    changed.scale[0] = 3
    kernel(out, changed).launch(1, 1, device="sim")
    assert out[0] == 3
    assert len(built) == len(kinds) + 1


JUNK: Sequence[Any] = (
    object(), [], {}, set(), (), "x", b"x", None, 1j, -1, 2**100, 1.5, float("inf"), float("nan"), np.zeros(0),
    np.zeros(3, object), np.zeros(3, "M8[s]"), np.zeros((2, 2), "V3"), np.zeros(3)[::-1], np.float128(1), np.str_("x"),
    np.array(1), np.ma.masked_array([1.0], [True]), type, len, lambda: 0, ..., NotImplemented, range(3), cute.Float16,
    memoryview(b"ab"), np.zeros(3, ">f4"), {"a": [{}, (np.zeros(0),)]}, [object()], {1: {2: {3: 1j}}},
)  # fmt: skip


@pytest.mark.parametrize("number", range(len(JUNK)))
def test_whatever_is_given_is_no_internal_error(number: int) -> None:
    """An argument, an annotated one, a constant, a size, a device: a mistake is ours to explain, or Python's."""

    @cute.kernel
    def kernel(out: cute.Tensor, any, number: cute.Int32, constant: cute.Constexpr):
        out[0] = number

    out, junk = np.zeros(1, np.float32), JUNK[number]
    calls: Sequence[Any] = (
        lambda: kernel(out if junk is None else junk, 1, 1, 1).launch(1, 1, device="sim"),
        lambda: kernel(out, junk, 1, 1).launch(1, 1, device="sim"),
        lambda: kernel(out, 1, junk, 1).launch(1, 1, device="sim"),
        lambda: kernel(out, 1, 1, junk).launch(1, 1, device="sim"),
        lambda: kernel(out, 1, 1, 1).launch(junk, 1, device="sim"),
        lambda: kernel(out, 1, 1, 1).launch(1, junk, device="sim"),
        lambda: kernel(out, 1, 1, 1).launch(1, 1, device=junk),
        lambda: kernel(out, 1, 1, 1).launch(1, 1, device="sim", stage=junk),
        lambda: kernel(out, 1, 1, 1).launch(1, 1, device="sim", smem=junk),
    )
    for call in calls:
        with suppress(TilefoldError):
            call()


def test_equality_is_that_of_bits() -> None:
    @cute.kernel
    def kernel(x, out):
        value, word = x[0], x.load()
        out[0], out[1] = cute.Int32(value == 0x80008000), cute.Int32(value != 0x80008000)
        out[2] = cute.Int32(cute.all_(word == 0x80008000))

    x, out = np.array([-0x7FFF8000], np.int32), np.zeros(3, np.int32)
    kernel(x, out).launch(1, 1, device="sim")
    assert out.tolist() == [1, 0, 1]
