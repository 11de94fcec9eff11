# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of bits, and random numbers, against Python's integers and NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import TilefoldError

from tilefold import cute

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

A = np.array([0, 1, -1, 2**31 - 1, -(2**31), 12345, -77, 0x0F0F0F0F], np.int32)
B = np.array([3, -1, -1, 2**31 - 1, -(2**31), 99999, 2**30, 0x12345678], np.int32)


def computed(function: Callable[..., Any], dtype: Any, *arrays: NDArray[Any], stage: str = "instr") -> NDArray[Any]:
    """What a function gives in each thread for the thread's elements of arrays, in the simulator."""
    out = np.zeros(len(arrays[0]), dtype)

    @cute.kernel
    def kernel(out: cute.Tensor, operands: tuple[cute.Tensor, ...]):
        t, _, _ = cute.arch.thread_idx()
        out[t] = function(*[operand[t] for operand in operands])

    kernel(out, arrays).launch(grid=1, block=len(out), device="sim", stage=stage)
    assert kernel.ptx("sm_90a")
    return out


def test_the_upper_bits_of_a_mask_do_not_count() -> None:
    whole = A.astype(np.uint32)
    assert computed(lambda x: x & ~(1 << 31), np.uint32, whole).tolist() == (whole & 0x7FFFFFFF).tolist()
    assert computed(lambda x: -(1 << 40) & x, np.int32, A).tolist() == [0] * len(A)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.int8])
def test_counts(dtype: Any) -> None:
    values = (A.astype(np.int64) * 3 if dtype == np.int64 else A).astype(dtype)
    bits = 8 * values.itemsize
    whole = [int(x) & ((1 << bits) - 1) for x in values]
    assert computed(cute.arch.popc, np.int32, values).tolist() == [x.bit_count() for x in whole]
    assert computed(cute.arch.clz, np.int32, values).tolist() == [bits - x.bit_length() for x in whole]
    if bits >= 32:
        wanted = [int(f"{x:0{bits}b}"[::-1], 2) for x in whole]
        assert [int(x) & ((1 << bits) - 1) for x in computed(cute.arch.brev, dtype, values)] == wanted


def test_upper_halves_of_products() -> None:
    wanted = [(int(a) * int(b)) >> 32 for a, b in zip(A, B, strict=True)]
    assert computed(cute.arch.mulhi, np.int32, A, B).tolist() == wanted
    a, b = A.view(np.uint32), B.view(np.uint32)
    wanted = [(int(x) * int(y)) >> 32 for x, y in zip(a, b, strict=True)]
    assert computed(cute.arch.mulhi, np.uint32, a, b).tolist() == wanted


def test_bytes() -> None:
    a, b = A.view(np.uint32), B.view(np.uint32)
    wanted = [
        int.from_bytes(bytes([y[0], x[3], x[0], y[2]]), "little") for x, y in zip(_bytes(a), _bytes(b), strict=True)
    ]
    assert computed(lambda x, y: cute.arch.prmt(x, y, 0x6034), np.uint32, a, b).tolist() == wanted
    products = A.view(np.int8).astype(np.int32) * B.view(np.uint8)
    wanted = (products.reshape(-1, 4).sum(1) + 5).tolist()
    assert computed(lambda x, y: cute.arch.dp4a(x, y, 5), np.int32, A, b).tolist() == wanted


def _bytes(words: NDArray[Any]) -> list[list[int]]:
    return words.view(np.uint8).reshape(-1, 4).tolist()


def test_bits_of_other_types() -> None:
    floats = np.array([1.5, -0.0, np.inf, np.nan], np.float32)
    assert computed(lambda x: cute.arch.bitcast(x, cute.Int32), np.int32, floats).tolist() == floats.view("i4").tolist()
    back = computed(lambda x: cute.arch.bitcast(x, cute.Float32), np.float32, A)
    assert back.view(np.int32).tolist() == A.tolist()
    with pytest.raises(TilefoldError, match="only types of equal width"):
        computed(lambda x: cute.arch.bitcast(x, cute.Float64), np.float64, A)

    @cute.kernel
    def fragment(words: cute.Tensor, halves: cute.Tensor):
        halves.store(cute.arch.bitcast(words.load(), cute.Float16))
        words.store(cute.arch.bitcast(words.load(), cute.Float32).to(cute.Int32))

    words, halves = floats[:2].view(np.int32).copy(), np.zeros(4, np.float16)
    fragment(words, halves).launch(grid=1, block=1, device="sim")
    assert halves.tobytes() == floats[:2].tobytes()
    assert words.tolist() == [1, 0]


