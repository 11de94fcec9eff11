# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention, against PyTorch's FlashAttention-2."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.contest import Bench, Case, rate, ratio
from benchmarks.record import Figure
from benchmarks.timing import Torch
from benchmarks.workloads import Parameters, Workload, spelled

BATCH, HEADS, LENGTH = 4, 32, 4096
TARGET = 1.0  # of FlashAttention-2, for heads of 128
_TILES: Parameters = {"TILE_Q": 128, "TILE_K": 64, "WARPS": 4}
CONFIGURATIONS: Sequence[Parameters] = (
    {**_TILES, "STAGES": 1},
    {**_TILES, "STAGES": 1, "LAZY": 8},
    {**_TILES, "STAGES": 1, "GROUP": 8, "LAZY": 8},
    {**_TILES, "STAGES": 2, "GROUP": 8},
    {**_TILES, "STAGES": 2, "GROUP": 8, "LAZY": 8},
)
SMALL: Parameters = {"S": 32, "HEADS": 1, "TILE_Q": 32, "TILE_K": 16, "WARPS": 1, "STAGES": 2, "CAUSAL": 1}


@dataclass(frozen=True, slots=True)
class Attention:
    """Heads of this many elements, causal or not."""

    depth: int
    causal: bool

    @property
    def name(self) -> str:
        """The problem."""
        return f"attention, b{BATCH} h{HEADS} s{LENGTH} d{self.depth} f16{', causal' if self.causal else ''}"

    @property
    def operations(self) -> float:
        """Multiplications and additions of both products; of causal attention, of half of the scores."""
        return 4.0 * BATCH * HEADS * LENGTH * LENGTH * self.depth * (0.5 if self.causal else 1.0)

    def workloads(self) -> list[Workload]:
        """The kernel in the configurations that come into question."""
        size = {"S": LENGTH, "D": self.depth, "HEADS": HEADS, "BATCH": BATCH, "CAUSAL": int(self.causal)}
        small = SMALL if self.causal and self.depth == 64 else None
        return [
            Workload(
                f"{self.name}: {spelled(configuration)}",
                "examples/attention.cute",
                {**size, **configuration},
                None if number else small,
            )
            for number, configuration in enumerate(CONFIGURATIONS)
        ]


ATTENTIONS = tuple(Attention(depth, causal) for depth in (128, 64) for causal in (False, True))


def cases(multiprocessors: int) -> list[Case]:
    """Heads of 128 and 64, with and without a mask."""
    return [
        Case(
            attention.name,
            attention.workloads(),
            partial(_measure, problem=attention),
            TARGET if attention.depth == 128 else None,
        )
        for attention in ATTENTIONS
    ]


def _measure(bench: Bench, problem: Attention) -> list[Figure]:
    torch = bench.torch
    torch.manual_seed(0)
    shape = (BATCH, LENGTH, HEADS, problem.depth)
    given = {name: torch.randn(shape, device="cuda", dtype=torch.float16) for name in "QKV"}
    output = torch.empty(shape, device="cuda", dtype=torch.float16)
    args = {name: tensor.permute(1, 3, 2, 0) for name, tensor in {**given, "O": output}.items()}
    args["scale"] = problem.depth**-0.5
    launchers = {workload.name: bench.launcher(workload, args) for workload in problem.workloads()}
    heads = [tensor.transpose(1, 2) for tensor in given.values()]  # (batch, head, row, element), as PyTorch has them
    flash = partial(_attend, torch, "FLASH_ATTENTION", heads, problem.causal)
    peer = f"{problem.name}, FlashAttention-2"
    contenders = {**launchers, peer: lambda: flash().transpose(1, 2)}
    bench.check(contenders, output, _expected(torch, heads, problem.causal), list(given.values()), rtol=2e-3, atol=2e-3)
    chosen = bench.fastest(launchers)
    ours = f"{problem.name}, tilefold"
    times = bench.time({ours: launchers[chosen], peer: flash})
    note = chosen.removeprefix(f"{problem.name}: ")
    base = rate(peer, problem.operations, times[peer], "TFLOP/s")
    target = TARGET if problem.depth == 128 else None
    return [base, ratio(rate(ours, problem.operations, times[ours], "TFLOP/s", note), base, target)]


def _attend(torch: Torch, backend: str, heads: Sequence[Any], causal: bool) -> Any:
    """Attention by one of PyTorch's kernels."""
    kernels = torch.nn.attention
    with kernels.sdpa_kernel(getattr(kernels.SDPBackend, backend)):
        return torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=causal)


def _expected(torch: Torch, heads: Sequence[Any], causal: bool) -> Any:
    """The expected result, in f32, one sequence after the other; (batch, row, head, element)."""
    batches = [_attend(torch, "MATH", [tensor[i : i + 1].float() for tensor in heads], causal) for i in range(BATCH)]
    return torch.cat(batches).transpose(1, 2)
