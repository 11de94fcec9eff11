# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wavefronts and sectors of known access patterns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.swizzle import Swizzle
from tilefold.layout.atoms.mma_table import mma_atom
from tilefold.layout.atoms.wgmma_smem import MatrixDescriptor
from tilefold.runtime.sim.memory.matrices import matrix_of
from tilefold.runtime.sim.memory.space_state import sectors, wavefronts

LANES = np.arange(32)


@pytest.mark.parametrize(
    ("stride", "width", "expected"),
    [
        (4, 4, 1),  # a word a lane
        (0, 4, 1),  # one word for all
        (2, 2, 1),  # two lanes share a word
        (1, 1, 1),
        (8, 4, 2),
        (64, 4, 16),
        (128, 4, 32),  # all lanes in one bank
        (132, 4, 1),  # padding by a word
        (8, 8, 2),  # a half warp at a time
        (16, 16, 4),  # a quarter warp at a time
        (256, 8, 32),
        (128, 16, 32),
        (144, 16, 4),  # padding by 16 bytes
        (32, 16, 8),
    ],
)
def test_strided(stride: int, width: int, expected: int) -> None:
    for start in (1024, 1024 + 128 * 7):
        got, minimum = wavefronts(start + LANES * stride, LANES, width)
        assert got == expected
        assert minimum == {16: 4, 8: 2}.get(width, 1)


def test_inactive_lanes_need_no_wavefront() -> None:
    few = LANES[::8]
    assert wavefronts(few * 16, few, 16) == (4, 4)
    quarter = LANES[:8]
    assert wavefronts(quarter * 16, quarter, 16) == (1, 1)
    assert wavefronts(LANES[:1] * 4, LANES[:1], 4) == (1, 1)


@pytest.mark.parametrize(("element", "swizzle"), [(4, Swizzle(5, 0, 5)), (2, Swizzle(5, 1, 5))])
def test_transpose(element: int, swizzle: Swizzle) -> None:
    """A 32x32 tile written by rows and read by columns: plain, padded, and swizzled."""
    plain, padded = Layout((32, 32), (32, 1)), Layout((32, 32), (32 + 4 // element, 1))
    rows = np.array([plain(0, j) for j in range(32)]) * element
    assert wavefronts(rows, LANES, element)[0] == 1
    column = np.array([plain(i, 0) for i in range(32)]) * element
    assert wavefronts(column, LANES, element)[0] == (32 if element == 4 else 16)
    column = np.array([padded(i, 0) for i in range(32)]) * element
    assert wavefronts(column, LANES, element)[0] == 1
    for j in range(32):
        column = np.array([swizzle(plain(i, j)) for i in range(32)]) * element
        if element == 4:
            assert wavefronts(column, LANES, element)[0] == 1
        row = np.array([swizzle(plain(j, i)) for i in range(32)]) * element
        assert wavefronts(row, LANES, element)[0] == 1


def test_swizzled_ldmatrix_rows() -> None:
    """Eight rows of an f16 tile with 64 columns: all in the same banks plain, all different under S<3,3,3>."""
    layout = Layout((8, 64), (64, 1))
    rows = np.arange(8)
    for column in range(0, 64, 8):
        plain = np.array([layout(i, column) for i in range(8)]) * 2
        swizzled = np.array([Swizzle(3, 3, 3)(layout(i, column)) for i in range(8)]) * 2
        assert wavefronts(plain, rows, 16) == (8, 1)
        assert wavefronts(swizzled, rows, 16) == (1, 1)


@pytest.mark.parametrize(
    ("stride", "width", "expected"),
    [(4, 4, 4), (16, 16, 16), (32, 4, 32), (0, 4, 1), (2, 2, 2), (128, 16, 32), (64, 4, 32), (8, 4, 8)],
)
def test_sectors(stride: int, width: int, expected: int) -> None:
    got, minimum = sectors(4096 + LANES * stride, width)
    assert got == expected
    assert minimum == max(1, (32 if stride else 1) * width // 32)


def test_an_unaligned_row_costs_one_sector_more() -> None:
    assert sectors(4096 + 16 + LANES * 4, 4) == (5, 4)


@given(st.lists(st.integers(0, 255), min_size=32, max_size=32), st.sampled_from([1, 2, 4]))
def test_wavefronts_by_definition(words: list[int], width: int) -> None:
    """One wavefront serves one word of each bank."""
    addresses = np.array(words) * width
    per_bank: dict[int, set[int]] = {}
    for address in addresses.tolist():
        per_bank.setdefault(address // 4 % 32, set()).add(address // 4)
    assert wavefronts(addresses, LANES, width) == (max(map(len, per_bank.values())), 1)


@given(st.lists(st.integers(0, 255), min_size=1, max_size=32), st.sampled_from([1, 2, 4, 8, 16]))
def test_sectors_by_definition(units: list[int], width: int) -> None:
    addresses = np.array(units) * width
    got, minimum = sectors(addresses, width)
    assert got == len({address // 32 for address in addresses.tolist()})
    assert minimum <= got


@pytest.mark.parametrize(("major", "step"), [("K", 2), ("MN", 64)])
def test_slices_of_an_operand_of_wgmma_have_no_bank_conflicts(major: str, step: int) -> None:
    """Each K of 16, of a tile of 64 x 64 with rows of 128 bytes: a quarter of each line, or whole ones."""
    atom = mma_atom(f"SM90_64x64x16_F32F16F16_SS<Major::{major},Major::{major}>")
    for k in range(4):
        descriptor = MatrixDescriptor.of(64 + k * step, 1, 64, 3).value
        matrix = matrix_of(atom, "A", descriptor)
        assert not matrix.problem
        rows = matrix.core_matrices.ravel()
        assert sorted(rows) == sorted(matrix.addresses.ravel())
        assert wavefronts(rows, np.arange(128), 16) == (16, 16)
