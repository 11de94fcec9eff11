# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold check`: all faults of the launches of a file, found on the simulator."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.target import DEFAULT_ARCH
from tilefold.commands.launching import (
    add_host,
    add_launch,
    add_repro,
    add_simulation,
    check_limits,
    choose_launches,
    environment,
    load_program,
    run_options,
    simulation,
)
from tilefold.commands.options import add_file, add_target
from tilefold.driver.output import write_output

if TYPE_CHECKING:
    from tilefold.compiler.frontend.diagnostics import Place
    from tilefold.driver.faults import Report
    from tilefold.driver.filled_arguments import Arguments
    from tilefold.driver.launches import Launch
    from tilefold.driver.lowering import Program
    from tilefold.runtime.sim.diagnosis import Diagnosis
    from tilefold.tools.checking.check import Checked

_EPILOG = """\
Each launch runs at stage 'cute', where the simulator checks accesses against the shapes of their tensors, and at stage
'instr', the instructions. The command reports all faults, each with both operations involved: data races, out-of-bounds
accesses, uses of unwritten values, barriers that some threads never reach, unwritten outputs, failed checks.

examples:
  tilefold check kernel.cute
  tilefold check kernel.cute --stage all
  tilefold check kernel.cute --format sarif -o kernel.sarif    for editors and servers of source code

Exit status: 0 without a fault, otherwise 1.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `check`."""
    parser.epilog = _EPILOG
    add_file(parser)
    add_target(parser, None, f"{DEFAULT_ARCH}, or one that supports the kernel")
    parser.add_argument(
        "--stage",
        metavar="STAGE",
        action="append",
        default=[],
        help="check at this stage, or at 'all' of them (default: cute and instr); can be repeated",
    )
    parser.add_argument("--format", choices=("text", "json", "sarif"), default="text", help="the format of the report")
    parser.add_argument("-o", "--output", metavar="OUT", help="write the report to this file")
    add_launch(parser)
    add_simulation(parser)
    add_repro(parser)
    add_host(parser)


def execute(args: argparse.Namespace) -> int:
    """Checks launch by launch; 1 if a fault is found."""
    from tilefold.driver.faults import Report
    from tilefold.driver.lowering import PTX_STAGE, SIMULATED_STAGES
    from tilefold.runtime.cute_ir.host_engine import entry_point
    from tilefold.tools.checking.check import STAGES

    for stage in args.stage:
        if stage not in (*SIMULATED_STAGES, "all"):
            hint = f"stages: {', '.join(SIMULATED_STAGES)}, or all"
            raise TilefoldError(Code.CLI_VALUE, f"--stage {stage[:40]}: unknown stage", hint)
    program = load_program(args)
    default = STAGES if program.simulated_stage != PTX_STAGE else (PTX_STAGE,)
    stages = tuple(SIMULATED_STAGES if "all" in args.stage else args.stage or default)
    if args.entry is not None or entry_point(program.module) is not None:
        report = _check_host(args, program, stages)
    else:
        report = _check_launches(args, program, stages)
    text = {"text": str, "json": Report.json, "sarif": Report.sarif}[args.format](report)
    write_output(f"{text}\n", args.output)
    return 0 if report.passed else 1


def _check_launches(args: argparse.Namespace, program: "Program", stages: tuple[str, ...]) -> "Report":
    from tilefold.compiler.frontend.diagnostics import Diagnostic, Severity
    from tilefold.driver.faults import Report, merge
    from tilefold.driver.lowering import PTX_STAGE
    from tilefold.driver.messages import print_diagnostics

    launches = choose_launches(args, program, "`tilefold run --device sim` checks it as it runs")
    if "all" in args.stage:
        from tilefold.driver.session import not_as_ptx

        with program.explaining():
            reason = not_as_ptx(program, exact=args.exact)
        if reason:
            print_diagnostics(Diagnostic(Severity.NOTE, f"stage ptx is left out, since {reason}").render())
            stages = tuple(stage for stage in stages if stage != PTX_STAGE)
    with program.explaining():
        faults = [fault for launch in launches for fault in checked_launch(args, program, launch).faults(stages)]
    seen = tuple(stage for stage in stages if program.has(stage))
    return Report(tuple(launch.label for launch in launches), seen, merge(faults))


def _check_host(args: argparse.Namespace, program: "Program", stages: tuple[str, ...]) -> "Report":
    from tilefold.driver.host_program import STAGES, Host
    from tilefold.runtime.sim.sim_engine import SimEngine
    from tilefold.tools.checking.host import check_host

    check_limits(args)
    for option in ("launch", "grid", "block", "arg", "fill"):
        if getattr(args, option):
            message = f"--{option} applies to run.launch only; this program begins on the host"
            raise TilefoldError(Code.CLI_VALUE, message)
    host = Host(program, environment(args), SimEngine(run_options(args)))
    return check_host(host, args.entry or "main", STAGES if "all" in args.stage else stages)


def checked_launch(args: argparse.Namespace, program: "Program", launch: "Launch") -> "Checked":
    """A launch that is to be checked as the command line says."""
    from tilefold.tools.checking.check import Checked

    arguments, config, engine = simulation(args, launch)

    def judge(diagnosis: "Diagnosis") -> "Iterator[tuple[str, Place | None]]":
        return _failed(launch, arguments, diagnosis, engine.limits.bytes)

    return Checked(launch.label, program, launch.kernel, config, arguments.launchable, engine, judge)


def _failed(
    launch: "Launch", arguments: "Arguments", diagnosis: "Diagnosis", max_bytes: int
) -> "Iterator[tuple[str, Place | None]]":
    from tilefold.driver.session import results_of

    assert diagnosis.arguments is not None, "the launch has ended"
    values = arguments.logical(diagnosis.arguments, diagnosis.exact)
    for check in launch.checks:
        for result in results_of(check, values, max_bytes):
            if not result.passed:
                yield str(result), check.condition.place
