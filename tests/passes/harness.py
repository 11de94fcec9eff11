# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running passes over kernel text in tests, matching what they leave, and executing it."""

import textwrap
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from filecheck.matcher import Matcher
from filecheck.options import Options
from numpy.typing import NDArray
from tilefold.compiler.frontend.program import parse_program, print_program
from tilefold.compiler.frontend.source import Source, plain_source
from tilefold.compiler.pass_runner import Observer, parse_passes, run_passes
from tilefold.compiler.pipeline import PASSES, make_context, pipeline_to
from tilefold.runtime.engine import LaunchConfig, RunResult, TensorArgument
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine
from xdsl.dialects.builtin import ModuleOp

from tests.project.tree import ROOT
from tilefold.commands.cli import main


def source_of(text: str, name: str = "test.cute") -> Source:
    """The text as a file of that name."""
    return plain_source(text, name)


def apply(text: str, passes: str, name: str = "test.cute", observer: Observer | None = None) -> ModuleOp:
    """The module that a pipeline leaves, verified after each pass. Raises what the driver raises."""
    context, source = make_context(), source_of(text, name)
    module = parse_program(source, context)
    run_passes(context, module, parse_passes(passes, PASSES), source=source, observer=observer)
    return module


def lowered(text: str, stage: str, target: str = "sm_80", name: str = "test.cute") -> ModuleOp:
    """The module of a text, at a stage."""
    return apply(text, ",".join(pipeline_to(stage, target)), name)


def printed(module: ModuleOp, *, generic: bool = False, locations: bool = False) -> str:
    """The module's text."""
    return print_program(module, generic=generic, locations=locations)


def filecheck(text: str, patterns: str) -> None:
    """Asserts that LLVM's FileCheck patterns match: `patterns` are lines `// CHECK: ...`."""
    with TemporaryDirectory() as folder:
        checks, given = Path(folder) / "checks", Path(folder) / "text"
        checks.write_text(textwrap.dedent(patterns))
        given.write_text(text)
        said = StringIO()
        with redirect_stderr(said):
            status = Matcher.from_opts(Options(str(checks), str(given))).run()
    assert status == 0, f"{said.getvalue()}\n--- the text:\n{text}"


def check_pass(passes: str, text: str, patterns: str, name: str = "test.cute") -> None:
    """Runs passes over a text and matches what they leave."""
    filecheck(printed(apply(text, passes, name)), patterns)


def kernel(body: str, args: str = "", threads: str = "32") -> str:
    """A module with `tile.kernel @k`; the body starts on line 3."""
    return f"gpu.module @m {{\ntile.kernel @k({args}) threads({threads}) {{\n{body}\nreturn\n}}\n}}\n"


def entry(body: str, args: str = "", threads: str = "32") -> str:
    """A module with `ptx.entry @k`; the body starts on line 3."""
    return f"gpu.module @m {{\nptx.entry @k({args}) threads({threads}) {{\n{body}\nptx.ret\n}}\n}}\n"


def execute(
    module: ModuleOp,
    arguments: Mapping[str, NDArray[Any] | np.generic | int | float],
    *,
    grid: tuple[int, int, int] = (1, 1, 1),
    threads: int = 32,
    outputs: Sequence[str] = (),
) -> RunResult:
    """Runs the kernel `@k` on the simulator; arrays are storage, which the kernel writes. `outputs` begin unwritten."""
    bound = {
        name: TensorArgument(value, initialised=name not in outputs) if isinstance(value, np.ndarray) else value
        for name, value in arguments.items()
    }
    engine = SimEngine(sink=lambda _: None)
    return engine.launch(SimProgram(module, "k"), LaunchConfig(grid, (threads, 1, 1)), bound)


def check_same(program: str, passes: str) -> None:
    """Asserts that the launches of a file, whose path is relative to the project, do the same after each pass."""
    assert main(["bisect", str(ROOT / program), "--passes", passes]) == 0
