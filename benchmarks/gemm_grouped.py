# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of groups of rows (`tilefold/kernels/sm90/gemm_grouped.py`), against cuBLAS one group after the other, with
sizes that the host knows, and `torch._grouped_mm`.

bf16 of N(0,1), or fp8 with scales of blocks and results in bf16; the same tensors in turns, poisoned results. A sample
is a graph of several products of all groups.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from ml_dtypes import bfloat16, float8_e4m3fn

from benchmarks.contest import Bench, Case, rate, ratio
from benchmarks.gemm_scaled import BLOCK
from benchmarks.in_python import sm90
from benchmarks.record import Figure
from benchmarks.timing import Run

_SAMPLE = 3e12
"""The operations of a sample."""
HEIGHT = 128
"""The rows at a multiple of which groups begin."""
ALLOWED, ALLOWED_SCALED = 3e-2, 0.1
"""The error of an element against the square root of K, and of one of fp8."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """Groups: the rows of each, N and K, masked or contiguous, and whether they are fp8 with block scales."""

    rows: tuple[int, ...]
    n: int
    k: int
    is_masked: bool = False
    is_scaled: bool = False

    @property
    def name(self) -> str:
        """The groups, their sizes and where they are."""
        least, most = min(self.rows), max(self.rows)
        rows = f"{least}" if least == most else f"{least} to {most}"
        kind = "masked" if self.is_masked else "contiguous"
        scales = " with scales of blocks" if self.is_scaled else ""
        type = "fp8" if self.is_scaled else "bf16"
        return f"{type} GEMM, {len(self.rows)} {kind} groups of {rows} x {self.n} x {self.k}{scales}"

    @property
    def places(self) -> list[Any]:
        """Where each group's rows are in A and D."""
        if self.is_masked:
            return [(group, slice(count)) for group, count in enumerate(self.rows)]
        first, slices = 0, list[Any]()
        for count in self.rows:
            slices.append(slice(first, first + count))
            first += -(-count // HEIGHT) * HEIGHT
        return slices

    @property
    def shape(self) -> tuple[int, ...]:
        """The modes of A and D before the last one."""
        high = [-(-count // HEIGHT) * HEIGHT for count in self.rows]
        return (len(high), max(high)) if self.is_masked else (sum(high),)


UNEVEN = (1216, 640, 2432, 64, 896, 1536, 4096, 384)
PROBLEMS = (
    Grouped((8192,) * 4, 4096, 7168),
    Grouped((4096,) * 8, 7168, 2048),
    Grouped(UNEVEN, 4096, 7168),
    Grouped((1024,) * 6, 4096, 7168, is_masked=True),
    Grouped(UNEVEN, 7168, 2048, is_masked=True),
    Grouped((4096,) * 8, 7168, 2048, is_scaled=True),
    Grouped(UNEVEN, 4096, 7168, is_scaled=True),
    Grouped((1024,) * 6, 4096, 7168, is_masked=True, is_scaled=True),
)


def cases(multiprocessors: int) -> list[Case]:
    """Every one of `PROBLEMS`, which is to be as fast as its peers."""
    return [
        Case(
            problem.name,
            (),
            partial(_measure, problem=problem, blocks=multiprocessors),
            1.0,
            partial(_compile, problem),
        )
        for problem in PROBLEMS
    ]


def _compile(problem: Grouped) -> None:
    """Compiles the kernel of a problem, for arrays that nobody fills."""
    module, groups, (*most, m) = sm90("gemm_grouped"), len(problem.rows), problem.shape
    dtype = float8_e4m3fn if problem.is_scaled else bfloat16
    A, B = np.empty((*problem.shape, problem.k), dtype), np.empty((groups, problem.n, problem.k), dtype)
    D, scales = np.empty((*problem.shape, problem.n), bfloat16), list[Any]()
    if problem.is_scaled:
        by_rows = np.empty((*most, problem.k // BLOCK, m), np.float32).swapaxes(-1, -2)
        scales = [by_rows, np.empty((groups, -(-problem.n // BLOCK), problem.k // BLOCK), np.float32)]
    config = module.WITH_SCALES if scales else module.DEFAULT
    call = module.gemm_grouped_kernel(A, B, np.zeros(groups, np.int32), D, config, *scales)
    call.build(config.threads).artifact("sm_90a")


def _measure(bench: Bench, problem: Grouped, blocks: int) -> list[Figure]:
    torch, groups = bench.torch, len(problem.rows)
    torch.manual_seed(0)
    like = {"device": "cuda", "dtype": torch.bfloat16}
    a, b = torch.randn(*problem.shape, problem.k, **like), torch.randn(groups, problem.n, problem.k, **like)
    d = torch.empty(*problem.shape, problem.n, **like)
    rows = torch.tensor(problem.rows, device="cuda", dtype=torch.int32)
    multiply = partial(sm90("gemm_grouped").gemm_grouped, device="cuda", blocks=blocks)
    contenders: dict[str, Run]
    if problem.is_scaled:
        a, b = (x.to(torch.float8_e4m3fn) for x in (a, b))
        *most, m = problem.shape
        scale_a = (torch.rand(*most, problem.k // BLOCK, m, device="cuda") + 0.5).transpose(-1, -2)
        scale_b = torch.rand(groups, -(-problem.n // BLOCK), problem.k // BLOCK, device="cuda") + 0.5
        contenders = {"tilefold": partial(multiply, a, b, rows, d, scale_a, scale_b)}
        peers = _scaled_peers(bench, problem, a, b, scale_a, scale_b, d)
        wide_a = a.float() * scale_a.repeat_interleave(BLOCK, -1)
        wide_b = b.float() * scale_b.repeat_interleave(BLOCK, 1)[:, : problem.n].repeat_interleave(BLOCK, 2)
    else:
        contenders = {"tilefold": partial(multiply, a, b, rows, d)}
        peers = _peers(bench, problem, a, b, d)
        wide_a, wide_b = a, b
    contenders |= peers
    _check(bench, problem, contenders, wide_a, wide_b, d)

    work = 2.0 * sum(problem.rows) * problem.n * problem.k
    count = max(4, round(_SAMPLE / work))
    times = bench.time(bench.repeated(contenders, count))
    figures = {who: rate(f"{problem.name}, {who}", work * count, timed, "TFLOP/s") for who, timed in times.items()}
    best = figures.pop("tilefold")
    return [*figures.values(), *(ratio(best, peer, 1.0) for peer in figures.values())]


def _peers(bench: Bench, problem: Grouped, a: Any, b: Any, d: Any) -> dict[str, Run]:
    """cuBLAS one group after the other, and PyTorch's own groups where they are contiguous and even."""
    torch = bench.torch
    parts = [(a[place], b[group].T, d[place]) for group, place in enumerate(problem.places)]

    def one_by_one() -> None:
        for left, right, out in parts:
            torch.mm(left, right, out=out)

    runs: dict[str, Run] = {"cuBLAS (torch.mm for each group)": one_by_one}
    if not problem.is_masked and hasattr(torch, "_grouped_mm"):
        ends = torch.tensor([place.stop for place in problem.places], device="cuda", dtype=torch.int32)
        if all(count % HEIGHT == 0 for count in problem.rows):
            runs["torch._grouped_mm"] = lambda: torch._grouped_mm(a, b.transpose(1, 2), offs=ends)
    return runs


def _scaled_peers(bench: Bench, problem: Grouped, a: Any, b: Any, scale_a: Any, scale_b: Any, d: Any) -> dict[str, Run]:
    """cuBLAS one group after the other with the same scales, those of A by columns as it takes them."""
    torch = bench.torch
    parts = [
        (a[place], b[group].T, scale_a[place].T.contiguous().T, scale_b[group].T, d[place])
        for group, place in enumerate(problem.places)
    ]

    def one_by_one() -> None:
        for left, right, of_rows, of_blocks, out in parts:
            torch._scaled_mm(left, right, scale_a=of_rows, scale_b=of_blocks, out_dtype=torch.bfloat16, out=out)

    return {"cuBLAS (torch._scaled_mm for each group, scales of blocks)": one_by_one}


def _check(bench: Bench, problem: Grouped, contenders: dict[str, Run], a: Any, b: Any, d: Any) -> None:
    """The rows of each group, onto a poisoned D; a contender that gives a result of its own writes none."""

    def part(run: Run, place: Any) -> Any:
        d.view(bench.torch.int16).fill_(-1)
        result = run()
        return (d if result is None else result)[place].clone()

    allowed = (ALLOWED_SCALED if problem.is_scaled else ALLOWED) * problem.k**0.5
    for group, place in enumerate(problem.places):
        expected = a[place].float() @ b[group].float().T
        parts = {name: partial(part, run, place) for name, run in contenders.items()}
        bench.check(parts, d[place].clone(), expected, (), atol=allowed)
