# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold check`: all faults of the launches of a file, found on the simulator."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath
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
    from tilefold.driver.filled_arguments import Arguments
    from tilefold.driver.gaps import Gap
    from tilefold.driver.launches import Launch
    from tilefold.driver.lowering import Program
    from tilefold.runtime.sim.diagnosis import Diagnosis
    from tilefold.tools.checking.check import Checked, Examination

_EPILOG = """\
Each launch runs at stage 'cute', where the simulator checks accesses against the shapes of their tensors, and at stage
'instr', the instructions. The command reports all faults, each with both operations involved: data races, out-of-bounds
accesses, uses of unwritten values, barriers that some threads never reach, unwritten outputs, failed checks.

examples:
  tilefold check kernel.cute
  tilefold check kernel.cute --stage all
  tilefold check kernel.cute --format sarif -o kernel.sarif    for editors and servers of source code
  tilefold check kernel.cute --json -o report.json      for other programs, with all that repeats the check
  tilefold check --replay report.json                   the same check again, on any machine

The verdict is one of three, and the exit status tells it:
  0    clean: no faults, and the check saw everything
  1    faults, or the program or its arguments are rejected
  3    incomplete: no faults, but the check has gaps, which it names: operations that tilefold does not execute, a
       budget that ended, a grid that was cut, code that no input reached, assumptions
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `check`."""
    parser.epilog = _EPILOG
    add_file(parser, optional=True)
    add_target(parser, None, f"{DEFAULT_ARCH}, or one that supports the kernel")
    parser.add_argument(
        "--stage",
        metavar="STAGE",
        action="append",
        default=[],
        help="check at this stage, or at 'all' of them (default: cute and instr); can be repeated",
    )
    parser.add_argument("--format", choices=("text", "json", "sarif"), default="text", help="the format of the report")
    parser.add_argument("--json", dest="format", action="store_const", const="json", help="the same as --format json")
    parser.add_argument("--replay", metavar="REPORT", help="repeat the check of a report in JSON, instead of a program")
    parser.add_argument(
        "--outputs",
        choices=("whole", "partial"),
        default="whole",
        help="whether a launch must write all elements of its outputs (default: whole)",
    )
    parser.add_argument("-o", "--output", metavar="OUT", help="write the report to this file")
    parser.add_argument(
        "--fuzz", metavar="N", type=int, default=0, help="also check N launches with arguments that are drawn at random"
    )
    parser.add_argument(
        "--range",
        metavar="NAME=LOW:HIGH",
        action="append",
        default=[],
        help="let --fuzz draw an integer argument from LOW to HIGH; a third number is the step",
    )
    add_launch(parser)
    add_simulation(parser)
    add_repro(parser)
    add_host(parser)


def execute(args: argparse.Namespace) -> int:
    """Checks launch by launch, or repeats a check; the exit status of the verdict."""
    from tilefold.commands.replaying import repeat, replay_data
    from tilefold.driver.faults import Report
    from tilefold.tools.checking.check import reported

    if args.replay is None:
        report = reported(_examined(args), lambda: replay_data(args))
    else:
        parser = argparse.ArgumentParser(allow_abbrev=False)
        add_arguments(parser)
        examined, replay = repeat(args, parser, _examined)
        report = reported(examined, lambda: replay)
    text = {"text": str, "json": Report.json, "sarif": Report.sarif}[args.format](report)
    write_output(f"{text}\n", args.output)
    return report.verdict.status


def _examined(args: argparse.Namespace) -> "list[Examination]":
    """The launches of a program at the stages that the command line names. TilefoldError for one that is refused."""
    from tilefold.driver.gaps import gap_of
    from tilefold.driver.lowering import PTX_STAGE, SIMULATED_STAGES
    from tilefold.runtime.cute_ir.host_engine import entry_point
    from tilefold.tools.checking.check import STAGES, Examination

    for stage in args.stage:
        if stage not in (*SIMULATED_STAGES, "all"):
            hint = f"stages: {', '.join(SIMULATED_STAGES)}, or all"
            raise TilefoldError(Code.CLI_VALUE, f"--stage {stage[:40]}: unknown stage", hint)
    given = argparse.Namespace(**vars(args))
    try:
        program = load_program(args)
        default = STAGES if program.simulated_stage != PTX_STAGE else (PTX_STAGE,)
        stages = tuple(SIMULATED_STAGES if "all" in args.stage else args.stage or default)
        if args.entry is not None or entry_point(program.module) is not None:
            return [_examine_host(args, program, stages)]
        examined = list(_examine_launches(args, program, stages))
        if all(fault.is_remark for examination in examined for fault in examination.faults):
            examined += _examine_as_written(args, given, stages)
        return examined
    except TilefoldError as error:
        if (gap := gap_of(error)) is None:
            raise
        return [Examination([args.launch or args.file], args.stage or (PTX_STAGE,), [], None, [gap])]


