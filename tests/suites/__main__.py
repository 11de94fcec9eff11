# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.suites DIR`: checks the kernels of public suites, of which DIR has checkouts, at stage `ptx`.

The folders of DIR are `cutlass` (NVIDIA/cutlass), `hirace` (JohnJacobsonIII/HiRace-Artifact-SC24), `gpuverify`
(mc-imperial/gpuverify), `hecbench` (zjin-lcf/HeCBench), `llm.c` (karpathy/llm.c), `triton` (triton-lang/triton),
`tilelang` (tile-ai/tilelang, with the package of that name) and `zluda` (vosen/ZLUDA); a suite without its folder is
left out. CUDA C++ is compiled by NVRTC, with the headers of the packages nvidia-cuda-runtime and nvidia-cuda-cccl, for
GPUVerify also of nvidia-curand. Prints each kernel whose verdict is not the expected one, and a line for each suite;
`--json` keeps that in a record. Exits with 1 if a verdict is wrong that `known.py` does not explain.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from . import cute_blackwell, cute_tutorials, gpuverify, indigo, tabled, tilelang, triton_tutorials, zluda
from .case import STATES, Case, judge_all, processes
from .known import KNOWN

SUITES: Mapping[str, Callable[[Path], Iterator[Case]]] = {
    "cutlass": lambda checkout: chain(cute_tutorials.cases(checkout), cute_blackwell.cases(checkout)),
    "hirace": indigo.cases, "gpuverify": gpuverify.cases,
    **{table: partial(tabled.cases, table) for table in tabled.TABLES},
    "triton": triton_tutorials.cases, "tilelang": tilelang.cases, "zluda": zluda.cases,
}  # fmt: skip


def main(argv: list[str]) -> int:
    """Checks the suites and prints what came of them; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.suites", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder of the checkouts")
    parser.add_argument("--suite", action="append", choices=list(SUITES), help="only this one; can be repeated")
    parser.add_argument("--only", default="", help="the kernels whose name contains this text")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="one kernel in N")
    parser.add_argument("--seconds", type=int, default=300, help="of the processor, for one kernel (default: 300)")
    parser.add_argument("--processes", type=int, default=processes(), help="kernels at the same time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="a record, where the suites of this run are replaced")
    parser.add_argument("--all", action="store_true", help="print each kernel")
    options = parser.parse_args(argv)
    bad = 0
    for name in options.suite or [name for name in SUITES if (options.folder / name).is_dir()]:
        cases = [case for case in SUITES[name](options.folder / name) if options.only in case.name][:: options.every]
        states: Counter[tuple[str, str]] = Counter()
        differing: dict[str, list[str]] = {}
        started = time.monotonic()
        for case, verdict in zip(cases, judge_all(cases, options.seconds, options.processes), strict=True):
            states[case.expected, verdict.state] += 1
            why = KNOWN.get(case.name, "") if verdict.state == "wrong" else ""
            bad += verdict.state == "crash" or (verdict.state == "wrong" and not why)
            if verdict.state != "right" or options.all:
                print(f"{verdict.state:14}{case.name}: expected {case.expected}, {verdict.found}", flush=True)
                print(*(f"              {text}" for text in (verdict.reason, why) if text), sep="\n", flush=True)
            if verdict.state != "right":
                differing[case.name] = [case.expected, verdict.state, verdict.found, why or verdict.reason[:120]]
        for expected in ("clean", "faults"):
            counts = ", ".join(f"{states[expected, state]} {state}" for state in STATES if states[expected, state])
            print(f"{name}, {expected} expected: {counts or 'no kernels'}", flush=True)
        if options.json is not None:
            _keep(options.json, name, states, time.monotonic() - started, differing)
    return 1 if bad else 0


def _keep(
    record: Path, suite: str, states: Counter[tuple[str, str]], seconds: float, differing: dict[str, list[str]]
) -> None:
    """Writes what came of a suite into a record."""
    kept: dict[str, Any] = json.loads(record.read_text()) if record.exists() else {}
    counts = {e: {s: states[e, s] for s in STATES if states[e, s]} for e in ("clean", "faults")}
    kept[suite] = {"seconds": round(seconds), "counts": counts, "not right": dict(sorted(differing.items()))}
    record.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
