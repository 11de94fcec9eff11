# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold explain E0203`: what an error code means."""

import argparse

from tilefold.base.errors import Code, TilefoldError

_EPILOG = """\
examples:
  tilefold explain E3206    what a code means
  tilefold explain          all codes
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `explain`."""
    parser.epilog = _EPILOG
    parser.add_argument("codes", nargs="*", metavar="CODE", help="codes to explain, such as E0203; all of them if none")


def execute(args: argparse.Namespace) -> int:
    """Prints a line or two for each code."""
    known = {code.id: code for code in Code}
    asked: list[str] = [code.upper() for code in args.codes] or sorted(known)
    for identifier in asked:
        if identifier not in known:
            raise TilefoldError(
                Code.CLI_VALUE, f"there is no error code '{identifier}'", "`tilefold explain` lists them all"
            )
    for identifier in asked:
        print(f"{identifier} ({known[identifier].area}): {known[identifier].summary}")
    return 0
