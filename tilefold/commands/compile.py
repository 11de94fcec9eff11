# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold compile`: lowers a file to a stage, to LLVM IR, PTX or machine code."""

import argparse
import sys
from typing import TYPE_CHECKING

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.target import DEFAULT_ARCH
from tilefold.commands.options import add_cache, add_file, add_remarks, add_target, add_time, read_source
from tilefold.driver.messages import print_remarks
from tilefold.driver.output import write_output

if TYPE_CHECKING:
    from tilefold.base.target import Target
    from tilefold.driver.lowering import Program

_STAGES = ("cute", "folded", "atoms", "index", "instr")
_FORMS = (*_STAGES, "llvm", "ptx", "cubin")

_EPILOG = """\
stages, in order: cute (as written), folded (static layouts folded), atoms (copies expanded to executions of atoms),
index (pointers and index arithmetic), instr (one operation per PTX instruction); then llvm, ptx and cubin (machine
code).

examples:
  tilefold compile kernel.cute                                PTX for the default target
  tilefold compile kernel.cute --target sm_90a --emit cubin -o kernel.cubin
  tilefold compile kernel.cute --emit instr                   the program as the simulator runs it at stage instr
  tilefold compile kernel.cute --report                       registers, spills, shared memory, instruction counts
  tilefold compile kernel.cute --remarks -o kernel.ptx        chosen instructions, reasons, costs of accesses
  tilefold compile kernel.cute -D TILE_M=64 --emit atoms -o atoms.cute
  tilefold compile atoms.cute                                 continue from the saved stage

A stage written to a file by -o keeps the line numbers of the original file for later messages, and the version of its
format. PTX and machine code name the lines by `.loc`, for profilers and debuggers, without changing an instruction;
TILEFOLD_LINE_INFO=0 omits them everywhere.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `compile`."""
    parser.epilog = _EPILOG
    add_file(parser)
    add_target(parser, DEFAULT_ARCH)
    parser.add_argument("--emit", choices=_FORMS, help="the form of the output (default: ptx)")
    parser.add_argument(
        "-o", "--output", metavar="OUT", help="write to this file; nothing is written if anything fails"
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="print registers, spills, shared memory, occupancy, instruction counts and costs of accesses to memory",
    )
    add_remarks(parser)
    add_cache(parser)
    add_time(parser)
    parser.add_argument(
        "--locations",
        action=argparse.BooleanOptionalAction,
        help="write the lines of the source, as loc(...), !dbg or .loc (default: to files, not to the terminal)",
    )


def execute(args: argparse.Namespace) -> int:
    """Compiles, writes the output, and prints the report."""
    from tilefold.base.target import Target
    from tilefold.driver.lowering import TO_INDEX, load

    if args.file.endswith(".ptx"):
        return _print_ptx(args)
    program = load(read_source(args), args.target, cached=args.cache)
    target = Target(args.target)
    form = args.emit or "ptx"
    with program.explaining():
        if program.gpu_kernels:
            program = program.device_program(TO_INDEX)
        to_file = args.output not in (None, "-")
        locations = to_file if args.locations is None else args.locations
        program.lines = args.locations
        content = _make_content(program, form, target, locations=locations, header=to_file)
        report = program.report(target) if args.report else ""
        remarks = program.remarks(target, compiled=form in ("ptx", "cubin")) if args.remarks else ()
    if args.output is not None or args.emit is not None or not args.report:
        write_output(content, args.output)
    if args.remarks:
        print_remarks(remarks, args.remarks)
    if report:
        print(report, end="", file=sys.stderr if args.output in (None, "-") and args.emit else sys.stdout)
    return 0


def _print_ptx(args: argparse.Namespace) -> int:
    """Prints PTX as tilefold reads it. TilefoldError (E4003) for another form."""
    from tilefold.compiler.frontend.source import read_text
    from tilefold.compiler.ptx.parser import parse_ptx
    from tilefold.compiler.ptx.printing import print_ptx

    if args.emit not in (None, "ptx"):
        message = f"--emit {args.emit}: PTX is the only form of {args.file[:80]}"
        raise TilefoldError(Code.CLI_VALUE, message, "`tilefold check` and `tilefold run` execute it")
    write_output(print_ptx(parse_ptx(read_text(args.file), args.file)), args.output)
    return 0


def _make_content(program: "Program", form: str, target: "Target", *, locations: bool, header: bool) -> str | bytes:
    match form:
        case "llvm":
            return program.llvm(target, lines=locations and program.writes_lines())
        case "ptx":
            return program.ptx(target, lines=locations and program.writes_lines())
        case "cubin":
            return program.cubin(target).code
        case stage:
            from tilefold.compiler.frontend.program import print_program

            return print_program(program.reached(stage, target), locations=locations, header=header)
