# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention for few rows of Q (`tilefold.kernels.decode_attention`), against cuDNN,
FlashAttention and the bandwidth of a copy.

N(0,1) data. A sample is a graph of launches that take other keys and values each time, so many of them that the L2
cache holds none. A figure is the bytes of K and V by time. PyTorch calls the peers; one without a kernel for a problem
is left out.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.contest import MORE_THAN_A_CACHE, Bench, Case, beside_a_copy, in_turn
from benchmarks.library import build, without_memory
from benchmarks.record import Figure
from benchmarks.timing import Torch
from tilefold import kernels
from tilefold.kernels.sm90 import attentions

_SAMPLE = 8e9
"""The bytes of a sample, about: as many launches as read them."""
Attend = Callable[[Any, Any, Any], Any]
BACKENDS = {"cuDNN": "CUDNN_ATTENTION", "FlashAttention (torch)": "FLASH_ATTENTION"}


@dataclass(frozen=True, slots=True)
class Decoding:
    """Sequences, their keys, heads of Q and of K, and rows of Q; and the least speed relative to the peers."""

    batch: int
    keys: int
    heads: int = 32
    heads_k: int = 8
    depth: int = 128
    rows: int = 1
    type: str = "bf16"
    target: float = 1.0

    @property
    def name(self) -> str:
        """The problem."""
        shared = f"/{self.heads_k}" if self.heads_k < self.heads else ""
        rest = f"h{self.heads}{shared} d{self.depth} {self.type}"
        return f"attention, b{self.batch} {self.rows} x {self.keys} {rest}, K and V from memory"

    @property
    def shapes(self) -> tuple[tuple[int, int, int, int], tuple[int, int, int, int]]:
        """Those of Q and O, and of K and V."""
        return (self.batch, self.rows, self.heads, self.depth), (self.batch, self.keys, self.heads_k, self.depth)

    @property
    def bytes(self) -> int:
        """Those of K and V."""
        return 4 * math.prod(self.shapes[1])


PROBLEMS = (
    *(Decoding(batch, 8192) for batch in (1, 8, 32)),
    *(Decoding(batch, 2048) for batch in (8, 64)),
    Decoding(1, 131072),
    Decoding(16, 8192, heads=64),
    Decoding(64, 4096, heads_k=32),
    Decoding(8, 4096, heads_k=32),
    Decoding(16, 8192, depth=64, type="f16"),
    Decoding(8, 8192, heads=16, heads_k=4, depth=256),
    *(Decoding(8, 8192, rows=rows) for rows in (4, 16)),
    *(Decoding(batch, 1024) for batch in (16, 128)),
    Decoding(4, 32768),
    Decoding(32, 4096, heads=64),
    Decoding(64, 2048, heads_k=32, type="f16"),
    Decoding(32, 4096, heads=16, heads_k=2, depth=64),
    Decoding(16, 4096, rows=2),
)


def cases(multiprocessors: int) -> list[Case]:
    """Every one of `PROBLEMS`."""
    return [
        Case(
            problem.name,
            (),
            partial(_measure, problem=problem),
            problem.target,
            partial(_compile, problem, multiprocessors),
        )
        for problem in PROBLEMS
    ]


def _compile(problem: Decoding, blocks: int) -> None:
    """Compiles the kernel of a problem."""
    q, k = (without_memory(shape, "float16" if problem.type == "f16" else "bfloat16") for shape in problem.shapes)
    build(attentions.decode(q, q, k, k, None, None, False, blocks))


def _measure(bench: Bench, problem: Decoding) -> list[Figure]:
    torch = bench.torch
    torch.manual_seed(0)
    like = {"device": "cuda", "dtype": {"f16": torch.float16, "bf16": torch.bfloat16}[problem.type]}
    shape, shape_k = problem.shapes
    q, out = torch.randn(*shape, **like), torch.empty(*shape, **like)
    pairs = [
        [torch.randn(*shape_k, **like) for _ in range(2)] for _ in range(1 + int(MORE_THAN_A_CACHE // problem.bytes))
    ]
    attend: dict[str, Attend] = {"tilefold": lambda q, k, v: kernels.decode_attention(q, k, v)}
    attend |= _peers(torch, problem, q, *pairs[0])
    expected = _expected(torch, problem, q, *pairs[0])
    once = {name: partial(run, q, *pairs[0]) for name, run in attend.items()}
    error = 2e-3 if problem.type == "f16" else 1e-2
    bench.check(once, out, expected, (q, *pairs[0]), rtol=error, atol=8 * error / problem.keys**0.5)
    count = max(4, min(32, round(_SAMPLE / problem.bytes)))
    runs = {name: in_turn(partial(run, q), *zip(*pairs, strict=True)) for name, run in attend.items()}
    return beside_a_copy(bench, problem.name, runs, problem.bytes, count, problem.target)


def _peers(torch: Torch, problem: Decoding, *given: Any) -> Mapping[str, Attend]:
    """PyTorch's kernels that take the problem."""
    kinds, found = torch.nn.attention, dict[str, Attend]()

    def attend(backend: str, *given: Any) -> Any:
        with kinds.sdpa_kernel(getattr(kinds.SDPBackend, backend)):
            heads = [x.transpose(1, 2) for x in given]
            shared = problem.heads_k < problem.heads
            return torch.nn.functional.scaled_dot_product_attention(*heads, enable_gqa=shared).transpose(1, 2)

    for name, backend in BACKENDS.items():
        try:
            attend(backend, *given)
        except RuntimeError:  # PyTorch finds no kernel
            continue
        found[name] = partial(attend, backend)
    return found


def _expected(torch: Torch, problem: Decoding, q: Any, k: Any, v: Any) -> Any:
    """What must come out, in f32, one sequence after the other."""
    shared = problem.heads // problem.heads_k

    def sequence(b: int) -> Any:
        rows = q[b].float().view(problem.rows, problem.heads_k, shared, problem.depth)
        scores = torch.einsum("rhgd,khd->rhgk", rows, k[b].float()) * problem.depth**-0.5
        return torch.einsum("rhgk,khd->rhgd", scores.softmax(-1), v[b].float()).reshape(problem.shapes[0][1:])

    return torch.stack([sequence(b) for b in range(problem.batch)])
