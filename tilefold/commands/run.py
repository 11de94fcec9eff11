# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold run`: fills, launches and checks as a file describes, or runs its host function `@main`."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.target import DEFAULT_ARCH
from tilefold.commands.launching import (
    add_host,
    add_launch,
    add_repro,
    add_simulation,
    changes,
    check_limits,
    environment,
    load_program,
    run_options,
    simulation,
)
from tilefold.commands.options import add_cache, add_file, add_printed, add_remarks, add_target, parse_pairs
from tilefold.driver.messages import print_remarks
from tilefold.driver.output import write_output

if TYPE_CHECKING:
    from tilefold.driver.launches import Launch
    from tilefold.driver.lowering import Program

_EPILOG = """\
A file describes its runs by launches such as

  run.launch @kernels::@scale grid(8, 32) {
    run.arg "A" : !gmem = "normal(seed=0)"
    run.arg "B" : !gmem = "poison"
    run.arg "n" : i32 = "1024"
    run.check "B == A * 2 and max(B) < 100"
    run.check "B ~= A @ A" rtol 1.0e-3
  }

fills: zeros, ones, full(v), arange(start, step), normal(mean, std), uniform(lo, hi), integers(lo, hi), or an
  expression of earlier arguments, such as A.T * 2
checks: == equal values, ~= within the type's tolerance, != < <= > >=
expressions: + - * / // % @ ** .T, slices A[0:2, 3], abs, sum, where, reshape, ... (docs/reference/expressions.md)

An argument filled with poison counts as unwritten: the simulator refuses to read it before the kernel has written it.
~= allows atol + rtol * |expected|, with rtol and atol by element type, as in torch.testing.assert_close.

examples:
  tilefold run kernel.cute                            on the GPU if there is one, otherwise the simulator
  tilefold run kernel.cute --stage all                on the simulator after every stage; all results must agree
  tilefold run kernel.cute --arg A=a.npy --save B=b.npy
  tilefold run kernel.cute --timeline warps.json      the waits of each warp, for ui.perfetto.dev
  tilefold run kernel.cute --launch scale --grid 4 --fill 'A=arange' --fill 'B=poison' --check 'B == A * 2'

A file with a host function, func.func @main, starts there: it prints, and launches kernels by gpu.launch_func.
  tilefold run main.mlir --device sim --allow-env SIZE=8

Exit status: 0 if every check holds, 1 if a check or the run fails.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `run`."""
    parser.epilog = _EPILOG
    add_file(parser)
    add_printed(parser)
    add_target(parser, None, f"that of the GPU; on the simulator {DEFAULT_ARCH}, or one that supports the kernel")
    parser.add_argument(
        "--device",
        choices=("auto", "sim", "cuda"),
        default="auto",
        help="where to run; auto (default) takes the GPU if there is one, unless --stage is given",
    )
    parser.add_argument(
        "--stage",
        metavar="STAGE",
        help="simulate at this stage, or 'all' of them (default: instr; see `tilefold passes`); ptx runs the PTX",
    )
    add_launch(parser)
    parser.add_argument(
        "--check", metavar="EXPR", action="append", default=[], help="also check this (on simulator and GPU)"
    )
    parser.add_argument(
        "--save",
        metavar="NAME=FILE",
        action="append",
        default=[],
        help="write an argument's final values to a .npy file",
    )
    add_simulation(parser)
    add_repro(parser)
    parser.add_argument(
        "--counters", action="store_true", help="print the counters of the simulator: instructions, memory"
    )
    parser.add_argument(
        "--timeline",
        metavar="FILE",
        help="simulate, and write when each warp runs, waits, stalls and copies, for Perfetto (trace events, JSON)",
    )
    add_remarks(parser)
    add_cache(parser)
    add_host(parser)


def execute(args: argparse.Namespace) -> int:
    """Runs the host function, or the launches in order; 1 if a check fails."""
    from tilefold.runtime.cute_ir.host_engine import entry_point

    program = load_program(args)
    check_limits(args)
    if args.remarks:
        _print_remarks(args, program)
    if args.entry is not None or entry_point(program.module) is not None:
        return _run_host(args, program)
    return _run_launches(args, program)


def _print_remarks(args: argparse.Namespace, program: "Program") -> None:
    from tilefold.driver.lowering import TO_INDEX

    with program.explaining():
        compiled = program.device_program(TO_INDEX) if program.gpu_kernels else program
        print_remarks(compiled.remarks(compiled.simulated_target("instr", by_stages=True)), args.remarks)


def _run_host(args: argparse.Namespace, program: "Program") -> int:
    from tilefold.driver.devices import chosen_device, simulator
    from tilefold.driver.host_program import Host

    for option in ("launch", "grid", "block", "arg", "fill", "check", "save", "counters", "timeline"):
        if getattr(args, option):
            raise TilefoldError(
                Code.CLI_VALUE, f"--{option} applies to run.launch only; this program begins on the host"
            )
    host = Host(program, environment(args), simulator(run_options(args)))
    entry, passed = args.entry or "main", True
    try:
        if program.gpu_kernels and args.stage is None and chosen_device(args.device) == "cuda":
            host.run_on_gpu(entry)
        else:
            passed = host.simulate(entry, args.stage)
    finally:
        sys.stdout.flush()  # the output comes before the error
    return 0 if passed else 1


def _run_launches(args: argparse.Namespace, program: "Program") -> int:
    from tilefold.driver.lowering import PTX_STAGE
    from tilefold.driver.session import Session

    files, saves = parse_pairs(args.arg, "--arg"), parse_pairs(args.save, "--save")
    launches = program.launches(changes(args, tuple(args.check)))
    known = {argument.name for launch in launches for argument in launch.arguments}
    for option, names in (("--arg", files), ("--save", saves)):
        for name in names:
            if name not in known:
                raise TilefoldError(
                    Code.RUN_ARGUMENT,
                    f"{option} {name[:80]}: no launch of this run has an argument of this name",
                    f"their arguments: {', '.join(sorted(known)) or 'none'}",
                )
    device = args.device if program.simulated_stage != PTX_STAGE else "sim"
    session = Session(program, device=device, stage=args.stage, options=run_options(args), counters=args.counters)
    passed = True
    for launch in launches:
        passed &= session.run(launch, files=files, saves=saves)
    sys.stdout.flush()
    if args.timeline is not None:
        write_output(_timeline(args, program, launches), args.timeline)
    return 0 if passed else 1


def _timeline(args: argparse.Namespace, program: "Program", launches: "Sequence[Launch]") -> str:
    """When the warps of launches run and wait, by launching them once more under observation."""
    from dataclasses import replace

    from tilefold.driver.session import ALL
    from tilefold.runtime.sim.preparation import SimProgram
    from tilefold.runtime.sim.tcgen05.column_events import ColumnEvent
    from tilefold.runtime.sim.timeline import Event, Timeline
    from tilefold.tools.profiling.perfetto import trace

    stage = program.simulated_stage if args.stage in (None, ALL) else args.stage
    target, seen = program.simulated_target(stage), dict[str, Sequence[Event]]()
    columns = dict[str, Sequence[ColumnEvent]]()
    with program.explaining():
        module = program.reached(stage, target)
        for launch in launches:
            arguments, config, engine = simulation(args, launch)
            timeline = Timeline(target=target)
            observed = replace(engine, journal=timeline)
            observed.launch(SimProgram(module, launch.kernel), config, arguments.launchable())
            seen[launch.label], columns[launch.label] = timeline.events, timeline.columns
    return trace(seen, columns)
