# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold opt`: runs passes over a file and prints the result."""

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tilefold.base.errors import Code, TilefoldError
from tilefold.commands.options import add_file, add_remarks, add_time, check_language, parse_pairs
from tilefold.compiler.frontend.file_format import HEADER
from tilefold.compiler.pipeline import PASSES
from tilefold.driver.messages import print_diagnostics, print_remarks
from tilefold.driver.output import write_output

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from tilefold.compiler.frontend.source import Source
    from tilefold.compiler.reports.listing import Lister, Listing
    from tilefold.compiler.reports.pass_times import PassTimes
    from tilefold.compiler.reports.remarks import Remarks

_EPILOG = """\
examples:
  tilefold opt kernel.cute                                   check the file and print it
  tilefold opt kernel.cute -p fold-layouts,cse               run two passes
  tilefold opt kernel.cute -p 'a{x=1 y="text"},b'            passes with options
  tilefold opt kernel.cute -p fold-layouts,cse --print-ir-changes     the lines that each pass changes
  tilefold opt kernel.cute -p fold-layouts,cse --timing
  tilefold opt kernel.cute -p fold-layouts,cse --dump-dir ir one numbered file per pass; commands accept them
  tilefold opt errors.cute --split-input-file --verify-diagnostics

Each pass also has its own flag, -cse -dce, with options "-a=x=1 y=text"; MLIR's flags may start with one dash. Without
FILE, the command reads the standard input.

Every command can read printed programs. With --locations, and in the files of --dump-dir, each operation carries the
line of the original file, so messages about the saved program still name it.
"""

_SPLIT = re.compile(r"^// -----[ \t\r]*$", re.MULTILINE)
_WITH_OPTIONS = re.compile(r"--?([a-z-]+)=(.+)", re.DOTALL)
_TEXT_OPTION = re.compile(r'(?<==)[^\s"\d][^\s"]*')


