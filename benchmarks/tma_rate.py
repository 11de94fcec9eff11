# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rate at which TMA copies fill shared memory: the copies of a GEMM alone, `kernels/tma_rate.cute`.

It bounds the GEMMs of Hopper: each 48 KiB feed 4.2 MFLOP, so that 1 TB/s feeds 87 TFLOP/s.
"""

from collections.abc import Sequence
from functools import partial

from benchmarks.contest import Bench, Case, rate, ratio
from benchmarks.record import Figure
from benchmarks.workloads import Parameters, Workload, spelled

FILE = "benchmarks/kernels/tma_rate.cute"
ROWS_A, ROWS_B, DEPTH = 128, 256, 64
"""The rows of a tile of A and of B, and how many elements of K are copied at a time."""
SIZES = (4096, 8192)
OWN_K = 16384
CONFIGURATIONS: Sequence[Parameters] = (
    {"CLUSTER": 1, "PROMOTION": 256}, {"CLUSTER": 1, "PROMOTION": 128}, {"CLUSTER": 2, "PROMOTION": 256},
)  # fmt: skip
SMALL: Parameters = {"M": 256, "N": 768, "K": 128, "BLOCKS": 4, "STAGES": 2, "CLUSTER": 2}


def cases(multiprocessors: int) -> list[Case]:
    """Tiles of which blocks share rows, which then come from L2; and tiles of their own, from global memory."""
    blocks = max(multiprocessors // 2 * 2, 2)
    own = {"M": ROWS_A * blocks, "N": ROWS_B * blocks, "K": OWN_K, "BLOCKS": blocks, "OWN": 1}
    return [
        *(_case(f"TMA, tiles of {n}^3", {"M": n, "N": n, "K": n, "BLOCKS": blocks}, CONFIGURATIONS) for n in SIZES),
        _case("TMA, tiles of their own", own, CONFIGURATIONS[:2]),
    ]


def _case(name: str, size: Parameters, configurations: Sequence[Parameters]) -> Case:
    small = SMALL if name == f"TMA, tiles of {SIZES[0]}^3" else None
    workloads = [
        Workload(f"{name}: {spelled(configuration)}", FILE, {**size, **configuration}, None if number else small)
        for number, configuration in enumerate(configurations)
    ]
    return Case(name, workloads, partial(_measure, name=name, workloads=workloads))


def _measure(bench: Bench, name: str, workloads: Sequence[Workload]) -> list[Figure]:
    torch = bench.torch
    m, n, k, blocks = (int(workloads[0].size[axis]) for axis in ("M", "N", "K", "BLOCKS"))
    own = workloads[0].size.get("OWN") == 1
    torch.manual_seed(0)
    a, b = (torch.randn(rows, k, device="cuda", dtype=torch.float16) for rows in (m, n))
    brought = torch.empty(blocks, 2, device="cuda", dtype=torch.float16)
    rows = torch.tensor(last_rows(m, n, blocks, own), device="cuda")
    expected = torch.stack([a[rows[:, 0], k - DEPTH], b[rows[:, 1], k - DEPTH]], 1)
    arguments = {"A": a, "B": b, "R": brought.T}
    launchers = {workload.name: bench.launcher(workload, arguments) for workload in workloads}
    bench.check(launchers, brought, expected, [a, b])
    times = bench.time(launchers)
    tiles = m // ROWS_A * (1 if own else n // ROWS_B)
    bytes = 2 * tiles * k * (ROWS_A + ROWS_B)
    figures = [
        rate(f"{name}, into shared memory", bytes, times[workload.name], "TB/s", _note(workload))
        for workload in workloads
    ]
    return [figures[0], *(ratio(figure, figures[0]) for figure in figures[1:])]


def _note(workload: Workload) -> str:
    if workload.size["CLUSTER"] == 2:
        return "clusters of 2 that share B by multicast: two thirds of the bytes from L2"
    return f"L2 promotion of {workload.size['PROMOTION']} bytes"


def last_rows(m: int, n: int, blocks: int, own: bool) -> list[tuple[int, int]]:
    """The first rows of A and B of the last tile of each block, for A of `m` rows and B of `n`."""
    tiles = m // ROWS_A * (1 if own else n // ROWS_B)
    last = [tiles - 1 - (tiles - 1 - block) % blocks for block in range(blocks)]
    return [
        (tile * ROWS_A, tile * ROWS_B) if own else (tile % (m // ROWS_A) * ROWS_A, tile // (m // ROWS_A) * ROWS_B)
        for tile in last
    ]
