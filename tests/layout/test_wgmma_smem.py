# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared-memory layouts and descriptors of wgmma, against the PTX ISA's description of both."""

import pytest
import tilefold.layout as cute
from tilefold.base.errors import Code, LayoutError
from tilefold.layout.algebra.core import ComposedLayout, Layout
from tilefold.layout.atoms.wgmma_smem import MatrixDescriptor, make_matrix_descriptor, wgmma_smem_atom


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize(("mode", "row_bytes"), [("SW32", 32), ("SW64", 64), ("SW128", 128)])
def test_swizzles_exchange_16_byte_chunks_within_a_row(mode: str, row_bytes: int, bits: int) -> None:
    """Chunk c of row r stands where chunk c ^ (r * row_bytes / 128 rounded down, as far as the row reaches)
    would.
    """
    layout = wgmma_smem_atom("K", mode, bits)
    chunks = row_bytes // 16
    for row in range(8):
        for chunk in range(chunks):
            byte = layout(row, chunk * 128 // bits) * bits // 8
            assert byte == row * row_bytes + 16 * (chunk ^ (row * row_bytes // 128 % chunks))


def test_layouts_of_both_majors_are_transposed() -> None:
    for bits in (8, 16, 32):
        k, mn = wgmma_smem_atom("K", "SW128", bits), wgmma_smem_atom("MN", "SW128", bits)
        assert isinstance(k, ComposedLayout)
        assert [k(8 * 0 + r, 0) for r in range(8)] == [mn(0, r) for r in range(8)]
    assert wgmma_smem_atom("K", "INTER", 16) == Layout((8, 8), (8, 1))


def test_descriptor_fields_have_their_places() -> None:
    fields = MatrixDescriptor(0x1234, 0x15, 0x26, 1, 5)
    assert fields.value == 0x1234 | 0x15 << 16 | 0x26 << 32 | 5 << 49 | 1 << 62


def test_a_128_byte_swizzled_operand_has_the_known_descriptor() -> None:
    smem = cute.tile_to_shape(wgmma_smem_atom("K", "SW128", 16), (128, 64))
    operand = cute.zipped_divide(smem.outer, (64, 16))[0]
    descriptor = make_matrix_descriptor(operand, 3, 16, "K", 0x4000)
    assert (descriptor.stride_byte_offset * 16, descriptor.start_address * 16) == (8 * 128, 0x4000)
    assert f"{descriptor.value:#018x}" == "0x4000004000010400"


@pytest.mark.parametrize(
    ("layout", "swizzle_bits", "major"),
    [
        (Layout((64, 16), (16, 1)), 3, "K"),  # rows are not 128 bytes apart
        (Layout((64, 16), (64, 2)), 3, "K"),  # elements are not adjacent
        (Layout((64, 16), (64, 1)), 3, "MN"),  # the wrong mode is contiguous
        (Layout((4, 16), (64, 1)), 3, "K"),  # too few rows
    ],
)
def test_operands_without_a_descriptor_are_refused(layout: Layout, swizzle_bits: int, major: str) -> None:
    with pytest.raises(LayoutError) as caught:
        make_matrix_descriptor(layout, swizzle_bits, 16, major, 0)
    assert caught.value.code == Code.NOT_A_WGMMA_OPERAND.id


def test_layouts_that_do_not_exist_are_refused() -> None:
    for arguments in (("M", "SW128", 16), ("K", "SW256", 16), ("K", "SW128", 128)):
        with pytest.raises(LayoutError) as caught:
            wgmma_smem_atom(*arguments)
        assert caught.value.code == Code.BAD_ARGUMENT.id
