# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold reduce`: shrinks a program that fails, while it fails in the same way."""

import argparse
import sys
from collections.abc import Callable

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.target import DEFAULT_ARCH
from tilefold.commands.launching import add_launch, add_simulation, changes, check_limits, run_options, simulation
from tilefold.commands.options import add_file, add_target, parse_pairs, program_text, read_source
from tilefold.driver.output import write_output

_EPILOG = """\
The command first runs the program like `tilefold bisect` and classifies the failure: a pass crashes or rejects it, the
kernel has a fault, a pass changes its results, the PTX lacks an instruction, or a check fails. Then it removes parts of
the program and reduces numbers, as long as the program fails in the same way: with the same pass, the same code of a
fault, or the same check with no larger share of wrong elements.

The command leaves out lines of a .ptx file as long as the launch has the same fault.

With --test, the command keeps programs for which COMMAND fails. It passes the name of a file with the program in place
of `{}`, or as the last argument.

examples:
  tilefold reduce kernel.cute -o small.cute
  tilefold reduce kernel.cute --seconds 300 --launch scale
  tilefold reduce kernel.cute --test './fails.sh {}' -o small.cute
  tilefold reduce kernel.ptx --block 128 --arg A=f32[100] --fill A=arange -o small.ptx

Exit status: 0 if the program fails and the command has reduced it, even if the time ran out, otherwise 1.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `reduce`."""
    parser.epilog = _EPILOG
    add_file(parser)
    add_target(parser, None, f"{DEFAULT_ARCH}, or one that supports the kernel")
    parser.add_argument("-o", "--output", metavar="OUT", help="write the reduced program to this file")
    parser.add_argument("--test", metavar="COMMAND", help="a command that fails on programs of interest")
    parser.add_argument("--seconds", type=float, default=60, help="end the search after this time (default: 60)")
    parser.add_argument("-p", "--passes", metavar="PIPELINE", help="the passes to try, separated by commas")
    add_launch(parser)
    add_simulation(parser)


def execute(args: argparse.Namespace) -> int:
    """Reduces the program. TilefoldError for one that does not fail."""
    from tilefold.tools.joined import Bisection
    from tilefold.tools.reduction.failure import Conditions
    from tilefold.tools.reduction.reduce import reduced

    check_limits(args)
    if not args.seconds > 0:
        raise TilefoldError(Code.CLI_VALUE, f"--seconds {args.seconds:g}: must be more than 0")
    if args.file.endswith(".ptx"):
        return _reduce_ptx(args)
    source = read_source(args)
    if args.test is not None:
        is_interesting = _by_command(args, source.expanded)
    else:
        given = Conditions(
            Bisection(), args.target, args.passes, changes(args), parse_pairs(args.arg, "--arg"), run_options(args)
        )
        is_interesting = given.interest(source, _progress)
    write_output(reduced(source, is_interesting, args.seconds, _progress), args.output)
    return 0


def _reduce_ptx(args: argparse.Namespace) -> int:
    """Reduces the text of a PTX file."""
    from tilefold.tools.reduction.failure import reduced_ptx

    text = program_text(args)
    is_interesting = _by_fault(args, text) if args.test is None else _by_command(args, text)
    write_output(reduced_ptx(text, is_interesting, args.seconds, _progress), args.output)
    return 0


def _by_fault(args: argparse.Namespace, text: str) -> Callable[[str], bool]:
    """Whether a launch of PTX has the fault that that of `text` has. TilefoldError (E4003) if it has none."""
    from tilefold.base.target import Target
    from tilefold.driver.ptx_program import load_ptx_program
    from tilefold.runtime.sim.preparation import SimProgram

    arguments, args.arg = parse_pairs(args.arg, "--arg"), []
    target = None if args.target is None else Target(args.target)

    def fault(text: str) -> Code | None:
        try:
            program = load_ptx_program(text, args.file, changes(args), arguments, args.shared, target)
            for launch in program.launches(changes(args)):
                given, config, engine = simulation(args, launch)
                engine.launch(SimProgram(program.module, launch.kernel), config, given.launchable())
        except TilefoldError as error:
            return error.code
        return None

    wanted = fault(text)
    if wanted is None:
        raise TilefoldError(Code.CLI_VALUE, f"{args.file[:80]} does not fail: the launch has no fault")
    _progress(f"the fault: {wanted}")
    return lambda text: fault(text) == wanted


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _by_command(args: argparse.Namespace, text: str) -> Callable[[str], bool]:
    """Whether a command fails for a program. TilefoldError (E4003) for one that cannot run, or succeeds for `text`."""
    from tilefold.tools.reduction.failure import Command

    command = Command.of(args.test)
    if not command.fails(text):
        message = f"--test {args.test[:80]}: the command succeeds for the whole program"
        raise TilefoldError(Code.CLI_VALUE, message, "it must end with another exit status than 0 where the bug shows")
    return command.fails
