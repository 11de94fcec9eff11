# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Figures of kernels on a GPU, against their peers in the same run."""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from types import MappingProxyType

from tilefold.runtime.cuda import CudaEngine

from benchmarks import (
    attention,
    attention_decode,
    attention_sm90,
    bandwidth,
    ceiling,
    cute_libraries,
    gemm_grouped,
    gemm_scaled,
    gemm_skinny,
    gemm_sm90,
    gemms,
    in_python,
    library,
    library_attention,
    library_host,
    library_rows,
    rows,
    tma_rate,
)
from benchmarks.contest import Bench, Case
from benchmarks.record import Figure, Record, circumstances
from benchmarks.timing import load_torch
from benchmarks.workloads import build_all, compile_ahead

FAMILIES: Mapping[str, Callable[[int], list[Case]]] = MappingProxyType(
    {
        "copy": bandwidth.cases,
        "tma": tma_rate.cases,
        "gemm": gemms.cases,
        "rows": rows.cases,
        "attention": attention.cases,
        "python": in_python.cases,
        "gemm_sm90": gemm_sm90.cases,
        "attention_sm90": attention_sm90.cases,
        "attention_decode": attention_decode.cases,
        "gemm_scaled": gemm_scaled.cases,
        "gemm_grouped": gemm_grouped.cases,
        "gemm_skinny": gemm_skinny.cases,
    }
)
"""The cases of each family, for a GPU of this many multiprocessors."""
LIBRARY: Mapping[str, Callable[[int], list[Case]]] = MappingProxyType(
    {
        "library_gemm": library.product_cases,
        "library_fp8": library.fp8_cases,
        "library_attention": library_attention.cases,
        "library_attention_fp8": library_attention.fp8_cases,
        "library_rows": library_rows.cases,
        "library_host": library_host.cases,
        "quack": cute_libraries.quack_cases,
        "flash_attention": cute_libraries.attention_cases,
    }
)
"""The same for the functions of the library, many problems each, and for libraries of others, which must be installed;
they are taken where they are asked for.
"""
IN_PYTHON = frozenset(
    {
        "python",
        "gemm_sm90",
        "attention_sm90",
        "attention_decode",
        "gemm_scaled",
        "gemm_grouped",
        "gemm_skinny",
        *LIBRARY,
    }
)
"""The families whose kernels are written in Python."""


def measure(
    families: Sequence[str] = tuple(FAMILIES), *, warmup: int = 5, repeat: int = 30, commit: str = ""
) -> tuple[Record, list[str]]:
    """Takes the figures of some families on the first GPU, and says what goes on. `commit` is that of the sources where
    they are no checkout.

    Returns also the cases and peers that failed, with what went wrong. TilefoldError without a GPU.
    """
    torch = load_torch()
    engine = CudaEngine()
    count = ceiling.multiprocessors(engine)
    cases = [case for family in families for case in {**FAMILIES, **LIBRARY}[family](count)]
    began = perf_counter()
    built = build_all((workload for case in cases for workload in case.workloads), engine.driver.target)
    compile_ahead([case.compile for case in cases if case.compile is not None])
    print(f"built {len(built)} kernels in {perf_counter() - began:.0f} s", flush=True)
    bench = Bench(torch, engine, built, warmup, repeat)
    figures: list[Figure] = []
    for number, case in enumerate(cases, 1):
        began = perf_counter()
        print(f"[{number}/{len(cases)}] {case.name}", end="", flush=True)
        found: list[Figure] = []
        try:
            found = case.measure(bench)
        except Exception as error:  # PyTorch raises errors of many kinds; the other cases go on
            bench.failed.append(f"{case.name}: {type(error).__name__}: {error}")
            print(": failed", end="")
        torch.cuda.empty_cache()
        figures += found
        print(f" ({perf_counter() - began:.1f} s)", *(f"    {each.line}" for each in found), sep="\n", flush=True)
    driver = ".".join(map(str, divmod(engine.driver.call("cuDriverGetVersion") // 10, 100)))
    facts = {
        "driver": f"CUDA {driver}",
        "torch": str(torch.__version__),
        "target": str(engine.driver.target),
        "commit": commit,
    }
    subject = "" if set(families) == set(FAMILIES) else "-".join(families)
    record = Record("kernels on the GPU", circumstances(engine.driver.name, **facts), tuple(figures), subject)
    return record, bench.failed
