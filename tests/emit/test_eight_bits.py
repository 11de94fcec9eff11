# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants of 8-bit floats, against ml_dtypes."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefold.compiler.emit.eight_bits import bits_of

from tests.emit.harness import kernel, llvm_of

TYPES = {3: ml_dtypes.float8_e4m3fn, 2: ml_dtypes.float8_e5m2}


def expected(value: float, dtype: Any) -> int:
    with np.errstate(all="ignore"):
        return int(np.array([value], np.float32).astype(dtype).view(np.uint8)[0])


@pytest.mark.parametrize("mantissa", TYPES)
def test_every_number_has_its_own_bits(mantissa: int) -> None:
    for bits in range(256):
        number = float(np.array([bits], np.uint8).view(TYPES[mantissa])[0])
        assert np.isnan(number) or bits_of(number, mantissa) == bits


@given(st.sampled_from([2, 3]), st.one_of(st.floats(-70000, 70000, width=32), st.floats(-1, 1, width=32)))
def test_numbers_are_rounded_to_the_nearest(mantissa: int, value: float) -> None:
    assert bits_of(value, mantissa) == expected(value, TYPES[mantissa])


@pytest.mark.parametrize("value", [464.0, 465.0, 61440.0, 61439.0, float("inf"), -1e9, -0.0])
@pytest.mark.parametrize("mantissa", TYPES)
def test_ties_and_what_is_beyond(mantissa: int, value: float) -> None:
    assert bits_of(value, mantissa) == expected(value, TYPES[mantissa])


def test_a_constant_is_a_byte() -> None:
    text = kernel(
        "%c = arith.constant 1.5 : f8E4M3FN\nptx.st %c, %A align 1 : f8E4M3FN, !ptx.ptr<global>",
        "%A: !ptx.ptr<global> align 16",
    )
    assert "store volatile i8 60," in llvm_of(text)
