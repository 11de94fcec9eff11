# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with few rows of A (`tilefold/kernels/sm90/gemm_skinny.py`, by the entry `gemm`), against cuBLAS and the
bandwidth of a copy.

bf16 of N(0,1), D = A * B^T in bf16. A sample is a graph of products that take another B each time, so many of them that
the L2 cache holds none: the weights of a model come from memory. A figure is the bytes of A, B and D by time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from benchmarks.contest import MORE_THAN_A_CACHE, Bench, Case, beside_a_copy, in_turn
from benchmarks.gemms import ALLOWED
from benchmarks.in_python import sm90
from benchmarks.record import Figure

_COUNT = 32
"""The products of a sample."""
Multiply = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Skinny:
    """The extents of a product, and the least that its speed is to be of cuBLAS's."""

    m: int
    n: int
    k: int
    target: float = 1.0

    @property
    def name(self) -> str:
        """The extents."""
        return f"bf16 GEMM {self.m} x {self.n} x {self.k}, B from memory"

    @property
    def bytes(self) -> int:
        """Those of A, B and D."""
        return 2 * (self.m * self.k + self.n * self.k + self.m * self.n)


PROBLEMS = tuple(
    Skinny(m, n, k) for m in (1, 16, 32, 64, 128) for n, k in ((4096, 4096), (8192, 8192), (1024, 8192), (28672, 4096))
)


def cases(multiprocessors: int) -> list[Case]:
    """Every one of `PROBLEMS`."""
    return [
        Case(
            problem.name,
            (),
            partial(_measure, problem=problem, blocks=multiprocessors),
            problem.target,
            partial(_compile, problem, multiprocessors),
        )
        for problem in PROBLEMS
    ]


def _compile(problem: Skinny, blocks: int) -> None:
    """Compiles the kernel of a problem, for arrays that nobody fills."""
    module = sm90("gemm_skinny")
    if not module.is_skinny(problem.m, problem.n, blocks):
        return
    shapes = (problem.m, problem.k), (problem.n, problem.k), (problem.m, problem.n)
    config = module.chosen_skinny(problem.m, problem.n, problem.k, blocks)
    call = module.skinny_kernel(*(np.empty(shape, bfloat16) for shape in shapes), config, None, None)
    call.build(2 * module.WARPGROUP).artifact("sm_90a")


def _measure(bench: Bench, problem: Skinny, blocks: int) -> list[Figure]:
    torch = bench.torch
    torch.manual_seed(0)
    like = {"device": "cuda", "dtype": torch.bfloat16}
    a, d = torch.randn(problem.m, problem.k, **like), torch.empty(problem.m, problem.n, **like)
    copies = 1 + int(MORE_THAN_A_CACHE // (2 * problem.n * problem.k))
    weights = [torch.randn(problem.n, problem.k, **like) for _ in range(copies)]
    multiply: dict[str, Multiply] = {
        "tilefold": partial(sm90("gemm").gemm, device="cuda", blocks=blocks),
        "cuBLAS (torch.mm)": lambda a, b, d: torch.mm(a, b.T, out=d),
    }
    expected = a.float() @ weights[0].float().T
    once = {name: partial(run, a, weights[0], d) for name, run in multiply.items()}
    bench.check(once, d, expected, (a, weights[0]), atol=ALLOWED["bf16"] * problem.k**0.5)
    others = [a] * copies, weights, [d] * copies
    runs = {name: in_turn(run, *others) for name, run in multiply.items()}
    return beside_a_copy(bench, problem.name, runs, problem.bytes, _COUNT, problem.target)
