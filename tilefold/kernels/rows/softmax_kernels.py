# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Softmax of rows and its gradient: one reading and one writing, for rows of at most 64 Ki elements."""

from typing import Annotated

from tilefold import cute

from .tile import Rows, RowTile, Sums

LOG2_E = 1.4426950408889634
LOWEST = -1e30
"""A finite maximum to begin with, so that nothing is subtracted from itself where all is -inf."""
ADD, MAX = cute.ReductionOp.ADD, cute.ReductionOp.MAX
Matrix = Annotated[cute.Tensor, cute.Dynamic(modes=(0,))]
"""A matrix of any number of rows."""


@cute.kernel
def softmax_kernel(mX: Matrix, mY: Matrix, config: cute.Constexpr[Rows]):
    block = cute.arch.block_idx()[0]
    tile, sums = RowTile(config, mX.shape[0], mX.shape[1]), Sums(config, 2)
    if cute.const_expr(config.chunks == 1):
        x = tile.load(mX, block, 0, float("-inf")) * LOG2_E
        (top,) = sums.all([x.reduce(MAX, LOWEST)], MAX)
        power = cute.arch.approx("ex2", x - top, ftz=True)
        (total,) = sums.all([power.reduce(ADD)], ADD)
        tile.store(power * cute.arch.approx("rcp", total), mY, block)
    else:
        top, total = cute.Float32(LOWEST), cute.Float32(0)
        for chunk in cute.range(config.chunks):
            x = tile.load(mX, block, chunk, float("-inf")) * LOG2_E
            before = top
            top = x.reduce(MAX, before)
            total = total * cute.arch.approx("ex2", before - top, ftz=True)
            total = total + cute.arch.approx("ex2", x - top, ftz=True).reduce(ADD)
        (highest,) = sums.all([top], MAX)
        (total,) = sums.all([total * cute.arch.approx("ex2", top - highest, ftz=True)], ADD)
        inverse = cute.arch.approx("rcp", total)
        for chunk in cute.range(config.chunks):
            x = tile.load(mX, block, chunk, float("-inf")) * LOG2_E
            tile.store(cute.arch.approx("ex2", x - highest, ftz=True) * inverse, mY, block, chunk)


@cute.kernel
def softmax_backward_kernel(mY: Matrix, mDY: Matrix, mDX: Matrix, config: cute.Constexpr[Rows]):
    block = cute.arch.block_idx()[0]
    tile, sums = RowTile(config, mY.shape[0], mY.shape[1]), Sums(config, 1)
    if cute.const_expr(config.chunks == 1):
        y, dy = tile.load(mY, block), tile.load(mDY, block)
        (total,) = sums.all([(y * dy).reduce(ADD)], ADD)
        tile.store(y * (dy - total), mDX, block)
    else:
        total = cute.Float32(0)
        for chunk in cute.range(config.chunks):
            total = total + (tile.load(mY, block, chunk) * tile.load(mDY, block, chunk)).reduce(ADD)
        (total,) = sums.all([total], ADD)
        for chunk in cute.range(config.chunks):
            y, dy = tile.load(mY, block, chunk), tile.load(mDY, block, chunk)
            tile.store(y * (dy - total), mDX, block, chunk)
