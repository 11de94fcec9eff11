# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of `math`: as near to the exact ones as docs/language.md states, at all stages and after LLVM's passes."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.runtime.engine import LaunchConfig, TensorArgument
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine
from xdsl.dialects.builtin import ModuleOp

from tests.accuracy import BOUNDS, REFERENCES, arguments, check_function
from tests.emit.cpu import run_kernel
from tests.emit.harness import kernel, llvm_of, parse
from tests.passes.harness import apply, entry

NAMES = tuple(REFERENCES)
BY_INSTRUCTION = ("exp2", "rsqrt")
"""Functions that are an instruction, which PTX leaves open: the CPU has another value for it."""
COUNT = 4096
THREADS = 1024
POINTERS = ", ".join(f"%{name}: !ptx.ptr<global> align 16" for name in ("X", *NAMES))


def body(type: str = "f32") -> str:
    """Each thread computes all functions of a number."""
    size = 4 if type == "f32" else 2
    stored = (
        f"%p{name} = ptx.ptr_add %{name}, %at : !ptx.ptr<global>, i32 -> !ptx.ptr<global>\n"
        f"%r{name} = math.{name} %x : {type}\n"
        f"ptx.st %r{name}, %p{name} align {size} : {type}, !ptx.ptr<global>\n"
        for name in NAMES
    )
    return (
        f'%t = ptx.sreg "tid.x"\n%b = ptx.sreg "ctaid.x"\n%n = arith.constant {THREADS} : i32\n'
        f"%c = arith.constant {size} : i32\n%m = arith.muli %b, %n : i32\n%i = arith.addi %m, %t : i32\n"
        f"%at = arith.muli %i, %c : i32\n%px = ptx.ptr_add %X, %at : !ptx.ptr<global>, i32 -> !ptx.ptr<global>\n"
        f"%x = ptx.ld %px align {size} : !ptx.ptr<global> -> {type}\n{''.join(stored)}"
    )


def simulated(module: ModuleOp, x: NDArray[Any]) -> dict[str, NDArray[Any]]:
    results = {name: np.zeros_like(x) for name in NAMES}
    given = {name: TensorArgument(array) for name, array in {"X": x, **results}.items()}
    launch = LaunchConfig((len(x) // THREADS, 1, 1), (THREADS, 1, 1))
    SimEngine().launch(SimProgram(module, "k"), launch, given)
    return results


@pytest.fixture(scope="module")
def on_simulator() -> tuple[NDArray[np.float32], dict[str, NDArray[Any]]]:
    """Arguments, and what the simulator computes of them."""
    x = arguments(0, COUNT)
    return x, simulated(parse(kernel(body(), POINTERS, threads=str(THREADS))), x)


def test_the_table_has_every_function() -> None:
    assert set(BOUNDS) == {*NAMES, "sqrt"}


@pytest.mark.parametrize("name", NAMES)
def test_errors_are_within_the_table(name: str, on_simulator: tuple[Any, dict[str, NDArray[Any]]]) -> None:
    x, results = on_simulator
    check_function(name, x, results[name])


def test_a_wrong_function_is_found() -> None:
    x = arguments(0, COUNT)
    with np.errstate(all="ignore"), pytest.raises(AssertionError, match=r"sin of .* ulp"):
        check_function("sin", x, np.sin(x * np.float32(1 + 2**-22)))
    with np.errstate(all="ignore"), pytest.raises(AssertionError, match=r"tanh of np.float32\(-0.0\)"):
        check_function("tanh", x, np.tanh(x.astype(np.float64)).astype(np.float32) + np.float32(0))


def test_bits_are_those_of_the_expanded_program_and_of_llvm(
    on_simulator: tuple[NDArray[np.float32], dict[str, NDArray[Any]]],
) -> None:
    x, before = on_simulator
    text = kernel(body(), POINTERS, threads=str(THREADS))
    expanded = simulated(apply(entry(body(), POINTERS, str(THREADS)), "expand-math"), x)
    on_cpu = {name: np.zeros_like(x) for name in NAMES}
    run_kernel(llvm_of(text), "k", (COUNT // THREADS, 1, 1), (THREADS, 1, 1), [x, *on_cpu.values()])
    for name in NAMES:
        np.testing.assert_array_equal(expanded[name], before[name], name)
        if name in BY_INSTRUCTION:
            check_function(name, x, on_cpu[name])
        else:
            np.testing.assert_array_equal(on_cpu[name], before[name], name)


@pytest.mark.parametrize("type", ["f16", "bf16"])
def test_narrow_numbers_go_through_f32(type: str) -> None:
    import ml_dtypes

    dtype = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}[type]
    x = np.random.default_rng(1).normal(0, 4, THREADS).astype(dtype)
    wide = simulated(parse(kernel(body(), POINTERS, threads=str(THREADS))), x.astype(np.float32))
    narrow = simulated(parse(kernel(body(type), POINTERS, threads=str(THREADS))), x)
    with np.errstate(over="ignore"):
        wide = {name: values.astype(dtype) for name, values in wide.items()}
    for name in NAMES:
        np.testing.assert_array_equal(narrow[name].view(np.int16), wide[name].view(np.int16), name)
