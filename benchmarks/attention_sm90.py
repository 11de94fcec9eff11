# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention by the instructions of Hopper (`tilefold/kernels/sm90/attention.py`), against cuDNN.

The same tensors of N(0,1), in turns; each contender first writes onto a poisoned output, which is compared with
attention in f32. A sample is a graph of several launches, as in a network, so that they may overlap.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
from ml_dtypes import bfloat16
from numpy import float16

from benchmarks.contest import Bench, Case, rate, ratio
from benchmarks.in_python import sm90
from benchmarks.record import Figure
from benchmarks.timing import Run, Torch

_SAMPLE = 3e12
"""The operations of a sample, some milliseconds of them: as many launches as these are, in a graph."""
_SCORES = 1 << 29
"""The scores in f32 that are in memory at once, 2 GiB."""
TOKENS, TARGET = 16384, 1.0
Options = Mapping[str, Any]
"""Changes to the configuration that the example chooses."""
PACKED = (4096, 2048, 1024, 3072, 512, 2560, 1536, 1536)
"""The lengths of packed sequences."""


@dataclass(frozen=True, slots=True)
class Heads:
    """Sequences of a length, all 16384 tokens, and how many heads of Q share one of K and V; or packed sequences."""

    depth: int
    length: int = 4096
    causal: bool = False
    type: str = "f16"
    shared: int = 1
    is_packed: bool = False
    configurations: Sequence[Options] = ({},)

    @property
    def batch(self) -> int:
        """The sequences that are no packed ones."""
        return 1 if self.is_packed else TOKENS // self.length

    @property
    def lengths(self) -> Sequence[int]:
        """The lengths of the sequences that are packed, or the length of all."""
        return PACKED if self.is_packed else (self.length,)

    @property
    def heads(self) -> int:
        """The heads of Q."""
        return 16 if self.depth == 256 else 32

    @property
    def name(self) -> str:
        """The problem."""
        sequences = f"{len(PACKED)} packed sequences" if self.is_packed else f"b{self.batch} s{self.length}"
        shared = f"/{self.heads // self.shared}" if self.shared > 1 else ""
        rest = f"h{self.heads}{shared} d{self.depth} {self.type}{', causal' if self.causal else ''}"
        return f"attention, {sequences} {rest}, by wgmma"

    @property
    def operations(self) -> float:
        """Multiplications and additions of both products; of causal attention, of half of the scores."""
        scores = self.batch * self.heads * sum(n * n for n in self.lengths)
        return 4.0 * scores * self.depth * (0.5 if self.causal else 1.0)


BOTH = (False, True)
PROBLEMS = (
    *(Heads(128, length, causal) for length in (1024, 2048, 4096, 8192, 16384) for causal in BOTH),
    Heads(128, type="bf16"),
    *(Heads(depth, causal=causal) for depth in (64, 96, 256) for causal in BOTH),
    Heads(128, causal=True, shared=4),
    Heads(128, causal=True, is_packed=True),
)


def cases(multiprocessors: int) -> list[Case]:
    """Every problem, by as many persistent blocks as there are multiprocessors."""
    return [
        Case(
            problem.name,
            (),
            partial(_measure, problem=problem, blocks=multiprocessors),
            TARGET,
            partial(_compile, problem),
        )
        for problem in PROBLEMS
    ]


