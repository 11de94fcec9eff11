# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold profile`: the time of a GPU on each line of a kernel, beside the counters of the simulator."""

import argparse
from pathlib import Path

from tilefold.base.errors import Code, TilefoldError
from tilefold.commands.launching import add_launch, add_simulation, simulated_costs
from tilefold.commands.options import add_file, add_target, read_source
from tilefold.driver.output import write_output

_EPILOG = """\
Each launch of the file runs on the simulator, which counts transactions by lines, and on the GPU under Nsight Compute
(ncu, which comes with CUDA), which samples the warps. For each line, the table has its share of the samples, its share
of the cycles in the simulator's model, the transactions of both, and the causes of waits. Below it, notes list the
differences: unequal transactions, and lines whose time the model does not explain.

examples:
  tilefold profile examples/transpose.cute
  tilefold profile examples/transpose.cute --launch swizzled_f32
  tilefold explain examples/transpose.cute --costs     the simulator's part, which needs no GPU
"""

_WITHOUT_GPU = "`tilefold explain FILE --costs` has the simulator's part, which needs no GPU"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `profile`."""
    parser.epilog = _EPILOG
    add_file(parser)
    add_target(parser, None, "that of the GPU")
    parser.add_argument("-o", "--output", metavar="OUT", help="write the tables to this file")
    add_launch(parser)
    add_simulation(parser)


def execute(args: argparse.Namespace) -> int:
    """Prints a table for each launch. TilefoldError if there is no GPU, or no ncu."""
    from tilefold.driver.lowering import load
    from tilefold.runtime.cuda import CudaEngine, CudaUnavailable
    from tilefold.tools.profiling.measured import comparison, measure

    if args.file == "-":
        raise TilefoldError(Code.CLI_VALUE, "the program is launched twice, and the standard input is read once")
    try:
        device = CudaEngine().driver.name
    except CudaUnavailable as error:
        raise TilefoldError(error.code, error.message, _WITHOUT_GPU) from error
    program = load(read_source(args), args.target)
    with program.explaining():
        costs = list(simulated_costs(args, program))
    measured = measure(_command_line(args), Path(args.file).resolve().parent)
    if len(measured) != len(costs):
        text = f"the GPU ran {len(measured)} kernels, the simulator {len(costs)}"
        raise TilefoldError(Code.CLI_VALUE, text, "profile one launch: --launch NAME")
    tables = [comparison(ours, theirs, device) for ours, theirs in zip(costs, measured, strict=True)]
    write_output("\n".join(tables), args.output)
    return 0


def _command_line(args: argparse.Namespace) -> list[str]:
    """The command line that launches the same on the GPU."""
    words = ["run", args.file, "--device", "cuda", "--seed", str(args.seed)]
    for option, value in (("target", args.target), ("launch", args.launch), ("grid", args.grid), ("block", args.block)):
        words += [] if value is None else [f"--{option}", value]
    for option, values in (("-D", args.define), ("--arg", args.arg), ("--fill", args.fill)):
        words += [word for value in values for word in (option, value)]
    return words