def with_pass_options(arguments: Sequence[str]) -> list[str]:
    """The arguments, with flags such as `-a=x=1 y=text` as pipelines: `-p`, `a{x=1 y="text"}`."""
    expanded: list[str] = []
    for argument in arguments:
        flag = _WITH_OPTIONS.fullmatch(argument)
        if flag is None or flag[1] not in PASSES:
            expanded.append(argument)
        else:
            options = _TEXT_OPTION.sub(lambda match: f'"{match[0]}"', flag[2])
            expanded += ["-p", f"{flag[1]}{{{options}}}"]
    return expanded


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `opt`."""
    parser.epilog = _EPILOG
    add_file(parser, optional=True)
    parser.add_argument(
        "-p", "--passes", metavar="PIPELINE", action="append", default=[], help="passes to run, separated by commas"
    )
    for name in PASSES:  # each pass as a flag of its own, as MLIR's tools have them
        flags = f"-{name}", f"--{name}"
        parser.add_argument(*flags, action="append_const", const=name, dest="passes", help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", metavar="OUT", help="write the result to this file")
    parser.add_argument(
        "--print-ir-before", metavar="PASS", action="append", default=[], help="print the program before this pass"
    )
    parser.add_argument(
        "--print-ir-after", metavar="PASS", action="append", default=[], help="print the program after this pass"
    )
    parser.add_argument(
        "--print-ir-after-all", action="store_true", help="print the program after every pass that changes it"
    )
    parser.add_argument(
        "--print-ir-changes",
        action="store_true",
        help="print the lines that each pass changes, as a diff in which values keep their names",
    )
    parser.add_argument(
        "--timing", "--mlir-timing", action="store_true", help="print a table of the time that each pass takes"
    )
    parser.add_argument("--dump-dir", metavar="DIR", help="write the program after every pass to a file in DIR")
    parser.add_argument(
        "-split-input-file",
        "--split-input-file",
        action="store_true",
        help="the file holds several programs, separated by lines '// -----'",
    )
    parser.add_argument(
        "-verify-diagnostics",
        "--verify-diagnostics",
        action="store_true",
        help="succeed if the messages match the comments '// expected-error@+1 {{text}}'",
    )
    add_remarks(parser)
    add_time(parser)
    parser.add_argument(
        "--locations", "--mlir-print-debuginfo", action="store_true", help="print source lines: loc(...)"
    )
    parser.add_argument(
        "-mlir-print-op-generic", "--mlir-print-op-generic", action="store_true", help="print in MLIR's generic form"
    )


@dataclass
class _Printing:
    """How programs are printed, which intermediate ones, and the remarks of passes; an observer of the passes."""

    args: argparse.Namespace
    remarks: "Remarks"
    lister: "Lister"
    times: "PassTimes"
    last: "Listing | None" = None

    def begin(self, module: "ModuleOp") -> None:
        """Sees the program before the first pass."""
        if self.args.dump_dir is not None:
            self.dump(0, "input", module)
        self.last = self.listing(module) if self.args.print_ir_changes or self.args.print_ir_after_all else None

    def listing(self, module: "ModuleOp", *, locations: bool = False) -> "Listing":
        generic, locations = self.args.mlir_print_op_generic, locations or self.args.locations
        return self.lister.list(module, generic=generic, locations=locations)

    def before(self, index: int, applied: "ModulePass", module: "ModuleOp") -> None:
        if applied.name in self.args.print_ir_before:
            self.print(f"IR before pass {index}: {applied}", self.listing(module).text)
        self.times.before(index, applied, module)

    def applied(self, index: int, applied: "ModulePass", module: "ModuleOp") -> None:
        self.times.applied(index, applied, module)

    def after(self, index: int, applied: "ModulePass", module: "ModuleOp") -> None:
        self.times.after(index, applied, module)
        if self.args.remarks:
            self.remarks.collect(applied.name, module)
        if self.last is not None:
            self.changes(index, applied, self.last, self.listing(module))
        elif applied.name in self.args.print_ir_after:
            self.print(f"IR after pass {index}: {applied}", self.listing(module).text)
        if self.args.dump_dir is not None:
            self.dump(index, applied.name, module)

    def changes(self, index: int, applied: "ModulePass", last: "Listing", now: "Listing") -> None:
        """Prints the lines that a pass has changed, or the program where it has changed any."""
        from tilefold.compiler.reports.listing import changed_lines, hunks

        self.last = now
        is_requested = applied.name in self.args.print_ir_after
        if not is_requested and now.text == last.text:
            self.print(f"IR after pass {index}: {applied}: no change")
        elif is_requested or self.args.print_ir_after_all:
            self.print(f"IR after pass {index}: {applied}", now.text)
        else:
            differences = hunks(last.lines, now.lines)
            removed, added = changed_lines(differences)
            text = "".join(f"{hunk}\n" for hunk in differences)
            self.print(f"IR changes of pass {index}: {applied}: -{removed} +{added}", text)

    def print(self, title: str, text: str = "") -> None:
        print(f"// -----// {title} //----- //\n{text}", end="\n" if text else "", file=sys.stderr)

    def dump(self, index: int, name: str, module: "ModuleOp") -> None:
        folder = Path(self.args.dump_dir)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TilefoldError(Code.CLI_WRITE, f"{folder}: {error.strerror}") from None
        text = HEADER + self.listing(module, locations=True).text
        write_output(text, str(folder / f"{index:02}-{name}.cute"))


def execute(args: argparse.Namespace) -> int:
    """Runs the passes over each program of the file; 1 if any of them is refused."""
    from tilefold.compiler.frontend.diagnostics import Diagnostic, ProgramError
    from tilefold.compiler.frontend.expectations import find_unmet
    from tilefold.compiler.frontend.program import parse_program, print_program
    from tilefold.compiler.pass_runner import parse_passes, run_passes
    from tilefold.compiler.pipeline import make_context
    from tilefold.compiler.reports.listing import Lister
    from tilefold.compiler.reports.pass_times import PassTimes
    from tilefold.compiler.reports.remarks import Remarks
    from tilefold.driver.lowering import available_passes

    passes = parse_passes(",".join(filter(None, args.passes)), available_passes())
    _check_names(args, passes)
    outputs: list[str] = []
    failed = False
    for source in _sources(args):
        diagnostics: Sequence[Diagnostic] = ()
        printing = _Printing(args, Remarks(source), Lister(), PassTimes())
        try:
            context = make_context()
            with printing.times.step("parse"):
                module = parse_program(source, context)
            printing.begin(module)
            run_passes(context, module, passes, source=source, observer=printing)
            generic, header = args.mlir_print_op_generic, args.output not in (None, "-")
            with printing.times.step("print"):
                outputs.append(print_program(module, generic=generic, locations=args.locations, header=header))
        except ProgramError as error:
            diagnostics = error.diagnostics
        if args.timing:
            print(printing.times.table(), end="", file=sys.stderr)
        remarks = printing.remarks.all()
        if args.verify_diagnostics:
            diagnostics = [*diagnostics, *(remark.diagnostic for remark in remarks)]
            diagnostics = find_unmet(source, diagnostics)
        if diagnostics:
            failed = True
            print_diagnostics("\n".join(diagnostic.render() for diagnostic in diagnostics))
        elif args.remarks and not args.verify_diagnostics:
            print_remarks(remarks, args.remarks)
    if not failed and not args.verify_diagnostics:
        write_output("// -----\n".join(outputs), args.output)
    return int(failed)


def _check_names(args: argparse.Namespace, passes: "Sequence[ModulePass]") -> None:
    names = {applied.name for applied in passes}
    for name in (*args.print_ir_before, *args.print_ir_after):
        if name not in names:
            raise TilefoldError(
                Code.CLI_VALUE, f"cannot print pass '{name}': the pipeline does not run it", "name it in -p"
            )


def _sources(args: argparse.Namespace) -> "list[Source]":
    """The programs of the file. Each keeps the lines of the whole file: those before it are left empty."""
    from tilefold.compiler.frontend.params import expand
    from tilefold.compiler.frontend.source import read_text

    name = "<stdin>" if args.file == "-" else args.file
    text = read_text(args.file)
    check_language(args.file, args.command)
    given = parse_pairs(args.define, "-D")
    if not args.split_input_file:
        return [expand(text, name, given)]
    sources: list[Source] = []
    start = 0
    for match in [*_SPLIT.finditer(text), None]:
        end = len(text) if match is None else match.start()
        sources.append(expand("\n" * text.count("\n", 0, start) + text[start:end], name, given))
        start = end if match is None else match.end()
    return sources
