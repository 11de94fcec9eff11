# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles in Triton, which its interpreter executes in NumPy: peers of the simulator. Imported only where Triton and
torch are installed, in a process whose TRITON_INTERPRET is 1.
"""

# pyright: basic, reportInvalidTypeForm=false
# Triton is not installed where types are checked, and reads the annotations of its kernels itself.

import os
import time
from collections.abc import Callable
from importlib import import_module
from math import log
from typing import Any

torch: Any = import_module("torch")
triton: Any = import_module("triton")
tl: Any = import_module("triton.language")


@triton.jit
def _gemm(a, b, d, n, k, tile_m: tl.constexpr, tile_n: tl.constexpr, tile_k: tl.constexpr):
    rows = tl.program_id(0) * tile_m + tl.arange(0, tile_m)
    columns, depths = tl.program_id(1) * tile_n + tl.arange(0, tile_n), tl.arange(0, tile_k)
    at_a, at_b = a + rows[:, None] * k + depths[None, :], b + columns[None, :] * k + depths[:, None]
    acc = tl.zeros((tile_m, tile_n), dtype=tl.float32)
    for step in range(0, k, tile_k):
        acc = tl.dot(tl.load(at_a + step), tl.load(at_b + step), acc)
    tl.store(d + rows[:, None] * n + columns[None, :], acc.to(tl.float16))


@triton.jit
def _softmax(a, b, n, width: tl.constexpr):
    columns = tl.arange(0, width)
    row = tl.program_id(0) * n + columns
    x = tl.load(a + row, mask=columns < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(b + row, (e / tl.sum(e, 0)).to(tl.float16), mask=columns < n)


@triton.jit
def _attention(q, k, v, o, scale, s, d: tl.constexpr, tile_q: tl.constexpr, tile_k: tl.constexpr):
    rows, keys, columns = tl.program_id(0) * tile_q + tl.arange(0, tile_q), tl.arange(0, tile_k), tl.arange(0, d)
    queries = tl.load(q + rows[:, None] * d + columns[None, :])
    peak = tl.full((tile_q,), -float("inf"), tl.float32)
    total, acc = tl.zeros((tile_q,), tl.float32), tl.zeros((tile_q, d), tl.float32)
    for first in range(0, s, tile_k):
        scores = tl.dot(queries, tl.load(k + (first + keys)[None, :] * d + columns[:, None])) * scale
        higher = tl.maximum(peak, tl.max(scores, 1))
        p, old = tl.exp2(scores - higher[:, None]), tl.exp2(peak - higher)
        total, peak = total * old + tl.sum(p, 1), higher
        values = tl.load(v + (first + keys)[:, None] * d + columns[None, :])
        acc = tl.dot(p.to(tl.float16), values, acc * old[:, None])
    tl.store(o + rows[:, None] * d + columns[None, :], (acc / total[:, None]).to(tl.float16))


def _numbers(*shape: int) -> Any:
    return torch.randn(*shape).half()


def gemm(size: int) -> tuple[Callable[[], None], Any, Any, float]:
    """A GEMM of one size in tiles of 128 x 128 x 64: the launch, its result, that of torch, and how far they may be
    from each other.
    """
    a, b, d = _numbers(size, size), _numbers(size, size), _numbers(size, size)
    tiles = size // 128, size // 128
    return lambda: _gemm[tiles](a, b, d, size, size, 128, 128, 64), d, a.float() @ b.float().T, 0.1


def softmax(rows: int, columns: int) -> tuple[Callable[[], None], Any, Any, float]:
    """Softmax of rows, one each program."""
    a, b = _numbers(rows, columns), _numbers(rows, columns)
    width = triton.next_power_of_2(columns)
    return lambda: _softmax[(rows,)](a, b, columns, width), b, torch.softmax(a.float(), 1), 1e-3


def attention(rows: int, width: int) -> tuple[Callable[[], None], Any, Any, float]:
    """Attention of one head, tiles of 128 queries and 64 keys."""
    q, k, v, o = (_numbers(rows, width) for _ in range(4))
    scale, tiles = width**-0.5, (rows // 128,)
    expected = torch.softmax(q.float() @ k.float().T * scale, 1) @ v.float()
    return lambda: _attention[tiles](q, k, v, o, scale / log(2), rows, width, 128, 64), o, expected, 1e-2


def seconds(kind: str, sizes: tuple[int, ...], repeat: int) -> float:
    """The least CPU time of some launches, on one core. ValueError where a result is wrong."""
    assert os.environ["TRITON_INTERPRET"] == "1"
    torch.set_num_threads(1)
    torch.manual_seed(0)
    run, result, expected, allowed = {"gemm": gemm, "softmax": softmax, "attention": attention}[kind](*sizes)
    least = float("inf")
    for _ in range(repeat):
        began = time.process_time()
        run()
        least = min(least, time.process_time() - began)
    difference = float((result.float() - expected).abs().max())
    if not difference <= allowed:
        raise ValueError(f"{kind}: wrong by {difference}")
    return least
