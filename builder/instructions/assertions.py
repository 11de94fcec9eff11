# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assertions that are checked when a kernel runs."""

from typing import Any

from xdsl.dialects.cf import AssertOp

from ...base.errors import Code, TilefoldError
from ..scalars.dtypes import Boolean
from ..scalars.values import convert
from ..tracing.state import emit, is_building


def assert_(condition: Any, message: str = "") -> None:
    """Checks a condition in each thread that gets here: `assert_(i < n, "i is beyond the end")`.

    The simulator stops with E3213 where it does not hold. On a GPU the message and its place are printed and the launch
    fails, where the kernel is compiled with `cute.EnableAssertions`; without it nothing is left of the assertion. In a
    host function the condition is checked in each call. Raises TilefoldError: E5002 for a condition that is no
    number or a message that is not a text, E3213 where Python runs the call outside of both and it does not hold.
    """
    if not isinstance(message, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TilefoldError(Code.BUILD_VALUE, f"expected a message as text, got {type(message).__name__}")
    if is_building():
        emit(AssertOp(convert(condition, Boolean).ssa, message))
    elif not condition:
        raise TilefoldError(Code.SIM_ASSERT, f"assertion failed: {message}")
