# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products in fp8 with scales of blocks (`tilefold/kernels/sm90/gemm_scaled.py`), against cuBLAS with the same scales,
where it has them, and with one scale for a whole tensor, which is less work.

A, B are N(0,1) and scales uniform, the same tensors in turns. A sample is a graph of several products.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from ml_dtypes import bfloat16, float8_e4m3fn

from benchmarks.contest import Bench, Case, rate, ratio
from benchmarks.in_python import sm90
from benchmarks.record import Figure
from benchmarks.timing import Run

_SAMPLE = 3e12
"""The operations of a sample."""
BLOCK = 128
"""The elements of a block along K, and along N."""
Options = Mapping[str, Any]
DEFAULTS: Options = {}
"""Tiles of 128 x 128, and two accumulators for each sum."""
WIDE: Options = {"n": 192, "stages": 4}
"""Tiles of 128 x 192, which read less and have one."""
CONFIGURATIONS: Sequence[Options] = (DEFAULTS, WIDE)
TARGET = 1.0
"""The least that our speed is to be of that of cuBLAS with the same scales."""
SHAPES = (
    (4096, 4096, 4096), (4096, 4096, 7168), (4096, 7168, 2048), (4096, 7168, 16384), (4096, 24576, 1536),
    (4000, 7168, 4096),
)  # fmt: skip
"""M, N and K of the products."""


@dataclass(frozen=True, slots=True)
class Operands:
    """A and B in fp8, their scales, D, the products of the numbers alone, and those of what they stand for."""

    a: Any
    b: Any
    scale_a: Any
    scale_b: Any
    d: Any
    plain: Any
    expected: Any

    @classmethod
    def of(cls, torch: Any, m: int, n: int, k: int) -> "Operands":
        """Those of a product."""
        torch.manual_seed(0)
        a, b = (torch.randn(rows, k, device="cuda").to(torch.float8_e4m3fn) for rows in (m, n))
        scale_a = (torch.rand(k // BLOCK, m, device="cuda") + 0.5).T
        scale_b = torch.rand(-(-n // BLOCK), k // BLOCK, device="cuda") + 0.5
        whole_a = a.float() * scale_a.repeat_interleave(BLOCK, 1)
        whole_b = b.float() * scale_b.repeat_interleave(BLOCK, 0)[:n].repeat_interleave(BLOCK, 1)
        d = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        return cls(a, b, scale_a, scale_b, d, a.float() @ b.float().T, whole_a @ whole_b.T)


def cases(multiprocessors: int) -> list[Case]:
    """Every product of `SHAPES`."""
    return [
        Case(
            _name(*shape), (), partial(_measure, shape=shape, blocks=multiprocessors), TARGET, partial(_compile, shape)
        )
        for shape in SHAPES
    ]


def _compile(shape: tuple[int, int, int]) -> None:
    """Compiles the kernels of a product, for arrays that nobody fills."""
    (m, n, k), module = shape, sm90("gemm_scaled")
    A, B, D = np.empty((m, k), float8_e4m3fn), np.empty((n, k), float8_e4m3fn), np.empty((m, n), bfloat16)
    a, b = np.empty((k // BLOCK, m), np.float32).T, np.empty((-(-n // BLOCK), k // BLOCK), np.float32)
    for options in CONFIGURATIONS:
        config = module.Config(**{"takes_turns": False, **options})
        module.gemm_fp8_scaled_kernel(A, B, a, b, D, config).build(config.threads).artifact("sm_90a")


def _name(m: int, n: int, k: int) -> str:
    return f"fp8 GEMM {m} x {n} x {k} with scales of blocks"


def _measure(bench: Bench, shape: tuple[int, int, int], blocks: int) -> list[Figure]:
    torch, module, name = bench.torch, sm90("gemm_scaled"), _name(*shape)
    given = Operands.of(torch, *shape)
    inputs = given.a, given.b, given.scale_a, given.scale_b
    allowed = 0.1 * shape[2] ** 0.5

    def run(options: Options) -> Run:
        config = module.Config(**{"takes_turns": False, **options})
        return partial(module.gemm_fp8_scaled, *inputs, given.d, config, "cuda", blocks)

    ours = {
        " ".join(f"{key}={value}" for key, value in configuration.items()) or "defaults": run(configuration)
        for configuration in CONFIGURATIONS
    }
    bench.check(ours, given.d, given.expected, inputs, atol=allowed)
    one = torch.ones((), device="cuda")
    multiply = partial(torch._scaled_mm, given.a, given.b.T, out_dtype=torch.bfloat16)
    plain = {"cuBLAS (one scale a tensor)": partial(multiply, scale_a=one, scale_b=one)}
    same = {"cuBLAS (scales of blocks)": partial(multiply, scale_a=given.scale_a, scale_b=given.scale_b.T)}
    peers = bench.right(plain, given.d, given.plain, inputs, atol=allowed)
    peers |= bench.right(same, given.d, given.expected, inputs, atol=allowed)

    work = 2.0 * shape[0] * shape[1] * shape[2]
    count = max(4, round(_SAMPLE / work))
    ours, peers = bench.repeated(ours, count), bench.repeated(peers, count)
    chosen = bench.fastest(ours)
    times = bench.time({"tilefold": ours[chosen], **peers})
    figures = {
        who: rate(f"{name}, {who}", work * count, timed, "TFLOP/s", chosen if who == "tilefold" else "")
        for who, timed in times.items()
    }
    best = figures.pop("tilefold")
    return [*figures.values(), *(ratio(best, peer, TARGET if who in same else None) for who, peer in figures.items())]
