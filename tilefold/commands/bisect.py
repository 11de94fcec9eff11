# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold bisect`: runs the launches of a file after each pass, and names the pass that changes their results."""

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from tilefold.base.errors import Code
from tilefold.base.target import DEFAULT_ARCH
from tilefold.commands.launching import add_launch, add_repro, add_simulation, choose_launches, simulation
from tilefold.commands.options import add_file, add_printed, add_target, read_source
from tilefold.driver.messages import print_diagnostics

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from tilefold.driver.launches import Launch
    from tilefold.driver.lowering import Program

_EPILOG = """\
The launches run on the simulator with the file as written, and again after each pass, with the same arguments. Results,
printed text and faults must stay the same, bit for bit. If they change, the command names the pass, the smallest
element that differs, the operations that wrote it, and their IR before and after the pass. A fault of the program as
written is the kernel's own; a later one comes from a pass. Finally the command compares the PTX with the operations at
stage 'instr': the instructions with effects, their order, and the numbers of barriers and waits.

examples:
  tilefold bisect kernel.cute
  tilefold bisect kernel.cute --stores              compare every value written to global memory, not only the last
  tilefold bisect kernel.cute --device cuda         and then the GPU, within the tolerances of the types
  tilefold bisect kernel.cute -p fold-layouts,cse   these passes instead of the pipeline to stage 'instr'

Exit status: 0 if no pass changes anything and every check of the file holds, else 1.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `bisect`."""
    parser.epilog = _EPILOG
    add_file(parser)
    add_printed(parser)
    add_target(parser, None, f"{DEFAULT_ARCH}, or one that supports the kernel")
    parser.add_argument("-p", "--passes", metavar="PIPELINE", help="the passes to try, separated by commas")
    parser.add_argument(
        "--stores", action="store_true", help="also compare every value written to global memory on the way"
    )
    parser.add_argument(
        "--device", choices=("sim", "cuda"), default="sim", help="where the last step runs (default: sim)"
    )
    add_launch(parser)
    add_simulation(parser)
    add_repro(parser)


def execute(args: argparse.Namespace) -> int:
    """Searches launch by launch; 1 if a pass changes one, or one fails as it was written."""
    from tilefold.compiler.frontend.diagnostics import ProgramError
    from tilefold.compiler.pass_runner import InternalError
    from tilefold.driver.lowering import load
    from tilefold.tools.bisection.steps import RefusedError

    program = load(read_source(args), args.target)
    launches = choose_launches(args, program, "compare its stages by `tilefold run --stage all`")
    try:
        passes = _passes(args, program)
        results = [_bisect(args, program, launch, passes) for launch in launches]
    except InternalError as error:
        if isinstance(broken := error.__cause__, ProgramError):
            print(f"pass '{error.pass_name}' leaves an invalid program", flush=True)
            message = f"{broken.message}, in the program that pass '{error.pass_name}' leaves"
            hint = "the pass is wrong: `tilefold opt -p` prints the program before it"
            raise ProgramError([replace(broken.diagnostics[0], message=message, hint=hint)]) from error
        print(f"pass '{error.pass_name}' fails, or leaves an invalid program", flush=True)
        raise
    except RefusedError as error:
        print(f"pass '{error.pass_name}' rejects the program", flush=True)
        raise
    return 0 if all(results) else 1


def _passes(args: argparse.Namespace, program: "Program") -> "list[ModulePass]":
    from tilefold.compiler.pass_runner import parse_passes
    from tilefold.driver.lowering import available_passes, passes_to_instr

    if args.passes is not None:
        return parse_passes(args.passes, available_passes())
    return passes_to_instr(program, program.simulated_target("instr"))


def _bisect(args: argparse.Namespace, program: "Program", launch: "Launch", passes: "list[ModulePass]") -> bool:
    from tilefold.driver.devices import on_gpu
    from tilefold.driver.session import check_values
    from tilefold.driver.trial import Trial
    from tilefold.tools.bisection.bisect import bisect
    from tilefold.tools.bisection.verdict import step_line

    arguments, config, engine = simulation(args, launch)
    trial = Trial(launch.kernel, config, arguments.launchable, engine, args.stores)
    gpu = on_gpu(program, launch.kernel) if args.device == "cuda" else None
    print(f"{launch.label}: {len(passes)} passes", flush=True)
    verdict = bisect(
        program,
        trial,
        passes,
        lambda step, outcome, difference: print(step_line(step, outcome, difference), flush=True),
        gpu,
    )
    checks = (
        ()
        if verdict.reference.fault
        else check_values(launch, arguments.logical(verdict.reference.arguments, verdict.reference.exact))
    )
    for result in checks:
        print(f"as written: {result}", flush=True)
    print(verdict, flush=True)
    if not verdict.passed and verdict.reference.fault is None:
        wrong = f"pass '{verdict.culprit.after.name}'" if verdict.culprit else "the emission of PTX"
        if verdict.culprit is not None and verdict.culprit.after.number > len(passes):
            wrong = "the emission of PTX, or the assembler,"
        print_diagnostics(f"error[{Code.STAGES_DIFFER}]: {launch.label}: {wrong} changes the program")
    return verdict.passed and all(result.passed for result in checks)
