# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running kernel text on the simulator in tests."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from tilefold.compiler.context import make_context
from tilefold.compiler.frontend import parse_program
from tilefold.compiler.source import plain_source
from tilefold.runtime.engine import Argument, LaunchConfig, RunResult, TensorArgument
from tilefold.runtime.sim.engine import SimEngine, SimProgram
from tilefold.runtime.sim.faults import SimulationError


def module_of(text: str) -> ModuleOp:
    """The verified module of a program's text; its file name is `test.cute`."""
    module = parse_program(plain_source(text, "test.cute"), make_context())
    module.verify()
    return module


def entry(body: str, args: str = "", threads: str = "32", shared: int | None = None) -> str:
    """A module with the kernel `@k` at stage `instr`: `body` is all but its end, and starts on line 3."""
    size = "" if shared is None else f" shared({shared})"
    head = f"gpu.module @kernels {{\nptx.entry @k({args}) threads({threads}){size} {{\n"
    return head + body + "\nptx.ret\n}\n}\n"


def launch(
    text: str,
    grid: tuple[int, int, int] = (1, 1, 1),
    block: tuple[int, int, int] = (32, 1, 1),
    engine: SimEngine | None = None,
    **args: NDArray[Any] | Argument,
) -> RunResult:
    """Runs the kernel `@k`; arrays are tensor arguments, which the launch writes to. What it prints is not shown."""
    engine = SimEngine(sink=lambda _: None) if engine is None else engine
    bound = {n: TensorArgument(a) if isinstance(a, np.ndarray) else a for n, a in args.items()}
    return engine.launch(SimProgram(module_of(text), "k"), LaunchConfig(grid, block), bound)


def fault(text: str, code: str, **options: Any) -> SimulationError:
    """The SimulationError that running the kernel raises; it must have this code."""
    try:
        launch(text, **options)
    except SimulationError as error:
        assert error.code == code, str(error)
        return error
    raise AssertionError(f"the kernel ran without the expected {code}")


def unwritten(array: NDArray[Any]) -> TensorArgument:
    """A tensor argument whose contents the kernel must not read before it writes them."""
    return TensorArgument(array, initialised=False)
