# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX's approximations of functions: bit for bit those of an H100."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tilefold.runtime.sim.values.approximations import approximate
from tilefold.runtime.sim.values.function_unit import function_unit

H100 = np.load(Path(__file__).parent / "h100_functions.npz")
"""Results of an H100 as bits, by instruction. Those of f32 are of the numbers with the bits `x`: of all exponents, and
as many of moderate size. Those of 16 bits are of all numbers in order.
"""
DTYPES = {"f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}


@pytest.mark.parametrize("instruction", [name for name in H100.files if name != "x"])
def test_results_are_those_of_an_h100(instruction: str) -> None:
    name, *modifiers, type = instruction.split(".")
    dtype = DTYPES[type]
    bits = H100["x"] if type == "f32" else np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(all="ignore"):
        results = approximate(name, bits.view(dtype), dtype, "ftz" in modifiers)
    np.testing.assert_array_equal(results.view(bits.dtype), H100[instruction])


def test_functions_of_one_number() -> None:
    """Uniform values are numbers, not arrays."""
    result = approximate("ex2", np.float32(-1.0), DTYPES["f32"], True)
    assert result == 0.5
    assert result.shape == ()
    assert not isinstance(result, np.ndarray)


@pytest.mark.parametrize("name", ["rcp", "rsqrt", "sqrt"])
def test_significands_alone_decide_fractions(name: str) -> None:
    x = np.random.default_rng(0).uniform(1, 4, 1000).astype(np.float32)
    by = {"rcp": 2.0**-40, "rsqrt": 2.0**-20, "sqrt": 2.0**20}[name]
    np.testing.assert_array_equal(function_unit(name, x * np.float32(2.0**40)), function_unit(name, x) * np.float32(by))
