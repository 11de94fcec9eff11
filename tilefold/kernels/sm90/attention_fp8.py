# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""V of fp8 attention transposed, since wgmma takes 8-bit elements from rows of keys alone, and the sizes of its kernel.

A thread moves four elements of 32 keys: it reads a word of each, and exchanges bytes of four words at a time. Two
threads write together, so that each sector of memory is written as a whole. The keys of each 16 come in the order in
which attention_elements.py needs them.
"""

from typing import Annotated

from tilefold import cute
from tilefold.runtime.arrays.signature import Dynamic, Marked

from ..arguments import Array, like
from ..replay import Launch, Launches, Scratch
from ..stream_memory import zeros
from .attention import attention_kernel
from .attention_tiles import Config

THREADS = 256
"""The threads of a block."""
SPAN = 32
"""The keys that a thread moves; the places of keys in the transposed V are a multiple."""
_TOKENS, _PLACES = Dynamic(modes=(0, 1)), Dynamic(modes=(0, 3), divisibility={3: SPAN})
Values = Annotated[cute.Tensor, _TOKENS]
Transposed = Annotated[cute.Tensor, _PLACES]
FIRST, SECOND, LOW, HIGH = 0x5140, 0x7362, 0x5410, 0x7632
"""Selectors of prmt: the bytes 0 and 1, or 2 and 3, of two words in turns; the lower halves of two words, or the upper
ones.
"""


def places_of(keys: int) -> int:
    """The places of this many keys in the transposed V; those beyond the last key are 0."""
    return -(-keys // SPAN) * SPAN


def grid_of(batch: int, keys: int, heads: int, depth: int) -> tuple[int, int, int]:
    """The blocks that transpose a V of this shape; those of neighbouring heads, which follow each other in memory, run
    side by side.
    """
    return heads, -(-places_of(keys) // (SPAN * groups_of(depth))), batch


def groups_of(depth: int) -> int:
    """The spans of keys that a block moves."""
    return THREADS * 4 // depth


def chosen_fp8(depth: int, causal: bool) -> Config:
    """The fastest configuration for fp8 on an H200."""
    if depth == 64:
        return Config(128, 3, 3, causal=causal, group=16)
    return Config(192, 2, 3, causal=True, group=16) if causal else Config(96, 3, 3)


@cute.kernel
def transpose_kernel(mV: Values, mT: Transposed):
    """T(b,h,d,p) = V(b,k,h,d), where p is the place of the key k."""
    t = cute.arch.thread_idx()[0]
    head, block, b = cute.arch.block_idx()
    _, keys, _, depth = mV.shape
    across = depth // 4
    at, span = t % across, block * groups_of(depth) + t // across
    given = cute.recast_tensor(mV[b, None, head, None], cute.Int32)
    to = cute.recast_tensor(mT[b, head, None, None], cute.Int32)
    words = cute.make_rmem_tensor((SPAN,), cute.Int32)
    words.fill(0)
    for k in cute.range_constexpr(SPAN):
        if span * SPAN + k < keys:
            words[k] = given[span * SPAN + k, at]
    rows = cute.make_rmem_tensor((SPAN // 4, 4), cute.Int32)
    for i in cute.range_constexpr(SPAN // 4):
        first = i // 4 * 16 + i % 4 * 2
        turned = _transposed(*(words[first + k] for k in (0, 1, 8, 9)))
        for row in cute.range_constexpr(4):
            rows[i, row] = turned[row]
    # two threads write both halves of a span at once: first of a row of the one, then of a row of the other
    is_odd = at % 2 == 1
    halves = cute.make_rmem_tensor((SPAN // 8, 2), cute.Int32)
    for row in cute.range_constexpr(4):
        for i in cute.range_constexpr(SPAN // 8):
            low, high = rows[i, row], rows[SPAN // 8 + i, row]
            got = cute.arch.shuffle_sync_bfly(cute.where(is_odd, low, high), 1)
            halves[i, 0], halves[i, 1] = cute.where(is_odd, got, low), cute.where(is_odd, high, got)
        if span * SPAN < mT.shape[3]:
            for which in cute.range_constexpr(2):
                element = 4 * (at // 2 * 2 + which) + row
                place = cute.local_tile(to[element, None], (SPAN // 8,), (2 * span + at % 2,))
                place.store(halves[None, which].load())


def _transposed(a: object, b: object, c: object, d: object) -> list[object]:
    """Four words of the bytes 0, 1, 2 and 3 of these."""
    prmt = cute.arch.prmt
    halves = [(prmt(a, b, bytes), prmt(c, d, bytes)) for bytes in (FIRST, SECOND)]
    return [prmt(*pair, bytes) for pair in halves for bytes in (LOW, HIGH)]


def forward(
    out: Array, q: Array, k: Array, v: Array, scale_q: Array | None, scale_k: Array | None, scale_v: Array | None,
    causal: bool, scale: float,
    blocks: int,
) -> Launches:  # fmt: skip
    """O for fp8, by two launches."""
    (batch, rows, heads, depth), (_, keys, heads_k, _) = q.shape, k.shape
    config = chosen_fp8(depth, causal)
    grid = min(blocks, -(-rows // config.rows) * heads * batch)
    turned = like(v, (batch, heads_k, depth, places_of(keys)))
    yield Scratch(turned)
    yield Launch(transpose_kernel, (v, turned), grid_of(batch, keys, heads_k, depth), THREADS)
    if causal or keys % config.keys:  # the kernel looks at the ends of keys in any case
        q, k, out, turned = *(Marked(x, _TOKENS) for x in (q, k, out)), Marked(turned, _PLACES)
    given = q, k, turned, out, scale, zeros(1), config, None, None, None, scale_q, scale_k, scale_v
    yield Launch(attention_kernel, given, grid, config.threads, {"use_pdl": True})
