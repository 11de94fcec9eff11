# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The library's attention (tilefold/kernels) against its peers: forward in bf16 and fp8, and its gradient.

N(0,1) data, the same tensors in turns, through the public functions. Errors are those of the first heads of the first
sequence against f64, relative to the root mean square.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from benchmarks.attention_decode import BACKENDS
from benchmarks.contest import Bench, Case
from benchmarks.library import best, build, without_memory
from benchmarks.record import Figure
from benchmarks.timing import Run
from tilefold import kernels
from tilefold.kernels.sm90 import attention_fp8, attentions

ATTENTIONS = (
    *((b, s, s, 32, 8, 128, causal) for b, s in ((1, 8192), (4, 2048), (16, 512)) for causal in (False, True)),
    *((b, s, s, 16, 16, 64, causal) for b, s in ((2, 4096), (32, 512)) for causal in (False, True)),
    *((b, s, s, 32, 32, 128, causal) for b, s in ((16, 1024), (2, 4096), (1, 16384)) for causal in (False, True)),
    *((b, s, s, 64, 8, 128, True) for b, s in ((1, 4096), (8, 1024))),
    *((b, s, s, 16, 4, 64, True) for b, s in ((1, 16384), (8, 2048))),
    *((2, 4096, 4096, 16, 8, 96, causal) for causal in (False, True)),
    *((2, 4096, 4096, 8, 8, 256, causal) for causal in (False, True)),
    (4, 512, 4096, 32, 8, 128, False), (8, 1024, 1024, 40, 40, 128, True), (1, 1000, 3000, 32, 8, 128, True),
    (32, 77, 4096, 8, 8, 64, False), (4, 4096, 77, 8, 8, 64, False), (1, 2048, 16384, 32, 8, 128, True),
)  # fmt: skip
"""Batch, rows, keys, heads of Q and of K, D, and whether causal."""
BACKWARDS = (
    (4, 2048, 2048, 32, 8, 128, True), (2, 4096, 4096, 16, 16, 128, False), (8, 1024, 1024, 16, 16, 64, True),
    (2, 4096, 4096, 16, 16, 64, False), (1, 8192, 8192, 32, 8, 128, True), (1, 8192, 8192, 32, 8, 128, False),
    (8, 1024, 1024, 32, 32, 128, True), (2, 4096, 4096, 16, 4, 64, True), (16, 512, 512, 16, 16, 128, False),
    (1, 16384, 16384, 8, 8, 128, True),
)  # fmt: skip
NARROW = (
    *((b, s, s, 32, 32, 128, causal) for b, s in ((16, 1024), (4, 4096), (1, 16384)) for causal in (False, True)),
    (4, 2048, 2048, 32, 8, 128, True), (2, 4096, 4096, 16, 16, 64, False),
)  # fmt: skip
"""The problems in fp8."""
SAME = 2e-2
"""The greatest error of results in bf16."""
TARGET, TARGET_FP8 = 0.97, 1.3
Problem = Sequence[int]


