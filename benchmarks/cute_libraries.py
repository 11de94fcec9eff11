# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Libraries of CuTe programs, compiled by tilefold, beside PyTorch and tilefold's own kernels.

quack and FlashAttention (`flash_attn.cute`) are imported from where Python finds them, and are not part of the project.
Calls go through their public functions. Large problems are timed in graphs, and small ones by the host's time of a
call. bf16 and N(0,1) data, the same tensors in turns.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.contest import Bench, Case, in_turn, rate, ratio
from benchmarks.library import best
from benchmarks.library_attention import SAME, exact_heads, heads_of, peers_of, relative, title_of
from benchmarks.record import Figure
from benchmarks.timing import Run
from tilefold import kernels
from tilefold.cutlass import install

BYTES = 256e6
"""The bytes of a matrix, about."""
COUNT = 8
"""The calls of a sample."""
NEAR_COPY, NEAR_PEER = 0.95, 0.97
ROWS = (
    *(("softmax", n) for n in (4096, 16384)),
    *(("rmsnorm", n) for n in (4096, 16384)),
    *(("layernorm", n) for n in (4096, 8192)),
    *(("cross_entropy", n) for n in (32768, 131072)),
)
"""Functions that memory limits, and the columns of their matrices."""
PRODUCTS = (4096, 4096, 4096), (8192, 8192, 8192), (8192, 14336, 4096)
"""M, N and K."""
ATTENTIONS = (
    (4, 4096, 4096, 16, 16, 128, False), (4, 4096, 4096, 16, 16, 128, True), (2, 8192, 8192, 16, 16, 64, False),
    (4, 4096, 4096, 32, 8, 128, True),
)  # fmt: skip
"""Batch, rows, keys, heads of Q and of K, D, and whether causal."""
BACKWARDS = (4, 4096, 4096, 16, 16, 128, False), (4, 4096, 4096, 16, 16, 128, True)
ROUND, ROUNDS = 100, 20
HOST = 60.0
"""The microseconds that a call may take of the host."""


def quack_cases(multiprocessors: int) -> list[Case]:
    """quack's functions."""
    return [
        *(Case(f"quack's {name}, rows of {n}", (), partial(_row, name=name, columns=n), NEAR_COPY) for name, n in ROWS),
        *(Case(f"quack's gemm {m} x {n} x {k}", (), partial(_product, shape=(m, n, k))) for m, n, k in PRODUCTS),
        Case("the host's time of a call of quack", (), _host_of_quack),
    ]


def attention_cases(multiprocessors: int) -> list[Case]:
    """FlashAttention's forward pass and its gradient."""
    return [
        *(Case(f"FlashAttention {title_of(p)}", (), partial(_attention, problem=p), NEAR_PEER) for p in ATTENTIONS),
        *(Case(f"FlashAttention's gradient {title_of(p)}", (), partial(_gradient, problem=p)) for p in BACKWARDS),
        Case("the host's time of a call of FlashAttention", (), _host_of_attention),
    ]


@cache
def _library(name: str) -> Any:
    """A module of a library whose kernels are compiled by tilefold."""
    install()
    return import_module(name)


def _quack(name: str) -> Callable[..., Any]:
    """A function of quack, of any of its versions; of several results, the first."""
    if name == "layernorm":
        try:
            function = _library("quack.layernorm").layernorm
        except ModuleNotFoundError:
            function = _library("quack.rmsnorm").layernorm_fwd
    else:
        function = getattr(_library(f"quack.{name}"), name)
    if name == "cross_entropy":
        return lambda x, target: function(x, target, reduction="none")
    return lambda *given: _first(function(*given))


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


def _inputs(torch: Any, name: str, rows: int, columns: int) -> tuple[Any, ...]:
    x = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)
    if name == "cross_entropy":
        return x, torch.randint(0, columns, (rows,), device="cuda")
    return (x,) if name == "softmax" else (x, torch.randn(columns, device="cuda"))


