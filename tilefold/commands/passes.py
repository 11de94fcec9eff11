# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold passes`: the stages of the pipeline and the passes between them."""

import argparse
import dataclasses
from inspect import getdoc

_EPILOG = """\
examples:
  tilefold passes                 stages, the passes that lead to each, and a line about each pass
  tilefold passes fold-layouts    a description of the pass, with programs before and after it, and its options
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `passes`."""
    parser.epilog = _EPILOG
    parser.add_argument("names", nargs="*", metavar="PASS", help="describe these passes in full")


def execute(args: argparse.Namespace) -> int:
    """Lists stages and passes, or explains the named passes."""
    from tilefold.compiler.pass_runner import parse_passes
    from tilefold.compiler.pipeline import PASSES, STAGES
    from tilefold.driver.lowering import available_passes

    available = available_passes()
    for applied in parse_passes(",".join(args.names), available) if args.names else ():
        options = [f"{field.name}: {field.type}" for field in dataclasses.fields(applied)]
        print(f"{applied.name}{{{' '.join(options)}}}" if options else applied.name)
        print("    " + (getdoc(type(applied)) or "").replace("\n", "\n    ") + "\n")
    if args.names:
        return 0
    print("Stages, and the passes that lead to each:")
    for stage in STAGES:
        print(f"  {stage.name:8} {stage.summary}")
        for text in stage.passes:
            print(f"           {text.format(target='ARCH')}")
    print("\nPasses:")
    for name, factory in PASSES.items():
        summary = (getdoc(factory()) or "").split("\n", 1)[0]
        print(f"  {name:16} {summary}")
    others = ", ".join(sorted(set(available) - set(PASSES)))
    print(f"\nPasses of xDSL, by the same names: {others}")
    return 0
