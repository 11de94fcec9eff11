# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The library's products (tilefold/kernels) against their peers.

N(0,1) data, the same tensors in turns. A sample is a graph of so many calls that it takes about a millisecond. Calls go
through the public functions, which allocate their results, as the peers do. Errors are those against the product in
f64.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from benchmarks.contest import MORE_THAN_A_CACHE, Bench, Case, in_turn, rate, ratio
from benchmarks.record import Figure
from benchmarks.timing import Run
from tilefold import kernels
from tilefold.kernels.arguments import numpy_type
from tilefold.kernels.replay import Launch, Launches
from tilefold.kernels.sm90.products import product

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
FP8 = (64, 4096, 4096), (1024, 8192, 8192), (4096, 4096, 4096), (4096, 7168, 2048), (4096, 14336, 4096)
"""M, N and K of products of fp8."""


def best(
    bench: Bench,
    name: str,
    runs: Mapping[str, Run],
    work: float,
    unit: str,
    seconds: float,
    target: float,
    in_graphs: bool = True,
    errors: Mapping[str, float] = MappingProxyType({}),
) -> list[Figure]:
    """The speeds of contenders, and that of tilefold by that of the fastest other, with the errors of their results.
    PyTorch's gradients of attention cannot be captured in graphs; the host queues them then while the GPU waits.
    """
    count = max(1, min(64, round(SAMPLE / seconds))) if in_graphs else 1
    times = bench.time(bench.repeated(runs, count) if in_graphs else runs)
    figures = {key: rate(f"{name}, {key}", work * count, times[key], unit, error=errors.get(key)) for key in runs}
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
        Case(
            f"gemm {m} x {n} x {k}",
            (),
            partial(_product, shape=(m, n, k), target=target),
            target,
            partial(_compile, (m, n, k), "bfloat16", "bfloat16", multiprocessors),
        )
        for m, n, k, target in shapes
    ]


def build(launches: Launches) -> None:
    """Compiles the kernels of launches into the cache on disk."""
    for launch in launches:
        if isinstance(launch, Launch):
            launch.kernel(*launch.made(launch.args[0])).build(launch.block).artifact("sm_90a")


def without_memory(shape: Sequence[int], dtype: str) -> Any:
    """An array of the host with the strides of a new one; nobody may read it."""
    size = numpy_type(dtype).itemsize
    strides = [size * math.prod(shape[i + 1 :]) for i in range(len(shape))]
    return np.lib.stride_tricks.as_strided(np.empty(16, numpy_type(dtype)), shape, strides)


def _compile(shape: tuple[int, int, int], dtype: str, out: str, multiprocessors: int) -> None:
    m, n, k = shape
    a, b, d = (without_memory(x, t) for x, t in (((m, k), dtype), ((n, k), dtype), ((m, n), out)))
    build(product(d, a, b, True, multiprocessors, None, None, None, None, None, None))


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
    exact = a.double() @ weights[0].double().T
    once = {name: partial(run, weights[0]) for name, run in multiply.items()}
    bench.check(once, torch.empty(1, **like), exact, (a,), rtol=1e-2, atol=2e-2 * k**0.5)
    errors = bench.errors(once, None, exact)
    del exact
    runs = {name: in_turn(run, weights) for name, run in multiply.items()}
    seconds = max(2 * m * n * k / SPEED, 2 * (m * k + n * k + m * n) / BANDWIDTH, 3e-6)
    name, work = f"gemm {m} x {n} x {k}", 2 * m * n * k
    return best(bench, name, runs, work, "TFLOP/s", seconds, target, errors=errors)


def fp8_cases(multiprocessors: int) -> list[Case]:
    """Products of fp8 with one scale, beside cuBLAS with the same accumulation."""
    return [
        Case(
            fp8_name(shape, accumulate, out),
            (),
            partial(_fp8, shape=shape, accumulate=accumulate, out=out),
            1.03,
            partial(_compile, shape, "float8_e4m3fn", out, multiprocessors) if accumulate == "fast" else None,
        )
        for shape in FP8
        for accumulate in ("fast", "accurate")
        for out in ("bfloat16", "float32")
    ]


def fp8_name(shape: tuple[int, int, int], accumulate: str, out: str) -> str:
    """The name of a product of fp8."""
    m, n, k = shape
    return f"fp8 gemm {m} x {n} x {k}, D in {'f32' if out == 'float32' else 'bf16'}, {accumulate} accumulation"


def _fp8(bench: Bench, shape: tuple[int, int, int], accumulate: str, out: str) -> list[Figure]:
    torch, (m, n, k) = bench.torch, shape
    torch.manual_seed(0)
    a, b = (torch.randn(rows, k, device="cuda").to(torch.float8_e4m3fn) for rows in (m, n))
    one = torch.ones((), device="cuda")
    options: Any = {"out_dtype": getattr(torch, out), "use_fast_accum": accumulate == "fast"}
    peer = partial(torch._scaled_mm, a, b.T, scale_a=one, scale_b=one, **options)
    runs: dict[str, Run] = {
        "tilefold": lambda: kernels.gemm(a, b, out_dtype=out, accumulate=accumulate),
        "torch._scaled_mm": peer,
    }
    exact = a.double() @ b.double().T
    bench.check(runs, torch.empty(1, device="cuda"), exact, (), rtol=1e-2, atol=5e-2 * k**0.5)
    name, errors = fp8_name(shape, accumulate, out), bench.errors(runs, None, exact)
    return best(bench, name, runs, 2 * m * n * k, "TFLOP/s", max(m * n * k / SPEED, 4e-6), 1.03, errors=errors)
