# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command `tilefold`: finds the subcommand, and turns every error into a message and an exit status.

Exit status: 0 success; 1 the input is wrong, or a check failed; 2 the command line is wrong; 3 `check` found no fault
and did not see everything; 70 a bug in tilefold.
`process.py` adds 130 for an interrupted command and 141 for one whose output nobody reads.
Only the module of the subcommand that runs is imported, so that a small command starts fast.
"""

import argparse
import re
import sys
import warnings
from collections.abc import Collection, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from difflib import get_close_matches
from importlib import import_module
from typing import NoReturn

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.limits import deadline
from tilefold.base.printable import message_text
from tilefold.commands.options import printed_to, time_limit
from tilefold.driver.messages import (
    explain_environment_error,
    interrupt_of,
    print_diagnostics,
    print_error,
    print_internal_error,
)
from tilefold.driver.output import PrintableStream
from tilefold.version import VERSION

EXIT_ERROR = 1
EXIT_BUG = 70  # EX_SOFTWARE of sysexits.h

COMMANDS = {
    "compile": "lower a file to a stage, to PTX or to machine code",
    "opt": "run passes over a file and print the result",
    "run": "run the launches of a file on the simulator or the GPU and check their results",
    "check": "report all faults of the launches of a file, found on the simulator",
    "test": "check every program of a folder, in parallel",
    "bisect": "find the pass that changes the results of a file's launches",
    "reduce": "shrink a failing program as long as it fails in the same way",
    "layout": "evaluate expressions of the layout algebra, explain and draw them",
    "show": "print and draw the layouts of copies, multiplications and shared memory",
    "export": "write a kernel and a header for programs in C",
    "cache": "show or clear the cache of machine code",
    "passes": "list the passes and stages",
    "explain": "explain an error code, or the decisions and costs of a file",
    "profile": "measure the lines of a kernel on the GPU and compare them with the simulator",
    "lsp": "serve editors: errors, types, definitions and completion",
    "mcp": "serve agents: check, run, explain and others as tools of the Model Context Protocol",
}

_EPILOG = """\
examples:
  tilefold run examples/tiled_copy.cute                 fill, launch and check, as the file describes
  tilefold run examples/tiled_copy.cute --stage all     the same on the simulator after every stage
  tilefold check kernel.cute                            report races, stray accesses and other faults
  tilefold bisect kernel.cute                           run after every pass, and name the wrong one
  tilefold reduce kernel.cute -o small.cute             shrink a program that fails
  tilefold compile kernel.cute --target sm_90a          print the PTX
  tilefold compile kernel.cute --emit atoms             print the program at stage 'atoms'
  tilefold opt kernel.cute -p 'cse' --print-ir-after-all
  tilefold layout 'raked_product((8,4):(1,8), 8:1)'
  tilefold explain E0203

`tilefold COMMAND --help` explains each command.

exit status:
  0    success
  1    the input is wrong, a check failed, or the machine lacks memory or space
  2    the command line is wrong
  3    incomplete: `tilefold check` found no fault, and names its gaps
  70   a bug in tilefold: the message names a folder with the details
  130  interrupted, for instance by Ctrl-C
  141  the reader of the output has gone
"""


_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)", re.DOTALL)
_OPTION = re.compile(r"--[a-z][\w-]*")


class _Parser(argparse.ArgumentParser):
    """A parser, also of subcommands, whose messages quote words of the command line, and name words that are near to a
    wrong one.
    """

    def error(self, message: str) -> NoReturn:
        if (wrong := _CHOICE.search(message)) is not None:
            message += _near(wrong[1], re.findall(r"[\w-]+", wrong[2]))
        super().error(message_text(message))

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Ends the process (2) with a message about words of the command line that no option takes."""
        options = set(_OPTION.findall(self.format_help()))
        near = "".join(_near(word.partition("=")[0], options) for word in unknown if word.startswith("--"))
        self.error(f"unrecognized arguments: {' '.join(unknown)}{near}")


def _near(word: str, known: Collection[str]) -> str:
    """A question after the one of the known words that is near to a wrong one; empty without one."""
    near = get_close_matches(word, sorted(known), 1, 0.75 if word.startswith("--") else 0.6)  # all options share that
    return f"; did you mean {near[0]}?" if near else ""


def build_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of the command line; only the subcommands that `arguments` names get their options."""
    parser = _Parser(
        prog="tilefold",
        description="A compiler for CuTe-style GPU kernels, whose programs run at every stage of lowering.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"tilefold {VERSION}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        subparser = subparsers.add_parser(
            name,
            help=summary,
            description=summary[:1].upper() + summary[1:] + ".",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        if name in arguments:
            module = import_module(f"tilefold.commands.{name}")
            module.add_arguments(subparser)
            subparser.set_defaults(execute=module.execute, parser=subparser)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line (that of the process unless given) and returns its exit status.

    BrokenPipeError if the reader of the output has gone.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    out, err = PrintableStream(sys.stdout), PrintableStream(sys.stderr)
    with warnings.catch_warnings(), redirect_stdout(out), redirect_stderr(err):
        warnings.showwarning = _print_warning
        try:
            try:
                return _main(words)
            finally:
                sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            return _report(TilefoldError(Code.CLI_WRITE, f"the output cannot be written: {error.strerror}"))


def _print_warning(message: Warning | str, *_: object) -> None:
    """A warning as the command's own messages are, without the line of Python that gave it."""
    print_diagnostics(f"warning: {message}")


def _main(words: list[str]) -> int:
    try:
        if words[:1] == ["opt"]:
            words = import_module("tilefold.commands.opt").with_pass_options(words)
        if words[:1] == ["show"]:
            words = import_module("tilefold.commands.show").with_kind(words)
        words = ["--remarks=text" if word == "--remarks" else word for word in words]  # the next word is not a form
        parser = build_parser(words)
        if not words:
            parser.exit(2, parser.format_help())
        args, unknown = parser.parse_known_args(words)
        if unknown:
            args.parser.refuse(unknown)
        args.words = words
        with deadline(time_limit(args)):
            if getattr(args, "repro", None) is not None:
                return import_module("tilefold.commands.recording").record(args, args.execute)
            with printed_to(getattr(args, "printed", None)):
                return args.execute(args)
    except TilefoldError as error:
        return _report(error)
    except Exception as error:  # the one place that may not let a bug of ours out as a traceback
        if (interrupt := interrupt_of(error)) is not None:
            raise interrupt from None
        if (refused := explain_environment_error(error)) is not None:
            return _report(refused)
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the output
        print_internal_error(error, words)
        return EXIT_BUG


def _report(error: TilefoldError) -> int:
    with suppress(OSError):  # a closed stream leaves the exit status alone
        print_error(error)
    return EXIT_ERROR
