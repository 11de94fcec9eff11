# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options that several commands share, and reading the program that they name."""

import argparse
from typing import TYPE_CHECKING

from tilefold.layout.errors import Code, TilefoldError

if TYPE_CHECKING:
    from tilefold.compiler.source import Source


def add_file(parser: argparse.ArgumentParser) -> None:
    """Declares the input file and the parameters that it takes."""
    parser.add_argument("file", metavar="FILE", help="the program, a .cute file; - reads the standard input")
    parser.add_argument(
        "-D",
        dest="define",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="set a parameter that the file declares by '// param NAME = DEFAULT'",
    )


def add_target(parser: argparse.ArgumentParser, default: str | None) -> None:
    """Declares `--target`."""
    parser.add_argument(
        "--target", metavar="ARCH", default=default, help=f"the GPU to compile for, such as sm_90a (default: {default})"
    )


def definitions(args: argparse.Namespace) -> dict[str, str]:
    """The values given by -D. Raises TilefoldError for one that is not NAME=VALUE, or given twice."""
    given: dict[str, str] = {}
    for text in args.define:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise TilefoldError(Code.CLI_VALUE, f"-D {text[:80]}: is not NAME=VALUE", "for example: -D TILE_M=64")
        if name in given:
            raise TilefoldError(Code.CLI_VALUE, f"-D {name} is given twice")
        given[name] = value
    return given


def read_source(args: argparse.Namespace) -> "Source":
    """The text of the file that the command names, with its parameters substituted."""
    from tilefold.compiler.params import expand
    from tilefold.compiler.source import read_text

    name = "<stdin>" if args.file == "-" else args.file
    return expand(read_text(args.file), name, definitions(args))
