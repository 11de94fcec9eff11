# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of groups of rows (`examples/python/gemm_grouped.py`), against cuBLAS one group after the other, with sizes
that the host knows, and `torch._grouped_mm`.

bf16 of N(0,1), the same tensors in turns, poisoned results. A sample is a graph of several products of all groups.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.contest import Bench, Case, rate, ratio
from benchmarks.in_python import example
from benchmarks.record import Figure
from benchmarks.timing import Run

_SAMPLE = 3e12
"""The operations of a sample."""
HEIGHT = 128
"""The rows at a multiple of which groups begin."""
ALLOWED = 3e-2
"""The error of an element against the square root of K."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """Groups of so many rows each, N and K, and whether they are masked or contiguous."""

    rows: tuple[int, ...]
    n: int
    k: int
    is_masked: bool = False

    @property
    def name(self) -> str:
        """The groups, their sizes and where they are."""
        least, most = min(self.rows), max(self.rows)
        rows = f"{least}" if least == most else f"{least} to {most}"
        kind = "masked" if self.is_masked else "contiguous"
        return f"bf16 GEMM, {len(self.rows)} {kind} groups of {rows} x {self.n} x {self.k}"

    @property
    def places(self) -> list[Any]:
        """Where each group's rows are in A and D."""
        if self.is_masked:
            return [(group, slice(count)) for group, count in enumerate(self.rows)]
        first, found = 0, list[Any]()
        for count in self.rows:
            found.append(slice(first, first + count))
            first += -(-count // HEIGHT) * HEIGHT
        return found

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
)


def cases(multiprocessors: int) -> list[Case]:
    """Every one of `PROBLEMS`, which is to be as fast as its peers."""
    return [Case(each.name, (), partial(_measure, problem=each, blocks=multiprocessors), 1.0) for each in PROBLEMS]


def _measure(bench: Bench, problem: Grouped, blocks: int) -> list[Figure]:
    torch, groups = bench.torch, len(problem.rows)
    torch.manual_seed(0)
    like = {"device": "cuda", "dtype": torch.bfloat16}
    a, b = torch.randn(*problem.shape, problem.k, **like), torch.randn(groups, problem.n, problem.k, **like)
    d = torch.empty(*problem.shape, problem.n, **like)
    rows = torch.tensor(problem.rows, device="cuda", dtype=torch.int32)
    parts = [(a[place], b[group].T, d[place]) for group, place in enumerate(problem.places)]
    run = partial(example("gemm_grouped").gemm_grouped, a, b, rows, d, device="cuda", blocks=blocks)

    def one_by_one() -> None:
        for left, right, out in parts:
            torch.mm(left, right, out=out)

    contenders: dict[str, Run] = {"tilefold": run, "cuBLAS (torch.mm for each group)": one_by_one}
    if not problem.is_masked and hasattr(torch, "_grouped_mm"):
        ends = torch.tensor([place.stop for place in problem.places], device="cuda", dtype=torch.int32)
        if all(count % HEIGHT == 0 for count in problem.rows):
            contenders["torch._grouped_mm"] = lambda: torch._grouped_mm(a, b.transpose(1, 2), offs=ends)
    _check(bench, problem, contenders, a, b, d)

    work = 2.0 * sum(problem.rows) * problem.n * problem.k
    count = max(4, round(_SAMPLE / work))
    times = bench.time(bench.repeated(contenders, count))
    figures = {who: rate(f"{problem.name}, {who}", work * count, timed, "TFLOP/s") for who, timed in times.items()}
    best = figures.pop("tilefold")
    return [*figures.values(), *(ratio(best, peer, 1.0) for peer in figures.values())]


def _check(bench: Bench, problem: Grouped, contenders: dict[str, Run], a: Any, b: Any, d: Any) -> None:
    """The rows of each group, onto a poisoned D; a contender that gives a result of its own writes none."""

    def part(run: Run, place: Any) -> Any:
        d.view(bench.torch.int16).fill_(-1)
        result = run()
        return (d if result is None else result)[place].clone()

    for group, place in enumerate(problem.places):
        expected = a[place].float() @ b[group].float().T
        parts = {name: partial(part, run, place) for name, run in contenders.items()}
        bench.check(parts, d[place].clone(), expected, (), atol=ALLOWED * problem.k**0.5)