def _examine_launches(args: argparse.Namespace, program: "Program", stages: tuple[str, ...]) -> "Iterator[Examination]":
    from tilefold.driver.gaps import Gap, GapKind
    from tilefold.driver.lowering import PTX_STAGE
    from tilefold.driver.session import not_as_ptx
    from tilefold.tools.checking.check import Examination

    launches = choose_launches(args, program, "`tilefold run --device sim` checks it as it runs")
    gaps = list(_cut_grids(args, program, launches))
    if "all" in args.stage:
        with program.explaining():
            reason = not_as_ptx(program, exact=args.exact)
        if reason:
            gaps.append(Gap(GapKind.STAGE, f"stage ptx is left out, since {reason}"))
            stages = tuple(stage for stage in stages if stage != PTX_STAGE)
    with program.explaining():
        outcomes = [checked_launch(args, program, launch).outcome(stages) for launch in launches]
    seen = tuple(stage for stage in stages if program.has(stage))
    yield Examination([launch.label for launch in launches], seen, outcomes, program.source, gaps)
    if args.fuzz:
        for launch in launches:
            yield from _examine_draws(args, program, launch, seen)


_MOST_STEPS = 20_000
_MOST_TEXT = 100_000
"""Limits of the check of CUDA C++ as it is written: its steps, and the characters of the optimised PTX."""
_AS_WRITTEN = "NVRTC's optimiser drops the code that shows it: --nvrtc=-G keeps that code"


def _examine_as_written(
    args: argparse.Namespace, given: argparse.Namespace, stages: tuple[str, ...]
) -> "Iterator[Examination]":
    """The launches of CUDA C++ without optimisation, where faults are visible that the optimiser drops with the values
    that no one uses. Only faults count, since the optimised code runs. `given` are the arguments of the command.
    """
    from tilefold.tools.checking.check import Outcome

    if PurePath(args.file).suffix != ".cu" or getattr(given, "compiled", "") or "-G" in args.nvrtc:
        return
    if len(args.compiled) > _MOST_TEXT:
        return
    given.nvrtc = [*args.nvrtc, "-G"]
    given.max_steps = min(args.max_steps or _MOST_STEPS, _MOST_STEPS)
    try:
        program = load_program(given)
        examined = list(_examine_launches(given, program, stages))
    except TilefoldError:
        return
    for examination in examined:
        if faults := tuple(fault for fault in examination.faults if not fault.is_remark):
            noted = tuple(replace(fault, note=fault.note or _AS_WRITTEN) for fault in faults)
            args.as_written = given.compiled
            yield replace(examination, outcomes=[Outcome(noted)], gaps=[])


def _examine_draws(
    args: argparse.Namespace, program: "Program", launch: "Launch", stages: tuple[str, ...]
) -> "Iterator[Examination]":
    """A launch with each of the arguments that `--fuzz` draws."""
    from tilefold.commands.fuzzing import draws
    from tilefold.tools.checking.check import Examination

    for drawn in draws(args, program, launch):
        checked = _checked(args, program, drawn.launch, drawn.arguments, judges=not drawn.is_special)
        with program.explaining():
            outcome = checked.outcome(stages)
        yield Examination([launch.label], stages, [outcome], program.source, input=drawn.words)


def _cut_grids(args: argparse.Namespace, program: "Program", launches: "Sequence[Launch]") -> "Iterator[Gap]":
    """The launches that have fewer blocks than those of the file."""
    from tilefold.driver.gaps import Gap, GapKind
    from tilefold.driver.launches import Changes

    if args.grid is None:
        return
    for launch, whole in zip(launches, program.launches(Changes(name=args.launch)), strict=True):
        if any(blocks < all for blocks, all in zip(launch.grid, whole.grid, strict=True)):
            ran, wanted = ("x".join(map(str, grid)) for grid in (launch.grid, whole.grid))
            yield Gap(GapKind.GRID, f"the file launches a grid of {wanted}; {ran} ran", launch.label)


def _examine_host(args: argparse.Namespace, program: "Program", stages: tuple[str, ...]) -> "Examination":
    from tilefold.driver.devices import simulator
    from tilefold.driver.host_program import STAGES, Host
    from tilefold.tools.checking.check import check_host

    check_limits(args)
    for option in ("launch", "grid", "block", "arg", "fill", "fuzz"):
        if getattr(args, option):
            message = f"--{option} applies to run.launch only; this program begins on the host"
            raise TilefoldError(Code.CLI_VALUE, message)
    host = Host(program, environment(args), simulator(run_options(args)))
    return check_host(host, args.entry or "main", STAGES if "all" in args.stage else stages)


def checked_launch(args: argparse.Namespace, program: "Program", launch: "Launch") -> "Checked":
    """A launch that is to be checked as the command line says."""
    return _checked(args, program, launch, simulation(args, launch)[0], judges=True)


def _checked(
    args: argparse.Namespace, program: "Program", launch: "Launch", arguments: "Arguments", *, judges: bool
) -> "Checked":
    """A launch with these arguments; where it `judges`, by the conditions of the file, too."""
    from tilefold.driver.devices import simulator
    from tilefold.runtime.engine import LaunchConfig
    from tilefold.runtime.sim.sim_engine import discard
    from tilefold.tools.checking.check import Checked

    engine, config = simulator(run_options(args), discard), LaunchConfig(launch.grid, launch.block)

    def judge(diagnosis: "Diagnosis") -> "Iterator[tuple[str, Place | None]]":
        return _failed(launch, arguments, diagnosis, engine.limits.bytes) if judges else iter(())

    partial = getattr(args, "outputs", "whole") == "partial"
    return Checked(launch.label, program, launch.kernel, config, arguments.launchable, engine, judge, partial)


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
