# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options that several commands share, and reading the program that they name."""

import argparse
import io
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from math import inf
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.limits import COMMAND_SECONDS
from tilefold.driver.output import write_output, write_picture

if TYPE_CHECKING:
    from tilefold.compiler.frontend.source import Source
    from tilefold.layout.drawing.scene import Picture


class Options(Protocol):
    """A parser, or a group of its arguments."""

    def add_argument(self, *name_or_flags: str, **kwargs: Any) -> argparse.Action: ...


def add_file(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Declares the input file and the parameters that it takes; without an `optional` one, the standard input is it."""
    text = "the program, a .cute file; - reads the standard input"
    if optional:
        parser.add_argument("file", metavar="FILE", nargs="?", default="-", help=text)
    else:
        parser.add_argument("file", metavar="FILE", help=text)
    add_parameters(parser)


def add_parameters(parser: Options) -> None:
    """Declares the parameters that a file takes."""
    parser.add_argument(
        "-D",
        dest="define",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="set a parameter that the file declares by '// param NAME = DEFAULT' and may test in lines such as "
        "'// if NAME == VALUE'; of a .cu file, a macro, which needs no value",
    )


def add_target(parser: Options, default: str | None, described: str = "") -> None:
    """Declares `--target`; without a default, `described` names the target."""
    text = f"the GPU to compile for, such as sm_90a (default: {described or default})"
    parser.add_argument("--target", metavar="ARCH", default=default, help=text)


def add_printed(parser: Options) -> None:
    """Declares `-o` of a command that prints as it goes."""
    parser.add_argument("-o", "--output", dest="printed", metavar="OUT", help="write the output to this file")


@contextmanager
def printed_to(path: str | None) -> Generator[None, None, None]:
    """Within it, the standard output is collected for a file, which is written at the end. After an error, the file
    stays as it is, and the output up to there is printed. Raises TilefoldError if it cannot be written.
    """
    if path is None or path == "-":
        yield
        return
    text = io.StringIO()
    try:
        with redirect_stdout(text):
            yield
    except BaseException:
        write_output(text.getvalue(), None)
        raise
    write_output(text.getvalue(), path)


def add_pictures(parser: Options, subject: str) -> None:
    """Declares `--svg` and `--png`, which show `subject`, and `-o` for the text or the picture."""
    parser.add_argument("--svg", metavar="FILE", help=f"write {subject} as an SVG image")
    parser.add_argument("--png", metavar="FILE", help=f"write {subject} as a PNG image (pip install 'tilefold[png]')")
    parser.add_argument("-o", "--output", metavar="OUT", help="write this file; a picture if it ends in .svg or .png")


def write_pictures(args: argparse.Namespace, picture: "Callable[[], Picture]") -> None:
    """Writes the picture to the requested files. Raises TilefoldError if it cannot."""
    for path, is_png in ((args.svg, False), (args.png, True)):
        if path is not None:
            write_picture(picture(), path, png=is_png)
    if is_picture(args.output):
        write_picture(picture(), args.output, png=args.output.lower().endswith(".png"))


def is_picture(output: str | None) -> bool:
    """Whether the name of an output asks for a picture."""
    return (output or "").lower().endswith((".svg", ".png"))


def add_remarks(parser: argparse.ArgumentParser) -> None:
    """Declares `--remarks`."""
    parser.add_argument(
        "--remarks",
        nargs="?",
        const="text",
        choices=("text", "json"),
        metavar="=json",
        help="print the decisions of the compiler and their reasons to standard error, as text or JSON",
    )


def add_time(parser: Options) -> None:
    """Declares `--max-seconds`."""
    parser.add_argument(
        "--max-seconds",
        metavar="S",
        type=float,
        default=COMMAND_SECONDS,
        help="end the command after S seconds, in a simulation, in LLVM's own process or before a pass (default: "
        f"{COMMAND_SECONDS:g})",
    )


def time_limit(args: argparse.Namespace) -> float:
    """The seconds that a command may take. TilefoldError (E4003) for no time."""
    seconds: float = getattr(args, "max_seconds", inf)
    if not seconds > 0:
        raise TilefoldError(Code.CLI_VALUE, f"--max-seconds {seconds:g}: must be more than 0")
    return seconds


def add_cache(parser: Options) -> None:
    """Declares `--no-cache`."""
    parser.add_argument(
        "--no-cache",
        dest="cache",
        action="store_false",
        help="compile without the cache of machine code (see `tilefold cache`)",
    )


def parse_pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """The values of an option that is given as NAME=VALUE. Raises TilefoldError for other text, and for a
    repeated name."""
    given: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not value or not name.isidentifier():
            raise TilefoldError(Code.CLI_VALUE, f"{option} {text[:80]}: not NAME=VALUE")
        if name in given:
            raise TilefoldError(Code.CLI_VALUE, f"{option} {name} is given twice")
        given[name] = value
    return given


def parse_macros(texts: Sequence[str]) -> dict[str, str]:
    """The macros that `-D` defines for a .cu file: NAME, which is 1 as for a C compiler, NAME= or NAME=VALUE. Raises
    TilefoldError (E4003) for other text, and for a repeated name.
    """
    given: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name.isidentifier():
            raise TilefoldError(Code.CLI_VALUE, f"-D {text[:80]}: not NAME or NAME=VALUE")
        if name in given:
            raise TilefoldError(Code.CLI_VALUE, f"-D {name} is given twice")
        given[name] = value if equals else "1"
    return given


def read_source(args: argparse.Namespace) -> "Source":
    """The text of the file that the command names, with its parameters substituted."""
    from tilefold.compiler.frontend.params import expand

    text = program_text(args)
    check_language(args.file, args.command)
    name = "<stdin>" if args.file == "-" else args.file
    return expand(text, name, parse_pairs(args.define, "-D"))


def program_text(args: argparse.Namespace) -> str:
    """The text of the file that the command names, which is read once."""
    from tilefold.compiler.frontend.source import read_text

    if getattr(args, "text", None) is None:
        args.text = read_text(args.file)
    return args.text


_METHODS: Mapping[str, str] = MappingProxyType({
    "compile": "print(k.ptx()) after a launch, or k(...).build(block).ptx()",
    "check": "print(k(...).check(grid, block))",
    "bisect": "print(k(...).bisect(grid, block))",
    "reduce": "k(...).reduce(folder, grid, block)",
    "explain": "print(k.explain()) after a launch, or k(...).build(block).explain()",
    "profile": "print(k(...).costs(grid, block))",
    "export": "k(...).build(block).export(folder)",
})  # fmt: skip
"""The method of a kernel in Python that does the work of each command."""


def check_language(file: str, command: str) -> None:
    """TilefoldError (E4003) for a file that is no .cute file by its name."""
    suffix = PurePath(file).suffix.lower()
    if suffix in (".py", ".ipynb"):
        raise TilefoldError(
            Code.CLI_VALUE, f"{file[:80]} is a program in Python, not a .cute file", _hint(file, command)
        )
    if suffix in (".ptx", ".cu"):
        text = f"{file[:80]} is not a .cute file: {command} has no stage of it to show"
        raise TilefoldError(Code.CLI_VALUE, text, "`tilefold check` and `tilefold run` take such files")
    if suffix in (".cuh", ".cpp", ".hpp"):
        hint = "write the kernel in Python (docs/python.md), or as a .cute file"
        raise TilefoldError(Code.CLI_VALUE, f"{file[:80]} is a program in C++, not a .cute file", hint)


def _hint(file: str, command: str) -> str:
    run = "open it in Jupyter" if file.endswith("ipynb") else f"write python {file[:80]}"
    if command == "run":
        return f"{run}: its calls k(...).launch(grid=..., block=...) run on the GPU if there is one, or simulated"
    if command in _METHODS:
        return f"{run}, with {_METHODS[command]} in it"
    return f"{run}; k(...).build(block).to_cute() is a kernel as the text of a .cute file"
