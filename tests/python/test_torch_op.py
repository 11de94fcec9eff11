# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels as operators of torch: their schemas, and on a GPU what `torch.compile` makes of them."""

from importlib import import_module
from typing import Any

import pytest
from tilefold.runtime.errors import LaunchError

from tilefold import cute
from tilefold.cute.torch_op import operator_schema

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

NAMES = ("A", "B", "factor", "THREADS")


@cute.kernel
def scaled(A, B, factor, THREADS: cute.Constexpr):
    x, _, _ = cute.arch.block_idx()
    i, _, _ = cute.arch.thread_idx()
    at = x * THREADS + i
    B[at] = A[at] * factor


def test_schema_says_what_is_written() -> None:
    found = operator_schema(NAMES, ("B",), {"factor": float}, {"THREADS": 32})
    assert found == "(Tensor A, Tensor(a1!) B, float factor) -> ()"
    assert operator_schema(("n",), (), {"n": int}, {}) == "(int n) -> ()"
    assert operator_schema((), (), {}, {}) == "() -> ()"


@pytest.mark.parametrize(
    ("mutates", "scalars", "constants", "problem"),
    [
        (("C",), {}, {}, "mutates names 'C'"),
        ((), {"C": int}, {}, "scalars names 'C'"),
        ((), {}, {"C": 1}, "the constants names 'C'"),
        ((), {"factor": str}, {}, "'factor' cannot be a str"),
        (("factor",), {"factor": int}, {}, "'factor' cannot be a int"),
    ],
)
def test_names_and_types_that_are_refused(mutates: Any, scalars: Any, constants: Any, problem: str) -> None:
    with pytest.raises(LaunchError, match=problem):
        operator_schema(NAMES, mutates, scalars, constants)


@pytest.mark.gpu
def test_operator_under_torch_compile() -> None:
    torch: Any = import_module("torch")

    def grid(a: Any, b: Any, factor: float) -> int:
        return a.numel() // 128

    op = cute.torch_op(
        "tilefold_tests::scaled", scaled, grid=grid, block=128, mutates=("B",), scalars={"factor": float}, THREADS=128
    )
    a = torch.arange(1024, dtype=torch.float32, device="cuda")
    b = torch.zeros_like(a)
    op(a, b, 2.0)
    torch.testing.assert_close(b, 2 * a)
    torch.library.opcheck(op, (a, b, 2.0))

    def function(x: Any) -> Any:
        y = torch.empty_like(x)
        op(x + 1, y, 3.0)
        return y.relu() + 1

    for _ in range(2):
        torch.testing.assert_close(torch.compile(function, fullgraph=True)(a), 3 * (a + 1) + 1)
    torch.ops.tilefold_tests.scaled(a, b, 5.0)
    torch.testing.assert_close(b, 5 * a)
