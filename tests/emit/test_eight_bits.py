# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants of 8-bit floats, against ml_dtypes."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefold.compiler.emit.types import constant
from xdsl.dialects import test as test_dialect
from xdsl.dialects.builtin import Float8E4M3FNType, Float8E5M2Type, FloatAttr

from tests.emit.harness import kernel, llvm_of

TYPES = {Float8E4M3FNType(): ml_dtypes.float8_e4m3fn, Float8E5M2Type(): ml_dtypes.float8_e5m2}


def number_of(value: float, type: Any) -> float:
    """The number whose bits the constant has."""
    bits = int(constant(FloatAttr(value, type), test_dialect.TestOp()))
    return float(np.array([bits], np.uint8).view(TYPES[type])[0])


def check(value: float, type: Any) -> None:
    with np.errstate(all="ignore"):
        expected = float(np.array([value], np.float32).astype(TYPES[type])[0])
    np.testing.assert_array_equal([number_of(value, type)], [expected])  # NaN equals NaN
    assert np.isnan(expected) or np.signbit(number_of(value, type)) == np.signbit(expected)


@pytest.mark.parametrize("type", TYPES, ids=str)
def test_every_number_has_its_own_bits(type: Any) -> None:
    for number in np.arange(256).astype(np.uint8).view(TYPES[type]).astype(float):
        check(number, type)


@given(st.sampled_from(list(TYPES)), st.one_of(st.floats(-70000, 70000, width=32), st.floats(-1, 1, width=32)))
def test_numbers_are_rounded_to_the_nearest(type: Any, value: float) -> None:
    check(value, type)


@pytest.mark.parametrize("value", [464.0, 465.0, 61440.0, 61439.0, float("inf"), -1e9, -0.0, float("nan")])
@pytest.mark.parametrize("type", TYPES, ids=str)
def test_ties_and_what_is_beyond(type: Any, value: float) -> None:
    check(value, type)


def test_a_constant_is_a_byte() -> None:
    text = kernel(
        "%c = arith.constant 1.5 : f8E4M3FN\nptx.st %c, %A align 1 : f8E4M3FN, !ptx.ptr<global>",
        "%A: !ptx.ptr<global> align 16",
    )
    assert "store volatile i8 60," in llvm_of(text)
