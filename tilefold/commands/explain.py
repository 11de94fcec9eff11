# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold explain E0203`: the cause of an error, an example, and the cure."""

import argparse
from difflib import get_close_matches
from itertools import groupby
from textwrap import fill, indent

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.explanations import Sample, explanation

_EPILOG = """\
examples:
  tilefold explain E3206    the cause of an error, an example, and the cure
  tilefold explain          all codes
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `explain`."""
    parser.epilog = _EPILOG
    parser.add_argument("codes", nargs="*", metavar="CODE", help="codes to explain, such as E0203 (default: list all)")


def execute(args: argparse.Namespace) -> int:
    """Prints the page of each code, or a list of all codes."""
    known = {code.id: code for code in Code}
    asked: list[str] = [code.upper() for code in args.codes]
    for identifier in asked:
        if identifier not in known:
            near = get_close_matches(identifier, sorted(known), 3)
            hint = f"did you mean {', '.join(near)}? " if near else ""
            message = f"there is no error code '{identifier}'"
            raise TilefoldError(Code.CLI_VALUE, message, f"{hint}`tilefold explain` lists them all")
    print("\n\n".join([_page(known[identifier]) for identifier in asked]) if asked else _list())
    return 0


def _list() -> str:
    families = groupby(sorted(Code, key=lambda code: code.id), lambda code: code.area)
    return "\n\n".join(
        ["\n".join([area, *[f"  {code.id}  {code.summary}" for code in codes]]) for area, codes in families]
    )


def _page(code: Code) -> str:
    page = explanation(code)
    parts = [f"{code.id} ({code.area}): {code.summary}", f"Cause\n{_prose(page.cause)}"]
    parts += [f"Example\n{_code(page.example)}", f"Cure\n{_prose(page.cure)}"]
    return "\n\n".join([*parts, _code(page.cured)] if page.cured else parts)


def _prose(text: str) -> str:
    """Paragraphs, indented and no wider than 80 columns."""
    paragraphs = [fill(paragraph, 80, initial_indent="  ", subsequent_indent="  ") for paragraph in text.split("\n\n")]
    return "\n\n".join(paragraphs)


def _code(sample: Sample) -> str:
    return indent(sample.text, "    ")
