# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which copies an epilogue takes from tensor memory, and which layouts it stages results in (CUTLASS's op_repeater,
sm100_get_tmem_load_op and sm100_get_epilogue_smem_swizzle_layout_atom)."""

from ...base.errors import Code, LayoutError
from ..algebra.core import LayoutLike
from .copy_atom import CopyAtom
from .tmem_copy import SHAPES, tmem_load, tmem_store
from .umma_smem import select_umma_mode, umma_smem_atom


def repeat_to(loads: bool, shape: str, column_bits: int, packs: bool = False) -> CopyAtom:
    """The load or store of a shape with the most repetitions that divide the `column_bits` bits of a lane.

    Raises `LayoutError` (E0304) for bits that no number of repetitions divides.
    """
    _, _, width, most = SHAPES[shape]
    fitting = [
        n for n in (1 << i for i in range(most.bit_length())) if column_bits > 0 and column_bits % (width * n) == 0
    ]
    if not fitting:
        raise LayoutError(
            Code.ATOM_OPERAND,
            f"a lane of {column_bits} bits is not a multiple of the {width} of shape {shape}",
            "use a wider tile",
        )
    return (tmem_load if loads else tmem_store)(shape, fitting[-1], packs)


def select_tmem_load(accumulator_bits: int, result_bits: int, lanes: int, columns: int, major: str) -> CopyAtom:
    """The load for a warp's part of an accumulator, `lanes` by `columns`, whose results of `result_bits` bits go to a
    matrix with the `major` "M" or "N". It suits the stores to shared memory that follow.

    Raises `LayoutError` (E0304) for widths or lanes that have none.
    """
    bits = columns * accumulator_bits
    halves = accumulator_bits == 16
    shape = _SHAPES.get((accumulator_bits, result_bits if result_bits in (8, 16, 32) else 4, lanes, major))
    if shape is None:
        raise LayoutError(
            Code.ATOM_OPERAND,
            f"no load of tensor memory suits {lanes} lanes of {accumulator_bits}-bit accumulators with {major}-major "
            f"results of {result_bits} bits",
            "a warp has 32 lanes, or 16 for results of 8 bits or more",
        )
    return repeat_to(True, shape, bits, halves)


_SHAPES = {
    **{(32, result, 32, major): "32x32b" for result in (4, 8, 16, 32) for major in "MN"},
    (32, 16, 32, "M"): "16x256b",
    (32, 32, 16, "M"): "16x256b", (32, 32, 16, "N"): "16x128b",
    (32, 16, 16, "M"): "16x256b", (32, 16, 16, "N"): "16x256b",
    (32, 8, 16, "M"): "16x256b", (32, 8, 16, "N"): "16x32bx2",
    (16, 16, 16, "M"): "16x128b", (16, 16, 16, "N"): "16x128b",
    (16, 16, 32, "M"): "16x128b", (16, 16, 32, "N"): "32x32b",
}  # fmt: skip
"""The shapes of loads by the bits of accumulators and results, the lanes of a warp and the major of the results."""


def select_epilogue_smem(val_bits: int, m: int, n: int, major: str) -> LayoutLike:
    """The smallest layout of shared memory for results of `val_bits` bits that a TMA copy stores, of a tile m x n
    with the `major` "M" or "N". Raises `LayoutError` (E0213) where none divides the tile.
    """
    of_operand = "MN" if major == "M" else "K"
    return umma_smem_atom(of_operand, select_umma_mode(of_operand, val_bits, m, n), val_bits)
