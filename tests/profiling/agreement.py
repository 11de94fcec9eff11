# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The transactions that the simulator counts, beside those that Nsight Compute measures: `make gpu-agreement`."""

import argparse
import sys

from tilefold.runtime.cuda import CudaEngine

from benchmarks.record import add_options, circumstances
from tests.kernels.harness import example
from tilefold.commands.launching import simulated_costs
from tilefold.commands.options import read_source
from tilefold.commands.profile import add_arguments
from tilefold.driver.lowering import load
from tilefold.tools.profiling.measured import compare_lines, measure

EXAMPLES = ("transpose", "ldmatrix", "softmax", "reduce", "hgemm", "rmsnorm", "tma_copy")
_HEAD = "| kernel | wavefronts simulated | measured | sectors simulated | measured |\n|---|---|---|---|---|"


def rows(name: str) -> list[str]:
    """A row for each launch of an example: the transactions of all its lines."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    path = example(name)
    args = parser.parse_args([str(path)])
    program = load(read_source(args))
    costs = list(simulated_costs(args, program))
    measured = measure(["run", str(path), "--device", "cuda"], path.parent)
    found: list[str] = []
    for ours, theirs in zip(costs, measured, strict=True):
        totals = {"wavefronts of shared memory": (0, 0), "sectors of global memory": (0, 0)}
        for line in compare_lines(ours, theirs):
            for unit, simulated, on_gpu in line.transactions():
                before = totals[unit]
                totals[unit] = before[0] + simulated, before[1] + on_gpu
        cells = [str(count) for pair in totals.values() for count in pair]
        found.append(f"| {name} {ours.label.rpartition('::')[2]} | {' | '.join(cells)} |")
    return found


def main() -> int:
    """Measures the examples, and writes the table where figures are kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.profiling.agreement", description=__doc__)
    add_options(parser)
    options = parser.parse_args()
    run = circumstances(CudaEngine().driver.name, commit=options.commit)
    head = ["# Counters of the simulator and of Nsight Compute", "", *(f"- {name}: {v}" for name, v in run.items()), ""]
    text = "\n".join([*head, _HEAD, *(row for name in EXAMPLES for row in rows(name))]) + "\n"
    path = options.out / f"{run['date'][:10]}-{run['device'].lower().replace(' ', '-')}-counters.md"
    path.write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
