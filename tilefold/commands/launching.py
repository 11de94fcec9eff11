# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of the commands that launch the kernels of a file: which launches, their sizes and arguments, and how the
simulator runs them.
"""

import argparse
import os
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from tilefold.base.errors import Code, TilefoldError
from tilefold.commands.options import Options, add_time, parse_macros, parse_pairs, program_text, read_source

if TYPE_CHECKING:
    from tilefold.driver.filled_arguments import Arguments
    from tilefold.driver.launches import Changes, Launch
    from tilefold.driver.line_costs import Costs
    from tilefold.driver.lowering import Program
    from tilefold.runtime.engine import LaunchConfig
    from tilefold.runtime.options import SimOptions
    from tilefold.runtime.sim.sim_engine import SimEngine


def add_launch(parser: Options) -> None:
    """Declares the options that choose launches, and change their sizes and arguments."""
    parser.add_argument("--launch", metavar="NAME", help="only the launches of this name or kernel")
    parser.add_argument("--grid", metavar="X[,Y[,Z]]", help="launch this many blocks instead of the file's")
    parser.add_argument("--block", metavar="X[,Y[,Z]]", help="the threads of a block; must match the kernel")
    parser.add_argument(
        "--arg", metavar="NAME=FILE", action="append", default=[], help="take an argument's values from a .npy file"
    )
    parser.add_argument(
        "--shared", metavar="BYTES", type=int, default=0, help="shared memory for an array of PTX that has no size"
    )
    parser.add_argument(
        "--nvrtc", metavar="OPTION", action="append", default=[], help="an option of NVRTC, such as --nvrtc=-G"
    )
    parser.add_argument(
        "-I", dest="nvrtc", metavar="FOLDER", action="append", type="-I{}".format, help="where a .cu file has headers"
    )
    parser.add_argument(
        "--std", dest="nvrtc", metavar="LANGUAGE", action="append", type="-std={}".format,
        help="the C++ of a .cu file, such as c++20 (default: c++17)",
    )  # fmt: skip
    parser.add_argument(
        "--fill", metavar="NAME=EXPR", action="append", default=[], help="fill an argument by this expression instead"
    )


def add_simulation(parser: Options) -> None:
    """Declares the options of the simulator."""
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the order of warps, and of fills without a seed (default: 0)"
    )
    parser.add_argument(
        "--max-steps", metavar="N", type=int, help="end a simulation after N operations of warps (default: 100 million)"
    )
    parser.add_argument(
        "--max-memory", metavar="MIB", type=int, help="memory that a simulation may use (default: 4096)"
    )
    add_time(parser)
    parser.add_argument(
        "--resident",
        metavar="N",
        type=int,
        default=1,
        help="let the simulator run N blocks at the same time, which may wait for each other (default: 1)",
    )
    parser.add_argument(
        "--processes",
        metavar="N",
        type=int,
        help="distribute the blocks of a launch over at most N processes of the simulator (default: one for each core)",
    )
    parser.add_argument(
        "--numbers",
        action="store_true",
        help="search on the simulator for the first NaN or infinity, indices that wrap, conversions that lose numbers "
        "and differences without digits",
    )
    parser.add_argument(
        "--numerics",
        choices=("hardware", "exact-sum"),
        default="hardware",
        help="how the simulator sums products of matrix instructions: bit for bit as the target's tensor cores, or in "
        "double precision, rounded once (default: hardware)",
    )
    parser.add_argument(
        "--exact",
        action="store_true",
        help="let the simulator compute with exact numbers instead of floats, and check results without tolerance",
    )
    parser.add_argument(
        "--no-races",
        dest="races",
        action="store_false",
        help="do not search for data races on the simulator; saves time and memory",
    )


def add_host(parser: Options) -> None:
    """Declares the options of programs that begin on the host."""
    parser.add_argument("--entry", metavar="NAME", help="the host function to run (default: main, if it exists)")
    parser.add_argument(
        "--allow-env",
        metavar="NAME[=VALUE]",
        action="append",
        default=[],
        help="let the host read this environment variable, or give it this value",
    )


def environment(args: argparse.Namespace) -> dict[str, str | None]:
    """The variables that the host may read: with the given value, or that of this process's environment. TilefoldError
    (E4003) for one without a name.
    """
    variables: dict[str, str | None] = {}
    for text in args.allow_env:
        name, given, value = text.partition("=")
        if not name:
            raise TilefoldError(Code.CLI_VALUE, f"--allow-env {text[:80]}: neither NAME nor NAME=VALUE")
        variables[name] = value if given else os.environ.get(name)
    return variables


def add_repro(parser: argparse.ArgumentParser) -> None:
    """Declares `--repro`."""
    parser.add_argument(
        "--repro",
        metavar="DIR",
        help="if the command fails, write this folder, which repeats it elsewhere: program, arguments, script",
    )


def check_limits(args: argparse.Namespace) -> None:
    """TilefoldError (E4003) for a limit below 1."""
    for option in ("max_steps", "max_memory", "resident", "processes"):
        value = getattr(args, option)
        if value is not None and value < 1:
            raise TilefoldError(Code.CLI_VALUE, f"--{option.replace('_', '-')} {value}: must be at least 1")


def run_options(args: argparse.Namespace) -> "SimOptions":
    """How the simulator runs."""
    from tilefold.runtime.options import SimKeywords, SimOptions

    return SimOptions(**{name: getattr(args, name) for name in SimKeywords.__annotations__})


def changes(args: argparse.Namespace, checks: tuple[str, ...] = ()) -> "Changes":
    """The launches to run, with their changes. TilefoldError (E4003) for malformed sizes and fills."""
    from tilefold.driver.launches import Changes

    return Changes(
        name=args.launch,
        grid=_dim3(args.grid, "--grid"),
        block=_dim3(args.block, "--block"),
        fills=parse_pairs(args.fill, "--fill"),
        checks=checks,
    )


def load_program(args: argparse.Namespace) -> "Program":
    """The program of the file that the command names: .cute, or PTX or CUDA C++ with the launch that the options
    describe.
    """
    from tilefold.driver.lowering import load

    is_cuda = PurePath(args.file).suffix == ".cu"
    if getattr(args, "nvrtc", []) and not is_cuda and not getattr(args, "compiled", ""):
        raise TilefoldError(Code.CLI_VALUE, f"{args.file}: -I, --std and --nvrtc are for CUDA C++, a .cu file")
    if PurePath(args.file).suffix not in (".ptx", ".cu") and not getattr(args, "is_ptx", False):
        return load(read_source(args), args.target, cached=getattr(args, "cache", False))
    from tilefold.base.target import Target
    from tilefold.driver.ptx_program import compiled_cuda, load_ptx_program

    arguments, args.arg = parse_pairs(args.arg, "--arg"), []
    target = None if args.target is None else Target(args.target)
    text = program_text(args)
    if is_cuda and not getattr(args, "compiled", ""):
        args.compiled = compiled_cuda(text, args.file, target, parse_macros(args.define), args.nvrtc)
    compiled = getattr(args, "compiled", "")
    return load_ptx_program(text, args.file, changes(args), arguments, args.shared, target, compiled)


def choose_launches(args: argparse.Namespace, program: "Program", instead: str) -> "list[Launch]":
    """The launches of a program that the command line chooses. TilefoldError (E4003), whose hint is `instead`, for a
    program that begins on the host.
    """
    from tilefold.runtime.cute_ir.host_engine import entry_point

    check_limits(args)
    if entry_point(program.module) is not None:
        message = f"{args.command} runs launches of the file, run.launch; this program begins on the host"
        raise TilefoldError(Code.CLI_VALUE, message, instead)
    return program.launches(changes(args))


def simulation(args: argparse.Namespace, launch: "Launch") -> "tuple[Arguments, LaunchConfig, SimEngine]":
    """The arguments of a launch, its configuration, and a simulator that discards the text that the kernel prints."""
    from tilefold.driver.devices import simulator
    from tilefold.driver.filled_arguments import prepare
    from tilefold.runtime.engine import LaunchConfig
    from tilefold.runtime.sim.sim_engine import discard

    options = run_options(args)
    arguments = prepare(launch, parse_pairs(args.arg, "--arg"), seed=args.seed, max_bytes=options.limits.bytes)
    return arguments, LaunchConfig(launch.grid, launch.block), simulator(options, discard)


def simulated_costs(args: argparse.Namespace, program: "Program") -> "Iterator[Costs]":
    """The costs of the lines of the launches that the command line chooses."""
    from tilefold.driver.trial import Trial
    from tilefold.tools.profiling.simulated_costs import costs_of

    for launch in choose_launches(args, program, "launch its kernels by run.launch"):
        arguments, config, engine = simulation(args, launch)
        yield costs_of(program, launch.label, Trial(launch.kernel, config, arguments.launchable, engine))


def _dim3(text: str | None, option: str) -> tuple[int, int, int] | None:
    if text is None:
        return None
    parts = text.split(",")
    if not 1 <= len(parts) <= 3 or not all(part.isdecimal() and 0 < int(part[:12]) < 2**31 for part in parts):
        raise TilefoldError(
            Code.CLI_VALUE, f"{option} {text[:80]}: not one to three sizes", f"for example: {option} 8,32"
        )
    x, y, z = [*map(int, parts), 1, 1][:3]
    return x, y, z
