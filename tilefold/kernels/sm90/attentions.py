# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention on Hopper: which kernel takes a problem, its configuration and its grid, found once for arguments alike."""

import math
from functools import lru_cache
from typing import Any

from tilefold.runtime.arrays.signature import Dynamic, Marked

from ..arguments import Array, like
from ..replay import Launch, Launches, Scratch
from ..stream_memory import scratch, zeros
from .attention import attention_kernel
from .attention_backward import attention_backward_kernel
from .attention_backward_rows import CONSUMERS, OWN, THREADS, chosen_backward, finish_kernel, prepare_kernel
from .attention_decode import decode_kernel, decode_plan, memory_sizes
from .attention_parts import is_decode
from .attention_tiles import WARPGROUP, Config, chosen_config

_TOKENS, _STATISTICS, _STARTS = Dynamic(modes=(0, 1)), Dynamic(modes=(0, 2)), Dynamic()
_TILES = Dynamic(modes=(0, 1))


@lru_cache(maxsize=4096)
def plan_of(batch: int, rows: int, heads: int, depth: int, causal: bool, sequences: int, blocks: int) -> Any:
    """The configuration and the grid for heads of a batch, or for packed sequences."""
    config: Config = chosen_config(depth, causal, rows if sequences == 1 else 0)
    tiles = (-(-rows // config.rows) + sequences - 1) * heads * batch  # at most
    return config, min(blocks, tiles)


def forward(
    out: Array, lse: Array | None, q: Array, k: Array, v: Array, causal: bool, scale: float, starts: Array | None,
    starts_k: Array | None, blocks: int,
) -> Launches:  # fmt: skip
    """O, and the logarithm of each row's sum of exponentials where there is a place for it."""
    if lse is None and starts is None and is_decode(q, k) and abs(scale * scale * q.shape[3] - 1) < 1e-6:
        yield from decode(out, q, k, v, None, None, causal, blocks)
        return
    batch, rows, heads, depth = q.shape
    sequences = 1 if starts is None else starts.shape[0] - 1
    config, grid = plan_of(batch, rows, heads, depth, causal, sequences, blocks)
    counter = zeros(1)
    if causal or starts is not None or k.shape[1] % config.keys:  # the kernel looks at the ends of keys in any case
        q, k, v, out = (Marked(x, _TOKENS) for x in (q, k, v, out))
        lse = None if lse is None else Marked(lse, _STATISTICS)
        starts, starts_k = (None if x is None else Marked(x, _STARTS) for x in (starts, starts_k))
    given = q, k, v, out, scale, counter, config, starts, starts_k, lse
    yield Launch(attention_kernel, given, grid, config.threads, {"use_pdl": True})


def backward(
    places: tuple[Array, ...], do: Array, q: Array, k: Array, v: Array, out: Array, lse: Array, causal: bool,
    scale: float, starts: Array | None, starts_k: Array | None,
) -> Launches:  # fmt: skip
    """The gradients of q, k and v."""
    batch, rows, heads, depth = q.shape
    config, sequences = chosen_backward(depth, causal), None if starts is None else starts.shape[0] - 1
    tiles = config.tiles(rows, sequences)
    statistics = like(q, (batch * heads, tiles, 2 * config.rows), "float32")
    sums = like(q, (batch * heads, tiles, config.rows * depth), "float32")
    grid = -(-rows // config.rows), heads, sequences or batch
    by_keys = -(-k.shape[1] // OWN) * k.shape[2] * (sequences or batch)
    yield Scratch(statistics)
    yield Scratch(sums)
    dq, dk, dv = (Marked(x, _TOKENS) for x in places)
    q, k, v, do, out = (Marked(x, _TOKENS) for x in (q, k, v, do, out))
    statistics, sums = (Marked(x, _TILES) for x in (statistics, sums))
    starts, starts_k = (None if x is None else Marked(x, _STARTS) for x in (starts, starts_k))
    given = out, do, Marked(lse, _STATISTICS), statistics, sums, config, starts
    yield Launch(prepare_kernel, given, grid, WARPGROUP)
    given = q, k, v, do, statistics, sums, dk, dv, scale, config, starts, starts_k
    yield Launch(attention_backward_kernel, given, by_keys, THREADS, {"use_pdl": True})
    yield Launch(finish_kernel, (sums, dq, scale, config, starts), grid, CONSUMERS * WARPGROUP, {"use_pdl": True})


def decode(
    out: Array, q: Array, k: Array, v: Array, lengths: Array | None, table: Array | None, causal: bool, blocks: int,
    window: int = 0,
    cap: float = 0.0, bias: Any = None,
) -> Launches:  # fmt: skip
    """O for few rows of Q. LaunchError (E3106) for sizes that the kernel does not take."""
    pages = None if table is None else table.shape[1]
    shapes = tuple(q.shape), tuple(k.shape)
    config, grid = decode_plan(*shapes, pages, blocks, causal, None, window, cap, bias)
    memory = (None, None)
    if config.parts > 1:
        sums, counters = memory_sizes(config, grid, q.shape[3])
        memory = scratch(sums), zeros(counters)
    given = q, k, v, out, 1 / math.sqrt(q.shape[3]), config, lengths, table, *memory
    yield Launch(decode_kernel, given, grid, config.threads, {"cluster": (config.splits, 1, 1), "use_pdl": True})