def _in_torch(torch: Any, name: str) -> Callable[..., Any]:
    """The same function of PyTorch in f64."""
    functions = torch.nn.functional
    wide: Mapping[str, Callable[..., Any]] = {
        "softmax": lambda x: functions.softmax(x.double(), -1),
        "rmsnorm": lambda x, w: functions.rms_norm(x.double(), (x.shape[-1],), w.double(), 1e-6),
        "layernorm": lambda x, w: functions.layer_norm(x.double(), (x.shape[-1],), w.double(), None, 1e-6),
        "cross_entropy": lambda x, t: functions.cross_entropy(x.double(), t, reduction="none"),
    }
    return wide[name]


def _ours(name: str) -> Callable[..., Any]:
    """The same function of tilefold's own library."""
    own: Mapping[str, Callable[..., Any]] = {
        "softmax": kernels.softmax,
        "rmsnorm": kernels.rms_norm,
        "layernorm": lambda x, w: kernels.layer_norm(x, w, w),
        "cross_entropy": kernels.cross_entropy,
    }
    return own[name]


def _row(bench: Bench, name: str, columns: int) -> list[Figure]:
    torch, rows = bench.torch, int(BYTES / 2 / columns)
    torch.manual_seed(0)
    inputs = [_inputs(torch, name, rows, columns) for _ in range(2)]
    contenders = {"tilefold": _quack(name), "tilefold's own kernel": _ours(name)}
    expected = _in_torch(torch, name)(*(part[:512] if part.shape[0] == rows else part for part in inputs[0]))
    error = relative(torch, contenders["tilefold"](*inputs[0])[:512], expected)
    title, moves = f"quack's {name}, rows of {columns}", 1 if name == "cross_entropy" else 2
    if not error < 1e-2:
        bench.failed.append(f"{title}: error {error:.2g}")
    whole = torch.empty(2, int(BYTES * moves / 2), device="cuda", dtype=torch.int8)
    runs: dict[str, Run] = {key: in_turn(lambda x, run=run: run(*x), inputs) for key, run in contenders.items()}
    runs["a copy"] = partial(whole[0].copy_, whole[1])
    times, moved = bench.time(bench.repeated(runs, COUNT)), BYTES * moves * COUNT
    figures = {key: rate(f"{title}, {key}", moved, times[key], "TB/s") for key in runs}
    mine = figures.pop("tilefold")
    return [*figures.values(), ratio(mine, figures["a copy"], NEAR_COPY)]


def _product(bench: Bench, shape: tuple[int, int, int]) -> list[Figure]:
    torch, (m, n, k) = bench.torch, shape
    torch.manual_seed(0)
    a, b = (torch.randn(rows, k, device="cuda", dtype=torch.bfloat16) for rows in (m, n))
    gemm = _library("quack.gemm_interface").gemm
    runs: dict[str, Run] = {
        "tilefold": lambda: gemm(a, b.T, tuned=False),
        "torch": lambda: a @ b.T,
        "tilefold's own kernel": lambda: kernels.gemm(a, b),
    }
    exact, title = a[:256].double() @ b.double().T, f"quack's gemm {m} x {n} x {k}"
    errors = {name: relative(torch, run()[:256], exact) for name, run in runs.items()}
    bench.failed.extend(f"{title}, {name}: error {e:.2g}" for name, e in errors.items() if not e < 1e-2)
    work = 2.0 * m * n * k
    return best(bench, title, runs, work, "TFLOP/s", work / 6e14, NEAR_PEER, errors=errors)


def _flash(*given: Any, causal: bool = False) -> Any:
    """O by FlashAttention."""
    return _first(_library("flash_attn.cute.interface").flash_attn_func(*given, causal=causal))


