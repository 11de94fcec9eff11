# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels as operators of torch: their schemas, and on a GPU what `torch.compile` makes of them."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest
from tilefold.runtime.errors import LaunchError

from tilefold import cute
from tilefold.cute.torch_op import operator_schema

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportArgumentType=false


@cute.kernel
def scaled(A, B, factor, bias=None, THREADS: cute.Constexpr = 32):
    x, _, _ = cute.arch.block_idx()
    i, _, _ = cute.arch.thread_idx()
    at = x * THREADS + i
    value = A[at] * factor
    if bias is not None:
        value = value + bias[at]
    B[at] = value


@cute.kernel
def typed(A, n: cute.Int64, f: cute.Float16 = 2, b: cute.Boolean = False, N: cute.Constexpr = 1): ...


@cute.kernel
def constant(A, N: cute.Constexpr): ...


def test_schema_says_what_is_written_and_can_be_left_out() -> None:
    found = operator_schema(scaled.signature, ("B",), {"factor": float}, {"THREADS": 32})
    assert found == "(Tensor A, Tensor(a1!) B, float factor, Tensor? bias=None) -> ()"
    found = operator_schema(scaled.signature, ("B", "bias"), {"factor": int}, {"A": None})
    assert found == "(Tensor(a0!) B, int factor, Tensor(a2!)? bias=None) -> ()"
    found = operator_schema(typed.signature, (), {"f": int}, {})
    assert found == "(Tensor A, int n, int f=2, bool b=False) -> ()"
    assert operator_schema(typed.signature, (), {}, dict.fromkeys("Anb", 0)) == "(float f=2.0) -> ()"
    assert operator_schema(typed.signature, (), {}, dict.fromkeys("Anfb", 0)) == "() -> ()"


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
        operator_schema(scaled.signature, mutates, scalars, constants)


@pytest.mark.parametrize(
    ("name", "kernel", "problem"),
    [
        ("scaled", scaled, "'scaled' is no name of an operator"),
        ("mine::scaled", scaled.function, "which is no kernel"),
        ("mine::constant", constant, "the constant 'N' has no value"),
    ],
)
def test_operators_that_cannot_be(name: str, kernel: Any, problem: str) -> None:
    with pytest.raises(LaunchError, match=problem):
        cute.torch_op(name, kernel, grid=1, block=32, mutates=("A",))


def _check(torch: Any, name: str, device: str) -> None:
    """Makes an operator, and calls it on tensors of a device in all ways."""

    def grid(a: Any, b: Any, factor: float, bias: Any) -> int:
        return a.numel() // 32

    op = cute.torch_op(f"tilefold_tests::{name}", scaled, grid=grid, block=32, mutates="B", scalars={"factor": float})
    a = torch.arange(256, dtype=torch.float32, device=device)
    b = torch.zeros_like(a)
    op(a, b, 2.0)
    torch.testing.assert_close(b, 2 * a)
    op(a, b, factor=3.0, bias=a)
    torch.testing.assert_close(b, 4 * a)
    getattr(torch.ops.tilefold_tests, name)(a, b, 5.0)
    torch.testing.assert_close(b, 5 * a)
    torch.library.opcheck(op, (a, b, 2.0))

    def function(x: Any) -> Any:
        y = torch.empty_like(x)
        op(x + 1, y, 3.0)
        return y.relu() + 1

    compiled = torch.compile(function, fullgraph=True, backend="inductor" if device == "cuda" else "aot_eager")
    for x in (a, a, torch.cat([a, a])):
        torch.testing.assert_close(compiled(x), 3 * (x + 1) + 1)


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
def test_operator_on_the_cpu() -> None:
    _check(import_module("torch"), "scaled_on_cpu", "cpu")


@pytest.mark.gpu
def test_operator_on_a_gpu() -> None:
    _check(import_module("torch"), "scaled_on_cuda", "cuda")
