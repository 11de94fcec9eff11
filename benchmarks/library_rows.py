# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The library's functions that memory limits, against torch.compile, PyTorch and a copy of as many bytes.

bf16. A sample is a graph of calls that go through several inputs, which the L2 cache does not hold. A figure is the
bytes that must move by time.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from benchmarks.contest import Bench, Case, in_turn, rate, ratio
from benchmarks.record import Figure
from benchmarks.timing import Run
from tilefold import kernels
from tilefold.kernels import losses, norms

BYTES = 128e6
"""The bytes of a matrix, about."""
COUNT = 8
"""The calls of a sample."""
TARGET = 0.92
EPS = 1e-6


@dataclass(frozen=True, slots=True)
class Problem:
    """A function: its name, columns, how often a matrix's bytes move, ours, and torch's, which is compiled, too. Both
    take what `inputs` makes of torch, rows and columns.
    """

    name: str
    columns: int
    moves: float
    inputs: Callable[[Any, int, int], tuple[Any, ...]]
    ours: Callable[..., Any]
    torch: Callable[..., Any]


def _matrices(number: int, *rows_of: str) -> Callable[[Any, int, int], tuple[Any, ...]]:
    """So many matrices, then rows of weights."""

    def make(torch: Any, rows: int, columns: int) -> tuple[Any, ...]:
        like = {"device": "cuda", "dtype": torch.bfloat16}
        matrices = [torch.randn(rows, columns, **like) for _ in range(number)]
        return *matrices, *(torch.randn(columns, **like) for _ in rows_of)

    return make


def _logits(torch: Any, rows: int, columns: int) -> tuple[Any, ...]:
    x = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)
    return x, torch.randint(0, columns, (rows,), device="cuda")


def _logits_and_sums(torch: Any, rows: int, columns: int) -> tuple[Any, ...]:
    x, target = _logits(torch, rows, columns)
    return x, target, x.float().logsumexp(-1), torch.randn(rows, device="cuda")


def _norm_inputs(torch: Any, rows: int, columns: int) -> tuple[Any, ...]:
    dy, x, w = _matrices(2, "w")(torch, rows, columns)
    return dy, x, w, (x.float().square().mean(-1) + EPS).rsqrt()


