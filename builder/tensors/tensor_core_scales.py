# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts of scale factors of multiplications into tensor memory (CUTLASS's sm100_blockscaled_layout.hpp; sm_100a)."""

from ...layout.algebra.core import Layout, cosize, join
from ...layout.tmem.scales import BLOCK_ROWS, place_scales, scales_in_smem
from .coordinates import as_layout, as_tuple, tuples
from .tiled_mma import TiledMma


def make_smem_layout_sfa(tiled_mma: TiledMma, mma_tiler_mnk: object, sf_vec_size: int, num_stages: int) -> Layout:
    """The layout of shared memory for stages of a block's scale factors of A:
    ((M,(values,factors)),RestM,RestK,stages).
    Raises `LayoutError` (E0304) for a tile that has no whole blocks of factors along K.
    """
    m, _, k = as_tuple(tuples(mma_tiler_mnk))
    return _staged(tiled_mma, m // tiled_mma.thr_id.size, k, sf_vec_size, num_stages)


def make_smem_layout_sfb(tiled_mma: TiledMma, mma_tiler_mnk: object, sf_vec_size: int, num_stages: int) -> Layout:
    """The same for B. Each block of a pair has all of it, in whole blocks of 128 columns."""
    _, n, k = as_tuple(tuples(mma_tiler_mnk))
    return _staged(tiled_mma, -(-n // BLOCK_ROWS) * BLOCK_ROWS, k, sf_vec_size, num_stages)


def _staged(tiled_mma: TiledMma, rows: int, k: int, vector: int, stages: int) -> Layout:
    one = scales_in_smem(vector, tiled_mma.shape_mnk[2], rows, k)
    return join([*one, Layout(stages, cosize(one))])


def make_tmem_layout_sfa(tiled_mma: TiledMma, mma_tiler_mnk: object, sf_vec_size: int, smem_layout: object) -> Layout:
    """The layout of the scale factors of A in tensor memory, for one stage of them in shared memory."""
    return place_scales(as_layout(smem_layout).shape)


def make_tmem_layout_sfb(tiled_mma: TiledMma, mma_tiler_mnk: object, sf_vec_size: int, smem_layout: object) -> Layout:
    """The layout of the scale factors of B in tensor memory, for one stage of them in shared memory."""
    two_by_two = tiled_mma.thr_id.size == 2 and tiled_mma.shape_mnk[0] == 128
    return place_scales(as_layout(smem_layout).shape, of_b=True, two_by_two=two_by_two)
