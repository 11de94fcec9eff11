# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""xDSL's own tools see the dialects and passes of tilefold."""

import tomllib
from importlib import import_module
from io import StringIO

from tilefold.compiler.frontend.params import expand
from tilefold.compiler.frontend.program import parse_program, print_program
from tilefold.compiler.pipeline import make_context
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.transforms import get_all_passes

from tests.project.tree import ROOT
from tilefold.universe import UNIVERSE


def test_the_entry_point_names_the_universe() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, _, name = project["entry-points"]["xdsl.universe"]["tilefold"].partition(":")
    assert getattr(import_module(module), name) is UNIVERSE
    assert project["scripts"]["tilefold"] == "tilefold.commands.process:main"


def test_no_name_clashes_with_xdsl() -> None:
    assert not set(UNIVERSE.all_dialects) & set(get_all_dialects())
    assert not set(UNIVERSE.all_passes) & set(get_all_passes())


def test_stock_xdsl_reads_and_lowers_our_generic_form() -> None:
    text = (ROOT / "examples" / "tiled_copy.cute").read_text()
    generic = print_program(parse_program(expand(text, "x.cute"), make_context()), generic=True)
    context = Context()
    for name, factory in {**get_all_dialects(), **UNIVERSE.all_dialects}.items():
        context.register_dialect(name, factory)
    module = Parser(context, generic).parse_module()
    module.verify()
    UNIVERSE.all_passes["fold-layouts"]()().apply(context, module)
    module.verify()
    stream = StringIO()
    Printer(stream=stream).print_op(module)
    assert "tile.local_tile" not in stream.getvalue()
    assert "tile.view" in stream.getvalue()