def _compile(problem: Heads) -> None:
    """Compiles the kernels of a problem, for arrays that have its strides and no memory."""
    module, dtype = sm90("attention"), float16 if problem.type == "f16" else bfloat16
    tokens = problem.batch, sum(problem.lengths)
    Q, K = (
        np.lib.stride_tricks.as_strided(
            np.empty(8, dtype),
            (*tokens, count, problem.depth),
            tuple(2 * n for n in (tokens[1] * count * problem.depth, count * problem.depth, problem.depth, 1)),
        )
        for count in (problem.heads, problem.heads // problem.shared)
    )
    starts = [np.zeros(len(PACKED) + 1, np.int32)] * 2 if problem.is_packed else []
    for options in problem.configurations:
        config = replace(module.chosen_config(problem.depth, problem.causal), **options)
        call = module.attention_kernel(Q, K, K, Q, 1.0, np.zeros(1, np.int32), config, *starts)
        call.build(config.threads).artifact("sm_90a")


def _measure(bench: Bench, problem: Heads, blocks: int) -> list[Figure]:
    torch = bench.torch
    torch.manual_seed(0)
    dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[problem.type]
    tokens = problem.batch, sum(problem.lengths)
    counts = (problem.heads, *[problem.heads // problem.shared] * 2)
    given = [torch.randn(*tokens, count, problem.depth, device="cuda", dtype=dtype) for count in counts]
    out = torch.empty_like(given[0])
    ends = list(accumulate(problem.lengths))
    parts = [slice(end - length, end) for end, length in zip(ends, problem.lengths, strict=True)]
    heads = [[tensor[:, part].transpose(1, 2) for tensor in given] for part in parts]
    peer = partial(_attend, torch, "CUDNN_ATTENTION", heads, problem)
    more = {}
    if problem.is_packed:
        starts = torch.tensor([0, *ends], dtype=torch.int32, device="cuda")
        more = {"starts": starts, "starts_k": starts}
    ours = {
        _spelled(options): _run(torch, problem, options, blocks, given, out, more) for options in problem.configurations
    }
    error = 2e-3 if problem.type == "f16" else 1e-2
    contenders: dict[str, Run] = {**ours, "cuDNN": lambda: torch.cat([output.transpose(1, 2) for output in peer()], 1)}
    bench.check(contenders, out, _expected(torch, heads, problem), given, rtol=error, atol=error)
    count = max(4, round(_SAMPLE / problem.operations))
    ours = bench.repeated(ours, count)
    chosen = bench.fastest(ours)
    times = bench.time({"tilefold": ours[chosen], **bench.repeated({"cuDNN": peer}, count)})
    figures = [
        rate(f"{problem.name}, {name}", problem.operations * count, times[name], "TFLOP/s", note)
        for name, note in (("cuDNN", "one sequence after the other" if problem.is_packed else ""), ("tilefold", chosen))
    ]
    return [figures[0], ratio(figures[1], figures[0], TARGET)]


def _run(
    torch: Torch, problem: Heads, options: Options, blocks: int, given: Sequence[Any], out: Any, more: Options
) -> Run:
    module = sm90("attention")
    config = replace(module.chosen_config(problem.depth, problem.causal), **options)
    counter = torch.zeros(1, dtype=torch.int32, device="cuda")
    return partial(module.attention, *given, out, config, device="cuda", blocks=blocks, counter=counter, **more)


def _attend(torch: Torch, backend: str, heads: Sequence[Sequence[Any]], problem: Heads) -> list[Any]:
    """Attention of one sequence or batch after the other, by one of PyTorch's kernels."""
    kernels = torch.nn.attention
    attend = torch.nn.functional.scaled_dot_product_attention
    with kernels.sdpa_kernel(getattr(kernels.SDPBackend, backend)):
        return [attend(*tensors, is_causal=problem.causal, enable_gqa=problem.shared > 1) for tensors in heads]


def _expected(torch: Torch, heads: Sequence[Sequence[Any]], problem: Heads) -> Any:
    """The expected result, in f32, some heads after the other; (batch, row, head, element)."""

    def part(length: int, q: Any, k: Any, v: Any) -> Any:
        k, v = (x.repeat_interleave(problem.shared, 1) for x in (k, v))
        flat = [x.flatten(0, 1) for x in (q, k, v)]
        step = max(1, _SCORES // length**2)
        chunks = [[x[i : i + step].float()[None] for x in flat] for i in range(0, problem.batch * problem.heads, step)]
        done = [_attend(torch, "MATH", [chunk], replace(problem, shared=1))[0][0] for chunk in chunks]
        return torch.cat(done).view(q.shape).transpose(1, 2)

    return torch.cat([part(length, *head) for length, head in zip(problem.lengths, heads, strict=True)], 1)


def _spelled(options: Options) -> str:
    return " ".join(f"{name}={value}" for name, value in options.items()) or "defaults"