def _attention(bench: Bench, problem: tuple[int, ...]) -> list[Figure]:
    torch, causal = bench.torch, bool(problem[6])
    q, k, v, work = heads_of(bench, problem)
    runs: dict[str, Run] = {"tilefold": lambda: _flash(q, k, v, causal=causal)}
    runs |= peers_of(bench, problem, q, k, v)
    runs["tilefold's own kernel"] = lambda: kernels.attention(q, k, v, causal=causal)
    exact, shared = exact_heads(torch, problem, q, k, v), problem[3] // problem[4]
    errors = {key: relative(torch, run()[0, :, :shared].transpose(0, 1), exact) for key, run in runs.items()}
    title = f"FlashAttention {title_of(problem)}"
    bench.failed.extend(f"{title}, {name}: error {e:.2g}" for name, e in errors.items() if not e < SAME)
    return best(bench, title, runs, work, "TFLOP/s", work / 5e14, NEAR_PEER, errors=errors)


def _gradient(bench: Bench, problem: tuple[int, ...]) -> list[Figure]:
    torch, causal = bench.torch, bool(problem[6])
    q, k, v, work = heads_of(bench, problem)
    inputs = [x.requires_grad_() for x in (q, k, v)]
    do, title = torch.randn_like(q), f"FlashAttention's gradient {title_of(problem)}"
    forward: dict[str, Run] = {"tilefold": lambda: _flash(q, k, v, causal=causal)}
    forward |= peers_of(bench, problem, q, k, v)
    forward["tilefold's own kernel"] = lambda: kernels.attention(q, k, v, causal=causal)
    results = {name: run() for name, run in forward.items()}
    runs: dict[str, Run] = {
        name: partial(torch.autograd.grad, out, inputs, do, retain_graph=True) for name, out in results.items()
    }
    reference = [x.double() for x in runs["tilefold's own kernel"]()]
    for name, run in runs.items():
        away = max(relative(torch, x, y) for x, y in zip(run(), reference, strict=True))
        if not away < SAME:
            bench.failed.append(f"{title}, {name}: {away:.2g} from that of tilefold's own kernel")
    return best(bench, title, runs, 2.5 * work, "TFLOP/s", 1.0, NEAR_PEER, in_graphs=False)


def _host(bench: Bench, calls: Mapping[str, tuple[Run, Run]]) -> list[Figure]:
    """The host's time of calls, beside that of PyTorch's function, in rounds by turns."""
    figures: list[Figure] = []
    for name, runs in calls.items():
        for run in runs * 3:
            run()
        rounds = [tuple(_time(bench.torch, run) for run in runs) for _ in range(ROUNDS)]
        mine, theirs = (tuple(column) for column in zip(*rounds, strict=True))
        peer = Figure(f"host, {name}, torch", median(theirs), "us", samples=theirs)
        share = median(mine) / peer.value
        own = Figure(f"host, {name}, tilefold", median(mine), "us", peer.name, share, HOST, at_most=True, samples=mine)
        figures += [peer, own]
    return figures


def _time(torch: Any, run: Run) -> float:
    torch.cuda.synchronize()
    began = perf_counter()
    for _ in range(ROUND):
        run()
    return (perf_counter() - began) / ROUND * 1e6


def _host_of_quack(bench: Bench) -> list[Figure]:
    torch, functions = bench.torch, bench.torch.nn.functional
    like = {"device": "cuda", "dtype": torch.bfloat16}
    x, a, b = torch.randn(16, 1024, **like), torch.randn(256, 256, **like), torch.randn(256, 256, **like)
    w, gemm = torch.randn(1024, device="cuda"), _library("quack.gemm_interface").gemm
    same = w.bfloat16()
    softmax, rmsnorm = _quack("softmax"), _quack("rmsnorm")
    return _host(bench, {
        "quack's softmax": (lambda: softmax(x), lambda: torch.softmax(x, -1)),
        "quack's rmsnorm": (lambda: rmsnorm(x, w), lambda: functions.rms_norm(x, (1024,), same)),
        "quack's gemm": (lambda: gemm(a, b, tuned=False), lambda: a @ b),
    })  # fmt: skip


def _host_of_attention(bench: Bench) -> list[Figure]:
    torch = bench.torch
    q, k, v = (torch.randn(1, 256, 4, 128, device="cuda", dtype=torch.bfloat16) for _ in range(3))

    def theirs() -> Any:
        return torch.nn.functional.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)))

    return _host(bench, {"FlashAttention": (lambda: _flash(q, k, v), theirs)})
