# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running kernel text on the simulator in tests."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.compiler.frontend.program import parse_program
from tilefold.compiler.frontend.source import plain_source
from tilefold.compiler.pipeline import make_context
from tilefold.runtime.engine import Argument, LaunchConfig, RunResult, TensorArgument
from tilefold.runtime.options import SimOptions, launch_attributes
from tilefold.runtime.sim.faults import SimulationError
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine
from xdsl.dialects.builtin import ModuleOp


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


def seeded(seed: int | None, **options: Any) -> SimOptions:
    """Options of the simulator with an order of warps that depends on a seed from 0 on; their own order without one."""
    return SimOptions(seed=0 if seed is None else 1 + seed, **options)


def launch(
    text: str,
    grid: tuple[int, int, int] = (1, 1, 1),
    block: tuple[int, int, int] = (32, 1, 1),
    engine: SimEngine | None = None,
    cluster: tuple[int, int, int] = (1, 1, 1),
    **args: NDArray[Any] | Argument,
) -> RunResult:
    """Runs the kernel `@k`; arrays are tensor arguments, which the launch writes to. What it prints is not
    shown.
    """
    return launch_on(text, args, grid, block, engine, cluster)


def launch_on(
    text: str,
    args: Mapping[str, NDArray[Any] | Argument],
    grid: tuple[int, int, int] = (1, 1, 1),
    block: tuple[int, int, int] = (32, 1, 1),
    engine: SimEngine | None = None,
    cluster: tuple[int, int, int] = (1, 1, 1),
) -> RunResult:
    """`launch` with the arguments in a mapping."""
    engine = SimEngine(sink=lambda _: None) if engine is None else engine
    bound = {n: TensorArgument(a) if isinstance(a, np.ndarray) else a for n, a in args.items()}
    config = LaunchConfig(grid, block, attributes=launch_attributes(cluster))
    return engine.launch(SimProgram(module_of(text), "k"), config, bound)


def fault(text: str, code: str, **options: Any) -> SimulationError:
    """The SimulationError that running the kernel raises; it must have this code."""
    with pytest.raises(SimulationError) as caught:
        launch(text, **options)
    assert caught.value.code == code, str(caught.value)
    return caught.value


def unwritten(array: NDArray[Any]) -> TensorArgument:
    """A tensor argument whose contents the kernel must not read before it writes them."""
    return TensorArgument(array, initialised=False)


SIZES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "index": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8}
"""Bytes of an element in memory; i1 is kept as i8 and index as i64."""


def _stored(type: str) -> str:
    return {"i1": "i8", "index": "i64"}.get(type, type)


def _narrow(name: str, type: str) -> str:
    """Operations that turn the stored form `%name.m` into `%name`."""
    if type == "i1":
        return f"%{name} = arith.trunci %{name}.m : i8 to i1"
    if type == "index":
        return f"%{name} = arith.index_cast %{name}.m : i64 to index"
    return ""


def _widen(name: str, type: str) -> str:
    """Operations that turn `%name` into its stored form `%name.m`."""
    if type == "i1":
        return f"%{name}.m = arith.extui %{name} : i1 to i8"
    if type == "index":
        return f"%{name}.m = arith.index_cast %{name} : index to i64"
    return ""


def address(pointer: str, result: str, bytes: int) -> str:
    """Operations for `%result`, the address of this thread's element of `%pointer`."""
    return f"""
        %{result}.t = gpu.thread_id x
        %{result}.b = arith.constant {bytes} : index
        %{result}.o = arith.muli %{result}.t, %{result}.b : index
        %{result} = ptx.ptr_add %{pointer}, %{result}.o : !ptx.ptr<global>, index -> !ptx.ptr<global>"""


def compute(
    body: str, result: str, dtype: Any, inputs: Mapping[str, tuple[str, Any]], uniform: bool = False
) -> NDArray[Any]:
    """What `body` computes as `%r` of type `result` from values `%name`, given as (type, one per thread).

    Each thread loads its values; with `uniform`, the values are scalar arguments, and there is one thread for
    each launch.
    """
    lines: list[str] = []
    threads = max(len(values) for _, values in inputs.values())
    out = np.zeros(threads, dtype)
    if uniform:
        signature = [f"%{name}: {type}" for name, (type, _) in inputs.items()]
        tail = [body, _widen("r", result), _store_line("r", result, "out")]
        text = entry("\n".join(tail), ", ".join([*signature, "%out: !ptx.ptr<global> align 16"]), "1")
        for i in range(threads):
            one = np.zeros(1, dtype)
            scalars = {name: values[i] for name, (_, values) in inputs.items()}
            launch_on(text, {**scalars, "out": one}, block=(1, 1, 1))
            out[i] = one[0]
        return out
    for name, (type, _) in inputs.items():
        stored = _stored(type)
        plain = f"%{name}" if stored == type else f"%{name}.m"
        lines.append(address(f"{name}.in", f"{name}.p", SIZES[type]))
        lines.append(f"{plain} = ptx.ld %{name}.p align {SIZES[type]} : !ptx.ptr<global> -> {stored}")
        lines.append(_narrow(name, type))
    lines += [body, _widen("r", result), address("out", "q", SIZES[result]), _store_line("r", result, "q")]
    signature = [f"%{name}_in: !ptx.ptr<global> align 16" for name in inputs]
    text = "\n".join(lines)
    for name in inputs:
        text = text.replace(f"%{name}.in", f"%{name}_in")
    arguments = {f"{name}_in": np.array(values) for name, (_, values) in inputs.items()}
    kernel = entry(text, ", ".join([*signature, "%out: !ptx.ptr<global> align 16"]), str(threads))
    launch_on(kernel, {**arguments, "out": unwritten(out)}, block=(threads, 1, 1))
    return out


DIGITS = {"f16": (11, -24), "bf16": (8, -133), "f32": (24, -149), "f64": (53, -1074)}
"""Bits of the significand, and the exponent of the least number."""


def rounded(exact: Fraction, type: str) -> float:
    """The nearest number of the type, ties to even; for results that do not overflow."""
    if exact == 0:
        return 0.0
    digits, least = DIGITS[type]
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length() - digits
    while abs(exact) >= Fraction(2) ** (exponent + digits):
        exponent += 1
    while abs(exact) < Fraction(2) ** (exponent + digits - 1):
        exponent -= 1
    unit = Fraction(2) ** max(exponent, least)
    return float(round(exact / unit) * unit)  # Python rounds half to even


def _store_line(name: str, type: str, pointer: str) -> str:
    stored = _stored(type)
    value = f"%{name}" if stored == type else f"%{name}.m"
    return f"ptx.st {value}, %{pointer} align {SIZES[type]} : {stored}, !ptx.ptr<global>"
