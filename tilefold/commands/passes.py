# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold passes`: the stages of the pipeline and the passes between them."""

import argparse
import dataclasses
from collections.abc import Iterator, Sequence
from inspect import getdoc

from tilefold.driver.output import write_output

_EPILOG = """\
examples:
  tilefold passes                 stages, the passes that lead to each, and a line about each pass
  tilefold passes fold-layouts    a description of the pass, with programs before and after it, and its options
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `passes`."""
    parser.epilog = _EPILOG
    parser.add_argument("names", nargs="*", metavar="PASS", help="describe these passes in full")
    parser.add_argument("-o", "--output", metavar="OUT", help="write to this file")


def execute(args: argparse.Namespace) -> int:
    """Lists stages and passes, or explains the named passes."""
    text = "".join(f"{line}\n" for line in _lines(args.names))
    write_output(text, args.output)
    return 0


def _lines(names: Sequence[str]) -> Iterator[str]:
    from tilefold.compiler.pass_runner import parse_passes
    from tilefold.compiler.pipeline import PASSES, STAGES
    from tilefold.driver.lowering import available_passes

    available = available_passes()
    for applied in parse_passes(",".join(names), available) if names else ():
        options = [f"{field.name}: {field.type}" for field in dataclasses.fields(applied)]
        yield f"{applied.name}{{{' '.join(options)}}}" if options else applied.name
        yield "    " + (getdoc(type(applied)) or "").replace("\n", "\n    ") + "\n"
    if names:
        return
    yield "Stages, and the passes that lead to each:"
    for stage in STAGES:
        yield f"  {stage.name:8} {stage.summary}"
        for text in stage.passes:
            yield f"           {text.format(target='ARCH')}"
    yield "\nPasses:"
    for name, factory in PASSES.items():
        summary = (getdoc(factory()) or "").split("\n", 1)[0]
        yield f"  {name:16} {summary}"
    others = ", ".join(sorted(set(available) - set(PASSES)))
    yield f"\nPasses of xDSL, by the same names: {others}"
