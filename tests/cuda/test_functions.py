# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions on a GPU: with the bits of the simulator, and those of `math` within the errors of docs/language.md."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.dialects.element_types import FLOATS
from tilefold.dialects.ptx import ApproximateOp, Ex2Op, TanhOp
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.engine import LaunchConfig, TensorArgument, numpy_type
from tilefold.runtime.sim.values.approximations import approximate

from tests.accuracy import arguments, check_function
from tests.cuda.harness import artifact
from tests.emit.harness import kernel, parse
from tests.emit.test_accuracy import NAMES, POINTERS, THREADS, body, simulated

pytestmark = pytest.mark.gpu

COUNT = 1 << 20
APART = 1021
"""The distance of the numbers of f32 that are tried, by their bits. `--nightly` tries all, from each `first` on."""
CHUNK = 1 << 15
"""Numbers that the simulator's model computes at once; they fit a cache."""
FORMS = [(kind.FUNCTION, ftz) for kind in ApproximateOp.__subclasses__() for ftz in (False, True)]
FORMS.remove(("tanh", True))
APPROXIMATION = f"""
    %t = ptx.sreg "tid.x"
    %b = ptx.sreg "ctaid.x"
    %n = arith.constant {THREADS} : i32
    %four = arith.constant 4 : i32
    %m = arith.muli %b, %n : i32
    %i = arith.addi %m, %t : i32
    %at = arith.muli %i, %four : i32
    %apart = arith.constant {{apart}} : i32
    %step = arith.muli %i, %apart : i32
    %q = ptx.ptr_add %Y, %at : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
    %w = ptx.ld %X align 4 : !ptx.ptr<global> -> i32
    %x = arith.addi %w, %step : i32
    {{compute}}
    ptx.st %y, %q align 4 : i32, !ptx.ptr<global>"""
"""f of the bits X[0] + i * apart, for each thread i."""
SINGLE = """
    %f = arith.bitcast %x : i32 to f32
    %g = ptx.{name}.approx{ftz} %f : f32
    %y = arith.bitcast %g : f32 to i32"""
HALF = """
    %s = arith.trunci %x : i32 to i16
    %f = arith.bitcast %s : i16 to {type}
    %g = ptx.{name}.approx %f : {type}
    %r = arith.bitcast %g : {type} to i16
    %y = arith.extui %r : i16 to i32"""


@pytest.fixture(scope="module")
def engine() -> CudaEngine:
    """The engine of the first device. There is no skip: without a device this fails."""
    return CudaEngine()


def test_functions_of_many_numbers(engine: CudaEngine) -> None:
    text = kernel(body(), POINTERS, threads=str(THREADS))
    x = arguments(3, COUNT)
    results = {name: np.zeros_like(x) for name in NAMES}
    given = {name: TensorArgument(array) for name, array in {"X": x, **results}.items()}
    engine.launch(artifact(text, engine.driver.target), LaunchConfig((COUNT // THREADS, 1, 1), (THREADS, 1, 1)), given)
    expected = simulated(parse(text), x)
    for name in NAMES:
        check_function(name, x, results[name])
        np.testing.assert_array_equal(results[name], expected[name], name)


def launched(engine: CudaEngine, program: Any, first: int, count: int) -> NDArray[np.uint32]:
    out = np.empty(count, np.uint32)
    given = {"X": TensorArgument(np.array([first], np.uint32)), "Y": TensorArgument(out)}
    engine.launch(program, LaunchConfig((count // THREADS, 1, 1), (THREADS, 1, 1)), given)
    return out


def program_of(engine: CudaEngine, compute: str, apart: int) -> Any:
    pointers = "%X: !ptx.ptr<global> align 16, %Y: !ptx.ptr<global> align 16"
    text = kernel(APPROXIMATION.format(compute=compute, apart=apart), pointers, threads=str(THREADS))
    return artifact(text, engine.driver.target)


@pytest.mark.parametrize(("name", "ftz"), FORMS, ids=[name + ".ftz" * ftz for name, ftz in FORMS])
def test_numbers_of_f32_have_the_bits_of_the_model(
    engine: CudaEngine, name: str, ftz: bool, request: pytest.FixtureRequest
) -> None:
    program = program_of(engine, SINGLE.format(name=name, ftz=" ftz" * ftz), APART)
    for first in range(APART if request.config.getoption("nightly") else 1):
        bits = np.arange(first, 1 << 32, APART).astype(np.uint32)
        found = launched(engine, program, first, -(-len(bits) // THREADS) * THREADS)
        for start in range(0, len(bits), CHUNK):
            given, got = bits[start : start + CHUNK], found[start : min(start + CHUNK, len(bits))]
            with np.errstate(all="ignore"):
                expected = approximate(name, given.view(np.float32), np.dtype(np.float32), ftz).view(np.uint32)
            wrong = np.flatnonzero(got != expected)[:3]
            assert not len(wrong), [(f"{given[i]:x}", f"{got[i]:x}", f"{expected[i]:x}") for i in wrong]


@pytest.mark.parametrize("element", [x for x in FLOATS.values() if x.bits == 16], ids=lambda x: x.ptx)
@pytest.mark.parametrize("kind", [Ex2Op, TanhOp])
def test_every_number_of_16_bits_has_the_bits_of_the_model(engine: CudaEngine, kind: Any, element: Any) -> None:
    least = kind.FORMS[element.ptx][0]
    if engine.driver.target.sm < least:
        pytest.skip(f"needs sm_{least}")
    program = program_of(engine, HALF.format(name=kind.FUNCTION, type=element.ptx), 1)
    found = launched(engine, program, 0, 1 << 16).astype(np.uint16)
    dtype = numpy_type(element)
    given = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    with np.errstate(all="ignore"):
        expected = approximate(kind.FUNCTION, given, dtype, False)
    np.testing.assert_array_equal(found, expected.view(np.uint16))
