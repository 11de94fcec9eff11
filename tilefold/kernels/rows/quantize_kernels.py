# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows in 8 bits with a scale each: the greatest magnitude of a row becomes the greatest of the type."""

from tilefold import cute

from .norm_kernels import Column
from .softmax_kernels import MAX, Matrix
from .tile import Rows, RowTile, Sums

LEAST = 1e-12
"""The scale of a row of zeros is that of this magnitude."""


@cute.kernel
def quantize_kernel(mX: Matrix, mQ: Matrix, mScale: Column, most: cute.Float32, config: cute.Constexpr[Rows]):
    """Q = X / scale, where scale = max(|X|) / most for each row."""
    block = cute.arch.block_idx()[0]
    tile, sums = RowTile(config, mX.shape[0], mX.shape[1]), Sums(config, 1)
    largest = cute.Float32(LEAST)
    x = tile.load(mX, block)
    largest = cute.absolute(x).reduce(MAX, largest)
    for chunk in cute.range(1, config.chunks):
        largest = cute.absolute(tile.load(mX, block, chunk)).reduce(MAX, largest)
    (largest,) = sums.all([largest], MAX)
    factor = most / largest
    for chunk in cute.range(config.chunks):
        scaled = (x if cute.const_expr(config.chunks == 1) else tile.load(mX, block, chunk)) * factor
        if cute.const_expr(mQ.element_type.kind == "int"):
            scaled = cute.round_even(scaled)
        tile.store(scaled, mQ, block, chunk)
    row = block * config.rows + tile.row
    if tile.is_first & (row < mX.shape[0]):
        mScale[row] = largest / most
