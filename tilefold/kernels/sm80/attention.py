# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches of the kernels of attention by mma.sync, for rows, keys and batches of any number."""

from tilefold.runtime.arrays.signature import Dynamic, Marked

from ..arguments import Array, like
from ..replay import Launch, Launches, Scratch
from .attention_backward import THREADS, TILE, Backward, attention_backward_kernel, delta_kernel
from .attention_forward import Bias, Forward, attention_forward_kernel
from .parts import Mask

_TOKENS, _STATISTICS, _STARTS = Dynamic(modes=(0, 1)), Dynamic(modes=(0, 2)), Dynamic()


def _tokens(*tensors: Array) -> list[Marked]:
    return [Marked(x, _TOKENS) for x in tensors]


def _starts(*starts: Array | None) -> list[Marked | None]:
    return [None if x is None else Marked(x, _STARTS) for x in starts]


def forward(
    out: Array, lse: Array | None, q: Array, k: Array, v: Array, mask: Mask, cap: float, bias: Bias | None,
    scale: float, starts: Array | None, starts_k: Array | None,
) -> Launches:  # fmt: skip
    """O, and the logarithm to base 2 of each row's sum of exponentials where there is a place for it."""
    batch = q.shape[0] if starts is None else starts.shape[0] - 1
    statistics = None if lse is None else Marked(lse, _STATISTICS)
    given = (
        *_tokens(q, k, v, out), statistics, scale, Forward(mask, cap, bias), *_starts(starts, starts_k),
    )  # fmt: skip
    yield Launch(attention_forward_kernel, given, (-(-q.shape[1] // TILE), q.shape[2], batch), THREADS)


def backward(
    places: tuple[Array, ...], do: Array, q: Array, k: Array, v: Array, out: Array, lse: Array, mask: Mask,
    scale: float, starts: Array | None, starts_k: Array | None,
) -> Launches:  # fmt: skip
    """The gradients of q, k and v."""
    dq, dk, dv = places
    batch, rows, heads, _ = q.shape
    delta = like(lse, lse.shape)
    yield Scratch(delta)
    warps = THREADS // 32
    given = *_tokens(out, do), Marked(delta, _STATISTICS)
    yield Launch(delta_kernel, given, -(-batch * rows * heads // warps), THREADS)
    sequences = batch if starts is None else starts.shape[0] - 1
    statistics = Marked(lse, _STATISTICS), Marked(delta, _STATISTICS)
    for of_keys, places_of in ((False, (dq, None)), (True, (dk, dv))):
        own = k if of_keys else q
        dx, dy = places_of
        given = (
            *_tokens(q, k, v, do), *statistics, *_tokens(dx), None if dy is None else Marked(dy, _TOKENS), scale,
            Backward(of_keys, mask), *_starts(starts, starts_k),
        )  # fmt: skip
        grid = -(-own.shape[1] // TILE), own.shape[2], sequences
        yield Launch(attention_backward_kernel, given, grid, THREADS)
