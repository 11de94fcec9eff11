# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The host's time of a call of the library, beside the torch function that does the same, in microseconds.

Small problems, so that the GPU never holds up the host; rounds of calls in turns, with an empty queue before each.
"""

from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.contest import Bench, Case
from benchmarks.record import Figure
from tilefold import kernels

ROUND, ROUNDS = 100, 30
ALLOWED = 2.0
"""The microseconds that a call may take beyond torch's."""


def cases(multiprocessors: int) -> list[Case]:
    """One case for all functions."""
    return [Case("the host's time of a call", (), _measure, None)]


def _pairs(torch: Any) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Ours and torch's, by function."""
    functional = torch.nn.functional
    like = {"device": "cuda", "dtype": torch.bfloat16}
    a, b = torch.randn(64, 128, **like), torch.randn(128, 128, **like)
    x, w, bias = torch.randn(16, 256, **like), torch.randn(256, **like), torch.randn(128, **like)
    q, k, v = (torch.randn(1, 128, 2, 64, **like) for _ in range(3))
    few = torch.randn(1, 1, 2, 64, **like)
    groups = torch.randn(2, 128, 128, **like)
    ends, counts = (torch.tensor(n, device="cuda", dtype=torch.int32) for n in ((128, 256), (128, 128)))
    fp8, one = torch.randn(128, 128, device="cuda").to(torch.float8_e4m3fn), torch.ones((), device="cuda")
    scales = torch.ones(128, 1, device="cuda"), torch.ones(1, 1, device="cuda")
    logits, target = torch.randn(16, 256, **like), torch.randint(0, 256, (16,), device="cuda")

    def sdpa(q: Any, causal: bool) -> Any:
        return functional.scaled_dot_product_attention(*(y.transpose(1, 2) for y in (q, k, v)), is_causal=causal)

    def quantized() -> Any:
        scale = x.abs().amax(-1, keepdim=True).float() / 448
        return (x / scale).to(torch.float8_e4m3fn), scale

    def turned() -> Any:
        first, second = q.chunk(2, -1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)

    cos, sin = torch.randn(1, 128, 1, 32, **like), torch.randn(1, 128, 1, 32, **like)
    angles = cos.view(128, 32), sin.view(128, 32)
    trained, weight = x.clone().requires_grad_(), w.clone().requires_grad_()

    return {
        "gemm": (lambda: kernels.gemm(a, b), lambda: torch.mm(a, b.T)),
        "linear": (lambda: kernels.linear(a, b, bias), lambda: functional.linear(a, b, bias)),
        "attention": (lambda: kernels.attention(q, k, v, causal=True), lambda: sdpa(q, True)),
        "decode_attention": (lambda: kernels.decode_attention(few, k, v), lambda: sdpa(few, False)),
        "scaled_gemm": (
            lambda: kernels.scaled_gemm(fp8, fp8, *scales),
            lambda: torch._scaled_mm(fp8, fp8.T, scale_a=one, scale_b=one, out_dtype=torch.bfloat16),
        ),
        "grouped_gemm": (
            lambda: kernels.grouped_gemm(groups, groups, counts),
            lambda: torch._grouped_mm(groups.view(256, 128), groups.transpose(1, 2), ends),
        ),
        "softmax": (lambda: kernels.softmax(x), lambda: torch.softmax(x, -1)),
        "rms_norm": (lambda: kernels.rms_norm(x, w), lambda: functional.rms_norm(x, (256,), w)),
        "layer_norm": (lambda: kernels.layer_norm(x, w, w), lambda: functional.layer_norm(x, (256,), w, w)),
        "cross_entropy": (
            lambda: kernels.cross_entropy(logits, target),
            lambda: functional.cross_entropy(logits, target, reduction="none"),
        ),
        "swiglu": (lambda: kernels.swiglu(x, x), lambda: functional.silu(x) * x),
        "rope": (lambda: kernels.rope(q, *angles), turned),
        "quantize": (lambda: kernels.quantize(x), quantized),
        "rms_norm for training": (
            lambda: kernels.rms_norm(trained, weight),
            lambda: functional.rms_norm(trained, (256,), weight),
        ),
    }


def _time(torch: Any, run: Callable[[], Any]) -> float:
    torch.cuda.synchronize()
    began = perf_counter()
    for _ in range(ROUND):
        run()
    return (perf_counter() - began) / ROUND * 1e6


def _measure(bench: Bench) -> list[Figure]:
    figures: list[Figure] = []
    for name, runs in _pairs(bench.torch).items():
        with bench.torch.set_grad_enabled("training" in name):
            for run in runs:
                run()
            samples = [tuple(map(partial(_time, bench.torch), runs)) for _ in range(ROUNDS)]
            ours, theirs = (tuple(column) for column in zip(*samples, strict=True))
            peer = Figure(f"host, torch's {name}", median(theirs), "us", samples=theirs)
            limit, share = round(peer.value + ALLOWED, 2), median(ours) / peer.value
            mine = Figure(f"host, {name}", median(ours), "us", peer.name, share, limit, at_most=True, samples=ours)
            figures += [peer, mine]
    return figures
