# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of single elements or pairs of them, 16 bytes of each matrix at a time: SwiGLU and rotary positions; and
rows in 8 bits with a scale each.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from tilefold import cute
from tilefold.builder.scalars.operators import Operand
from tilefold.cute.typing import Int

from .norm_kernels import Column
from .softmax_kernels import LOG2_E, MAX, Matrix
from .tile import Rows, RowTile, Sums

THREADS = 256
"""The threads of a block."""
UNROLL = 2
"""The vectors of each matrix that a thread moves."""
Heads = Annotated[cute.Tensor, cute.Dynamic(modes=(0, 1))]
"""(batch, tokens, heads, D), of any batch and any number of tokens."""


def vector_at(row: cute.Tensor, number: Int, vector: int) -> Any:
    """Adjacent elements of a row, in memory."""
    return cute.local_tile(row, (vector,), (number,))


def sigmoid(x: Operand) -> Any:
    """1 / (1 + exp(-x)), by two approximations of the hardware."""
    return cute.arch.approx("rcp", cute.arch.approx("ex2", x * -LOG2_E, ftz=True) + 1.0)


@cute.kernel
def swiglu_kernel(mGate: Matrix, mUp: Matrix, mY: Matrix, vector: cute.Constexpr[int]):
    """Y = gate * sigmoid(gate) * up."""
    rows, columns = mY.shape
    for item in items():
        row, at = item // (columns // vector), item % (columns // vector)
        if row < rows:
            gate = vector_at(mGate[row, None], at, vector).load().to(cute.Float32)
            up = vector_at(mUp[row, None], at, vector).load().to(cute.Float32)
            vector_at(mY[row, None], at, vector).store((gate * sigmoid(gate) * up).to(mY.element_type))


@cute.kernel
def swiglu_backward_kernel(
    mDY: Matrix, mGate: Matrix, mUp: Matrix, mDGate: Matrix, mDUp: Matrix, vector: cute.Constexpr[int]
):
    """The gradients of gate and up."""
    rows, columns = mDY.shape
    for item in items():
        row, at = item // (columns // vector), item % (columns // vector)
        if row < rows:
            dy, gate, up = (vector_at(m[row, None], at, vector).load().to(cute.Float32) for m in (mDY, mGate, mUp))
            share = sigmoid(gate)
            swish = gate * share
            of_gate = dy * up * (share + swish * (1.0 - share))
            vector_at(mDGate[row, None], at, vector).store(of_gate.to(mDGate.element_type))
            vector_at(mDUp[row, None], at, vector).store((dy * swish).to(mDUp.element_type))


def items() -> list[Any]:
    """The numbers of the vectors that a thread moves; they may be beyond the last one."""
    t, block = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    return [(block * UNROLL + i) * THREADS + t for i in range(UNROLL)]


@dataclass(frozen=True)
class Rotation:
    """Adjacent elements that a thread moves; whether neighbours are a pair, or else an element of the first half of a
    head and that of the second; and whether it turns back.
    """

    vector: int
    interleaved: bool = False
    back: bool = False


@cute.kernel
def rope_kernel(
    mX: Heads,
    mCos: Matrix,
    mSin: Matrix,
    mPositions: Column | None,
    mY: Heads,
    config: cute.Constexpr[Rotation],
):
    """Turns each pair of elements of a head by the angle of its token's position."""
    batch, tokens, heads, depth = mX.shape
    vector = config.vector
    across = depth // 2 // vector
    for item in items():
        token, left = item // (heads * across), item % (heads * across)
        head, at = left // across, left % across
        if token < batch * tokens:
            b, s = token // tokens, token % tokens
            position = s if mPositions is None else cute.Int32(mPositions[token])
            cos = vector_at(mCos[position, None], at, vector).load().to(cute.Float32)
            sin = vector_at(mSin[position, None], at, vector).load().to(cute.Float32)
            if config.back:
                sin = sin * -1.0
            x, y = mX[b, s, head, None], mY[b, s, head, None]
            if cute.const_expr(config.interleaved):
                pairs = vector_at(x, at, 2 * vector).load().to(cute.Float32).reshape((2, vector))
                turned = cute.make_rmem_tensor((2, vector), cute.Float32)
                turned.store(pairs)
                for i in range(vector):
                    first, second = pairs[0, i], pairs[1, i]
                    turned[0, i] = first * cos[i] - second * sin[i]
                    turned[1, i] = second * cos[i] + first * sin[i]
                to = vector_at(y, at, 2 * vector)
                to.store(turned.load().reshape((2 * vector,)).to(mY.element_type))
            else:
                first = vector_at(x, at, vector).load().to(cute.Float32)
                second = vector_at(x, at + across, vector).load().to(cute.Float32)
                vector_at(y, at, vector).store((first * cos - second * sin).to(mY.element_type))
                vector_at(y, at + across, vector).store((second * cos + first * sin).to(mY.element_type))


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
