# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layer norm and root-mean-square norm of rows, with a residual that is added first, and their gradients.

A block of the gradient's kernel goes through several tiles of rows and keeps the sums for the weights in registers, so
that these cost no further reading; a second kernel adds up the blocks' sums, always in the same order.
"""

from typing import Annotated

from tilefold import cute

from .softmax_kernels import ADD, Matrix
from .tile import Rows, RowTile, Sums

Column = Annotated[cute.Tensor, cute.Dynamic(modes=(0,))]
"""A number for each row."""


@cute.kernel
def norm_kernel(
    mX: Matrix,
    mR: Matrix | None,
    mW: cute.Tensor | None,
    mB: cute.Tensor | None,
    mY: Matrix,
    mH: Matrix | None,
    mMean: Column | None,
    mScale: Column | None,
    eps: cute.Float32,
    centred: cute.Constexpr[bool],
    config: cute.Constexpr[Rows],
):
    """Y = (H - mean(H)) * scale * W + B where rows are centred, else H * scale * W + B; H = X + R."""
    block, columns = cute.arch.block_idx()[0], mX.shape[1]
    tile, sums = RowTile(config, mX.shape[0], columns), Sums(config, 2)
    x = tile.load(mX, block)
    if mR is not None:
        x = (x + tile.load(mR, block)).to(mX.element_type).to(cute.Float32)
    if mH is not None:
        tile.store(x, mH, block)
    mean = cute.Float32(0)
    if centred:
        (total,) = sums.all([x.reduce(ADD)], ADD)
        mean = total * (1.0 / columns)
        x = tile.inside(x - mean)
    (squares,) = sums.all([(x * x).reduce(ADD)], ADD)
    scale = cute.rsqrt(squares * (1.0 / columns) + eps)
    result = x * scale
    if mW is not None:
        result = result * tile.load_row(mW)
    if mB is not None:
        result = result + tile.load_row(mB)
    tile.store(result, mY, block)
    row = block * config.rows + tile.row
    if tile.is_first & (row < mX.shape[0]):
        if mScale is not None:
            mScale[row] = scale
        if mMean is not None:
            mMean[row] = mean


@cute.kernel
def norm_backward_kernel(
    mDY: Matrix,
    mH: Matrix,
    mDH: Matrix | None,
    mW: cute.Tensor | None,
    mMean: Column | None,
    mScale: Column,
    mDX: Matrix,
    mPartsW: Matrix | None,
    mPartsB: Matrix | None,
    config: cute.Constexpr[Rows],
):
    """The gradient of H, with that which comes to H itself added, and for the weights a row of sums for each row of
    each block.
    """
    block, blocks = cute.arch.block_idx()[0], cute.arch.grid_dim()[0]
    rows, columns = mH.shape
    tile, sums = RowTile(config, rows, columns), Sums(config, 2)
    shape = config.vector, config.vectors
    weights = None if mW is None else tile.load_row(mW)
    of_w, of_b = cute.make_rmem_tensor(shape, cute.Float32), cute.make_rmem_tensor(shape, cute.Float32)
    of_w.fill(0.0)
    of_b.fill(0.0)
    for at in cute.range(block, cute.ceil_div(rows, config.rows), blocks):
        row = cute.math.min(at * config.rows + tile.row, rows - 1)
        scale = mScale[row]
        dy, h = tile.load(mDY, at), tile.load(mH, at)
        if mMean is not None:
            h = h - mMean[row]
        normal = tile.inside(h * scale) if mMean is not None else h * scale
        if mPartsW is not None:
            of_w.store(of_w.load() + dy * normal)
        if mPartsB is not None:
            of_b.store(of_b.load() + dy)
        g = dy if weights is None else dy * weights
        if mMean is not None:
            along, total = sums.all([(g * normal).reduce(ADD), g.reduce(ADD)], ADD)
            dx = (g - normal * (along * (1.0 / columns)) - total * (1.0 / columns)) * scale
        else:
            (along,) = sums.all([(g * normal).reduce(ADD)], ADD)
            dx = (g - normal * (along * (1.0 / columns))) * scale
        if mDH is not None:
            dx = dx + tile.load(mDH, at)
        tile.store(dx, mDX, at)
        sums.again()
    if mPartsW is not None:
        tile.store(of_w.load(), mPartsW, block)
    if mPartsB is not None:
        tile.store(of_b.load(), mPartsB, block)


COLUMNS = 32
"""The columns that a block adds up."""
HIGH = 16
"""The rows that it adds up at a time."""


@cute.kernel
def add_rows_kernel(mParts: Matrix, mSum: cute.Tensor):
    """The sum of all rows, by blocks of `COLUMNS` columns and `HIGH` rows of threads."""
    t, block = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    column, first = block * COLUMNS + t % COLUMNS, t // COLUMNS
    shared = cute.make_smem_tensor((COLUMNS, HIGH), cute.Float32)
    total = cute.Float32(0)
    if column < mSum.shape[0]:
        for row in cute.range(first, mParts.shape[0], HIGH):
            total = total + mParts[row, column]
    shared[t % COLUMNS, first] = total
    cute.arch.sync_threads()
    if (first == 0) & (column < mSum.shape[0]):
        mSum[column] = shared[t, None].load().reduce(ADD).to(mSum.element_type)
