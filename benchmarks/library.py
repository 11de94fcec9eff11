# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The library's functions (tilefold/kernels) against their peers: products, attention and its gradient.

N(0,1) data in bf16, the same tensors in turns. A sample is a graph of so many calls that it takes about a millisecond.
Calls go through the public functions, which allocate their results, as the peers do.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from benchmarks.attention_decode import BACKENDS
from benchmarks.contest import MORE_THAN_A_CACHE, Bench, Case, in_turn, rate, ratio
from benchmarks.record import Figure
from benchmarks.timing import Run
from tilefold import kernels

SAMPLE = 1e-3
"""Seconds of a sample, about."""
SPEED, BANDWIDTH = 6e14, 2.5e12
"""Operations and bytes in a second, by which samples are sized."""
LAYERS = (
    (4096, 4096), (6144, 4096), (14336, 4096), (4096, 14336), (28672, 4096), (8192, 8192), (10240, 8192),
    (5120, 13824), (1024, 8192), (32000, 4096),
)  # fmt: skip
"""N and K of layers of published language models."""
TOKENS = (1, 16, 64, 256, 2048, 8192)
"""The rows of A, from decoding to training."""
ATTENTIONS = (
    *((b, s, s, 32, 8, 128, causal) for b, s in ((1, 8192), (4, 2048), (16, 512)) for causal in (False, True)),
    *((b, s, s, 16, 16, 64, causal) for b, s in ((2, 4096), (32, 512)) for causal in (False, True)),
    (4, 512, 4096, 32, 8, 128, False), (8, 1024, 1024, 40, 40, 128, True), (1, 1000, 3000, 32, 8, 128, True),
)  # fmt: skip
"""Batch, rows, keys, heads of Q and of K, D, and whether causal."""
BACKWARDS = (
    (4, 2048, 2048, 32, 8, 128, True), (2, 4096, 4096, 16, 16, 128, False), (8, 1024, 1024, 16, 16, 64, True),
    (2, 4096, 4096, 16, 16, 64, False), (1, 8192, 8192, 32, 8, 128, True),
)  # fmt: skip


def best(
    bench: Bench,
    name: str,
    runs: Mapping[str, Run],
    work: float,
    unit: str,
    seconds: float,
    target: float,
    in_graphs: bool = True,
) -> list[Figure]:
    """The speeds of contenders, and that of tilefold by that of the fastest other. PyTorch's gradients of attention
    cannot be captured in graphs; the host queues them then while the GPU waits.
    """
    count = max(1, min(64, round(SAMPLE / seconds))) if in_graphs else 1
    times = bench.time(bench.repeated(runs, count) if in_graphs else runs)
    figures = {key: rate(f"{name}, {key}", work * count, times[key], unit) for key in runs}
    ours = figures.pop("tilefold")
    if not figures:
        return [ours]
    peer = max(figures.values(), key=lambda figure: figure.value)
    return [*figures.values(), ratio(ours, peer, target)]


def product_cases(multiprocessors: int) -> list[Case]:
    """The layers of language models, then products of random extents."""
    shapes = [(m, n, k, 0.95) for n, k in LAYERS for m in TOKENS]
    chosen = random.Random(0)
    shapes += [(*(8 * chosen.randint(8, 1024) for _ in range(3)), 0.90) for _ in range(40)]
    return [
        Case(f"gemm {m} x {n} x {k}", (), partial(_product, shape=(m, n, k), target=target), target)
        for m, n, k, target in shapes
    ]


