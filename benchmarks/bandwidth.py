# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies and transposes, against PyTorch and Triton."""

from importlib import import_module
from importlib.util import find_spec

from benchmarks.contest import Bench, Case, rate, ratio
from benchmarks.record import Figure
from benchmarks.timing import Run
from benchmarks.workloads import Workload

COPY_ELEMENTS = 1 << 30
"""Of f32: 4 GiB to read, and as much to write."""
SIDE = 16384
"""Rows and columns of the f16 matrix that is transposed."""
COPY_TARGET = 0.97  # of torch.Tensor.copy_
TRANSPOSE_TARGET = 0.85  # of the bandwidth of that copy
TORCH_COPY = "torch.Tensor.copy_"

COPY = Workload("copy", "benchmarks/kernels/copy.cute", {"N": COPY_ELEMENTS}, {"N": 8192})
TRANSPOSES = (
    Workload("transpose, 2-byte reads of shared memory", "benchmarks/kernels/transpose.cute", {"N": SIDE}, {"N": 256}),
    Workload(
        "transpose by ldmatrix",
        "benchmarks/kernels/transpose_ldmatrix.cute",
        {"ROWS": SIDE, "COLUMNS": SIDE},
        {"ROWS": 256, "COLUMNS": 128},
    ),
)


def cases(multiprocessors: int) -> list[Case]:
    """A copy of 4 GiB, and transposes of a matrix of 512 MiB."""
    return [
        Case("copy", (COPY,), _copies, COPY_TARGET),
        Case("transpose", TRANSPOSES, _transposes, TRANSPOSE_TARGET),
    ]


def _copies(bench: Bench) -> list[Figure]:
    torch = bench.torch
    torch.manual_seed(0)
    source = torch.randn(COPY_ELEMENTS, device="cuda", dtype=torch.float32)
    output = torch.empty_like(source)
    contenders: dict[str, Run] = {
        TORCH_COPY: lambda: output.copy_(source),
        "tilefold copy": bench.launcher(COPY, {"A": source, "B": output}),
    }
    if find_spec("triton") is not None:
        peer = import_module("benchmarks.triton_copy")
        contenders["Triton copy"] = lambda: peer.copy(source, output)
    bench.check(contenders, output, source, [source])
    note = f"{COPY_ELEMENTS >> 28} GiB"
    figures = {
        name: rate(name, 2 * source.nbytes, timed, "TB/s", note) for name, timed in bench.time(contenders).items()
    }
    base, ours, *others = figures.values()
    return [base, ratio(ours, base, COPY_TARGET), *(ratio(other, base) for other in others)]


def _transposes(bench: Bench) -> list[Figure]:
    torch = bench.torch
    torch.manual_seed(0)
    large = torch.empty(COPY_ELEMENTS, device="cuda", dtype=torch.float32)
    copied = torch.empty_like(large)
    source = torch.randn(SIDE, SIDE, device="cuda", dtype=torch.float16)
    output = torch.empty_like(source)
    contenders: dict[str, Run] = {"torch o.copy_(t.T)": lambda: output.copy_(source.T)}
    for workload in TRANSPOSES:
        contenders[f"tilefold {workload.name}"] = bench.launcher(workload, {"A": source, "B": output})
    bench.check(contenders, output, source.T.contiguous(), [source])
    base = f"{TORCH_COPY} of 4 GiB"
    times = bench.time({base: lambda: copied.copy_(large), **contenders})
    copy = rate(base, 2 * large.nbytes, times[base], "TB/s")
    note = f"{SIDE} x {SIDE} f16"
    peer, *ours = [rate(name, 2 * source.nbytes, times[name], "TB/s", note) for name in contenders]
    best = max(ours, key=lambda figure: figure.value)
    return [
        ratio(peer, copy),
        *(ratio(figure, copy, TRANSPOSE_TARGET if figure is best else None) for figure in ours),
        ratio(best, peer),
    ]
