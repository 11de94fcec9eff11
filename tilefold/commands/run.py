# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold run`: fills, launches and checks what a file describes."""

import argparse
import sys
from typing import TYPE_CHECKING

from tilefold.commands.options import add_file, add_target, pairs, read_source
from tilefold.layout.errors import Code, TilefoldError

if TYPE_CHECKING:
    from tilefold.launches import Changes

_EPILOG = """\
A file says how it runs by launches such as

  run.launch @kernels::@scale grid(8, 32) {
    run.arg "A" : !gmem = "normal(seed=0)"       fill: zeros, ones, full(v), arange(start, step), normal(mean,
    std), run.arg "B" : !gmem = "poison"                     uniform(lo, hi), integers(lo, hi), or an
    expression such as A.T * 2 run.arg "n" : i32   = "1024" run.check "B == A * 2 and max(B) < 100"      ==
    equal values, ~= within the type's tolerance, != < <= > >= run.check "B ~= A @ A" rtol 1.0e-3           +
    - * / // % @ ** .T, slices A[0:2, 3], abs, sum, where, reshape, ...
  }

An argument filled with poison counts as unwritten: reading it before the kernel wrote it is an error of the simulator.
~= allows atol + rtol * |expected|, with rtol and atol by element type as torch.testing.assert_close has them.

examples:
  tilefold run kernel.cute                            on the GPU where there is one, else on the simulator
  tilefold run kernel.cute --stage all                on the simulator after every stage; all results must be the same
  tilefold run kernel.cute --arg A=a.npy --save B=b.npy
  tilefold run kernel.cute --launch scale --grid 4 --fill 'A=arange' --fill 'B=poison' --check 'B == A * 2'

Exit status: 0 if every check holds, 1 if one does not or the run fails.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `run`."""
    parser.epilog = _EPILOG
    add_file(parser)
    add_target(parser, None)
    parser.add_argument(
        "--device",
        choices=("auto", "sim", "cuda"),
        default="auto",
        help="where to run; auto takes the GPU if there is one and no --stage is given (default)",
    )
    parser.add_argument(
        "--stage",
        metavar="STAGE",
        help="simulate at this stage, or 'all' of them (default: instr; see `tilefold passes`)",
    )
    parser.add_argument("--launch", metavar="NAME", help="only the launches of this name or kernel")
    parser.add_argument("--grid", metavar="X[,Y[,Z]]", help="launch this many blocks instead of what the file says")
    parser.add_argument("--block", metavar="X[,Y[,Z]]", help="the threads of a block; must be those of the kernel")
    parser.add_argument(
        "--arg", metavar="NAME=FILE", action="append", default=[], help="take an argument's values from a .npy file"
    )
    parser.add_argument(
        "--fill", metavar="NAME=EXPR", action="append", default=[], help="fill an argument by this expression instead"
    )
    parser.add_argument(
        "--check", metavar="EXPR", action="append", default=[], help="check this as well (on simulator and GPU)"
    )
    parser.add_argument(
        "--save",
        metavar="NAME=FILE",
        action="append",
        default=[],
        help="write an argument's final values to a .npy file",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of fills that name none, and of the order of warps (default: 0)"
    )
    parser.add_argument(
        "--max-steps", metavar="N", type=int, help="end a simulation after N operations of warps (default: 100 million)"
    )
    parser.add_argument(
        "--max-memory", metavar="MIB", type=int, help="memory that a simulation may use (default: 4096)"
    )
    parser.add_argument(
        "--counters", action="store_true", help="print what the simulator counted: instructions, memory"
    )


def execute(args: argparse.Namespace) -> int:
    """Runs the launches in order; 1 if a check fails."""
    from tilefold.execution import Session
    from tilefold.launches import launches_of
    from tilefold.lowering import load

    program = load(read_source(args), args.target)
    files, saves = pairs(args.arg, "--arg"), pairs(args.save, "--save")
    launches = launches_of(program.module, program.source, _changes(args))
    known = {argument.name for launch in launches for argument in launch.arguments}
    for option, names in (("--arg", files), ("--save", saves)):
        for name in names:
            if name not in known:
                raise TilefoldError(
                    Code.RUN_ARGUMENT,
                    f"{option} {name[:80]}: no launch that is run has an argument of this name",
                    f"their arguments: {', '.join(sorted(known)) or 'none'}",
                )
    session = Session(
        program,
        device=args.device,
        stage=args.stage,
        seed=args.seed,
        max_steps=args.max_steps,
        max_bytes=None if args.max_memory is None else args.max_memory << 20,
        counters=args.counters,
    )
    passed = True
    for launch in launches:
        passed &= session.run(launch, files=files, saves=saves)
    sys.stdout.flush()
    return 0 if passed else 1


def _changes(args: argparse.Namespace) -> "Changes":
    from tilefold.launches import Changes

    for option, value in (("--max-steps", args.max_steps), ("--max-memory", args.max_memory)):
        if value is not None and value < 1:
            raise TilefoldError(Code.CLI_VALUE, f"{option} {value}: must be at least 1")
    return Changes(
        name=args.launch,
        grid=_dim3(args.grid, "--grid"),
        block=_dim3(args.block, "--block"),
        fills=pairs(args.fill, "--fill"),
        checks=tuple(args.check),
    )


def _dim3(text: str | None, option: str) -> tuple[int, int, int] | None:
    if text is None:
        return None
    parts = text.split(",")
    if not 1 <= len(parts) <= 3 or not all(part.isdecimal() and 0 < int(part[:12]) < 2**31 for part in parts):
        raise TilefoldError(
            Code.CLI_VALUE, f"{option} {text[:80]}: is not one to three sizes", f"for example: {option} 8,32"
        )
    x, y, z = [*map(int, parts), 1, 1][:3]
    return x, y, z