def _product(bench: Bench, shape: tuple[int, int, int], target: float) -> list[Figure]:
    torch, (m, n, k) = bench.torch, shape
    torch.manual_seed(0)
    like = {"device": "cuda", "dtype": torch.bfloat16}
    copies = 1 + int(MORE_THAN_A_CACHE // (2 * n * k)) if m <= 256 else 1
    a, weights = torch.randn(m, k, **like), [torch.randn(n, k, **like) for _ in range(copies)]
    multiply: dict[str, Callable[[Any], Any]] = {
        "tilefold": lambda b: kernels.gemm(a, b),
        "torch.mm(a, b.T)": lambda b: torch.mm(a, b.T),
        "torch.mm(b, a.T).T": lambda b: torch.mm(b, a.T).T,
    }
    expected = a.float() @ weights[0].float().T
    once = {name: partial(run, weights[0]) for name, run in multiply.items()}
    bench.check(once, torch.empty(1, **like), expected, (a,), rtol=1e-2, atol=2e-2 * k**0.5)
    runs = {name: in_turn(run, weights) for name, run in multiply.items()}
    seconds = max(2 * m * n * k / SPEED, 2 * (m * k + n * k + m * n) / BANDWIDTH, 3e-6)
    return best(bench, f"gemm {m} x {n} x {k}", runs, 2 * m * n * k, "TFLOP/s", seconds, target)


def fp8_cases(multiprocessors: int) -> list[Case]:
    """Products of fp8 with one scale, beside cuBLAS with the same accumulation."""
    shapes = [(m, n, k) for n, k in ((4096, 4096), (7168, 2048), (8192, 8192), (14336, 4096)) for m in (64, 1024, 4096)]
    return [Case(f"fp8 gemm {m} x {n} x {k}", (), partial(_fp8, shape=(m, n, k)), 1.03) for m, n, k in shapes]


def _fp8(bench: Bench, shape: tuple[int, int, int]) -> list[Figure]:
    torch, (m, n, k) = bench.torch, shape
    torch.manual_seed(0)
    a, b = (torch.randn(rows, k, device="cuda").to(torch.float8_e4m3fn) for rows in (m, n))
    one = torch.ones((), device="cuda")
    peer = partial(torch._scaled_mm, a, b.T, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True)
    runs: dict[str, Run] = {"tilefold": lambda: kernels.gemm(a, b), "torch._scaled_mm, fast": peer}
    expected = a.float() @ b.float().T
    bench.check(runs, torch.empty(1, device="cuda"), expected, (), rtol=1e-2, atol=5e-2 * k**0.5)
    seconds = max(m * n * k / SPEED, 4e-6)
    return best(bench, f"fp8 gemm {m} x {n} x {k}", runs, 2 * m * n * k, "TFLOP/s", seconds, 1.03)


def _heads(bench: Bench, problem: Sequence[int]) -> tuple[Any, Any, Any, float]:
    """Q, K, V, and the operations of the forward pass."""
    torch, (batch, rows, keys, heads, heads_k, depth, causal) = bench.torch, problem
    torch.manual_seed(0)
    like = {"device": "cuda", "dtype": torch.bfloat16}
    q = torch.randn(batch, rows, heads, depth, **like)
    k, v = (torch.randn(batch, keys, heads_k, depth, **like) for _ in range(2))
    seen = rows * keys - (rows * (rows - 1) // 2 if causal else 0)
    return q, k, v, 4.0 * batch * heads * depth * seen


def _peers(bench: Bench, problem: Sequence[int], *given: Any) -> dict[str, Run]:
    """PyTorch's kernels that take the problem."""
    torch, (_, rows, keys, heads, heads_k, _, causal) = bench.torch, problem
    kinds, found = torch.nn.attention, dict[str, Run]()
    mask: Any = {"is_causal": bool(causal)} if rows == keys else {}
    if causal and rows != keys:
        bias: Any = import_module("torch.nn.attention.bias")
        mask = {"attn_mask": bias.causal_lower_right(rows, keys)}

    def attend(backend: str) -> Any:
        with kinds.sdpa_kernel(getattr(kinds.SDPBackend, backend)):
            views = [x.transpose(1, 2) for x in given]
            attention = torch.nn.functional.scaled_dot_product_attention
            return attention(*views, enable_gqa=heads_k < heads, **mask).transpose(1, 2)

    for name, backend in BACKENDS.items():
        try:
            attend(backend)
        except RuntimeError:  # PyTorch finds no kernel
            continue
        found[name] = partial(attend, backend)
    return found


def _title(problem: Sequence[int]) -> str:
    batch, rows, keys, heads, heads_k, depth, causal = problem
    return f"b{batch} {rows} x {keys} h{heads}/{heads_k} d{depth}{' causal' if causal else ''}"


def attention_cases(multiprocessors: int) -> list[Case]:
    """Attention forward, then its gradient."""
    forward = [Case(f"attention {_title(p)}", (), partial(_attention, problem=p), 0.97) for p in ATTENTIONS]
    return forward + [Case(f"gradient {_title(p)}", (), partial(_gradient, problem=p), 1.0) for p in BACKWARDS]


def _attention(bench: Bench, problem: Sequence[int]) -> list[Figure]:
    q, k, v, work = _heads(bench, problem)
    runs: dict[str, Run] = {"tilefold": lambda: kernels.attention(q, k, v, causal=bool(problem[6]))}
    runs |= _peers(bench, problem, q, k, v)
    expected = runs.get("FlashAttention (torch)", runs["tilefold"])().float()
    bench.check(runs, bench.torch.empty(1, device="cuda"), expected, (q, k, v), rtol=2e-2, atol=2e-2)
    return best(bench, f"attention {_title(problem)}", runs, work, "TFLOP/s", max(work / 5e14, 5e-6), 0.97)


def _gradient(bench: Bench, problem: Sequence[int]) -> list[Figure]:
    torch = bench.torch
    q, k, v, work = _heads(bench, problem)
    inputs = [x.requires_grad_() for x in (q, k, v)]
    do = torch.randn_like(q)
    forward: dict[str, Run] = {"tilefold": lambda: kernels.attention(q, k, v, causal=bool(problem[6]))}
    forward |= _peers(bench, problem, q, k, v)
    results = {name: run() for name, run in forward.items()}
    runs: dict[str, Run] = {
        name: partial(torch.autograd.grad, out, inputs, do, retain_graph=True) for name, out in results.items()
    }
    grads = {name: run() for name, run in runs.items()}
    reference = grads.get("FlashAttention (torch)", grads["tilefold"])
    for mine, theirs in zip(grads["tilefold"], reference, strict=True):
        difference = (mine.float() - theirs.float()).norm() / theirs.float().norm()
        if not difference < 2e-2:
            bench.failed.append(f"gradient {_title(problem)}: differs by {float(difference):.2g}")
    name = f"gradient of attention {_title(problem)}"
    return best(bench, name, runs, 2.5 * work, "TFLOP/s", 1.0, 1.0, in_graphs=False)
