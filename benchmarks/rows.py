# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Softmax and RMSNorm of rows, against the bandwidth of a copy and PyTorch."""

from functools import partial
from typing import Any

from benchmarks.bandwidth import TORCH_COPY
from benchmarks.contest import Bench, Case, rate, ratio
from benchmarks.record import Figure
from benchmarks.timing import Run, Torch
from benchmarks.workloads import Workload

ELEMENTS = 1 << 29
"""Of f16: 1 GiB to read, and as much to write."""
TARGET = 0.90  # of the bandwidth of a copy of as much
LENGTHS = (1024, 2048, 4096, 8192, 16384)
CONFIGURATIONS = {
    "softmax": {1024: (32, 4), 2048: (64, 4), 4096: (128, 2), 8192: (64, 1), 16384: (256, 1)},
    "rmsnorm": {1024: (32, 4), 2048: (64, 4), 4096: (128, 2), 8192: (128, 1), 16384: (128, 1)},
}
"""Threads for a row, and rows of a block, by the length of rows."""
EPSILON = 1e-5


def _workload(kernel: str, length: int) -> Workload:
    threads, rows = CONFIGURATIONS[kernel][length]
    shared: dict[str, int | str] = {"N": length, "GROUP": threads, "ROWS": rows}
    return Workload(
        f"{kernel}, rows of {length}",
        f"examples/{kernel}.cute",
        {"M": ELEMENTS // length, **shared},
        {"M": 2 * rows, **shared} if length <= 2048 else None,
    )


WORKLOADS = {(kernel, length): _workload(kernel, length) for kernel in CONFIGURATIONS for length in LENGTHS}


def cases(multiprocessors: int) -> list[Case]:
    """Both kernels for rows of all lengths."""
    return [
        Case(workload.name, (workload,), partial(_measure, workload=workload, kernel=kernel, length=length), TARGET)
        for (kernel, length), workload in WORKLOADS.items()
    ]


def _measure(bench: Bench, workload: Workload, kernel: str, length: int) -> list[Figure]:
    torch = bench.torch
    torch.manual_seed(0)
    source = torch.randn(ELEMENTS // length, length, device="cuda", dtype=torch.float16)
    output = torch.empty_like(source)
    weights = torch.rand(length, device="cuda").half()
    peer, expected, args = _problem(torch, kernel, source, weights)
    run = bench.launcher(workload, {"A": source, "B": output, **args})
    name = f"tilefold {workload.name}"
    other = f"torch.{'softmax' if kernel == 'softmax' else 'nn.functional.rms_norm'}, rows of {length}"
    inputs = (source, weights)
    bench.check(
        {name: run, other: peer}, output, expected, inputs, rtol=2e-3, atol=1e-6 if kernel == "softmax" else 1e-5
    )
    times = bench.time({TORCH_COPY: lambda: output.copy_(source), name: run, other: peer})
    moved = 2 * source.nbytes
    copy = rate(f"{TORCH_COPY} of 1 GiB", moved, times[TORCH_COPY], "TB/s")
    ours = rate(name, moved, times[name], "TB/s", workload.configuration)
    theirs = rate(other, moved, times[other], "TB/s")
    return [ratio(ours, copy, TARGET), ratio(theirs, copy)]


def _problem(torch: Torch, kernel: str, source: Any, weights: Any) -> tuple[Run, Any, dict[str, Any]]:
    """PyTorch's function, the expected result in f32, and the kernel's further arguments."""
    if kernel == "softmax":
        return (lambda: torch.softmax(source, -1)), torch.softmax(source.float(), -1), {}
    norm = partial(torch.nn.functional.rms_norm, normalized_shape=(source.shape[1],), eps=EPSILON)
    return (
        (lambda: norm(source, weight=weights)),
        norm(source.float(), weight=weights.float()),
        {"W": weights, "eps": EPSILON},
    )
