# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cross entropy of rows of logits and its gradient: each reads the logits once, however long a row is."""

from tilefold import cute

from .norm_kernels import Column
from .softmax_kernels import ADD, LOG2_E, LOWEST, MAX, Matrix
from .tile import Rows, RowTile, Sums

LN_2 = 0.6931471805599453


@cute.kernel
def cross_entropy_kernel(
    mX: Matrix, mTarget: Column, mLoss: Column, mLse: Column | None, ignored: cute.Int32, config: cute.Constexpr[Rows]
):
    """The logarithm of each row's sum of exponentials, and its distance to the logit of the target; 0 for a row whose
    target is `ignored`.
    """
    block = cute.arch.block_idx()[0]
    tile, sums = RowTile(config, mX.shape[0], mX.shape[1]), Sums(config, 2)
    top, total = cute.Float32(LOWEST), cute.Float32(0)
    for chunk in cute.range(config.chunks):
        x = tile.load(mX, block, chunk, float("-inf")) * LOG2_E
        before = top
        top = x.reduce(MAX, before)
        total = total * cute.arch.approx("ex2", before - top, ftz=True)
        total = total + cute.arch.approx("ex2", x - top, ftz=True).reduce(ADD)
    (highest,) = sums.all([top], MAX)
    (total,) = sums.all([total * cute.arch.approx("ex2", top - highest, ftz=True)], ADD)
    row = block * config.rows + tile.row
    if tile.is_first & (row < mX.shape[0]):
        lse = (highest + cute.log2(total)) * LN_2
        target = cute.Int32(mTarget[row])
        if mLse is not None:
            mLse[row] = lse
        loss = cute.Float32(0)
        if target != ignored:
            loss = lse - mX[row, target].to(cute.Float32)
        mLoss[row] = loss


@cute.kernel
def cross_entropy_backward_kernel(
    mX: Matrix,
    mTarget: Column,
    mLse: Column,
    mGrad: Column,
    mDX: Matrix,
    ignored: cute.Int32,
    config: cute.Constexpr[Rows],
):
    """(softmax(X) - one at the target) * gradient of the row's loss."""
    block, chunk = cute.arch.block_idx()[0], cute.arch.block_idx()[1]
    tile = RowTile(config, mX.shape[0], mX.shape[1])
    row = cute.math.min(block * config.rows + tile.row, mX.shape[0] - 1)
    lse, target = mLse[row] * LOG2_E, cute.Int32(mTarget[row])
    factor = cute.where(target == ignored, 0.0, mGrad[row])
    x = tile.load(mX, block, chunk, float("-inf")) * LOG2_E
    values = cute.make_rmem_tensor((config.vector, config.vectors), cute.Float32)
    values.store(cute.arch.approx("ex2", x - lse, ftz=True) * factor)
    lane = tile.thread % config.group
    distance = target - chunk * config.width - lane * config.vector
    for v in range(config.vectors):
        for i in range(config.vector):
            at = v * config.group * config.vector + i
            values[i, v] = cute.where(distance == at, values[i, v] - factor, values[i, v])
    tile.store(values.load(), mDX, block, chunk)
