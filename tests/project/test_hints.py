# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What messages and hints name exists: options and commands, operations, functions, methods and arguments."""

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tilefold.runtime.sim.rules import MODULES

from tests.names import OBJECT, OPERATION, OPTION, is_known, options
from tests.project.tree import PRODUCT, ROOT, parsed, product_files, walk
from tilefold import cute, kernels
from tilefold.commands.cli import COMMANDS
from tilefold.cutlass.modules import MODULES as cutlass_modules  # noqa: N811  # it is a table

OTHERS = {
    "tilefold/tools/suite/jobs.py": {"--head"},  # that of ray
    "tilefold/cute/testing.py": {
        "--init",
        "--init_normal",
        "--normal_mean",
        "--normal_std",
        "--normal",
    },  # of programs
    "compiler/machine/nvrtc.py": {"--pre-include"},  # NVRTC's
    "tilefold/driver/map_arguments.py": {"box", "swizzle", "fill"},  # the words of --arg NAME=map(...)
    "compiler/machine/nvptx.py": {
        "--nvptx-short-ptr",
        "--disable-nvptx-load-store-vectorizer",
        "--nvptx-no-f",
        "--opt-disable",
    },  # LLVM's
    "tilefold/tools/profiling/measured.py": {
        "--clock-control",
        "--section",
        "--import-source",
        "--source-folders",
        "--import",
        "--page",
        "--print-source",
        "--csv",
        "nvidia.ncu",
        "profile.ncu",
    },  # of Nsight Compute
    "tilefold/cutlass/__main__.py": {"--missing", "--json", "--devices"},  # its own options
    "tilefold/cute/drawing.py": {"tile.svg"},  # a file
    "runtime/sim/timeline.py": {"ptx.cp.async.bulk"},  # the beginning of names
    "tilefold/cutlass/modules.py": set(cutlass_modules),  # those of CuTe programs
    "compiler/pass_runner.py": {"y"},  # an option of a pass that stands for any
    "dialects/run/grammar.py": {"keyword"},  # the same of an expression
    "runtime/sim/rules/__init__.py": set(MODULES),  # modules of `dialects`
}
"""What looks like a name of ours and is none, by file."""

FOREIGN = {"to_dense", "resolve_neg", "contiguous", "no_grad"}
"""Functions and methods of torch that hints name."""

_MESSAGES = re.compile(r"(Error|Unavailable|error|fail|refus\w*|Diagnostic|misused)$")
_COMMAND = re.compile(r"(?:run|by|use|with|:|`|\() ?`?tilefold ([a-z]+)\b")
_METHOD = re.compile(r"(?<=[\w)\]])\.([A-Za-z_]\w*)\(|(?<= )\.([a-z_]\w*)\(")
_KEYWORD = re.compile(r"(?<![\w.-])([a-z_]+)=(?=[\w.\[\"'{]|$|[,)]| )")


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The texts in a file but for docstrings, with their lines; what is put into them is left out."""
    left_out = set[int]()
    for node in walk(tree):
        match node:
            case ast.Expr(value=ast.Constant() as value):
                left_out.add(id(value))
            case ast.JoinedStr(values=values):
                left_out.update(map(id, values))
                yield node.lineno, "\0".join(str(v.value) for v in values if isinstance(v, ast.Constant))
            case ast.Constant(value=str() as text) if id(node) not in left_out:  # after what holds it
                yield node.lineno, text
            case _:
                pass


def messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The texts that calls for errors and diagnostics are given, or that names `hint` and `message`, with lines."""
    for node in walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if _MESSAGES.search(name):
                parts: list[ast.AST] = [*node.args, *(each.value for each in node.keywords)]
            case ast.Assign(targets=[ast.Name(id="hint" | "message")], value=value):
                parts = [value]
            case _:
                continue
        for part in parts:
            for each in walk(part):
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield each.lineno, each.value


@cache
def vocabulary() -> tuple[frozenset[str], frozenset[str]]:
    """The names of methods of public objects and of NumPy's arrays, and those of arguments of public functions."""
    methods, arguments = (
        {*dir(np.ndarray), *dir(str), *FOREIGN},
        {"block", "div", "width", "align"},
    )  # of types and passes
    pending: list[Any] = [cute, kernels]
    while pending:
        owner = pending.pop()
        for name in getattr(owner, "__all__", None) or dir(owner):
            value = getattr(owner, name, None)
            if isinstance(value, ModuleType):
                if value.__name__.startswith("tilefold."):
                    pending.append(value)
                continue
            methods.add(name)
            if callable(value):
                try:
                    arguments.update(inspect.signature(value).parameters)
                except (ValueError, TypeError):  # of what is written in C
                    continue
            if isinstance(value, type) and value.__module__.startswith("tilefold.") and owner is not value:
                pending.append(value)
    return frozenset(methods), frozenset(arguments)


@pytest.mark.parametrize("folder", PRODUCT)
def test_what_messages_name_exists(folder: str) -> None:
    methods, arguments = vocabulary()
    for path in product_files():
        name = str(path.relative_to(ROOT))
        if not name.startswith(f"{folder}/"):
            continue
        tree, others = parsed(path), OTHERS.get(name, set[str]())
        for line, text in texts(tree):
            for each in {*OPTION.findall(text), *OPERATION.findall(text), *OBJECT.findall(text)} - others:
                assert each in options() if each.startswith("--") else is_known(each), f"{name}:{line}: {each}"
            for each in _COMMAND.findall(text):
                assert each in COMMANDS, f"{name}:{line}: tilefold {each}"
        for line, text in messages(tree):
            for before, alone in _METHOD.findall(text):
                assert (before or alone) in methods, f"{name}:{line}: {text}"
            for each in _KEYWORD.findall(OPTION.sub("", text)):
                assert each in arguments | others, f"{name}:{line}: {each}= in {text}"


def test_the_texts_of_errors_are_found() -> None:
    """The search does see hints: some with an option, some with an argument, some with a method."""
    files = [path for path in product_files() if {"builder", "sim"} & set(path.parts)]
    seen = [text for path in files for _, text in messages(parsed(path))]
    for part in ("--no-races", "x.to(cute.Float32)"):
        assert any(part in text for text in seen), part
    assert len(seen) > 200