def test_floats_that_are_not_numbers() -> None:
    floats = np.array([1.5, -np.inf, np.inf, np.nan], np.float32)
    for name in ("isnan", "isinf", "isfinite"):
        got = computed(getattr(cute.arch, name), np.int32, floats)
        assert got.tolist() == getattr(np, name)(floats).astype(int).tolist()


def test_fragments_are_added_atomically() -> None:
    @cute.kernel
    def kernel(out: cute.Tensor, x: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        cute.arch.red(out.ptr(4), cute.local_tile(x, (4,), (t,)).load(), op="add")

    x, out = np.arange(128, dtype=np.float32), np.zeros(8, np.float32)
    kernel(out, x).launch(grid=1, block=32, device="sim")
    assert out.tolist() == [0] * 4 + x.reshape(32, 4).sum(0).tolist()
    assert "red.relaxed.gpu.global.add.v4.f32" in kernel.ptx("sm_90a")


# Known answers of the authors' Random123 library: counter, key, result
KNOWN = (
    ((0, 0, 0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, 2**64 - 1, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        0x299F31D0_A4093822,
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)


@pytest.mark.parametrize(("counter", "seed", "wanted"), KNOWN)
def test_philox(counter: tuple[int, ...], seed: int, wanted: tuple[int, ...]) -> None:
    @cute.kernel
    def kernel(out: cute.Tensor, seed: cute.Uint64, words: tuple[cute.Uint32, ...]):
        for i, word in enumerate(cute.arch.philox(seed, *words)):
            out[i] = word

    out = np.zeros(4, np.uint32)
    kernel(out, np.uint64(seed), tuple(map(np.uint32, counter))).launch(grid=1, block=1, device="sim")
    assert out.tolist() == list(wanted)


def test_distributions() -> None:
    counters = np.arange(512, dtype=np.int32)
    uniform = computed(lambda i: cute.arch.uniform(7, i), np.float32, counters)
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.05
    assert len(set(uniform.tolist())) > 500
    normal = computed(lambda i: cute.arch.normal(7, i), np.float32, counters)
    assert abs(normal.mean()) < 0.15
    assert abs(normal.std() - 1) < 0.1


EDGES = np.array([0x00000000, 0x3F800000, 0x40400000, 0x7F800000, 0x7FC00000, 0x00000001, 0x007FFFFF], np.uint32)
"""0, 1, 3, infinity, NaN and two subnormal numbers, as bits without a sign."""


def _xorsign(kind: str, a: int, b: int, nan: bool, ftz: bool) -> int | None:
    """`max` or `min` with `.xorsign.abs` of two f32 as bits, by its steps in the PTX ISA; None for NaN."""
    sign, magnitudes = (a ^ b) >> 31, [x & 0x7FFFFFFF for x in (a, b)]
    if ftz:
        magnitudes = [0 if x < 0x00800000 else x for x in magnitudes]
    numbers = [x for x in magnitudes if x <= 0x7F800000]
    if not numbers or (nan and len(numbers) < 2):
        return None
    return (max if kind == "fmax" else min)(numbers) | sign << 31


@pytest.mark.parametrize("in_fragments", [False, True])
@pytest.mark.parametrize("ftz", [False, True])
@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("kind", ["fmax", "fmin"])
def test_the_sign_of_an_extreme_magnitude_is_that_of_the_bits(
    kind: str, nan: bool, ftz: bool, in_fragments: bool
) -> None:
    signed = np.concatenate([EDGES, EDGES | 1 << 31])
    a, b = (x.ravel().astype(np.uint32) for x in np.meshgrid(signed, signed))
    x, y, out = a.view(np.float32), b.view(np.float32), np.zeros(len(a), np.float32)
    extreme = getattr(cute.arch, kind)

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        if cute.const_expr(in_fragments):
            x, y, out = (cute.local_tile(tensor, (1,), (t,)) for tensor in (x, y, out))
            out.store(extreme(x.load(), y.load(), abs=True, nan=nan, ftz=ftz))
        else:
            out[t] = extreme(x[t], y[t], abs=True, nan=nan, ftz=ftz)

    for stage in ("cute", "instr"):
        kernel(x, y, out).launch(grid=1, block=len(a), device="sim", stage=stage)
        got = [None if value != value else int(bits) for value, bits in zip(out, out.view(np.uint32), strict=True)]
        assert got == [_xorsign(kind, int(i), int(j), nan, ftz) for i, j in zip(a, b, strict=True)], stage
