# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The simulator beside Triton's interpreter, which executes whole tiles in NumPy and checks nothing: user CPU time on
one core of a GEMM, a softmax and an attention (`python -m benchmarks.interpreted`). The simulator checks every access.
"""

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.record import Figure, Record, add_options, circumstances, keep_record, this_machine
from benchmarks.simulated import seconds
from benchmarks.workloads import Workload

ATTENTION = {"S": 512, "D": 64, "HEADS": 1, "BATCH": 1, "TILE_Q": 128, "TILE_K": 64, "WARPS": 4}
PROBLEMS: tuple[tuple[Workload, str, tuple[int, ...]], ...] = (
    (Workload("f16 GEMM 512^3", "examples/gemm.cute", {"M": 512, "N": 512, "K": 512}), "gemm", (512,)),
    (Workload("softmax of 64 rows of 1000", "examples/softmax.cute", {"M": 64}), "softmax", (64, 1000)),
    (Workload("attention, 512 rows of 64", "examples/attention.cute", ATTENTION), "attention", (512, 64)),
)
"""The kernels of the simulator, with those of Triton and their sizes."""
STAGES = ("cute", "instr")
FACTOR = 3.0
"""How many times the interpreter's time stage `cute` may take."""


def measure(earlier: Mapping[str, float], repeat: int = 5, **facts: str) -> Record:
    """The times at both stages, against those of the interpreter where Triton and torch are installed, else against
    `earlier` ones by their names.
    """
    peers = _peers(repeat)
    figures: list[Figure] = []
    for workload, _, _ in PROBLEMS:
        for stage in STAGES:
            program, launch = workload.loaded()
            fastest = min(seconds(program, launch, stage) for _ in range(repeat))
            name = f"{workload.name}, stage {stage}"
            if workload.name in peers:
                peer = peers[workload.name]
                target = 1 / FACTOR if stage == "cute" else None
                figures.append(
                    Figure(name, fastest, "s", f"Triton's interpreter, {peer:.4g} s", peer / fastest, target)
                )
            if name in earlier:
                figures.append(Figure(name, fastest, "s", f"{earlier[name]:.4g} s before", earlier[name] / fastest))
            elif workload.name not in peers:
                figures.append(Figure(name, fastest, "s"))
    return Record(
        "simulator and Triton's interpreter", circumstances(this_machine(), **facts), tuple(figures), "interpreted"
    )


def _peers(repeat: int) -> dict[str, float]:
    """The interpreter's times by the problems' names, taken in a process of its own; none where it is not installed."""
    if find_spec("triton") is None or find_spec("torch") is None:
        return {}
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when NumPy is imported: threads that wait would count
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_interpret) as pool:
        return {workload.name: pool.submit(_peer, kind, sizes, repeat).result() for workload, kind, sizes in PROBLEMS}


def _interpret() -> None:
    os.environ["TRITON_INTERPRET"] = "1"


def _peer(kind: str, sizes: tuple[int, ...], repeat: int) -> float:
    from benchmarks import triton_interpreted

    return triton_interpreted.seconds(kind, sizes, repeat)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, prints and keeps the times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.interpreted", description=__doc__)
    parser.add_argument("--before", type=Path, metavar="JSON", help="a record with which the times are compared")
    add_options(parser)
    args = parser.parse_args(arguments)
    facts, figures = {"commit": args.commit}, list[Any]()
    if args.before is not None:
        record = json.loads(args.before.read_text(encoding="utf-8"))
        facts["before"], figures = record["circumstances"]["commit"], record["figures"]
    keep_record(measure({figure["name"]: figure["value"] for figure in figures}, **facts), args.out)


if __name__ == "__main__":
    main()