def _heads(torch: Any, rows: int, columns: int) -> tuple[Any, ...]:
    x = torch.randn(1, rows, columns // 128, 128, device="cuda", dtype=torch.bfloat16)
    angles = torch.randn(rows, 64, device="cuda")
    return x, angles.cos(), angles.sin()


def _rms(x: Any, w: Any) -> Any:
    y = x.float()
    return (y * (y.square().mean(-1, keepdim=True) + EPS).rsqrt() * w.float()).to(x.dtype)


def _rms_residual(x: Any, r: Any, w: Any) -> Any:
    h = x + r
    return _rms(h, w), h


def _layer(x: Any, w: Any, b: Any) -> Any:
    y = x.float()
    y = y - y.mean(-1, keepdim=True)
    return (y * (y.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * w.float() + b.float()).to(x.dtype)


def _rms_gradient(dy: Any, x: Any, w: Any, scale: Any) -> Any:
    normal, d = x.float() * scale[:, None], dy.float()
    g = d * w.float()
    dx = (g - normal * (g * normal).mean(-1, keepdim=True)) * scale[:, None]
    return dx.to(x.dtype), (d * normal).sum(0).to(w.dtype)


def _loss(x: Any, target: Any) -> Any:
    y = x.float()
    return y.logsumexp(-1) - y.gather(-1, target[:, None])[:, 0]


def _loss_gradient(x: Any, target: Any, lse: Any, grad: Any) -> Any:
    torch: Any = import_module("torch")

    p = (x.float() - lse[:, None]).exp()
    hot = torch.arange(x.shape[1], device=x.device)[None] == target[:, None]
    return ((p - hot.float()) * grad[:, None]).to(x.dtype)


def _rope(x: Any, cos: Any, sin: Any) -> Any:
    torch: Any = import_module("torch")

    a, b = x.float().chunk(2, -1)
    c, s = cos[None, :, None], sin[None, :, None]
    return torch.cat([a * c - b * s, b * c + a * s], -1).to(x.dtype)


def _quantize(x: Any) -> Any:
    torch: Any = import_module("torch")

    y = x.float()
    scale = y.abs().amax(-1, keepdim=True).clamp(min=1e-12) / 448.0
    return (y / scale).to(torch.float8_e4m3fn), scale[:, 0]


def _swiglu(gate: Any, up: Any) -> Any:
    g = gate.float()
    return (g * g.sigmoid() * up.float()).to(gate.dtype)


def _softmax_gradient(y: Any, dy: Any) -> Any:
    a, b = y.float(), dy.float()
    return (a * (b - (a * b).sum(-1, keepdim=True))).to(y.dtype)


PROBLEMS = (
    *(Problem("softmax", n, 2, _matrices(1), kernels.softmax, lambda x: x.softmax(-1))
      for n in (1024, 4096, 8192, 32768)),
    Problem("softmax gradient", 4096, 3, _matrices(2), lambda y, d: norms.SOFTMAX_BACKWARD(y, d, "auto"),
            _softmax_gradient),
    *(Problem("rms_norm", n, 2, _matrices(1, "w"), kernels.rms_norm, _rms) for n in (1024, 4096, 8192, 16384)),
    *(Problem("rms_norm with residual", n, 4, _matrices(2, "w"), lambda x, r, w: kernels.rms_norm(x, w, r),
              _rms_residual) for n in (4096, 8192)),
    *(Problem("rms_norm gradient", n, 3, _norm_inputs,
              lambda dy, x, w, s: norms.NORM_BACKWARD(dy, x, None, w, None, None, s, "auto")[:2], _rms_gradient)
      for n in (1024, 4096, 8192)),
    *(Problem("layer_norm", n, 2, _matrices(1, "w", "b"), kernels.layer_norm, _layer) for n in (1024, 4096, 8192)),
    *(Problem("cross_entropy", n, 1, _logits, kernels.cross_entropy, _loss) for n in (32000, 128256)),
    *(Problem("cross_entropy gradient", n, 2, _logits_and_sums,
              lambda x, t, s, g: losses.CROSS_ENTROPY_BACKWARD(x, t, s, g, -100, "auto"), _loss_gradient)
      for n in (32000, 128256)),
    *(Problem("rope", n, 2, _heads, kernels.rope, _rope) for n in (1024, 4096, 8192)),
    *(Problem("swiglu", n, 3, _matrices(2), kernels.swiglu, _swiglu) for n in (4096, 11008, 14336)),
    *(Problem("quantize to fp8", n, 1.5, _matrices(1), kernels.quantize, _quantize) for n in (1024, 4096, 14336)),
)  # fmt: skip


def cases(multiprocessors: int) -> list[Case]:
    """Every one of `PROBLEMS`."""
    return [Case(f"{p.name}, rows of {p.columns}", (), partial(_measure, problem=p), TARGET) for p in PROBLEMS]


def _measure(bench: Bench, problem: Problem) -> list[Figure]:
    torch, rows = bench.torch, int(BYTES / 2 / problem.columns)
    torch.manual_seed(0)
    inputs = [problem.inputs(torch, rows, problem.columns) for _ in range(2)]
    contenders: dict[str, Callable[..., Any]] = {
        "tilefold": problem.ours, "torch.compile": torch.compile(problem.torch), "torch": problem.torch,
    }  # fmt: skip
    expected = _first(problem.torch(*(x.double() if x.is_floating_point() else x for x in inputs[0])))
    once: dict[str, Run] = {name: lambda run=run: _first(run(*inputs[0])) for name, run in contenders.items()}
    del once["torch"]
    if "fp8" not in problem.name:
        unused = torch.empty(1, device="cuda")  # results are new arrays
        bench.check(once, unused, expected.float(), inputs[0][:1], rtol=2e-2, atol=2e-2)
    whole = torch.empty(2, int(BYTES * problem.moves / 2), device="cuda", dtype=torch.int8)
    runs: dict[str, Run] = {name: in_turn(lambda x, run=run: run(*x), inputs) for name, run in contenders.items()}
    runs["a copy"] = partial(whole[0].copy_, whole[1])
    times = bench.time(bench.repeated(runs, COUNT))
    name, moved = f"{problem.name}, rows of {problem.columns}", BYTES * problem.moves * COUNT
    figures = {key: rate(f"{name}, {key}", moved, times[key], "TB/s") for key in runs}
    ours = figures.pop("tilefold")
    return [*figures.values(), ratio(ours, figures["a copy"], TARGET), ratio(ours, figures["torch.compile"], 1.0)]


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result
