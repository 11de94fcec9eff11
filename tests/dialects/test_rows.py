# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constructors of operations that are rows: arguments, defaults, properties, and the types of results."""

from typing import Any, ClassVar

import pytest
from tilefold.dialects import ptx
from tilefold.dialects.definitions import operand, row
from xdsl.dialects.builtin import f32, i1, i32
from xdsl.dialects.test import TestOp as Given
from xdsl.ir import SSAValue
from xdsl.irdl import AnyAttr, IRDLOperation, result_def

X, Y = Given(result_types=[i32, f32]).results


def test_arguments_and_defaults() -> None:
    barrier = ptx.BarSyncOp(3, offset=X)
    assert (barrier.id.value.data, barrier.threads, barrier.offset) == (3, None, X)
    assert ptx.BarSyncOp().id.value.data == 0
    assert ptx.CpAsyncOp("cg", 16, X, X).prefetch is None
    assert ptx.CpAsyncMbarrierArriveOp(X).noinc is not None
    assert ptx.CpAsyncMbarrierArriveOp(X, noinc=False).noinc is None
    assert ptx.RedOp("add", X, X, scope="sys").scope_name == "sys"


def test_types_of_results() -> None:
    op = ptx.ShflSyncValidOp("up", Y, X, X)
    assert [result.type for result in op.results] == [f32, i1]
    assert ptx.MapaOp(X, X).result.type == ptx.SHARED_CLUSTER
    assert ptx.AtomCasOp(X, Y, Y).result.type == f32


@pytest.mark.parametrize(("arguments", "named"), [((), {}), ((1, 2), {}), ((1,), {"m": 1}), ((), {"m": 1})])
def test_wrong_arguments(arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    make: Any = ptx.CpAsyncWaitGroupOp
    with pytest.raises(TypeError, match=r"CpAsyncWaitGroupOp takes the arguments n$"):
        make(*arguments, **named)


def test_a_result_needs_a_type() -> None:
    class UnknownOp(IRDLOperation):
        name: ClassVar[str] = "test.unknown"
        value: SSAValue = operand()
        result = result_def(AnyAttr())

    with pytest.raises(AssertionError, match=r"the type of the result result of test.unknown"):
        row(UnknownOp)
