# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.programs DIR`: runs the programs of the table, whose folder is DIR, with import lines as they are.

DIR is `examples/python/CuTeDSL` of a checkout of NVIDIA/cutlass. Each program runs in a process of its own and compares
its results with its own reference; torch must be installed. Without a GPU kernels are simulated, at the sizes of the
table. Prints for each program `runs`, `stops` with the reason, or `known` where it ends as the table says that it must
on the simulator; exits with 1 if a program stops.
"""

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tilefold.runtime.cuda import is_available

from .table import PROGRAMS, Program

LICENCE = "SPDX-License-Identifier: BSD-3-Clause"
"""What the header of a program says that may be run."""


def run(program: Program, folder: Path, on_gpu: bool, seconds: int) -> tuple[str, str]:
    """Runs a program; how it went (`runs`, `known`, `stops`, `missing`), and the reason."""
    file = folder / program.path
    if not file.is_file():
        return "missing", "there is no such file"
    if LICENCE not in file.read_text(encoding="utf-8")[:2000]:
        return "missing", f"its header does not say {LICENCE}"
    arguments = program.on_gpu if on_gpu else program.arguments
    command = [sys.executable, "-m", "tilefold.cutlass", str(file.resolve()), "--", *shlex.split(arguments)]
    environment = {**os.environ, "TILEFOLD_SIM_RACES": "1" if program.races else "0"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return "stops", f"it did not end within {seconds} s"
    if done.returncode and program.ends and not on_gpu and program.ends in done.stderr:
        return "known", program.reason
    return ("runs", "") if done.returncode == 0 else ("stops", reason_of(done.stderr or done.stdout))


def reason_of(output: str) -> str:
    """The last error in what a program has written: of one of tilefold's, the line with its code."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    coded = [line for line in lines if "error[" in line]
    return (coded or lines or ["it wrote nothing"])[-1][:400]


def main(argv: list[str]) -> int:
    """Runs the programs and prints the table; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.programs", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder of the programs")
    parser.add_argument("--only", default="", help="run the programs whose path contains this text")
    parser.add_argument("--seconds", type=int, default=600, help="the time that one program may take (default: 600)")
    options = parser.parse_args(argv)
    chosen = [program for program in PROGRAMS if options.only in program.path]
    on_gpu, counts = is_available(), Counter[str]()
    print(f"{len(chosen)} programs, on {'the GPU' if on_gpu else 'the simulator'}")
    for program in chosen:
        began = time.monotonic()
        state, reason = run(program, options.folder, on_gpu, options.seconds)
        counts[state] += 1
        arguments = program.on_gpu if on_gpu else program.arguments
        print(f"{state:8}{time.monotonic() - began:6.1f} s  {program.path} {arguments}".rstrip(), flush=True)
        if reason:
            print(f"          {reason}", flush=True)
    print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    return 0 if set(counts) <= {"runs", "known"} else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
