# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What matrix instructions compute: against exact arithmetic on whole matrices, and the limits of each type."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tilefold.base.element_types import BY_PTX
from tilefold.base.errors import Code
from tilefold.layout.algebra.core import Layout
from tilefold.layout.atoms.mma_atom import MmaAtom
from tilefold.layout.atoms.mma_table import MMA_ATOMS, mma_atom
from tilefold.runtime.arrays.storage import pack, unpack
from tilefold.runtime.sim.atoms.mma_arithmetic import DTYPES, bound, executor, from_bytes, to_bytes
from tilefold.runtime.sim.faults import SimulationError

from ..mma import random_elements

WARP = 32


def lanes_of(atom: MmaAtom) -> list[list[int]]:
    """The lanes of each group of threads that executes the atom: quarters of a warp are 4 lanes and the 4 that are 16
    further on.
    """
    if atom.threads == 32:
        return [list(range(32))]
    return [[4 * pair + t % 4 + 16 * (t // 4) for t in range(8)] for pair in range(4)]


def fragments(atom: MmaAtom, layout: Layout, matrices: NDArray[Any]) -> NDArray[Any]:
    """The values (lanes, values) of the matrices (groups, rows, columns) of each group."""
    values = np.zeros((WARP, layout[1].size), matrices.dtype)
    for group, lanes in enumerate(lanes_of(atom)):
        for thread, lane in enumerate(lanes):
            for value in range(values.shape[1]):
                column, row = divmod(int(layout(thread, value)), matrices.shape[1])
                values[lane, value] = matrices[group, row, column]
    return values


def operands(atom: MmaAtom, seed: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Random A (groups, M, K), B (groups, N, K) and C (groups, M, N)."""
    rng = np.random.default_rng(seed)
    m, n, k = atom.shape
    groups = len(lanes_of(atom))
    _, a, b, c = atom.types
    shapes = ((a, m, k), (b, n, k), (c, m, n))
    first, second, third = (random_elements(name, (groups, rows, columns), rng) for name, rows, columns in shapes)
    return first, second, third


def run(atom: MmaAtom, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
    """The values of D in each lane."""
    given = (atom.layout_a, a), (atom.layout_b, b), (atom.layout_c, c)
    return executor(atom)(*[fragments(atom, layout, x) for layout, x in given])


WARP_WIDE = [name for name in MMA_ATOMS if mma_atom(name).threads > 1 and not mma_atom(name).has_scales]
FLOATS = [name for name in WARP_WIDE if mma_atom(name).types[0] != "s32"]
INTEGERS = [name for name in WARP_WIDE if mma_atom(name).types[0] == "s32"]


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_exact(name: str) -> None:
    atom = mma_atom(name)
    a, b, c = operands(atom, 1)
    left, right = a.astype(object)[:, :, None, :], b.astype(object)[:, None, :, :]
    product = left ^ right if "XOR" in name else left & right if "AND" in name else left * right
    total = product.sum(axis=3) + c.astype(object)
    if "SATURATE" in name:
        total = np.clip(total, -(2**31), 2**31 - 1)
    expected = ((total + 2**31) % 2**32 - 2**31).astype(np.int32)
    assert np.array_equal(run(atom, a, b, c), fragments(atom, atom.layout_c, expected))


def fractions(x: NDArray[Any]) -> NDArray[Any]:
    return np.vectorize(Fraction, otypes=[object])(x.astype(float))


def without_low_bits(x: NDArray[Any]) -> NDArray[Any]:
    """f32 numbers as tensor cores read them for tf32."""
    return (x.view(np.uint32) >> 13 << 13).view(np.float32)


@pytest.mark.parametrize("name", FLOATS)
def test_floats_are_rounded_once(name: str) -> None:
    atom = mma_atom(name)
    a, b, c = operands(atom, 2)
    left, right = (without_low_bits(x) if atom.types[1] == "tf32" else x for x in (a, b))
    total = (fractions(left)[:, :, None, :] * fractions(right)[:, None, :, :]).sum(axis=3) + fractions(c)
    expected = fragments(atom, atom.layout_c, total.astype(float).astype(DTYPES[atom.types[0]]))
    given = [fragments(atom, layout, x) for layout, x in ((atom.layout_a, a), (atom.layout_b, b), (atom.layout_c, c))]
    result, allowed = executor(atom)(*given), bound(atom, given[0], given[1], given[2])
    assert result.dtype == DTYPES[atom.types[0]]
    if atom.types[0] == "f64":
        assert (np.abs(result - expected) <= allowed).all()
    else:
        assert np.array_equal(result, expected)
    assert (allowed > 0).all()
    assert (allowed <= 2.0**-6 * np.abs(given[0].astype(float)).max() * np.abs(given[1].astype(float)).max() * 32).all()


@pytest.mark.parametrize("name", ["UniversalFMA<half_t>", "UniversalFMA<float>", "UniversalFMA<double>"])
def test_the_atom_of_one_thread_is_a_fused_multiply_add(name: str) -> None:
    atom = mma_atom(name)
    dtype = DTYPES[atom.types[0]]
    eps = np.finfo(dtype).eps
    a, b, c = (np.full((7, 1), x, dtype) for x in (1 + eps, 1 - eps, -1))
    assert np.array_equal(executor(atom)(a, b, c), np.full((7, 1), -(float(eps) ** 2), dtype))
    assert np.array_equal(bound(atom, a, b, c), np.zeros((7, 1)))


def of_numbers(name: str, numbers: list[int]) -> NDArray[Any]:
    """Integers, whatever their width, as the values of one lane that have their low bits."""
    dtype = DTYPES[name]
    return np.array([[number % 2 ** (8 * dtype.itemsize) for number in numbers]], np.uint64).astype(dtype)


@given(st.data())
def test_integers_of_one_thread_widen_by_their_sign(data: st.DataObject) -> None:
    """Against integers of Python: D = A * B + C modulo two to the power of D's width; dp4a has four products."""
    types = ["int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t"]
    d = data.draw(st.integers(0, 7))
    narrower = types[: d | 1]
    a, b, c = (data.draw(st.sampled_from([*narrower, types[d]])) for _ in "abc")
    name = data.draw(st.sampled_from(["SM61_DP4A", f"UniversalFMA<{types[d]},{a},{b},{c}>"]))
    atom = mma_atom(name)
    numbers: list[list[int]] = []
    for element, count in zip(atom.types[1:], (atom.shape[2], atom.shape[2], 1), strict=True):
        low = 0 if element.startswith("u") else -(2 ** (BY_PTX[element].bits - 1))
        drawn = st.integers(low, low + 2 ** BY_PTX[element].bits - 1)
        numbers.append(data.draw(st.lists(drawn, min_size=count, max_size=count)))
    left, right, addend = numbers
    total = sum(x * y for x, y in zip(left, right, strict=True)) + addend[0]
    values = [of_numbers(t, given) for t, given in zip(atom.types[1:], numbers, strict=True)]
    found = executor(atom)(*values)
    assert found.dtype == DTYPES[atom.types[0]]
    assert np.array_equal(found, of_numbers(atom.types[0], [total]))


@pytest.mark.parametrize(
    ("name", "a", "b", "c", "exact"),
    [
        ("UniversalFMA<float,half_t>", 65504, 65504, 1, 65504**2 + 1),  # beyond half_t
        ("UniversalFMA<float,half_t>", 1 + 2**-10, 1 - 2**-10, -1, -(2**-20)),  # lost if the product were rounded
        ("UniversalFMA<half_t,float_e4m3_t,float_e5m2_t,half_t>", 448, 0.25, 0.5, 112.5),
        ("UniversalFMA<bfloat16_t,float_e4m3_t>", 1.125, 1.125, -1.25, 1.125**2 - 1.25),
        ("UniversalFMA<double,float,half_t,bfloat16_t>", 1 + 2**-23, 1 + 2**-10, -1, 2**-10 + 2**-23 + 2**-33),
    ],
)
def test_floats_of_several_types_are_multiplied_in_that_of_d(
    name: str, a: float, b: float, c: float, exact: float
) -> None:
    atom = mma_atom(name)
    values = [np.array([[x]], DTYPES[t]) for x, t in zip((a, b, c), atom.types[1:], strict=True)]
    assert [float(x) for x in executor(atom)(*values).ravel()] == [
        float(np.asarray(exact).astype(DTYPES[atom.types[0]]))
    ]


def filled(atom: MmaAtom, a: Any, b: Any, c: Any) -> NDArray[Any]:
    """D where every element of A, B and C is the same."""
    _, type_a, type_b, type_c = atom.types
    layouts = (atom.layout_a, type_a, a), (atom.layout_b, type_b, b), (atom.layout_c, type_c, c)
    return executor(atom)(*[np.full((WARP, layout[1].size), x, DTYPES[t]) for layout, t, x in layouts])


def test_sums_wrap_or_saturate() -> None:
    """PTX ISA, mma: without .satfinite the accumulator wraps."""
    top, bottom = 2**31 - 1, -(2**31)
    assert (filled(mma_atom("SM80_16x8x32_S32S8S8S32_TN"), 127, 127, top) == bottom - 1 + 32 * 127 * 127).all()
    assert (filled(mma_atom("SM80_16x8x32_S32S8S8S32_TN_SATURATE"), 127, 127, top) == top).all()
    assert (filled(mma_atom("SM80_8x8x32_S32S4S4S32_TN"), -8, 7, bottom) == top + 1 - 32 * 56).all()
    assert (filled(mma_atom("SM80_8x8x32_S32S4U4S32_TN_SATURATE"), -8, 15, bottom) == bottom).all()


def test_tf32_ignores_the_low_bits() -> None:
    low = np.float32(1 + 2.0**-11)
    assert (filled(mma_atom("SM80_16x8x4_F32TF32TF32F32_TN"), low, low, 0) == 4).all()


def test_special_values() -> None:
    with np.errstate(all="ignore"):
        f32 = mma_atom("SM80_16x8x16_F32F16F16F32_TN")
        assert np.isnan(filled(f32, np.inf, 0, 0)).all()
        assert (filled(f32, -np.inf, 1, 0) == -np.inf).all()
        f16 = mma_atom("SM80_16x8x16_F16F16F16F16_TN")
        assert (filled(f16, 256, 256, 0) == np.inf).all()
        fp8 = mma_atom("SM89_16x8x32_F32E4M3E4M3F32_TN")
        assert (filled(fp8, 448, 448, 1) == 32 * 448 * 448 + 1).all()


def test_an_atom_of_more_than_a_warp_is_refused() -> None:
    with pytest.raises(SimulationError) as caught:
        executor(mma_atom("SM90_64x64x16_F32F16F16_SS<Major::K,Major::K>"))
    assert caught.value.code == Code.SIM_UNSUPPORTED.id


@pytest.mark.parametrize("name", sorted(BY_PTX))
def test_fragments_as_bytes(name: str) -> None:
    """Sub-byte elements lie in a register from the lowest bits up (PTX ISA, mma: fragments)."""
    values = random_elements(name, (WARP, 32), np.random.default_rng(3))
    content = to_bytes(name, values)
    assert content.shape == (WARP, 32 * BY_PTX[name].memory_bits // 8)
    assert np.array_equal(from_bytes(name, content).view(np.uint8), values.view(np.uint8))
    if BY_PTX[name].memory_bits < 8:
        ones = np.zeros((1, 8), np.uint8)
        ones[0, 1] = 1
        assert to_bytes(name, ones.view(DTYPES[name]))[0, 0] == 1 << BY_PTX[name].bits


@given(st.binary(min_size=1, max_size=9), st.sampled_from([(4, True), (4, False), (1, False)]))
def test_packing_is_the_inverse_of_unpacking(content: bytes, kind: tuple[int, bool]) -> None:
    raw = np.frombuffer(content, np.uint8)
    elements = unpack(raw, *kind)
    assert elements.size == raw.size * 8 // kind[0]
    assert np.array_equal(pack(elements, kind[0]), raw)
    assert int(elements[0]) & 1 == content[0] & 1
    if kind[1]:
        assert [int(e) & 15 for e in elements[:2]] == [content[0] & 15, content[0] >> 4]
        assert -8 <= int(elements.min()) <= int(elements.max()) <= 7