def heads_of(bench: Bench, problem: Problem) -> tuple[Any, Any, Any, float]:
    """Q, K, V, and the operations of the forward pass."""
    torch, (batch, rows, keys, heads, heads_k, depth, causal) = bench.torch, problem
    torch.manual_seed(0)
    like = {"device": "cuda", "dtype": torch.bfloat16}
    q = torch.randn(batch, rows, heads, depth, **like)
    k, v = (torch.randn(batch, keys, heads_k, depth, **like) for _ in range(2))
    seen = rows * keys - (rows * (rows - 1) // 2 if causal else 0)
    return q, k, v, 4.0 * batch * heads * depth * seen


def peers_of(bench: Bench, problem: Problem, *given: Any) -> dict[str, Run]:
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


def title_of(problem: Problem) -> str:
    batch, rows, keys, heads, heads_k, depth, causal = problem
    return f"b{batch} {rows} x {keys} h{heads}/{heads_k} d{depth}{' causal' if causal else ''}"


def cases(multiprocessors: int) -> list[Case]:
    """Attention forward in bf16, then its gradient."""
    return [
        *(
            Case(f"attention {title_of(p)}", (), partial(_attention, problem=p), TARGET,
                 partial(_compile, p, "bfloat16", multiprocessors))
            for p in ATTENTIONS
        ),
        *(
            Case(f"gradient {title_of(p)}", (), partial(_gradient, problem=p), 1.0, partial(_compile_gradient, p))
            for p in BACKWARDS
        ),
    ]  # fmt: skip


def fp8_cases(multiprocessors: int) -> list[Case]:
    """Attention forward in fp8."""
    return [
        Case(f"fp8 attention {title_of(p)}", (), partial(_narrow, problem=p), TARGET_FP8,
             partial(_compile, p, "float8_e4m3fn", multiprocessors))
        for p in NARROW
    ]  # fmt: skip


def _compile(problem: Problem, dtype: str, blocks: int) -> None:
    batch, rows, keys, heads, heads_k, depth, causal = problem
    q, k = (without_memory(x, dtype) for x in ((batch, rows, heads, depth), (batch, keys, heads_k, depth)))
    out, scale = without_memory(q.shape, "bfloat16"), depth**-0.5
    if dtype == "bfloat16":
        build(attentions.forward(out, None, q, k, k, bool(causal), scale, None, None, blocks))
    else:
        build(attention_fp8.forward(out, q, k, k, None, None, None, bool(causal), scale, blocks))


def _compile_gradient(problem: Problem) -> None:
    batch, rows, keys, heads, heads_k, depth, causal = problem
    q, k = (without_memory(x, "bfloat16") for x in ((batch, rows, heads, depth), (batch, keys, heads_k, depth)))
    lse, scale = without_memory((batch, heads, rows), "float32"), depth**-0.5
    build(attentions.forward(q, lse, q, k, k, bool(causal), scale, None, None, 132))
    build(attentions.backward((q, k, k), q, q, k, k, q, lse, bool(causal), scale, None, None))


def exact_heads(torch: Any, problem: Problem, q: Any, k: Any, v: Any) -> Any:
    """O in f64 of the heads of the first sequence that share the first head of K: (heads,rows,D)."""
    _, rows, keys, heads, heads_k, depth, causal = problem
    q, k, v = q[0, :, : heads // heads_k].double().transpose(0, 1), k[0, :, 0].double(), v[0, :, 0].double()
    scores = q @ k.T * depth**-0.5
    if causal:
        seen = torch.ones(rows, keys, dtype=torch.bool, device="cuda").tril(keys - rows)
        scores = scores.masked_fill_(~seen, float("-inf"))
    return torch.softmax(scores, -1) @ v


def _errors(bench: Bench, problem: Problem, runs: Mapping[str, Run], exact: Any, most: float) -> dict[str, float]:
    """The errors of O; one that is greater than `most` counts as a failure."""
    shared = problem[3] // problem[4]
    found = {name: relative(bench.torch, run()[0, :, :shared].transpose(0, 1), exact) for name, run in runs.items()}
    wrong = [f"{name}: error {error:.2g}" for name, error in found.items() if not error < most]
    bench.failed.extend(f"attention {title_of(problem)}, {each}" for each in wrong)
    return found


def relative(torch: Any, given: Any, exact: Any) -> float:
    """The root mean square of the differences by that of the exact values."""
    return float((given.double() - exact).square().mean().sqrt() / exact.square().mean().sqrt())


def _attention(bench: Bench, problem: Problem) -> list[Figure]:
    q, k, v, work = heads_of(bench, problem)
    runs: dict[str, Run] = {"tilefold": lambda: kernels.attention(q, k, v, causal=bool(problem[6]))}
    runs |= peers_of(bench, problem, q, k, v)
    errors = _errors(bench, problem, runs, exact_heads(bench.torch, problem, q, k, v), SAME)
    whole = runs.get("FlashAttention (torch)", runs["tilefold"])().float()
    bench.check(runs, bench.torch.empty(1, device="cuda"), whole, (q, k, v), rtol=2e-2, atol=2e-2)
    name, seconds = f"attention {title_of(problem)}", max(work / 5e14, 5e-6)
    return best(bench, name, runs, work, "TFLOP/s", seconds, TARGET, errors=errors)


def _narrow(bench: Bench, problem: Problem) -> list[Figure]:
    """fp8 beside our bf16 on the same numbers, with a scale for each head that is 1."""
    torch = bench.torch
    q, k, v, work = heads_of(bench, problem)
    narrow = [x.to(torch.float8_e4m3fn) for x in (q, k, v)]
    q, k, v = (x.to(torch.bfloat16) for x in narrow)
    causal, ones = bool(problem[6]), torch.ones(problem[0], problem[4], device="cuda")
    scales: Any = {"scale_q": ones, "scale_k": ones, "scale_v": ones}
    runs: dict[str, Run] = {
        "tilefold": lambda: kernels.attention(*narrow, causal=causal, **scales),
        "tilefold in bf16": lambda: kernels.attention(q, k, v, causal=causal),
    }
    errors = _errors(bench, problem, runs, exact_heads(torch, problem, q, k, v), 4e-2)
    whole = runs["tilefold in bf16"]().float()
    away = relative(torch, runs["tilefold"](), whole.double())
    if not away < 4e-2:
        bench.failed.append(f"fp8 attention {title_of(problem)}: {away:.2g} from that in bf16")
    name, seconds = f"fp8 attention {title_of(problem)}", max(work / 8e14, 5e-6)
    return best(bench, name, runs, work, "TFLOP/s", seconds, TARGET_FP8, errors=errors)


def _gradient(bench: Bench, problem: Problem) -> list[Figure]:
    torch = bench.torch
    q, k, v, work = heads_of(bench, problem)
    inputs = [x.requires_grad_() for x in (q, k, v)]
    do = torch.randn_like(q)
    forward: dict[str, Run] = {"tilefold": lambda: kernels.attention(q, k, v, causal=bool(problem[6]))}
    forward |= peers_of(bench, problem, q, k, v)
    results = {name: run() for name, run in forward.items()}
    runs: dict[str, Run] = {
        name: partial(torch.autograd.grad, out, inputs, do, retain_graph=True) for name, out in results.items()
    }
    shared = problem[3] // problem[4]
    wide = [x.detach()[:1].double().requires_grad_() for x in inputs]
    of_heads = do[0, :, :shared].transpose(0, 1).double()
    exact = torch.autograd.grad(exact_heads(torch, problem, *wide), wide, of_heads)  # of the first heads alone
    reference = runs.get("FlashAttention (torch)", runs["tilefold"])()
    name, errors = f"gradient of attention {title_of(problem)}", dict[str, float]()
    for key, run in runs.items():
        found = run()
        heads = zip(found, exact, (shared, 1, 1), strict=True)
        errors[key] = max(relative(torch, x[0, :, :n], y[0, :, :n]) for x, y, n in heads)
        away = max(relative(torch, x, y.double()) for x, y in zip(found, reference, strict=True))
        if not max(errors[key], away) < SAME:
            bench.failed.append(f"{name}, {key}: errors {errors[key]:.2g}, {away:.2g}")
    return best(bench, name, runs, 2.5 * work, "TFLOP/s", 1.0, 1.0, in_graphs=False, errors=errors)
