# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels of every generator: `python -m tests.fuzz --count 1000 --seed 0 --only copies,functions`."""

import argparse
import sys
import time
from collections.abc import Sequence

from tilefold.runtime.cuda import CudaEngine

from tests.fuzz.engines import Fault, Totals, attempt
from tests.fuzz.generators import GENERATORS

_EVERY = 30  # seconds between lines of progress


def search(names: Sequence[str], seeds: range, totals: Totals, gpu: CudaEngine | None = None) -> list[str]:
    """Executes the problems of all seeds and generators, and prints what fails and how far it is; the faults."""
    faults: list[str] = []
    told = time.monotonic()
    for seed in seeds:
        for name in names:
            try:
                attempt(name, GENERATORS[name], seed, totals, gpu)
            except Fault as fault:
                faults.append(str(fault))
                print(f"--- {fault}", flush=True)
        if time.monotonic() - told > _EVERY:
            told = time.monotonic()
            print(f"seed {seed}: {totals}, {len(faults)} failed", flush=True)
    return faults


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a search; 1 where a kernel was treated wrongly."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=100, help="how many kernels of each generator (default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--only", default=",".join(GENERATORS), help=f"generators, of {', '.join(GENERATORS)}")
    parser.add_argument("--gpu", action="store_true", help="on the GPU instead of the simulator and the CPU")
    options = parser.parse_args(arguments)
    gpu = CudaEngine() if options.gpu else None
    totals = Totals()
    names = [name for name in options.only.split(",") if gpu is None or GENERATORS[name].on_gpus]
    faults = search(names, range(options.seed, options.seed + options.count), totals, gpu)
    print(f"seeds {options.seed} to {options.seed + options.count - 1}: {totals}, {len(faults)} failed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
