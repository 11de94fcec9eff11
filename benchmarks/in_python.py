# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels written in Python, against their twins in `.cute` files."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from typing import Any

from benchmarks.attention import CONFIGURATIONS as ATTENTION
from benchmarks.contest import Bench, Case, rate, ratio
from benchmarks.record import ROOT, Figure
from benchmarks.rows import CONFIGURATIONS as ROWS
from benchmarks.rows import ELEMENTS, EPSILON
from benchmarks.timing import Run, Torch
from benchmarks.workloads import Parameters, Workload, spelled

TARGET = 0.98
"""Of the speed of the twin: the same, but for the scatter of such measurements."""
SIZE, LENGTH, SEQUENCE, HEADS, DEPTH = 4096, 4096, 4096, 128, 128


@dataclass(frozen=True, slots=True)
class Problem:
    """Arrays on the GPU: the Python kernel's `run` and the twin's arguments, on the same ones; what comes out, and how
    far it may be from what is `expected`. `work` is in operations or bytes.
    """

    run: Run
    args: dict[str, Any]
    inputs: tuple[Any, ...]
    output: Any
    expected: Any
    work: float
    unit: str
    rtol: float = 0.0
    atol: float = 0.0


def cases(multiprocessors: int) -> list[Case]:
    """A GEMM, softmax, RMSNorm and attention."""
    gemms = ({"BLOCKS": multiprocessors}, {"STAGES": 3})
    cases = [_case(f"f16 GEMM {SIZE}^3", "gemm", {"M": SIZE, "N": SIZE, "K": SIZE}, gemms, _gemm)]
    for kernel, problem in (("softmax", _softmax), ("rmsnorm", _rmsnorm)):
        threads, rows = ROWS[kernel][LENGTH]
        size = {"M": ELEMENTS // LENGTH, "N": LENGTH}
        cases.append(_case(f"{kernel}, rows of {LENGTH}", kernel, size, [{"GROUP": threads, "ROWS": rows}], problem))
    heads = {"S": SEQUENCE, "D": DEPTH, "HEADS": HEADS, "BATCH": 1}
    name = f"attention, b1 h{HEADS} s{SEQUENCE} d{DEPTH} f16"
    return [*cases, _case(name, "attention", heads, ATTENTION, _attention)]


def _case(
    name: str,
    kernel: str,
    size: Parameters,
    configurations: Sequence[Parameters],
    problem: Callable[[Torch], Problem],
) -> Case:
    """A kernel in Python against the best of the configurations of its twin."""
    file = f"examples/{kernel}.cute"
    twins = [Workload(f"{name} in .cute: {spelled(options)}", file, {**size, **options}) for options in configurations]
    return Case(f"{name} in Python", twins, partial(_measure, name=name, twins=twins, problem=problem), TARGET)


def _measure(bench: Bench, name: str, twins: Sequence[Workload], problem: Callable[[Torch], Problem]) -> list[Figure]:
    given = problem(bench.torch)
    launchers = {workload.name: bench.launcher(workload, given.args) for workload in twins}
    ours, theirs = f"{name} in Python", f"{name} in .cute"
    contenders = {ours: given.run, **launchers}
    bench.check(contenders, given.output, given.expected, given.inputs, rtol=given.rtol, atol=given.atol)
    chosen = bench.fastest(launchers)
    times = bench.time({ours: given.run, theirs: launchers[chosen]})
    twin = rate(theirs, given.work, times[theirs], given.unit, chosen.removeprefix(f"{theirs}: "))
    return [twin, ratio(rate(ours, given.work, times[ours], given.unit), twin, TARGET)]


@cache
def example(name: str) -> Any:
    """The module of an example in Python; those of the examples import one another by their names."""
    folder = str(ROOT / "examples" / "python")
    if folder not in sys.path:
        sys.path.append(folder)
    return import_module(name)


def sm90(name: str) -> Any:
    """A module of the library's kernels for Hopper."""
    return import_module(f"tilefold.kernels.sm90.{name}")


def _gemm(torch: Torch) -> Problem:
    torch.manual_seed(0)
    A, B = (torch.randn(SIZE, SIZE, device="cuda").half() for _ in range(2))
    D = torch.empty_like(A)
    run = partial(example("gemm").gemm, A, B, D, device="cuda")
    expected = A.float() @ B.float().T
    args = {"A": A, "B": B, "D": D, "alpha": 1.0}
    return Problem(run, args, (A, B), D, expected, 2.0 * SIZE**3, "TFLOP/s", atol=5e-3 * SIZE**0.5)


def _softmax(torch: Torch) -> Problem:
    torch.manual_seed(0)
    A = torch.randn(ELEMENTS // LENGTH, LENGTH, device="cuda", dtype=torch.float16)
    B = torch.empty_like(A)
    module = example("softmax")
    threads, rows = ROWS["softmax"][LENGTH]
    run = partial(module.softmax, A, B, module.Config(rows, threads), "cuda")
    expected = torch.softmax(A.float(), -1)
    return Problem(run, {"A": A, "B": B}, (A,), B, expected, 2.0 * A.nbytes, "TB/s", rtol=2e-3, atol=1e-6)


def _rmsnorm(torch: Torch) -> Problem:
    torch.manual_seed(0)
    A = torch.randn(ELEMENTS // LENGTH, LENGTH, device="cuda", dtype=torch.float16)
    B, W = torch.empty_like(A), torch.rand(LENGTH, device="cuda").half()
    module = example("rmsnorm")
    threads, rows = ROWS["rmsnorm"][LENGTH]
    run = partial(module.rmsnorm, A, W, B, EPSILON, module.Config(rows, threads), "cuda")
    expected = torch.nn.functional.rms_norm(A.float(), (LENGTH,), W.float(), EPSILON)
    args = {"A": A, "B": B, "W": W, "eps": EPSILON}
    return Problem(run, args, (A, W), B, expected, 2.0 * A.nbytes, "TB/s", rtol=2e-3, atol=1e-5)


def _attention(torch: Torch) -> Problem:
    torch.manual_seed(0)
    shape = (SEQUENCE, HEADS, DEPTH)
    Q, K, V = (torch.randn(shape, device="cuda").half() for _ in range(3))
    Out = torch.empty_like(Q)
    run = partial(example("attention").attention, Q, K, V, Out, device="cuda")
    heads = [tensor.transpose(0, 1)[None] for tensor in (Q, K, V)]
    kernels = torch.nn.attention
    with kernels.sdpa_kernel(kernels.SDPBackend.FLASH_ATTENTION):
        expected = torch.nn.functional.scaled_dot_product_attention(*heads)[0].transpose(0, 1).float()
    named = {"Q": Q, "K": K, "V": V, "O": Out}
    args = {name: tensor.permute(0, 2, 1)[..., None] for name, tensor in named.items()} | {"scale": DEPTH**-0.5}
    work = 4.0 * HEADS * SEQUENCE * SEQUENCE * DEPTH
    return Problem(run, args, (Q, K, V), Out, expected, work, "TFLOP/s", rtol=4e-3, atol=4e-3)
