# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What exists by name: operations of our dialects, options of the command, objects of Python; and names in texts."""

import argparse
import re
from functools import cache
from importlib.util import find_spec
from typing import cast

from tilefold.compiler.pipeline import OUR_DIALECTS

from tilefold.commands.cli import COMMANDS, build_parser

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
OPERATION = re.compile(r"(?<![\w.@/-])(?:cute|tile|ptx|run)(?:\.[a-z_]\w*)+")
OBJECT = re.compile(r"(?<![\w.@/-])cute(?:\.[A-Za-z_]\w*)+")


@cache
def operations() -> frozenset[str]:
    """The names of all operations, types and attributes of our dialects."""
    dialects = [factory() for factory in OUR_DIALECTS.values()]
    return frozenset(each.name for dialect in dialects for each in (*dialect.operations, *dialect.attributes))


@cache
def options() -> frozenset[str]:
    """The options of the command and its subcommands, `--stage` and so on."""
    return frozenset[str]().union(*[_options_of(build_parser([name])) for name in COMMANDS])


def _options_of(parser: argparse.ArgumentParser) -> frozenset[str]:
    found = frozenset(OPTION.findall(parser.format_help()))
    for action in parser._actions:  # argparse has no public way to a subcommand's parser
        if isinstance(choices := getattr(action, "choices", None), dict):
            parsers = cast("dict[str, argparse.ArgumentParser]", choices).values()
            found = found.union(*map(_options_of, parsers))
    return found


def exists(module: str, attributes: list[str]) -> bool:
    """Whether a module has an object by this path of attributes."""
    try:
        if find_spec(module) is None:
            return False
    except ModuleNotFoundError:
        return False
    value: object = __import__(module, fromlist=attributes[:1] or ["_"])  # which may be a module
    for attribute in attributes:
        if not hasattr(value, attribute):
            return False
        value = getattr(value, attribute)
    return True


def is_known(name: str) -> bool:
    """Whether `cute.x`, `tile.x`, `ptx.x` or `run.x` is an object of Python or an operation."""
    return name in operations() or (name.startswith("cute.") and exists("tilefold.cute", name.split(".")[1:]))
