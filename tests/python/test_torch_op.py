# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels as operators of torch: their schemas, and on a GPU what `torch.compile` makes of them."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from shutil import which
from typing import Any

import pytest
from tilefold.runtime.errors import LaunchError

from tests.docs.pages import blocks
from tests.project.tree import ROOT
from tilefold import cute
from tilefold.cute.torch_operators import operator_schema

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportArgumentType=false, reportUnknownLambdaType=false


@cute.kernel
def scaled(A, B, factor, bias=None, THREADS: cute.Constexpr = 32):
    x, _, _ = cute.arch.block_idx()
    i, _, _ = cute.arch.thread_idx()
    at = x * THREADS + i
    value = A[at] * factor
    if bias is not None:
        value = value + bias[at]
    B[at] = value


def _threads(config: Any) -> int:
    return config["THREADS"]


@cute.kernel
def typed(A, n: cute.Int64, f: cute.Float16 = 2, b: cute.Boolean = False, N: cute.Constexpr = 1): ...


@cute.kernel
def constant(A, N: cute.Constexpr): ...


@cute.autotune(configs=[{"THREADS": 64}, {"THREADS": 32}], grid=lambda c: 256 // c["THREADS"], block=_threads)
@cute.kernel
def tuned(A, B, factor, THREADS: cute.Constexpr):
    scaled.function(A, B, factor, THREADS=THREADS)


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
        ("scaled", scaled, "'scaled' is not the name of an operator"),
        ("mine::scaled", scaled.function, "is not a kernel"),
        ("mine::constant", constant, "the constant 'N' has no value"),
        ("mine::tuned", tuned, "'mine::tuned' has a block"),
    ],
)
def test_operators_that_cannot_be(name: str, kernel: Any, problem: str) -> None:
    with pytest.raises(LaunchError, match=problem):
        cute.torch_op(name, kernel, grid=1, block=32, mutates=("A",))


def test_operator_of_a_kernel_needs_its_sizes() -> None:
    with pytest.raises(LaunchError, match="lacks a grid or a block"):
        cute.torch_op("mine::scaled", scaled, block=32, mutates="B")


def _backend(device: str) -> str:
    """The compiler that writes code for a device, if it can here."""
    return "inductor" if device == "cuda" or which("g++") else "aot_eager"


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

    compiled = torch.compile(function, fullgraph=True, backend=_backend(device))
    for x in (a, a, torch.cat([a, a])):
        torch.testing.assert_close(compiled(x), 3 * (x + 1) + 1)


def _check_tuned(torch: Any, name: str, device: str) -> None:
    """An operator of a tuned kernel, and a function of it that has a gradient."""
    options: dict[str, Any] = {"mutates": ("B",), "scalars": {"factor": float}}
    op = cute.torch_op(f"tilefold_tests::{name}", tuned, **options)
    sized = cute.torch_op(
        f"tilefold_tests::{name}_sized", tuned, grid=lambda a, b, f: lambda c: a.numel() // c["THREADS"], **options
    )

    def times(x: Any, factor: float) -> Any:
        y = torch.empty_like(x)
        (op if x.numel() == 256 else sized)(x, y, factor)
        return y

    def backward(context: Any, gradient: Any) -> Any:
        return functional(gradient.contiguous(), context.factor), None

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.factor = inputs[1]

    functional = torch.library.custom_op(
        f"tilefold_tests::{name}_times", times, mutates_args=(), schema="(Tensor x, float factor) -> Tensor"
    )
    functional.register_fake(lambda x, factor: torch.empty_like(x))
    functional.register_autograd(backward, setup_context=setup)
    compiled = torch.compile(lambda x: (functional(x + 1, 3.0) ** 2).sum(), fullgraph=True, backend=_backend(device))
    for count in (256, 128):
        x = torch.arange(count, dtype=torch.float32, device=device, requires_grad=True)
        compiled(x).backward()
        torch.testing.assert_close(x.grad, 18 * (x.detach() + 1))


def _check_direct(torch: Any, device: str) -> None:
    """Launches in a function that is compiled: the graph ends before them, and begins anew. Their kernels are defined
    after torch is imported.
    """
    direct = cute.kernel(scaled.function)
    chosen = cute.autotune(configs=[{"THREADS": 64}], grid=4, block=64)(direct)

    @cute.jit
    def host(a: cute.Tensor, b: cute.Tensor) -> None:
        direct(a, b, 2.0).launch(a.shape[0] // 32, 32)

    def function(x: Any) -> Any:
        y, z = x + 1, torch.empty_like(x)
        direct(y, z, 3.0).launch(x.numel() // 32, 32)
        y = z.relu() + 1
        host(y, z)
        chosen(z, y, 2.0).launch(device="auto" if device == "cuda" else "sim")
        return y - 1

    for x in (torch.arange(256, dtype=torch.float32, device=device), torch.ones(256, device=device)):
        torch.testing.assert_close(torch.compile(function, backend="eager")(x), 4 * (3 * (x + 1) + 1) - 1)
    assert torch._dynamo.explain(function)(x).graph_count == 3
    with pytest.raises(Exception, match=r"cute\.torch_op turns a kernel into an operator"):
        torch.compile(function, backend="eager", fullgraph=True)(x)


needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")


@needs_torch
def test_operator_on_the_cpu() -> None:
    _check(import_module("torch"), "scaled_on_cpu", "cpu")


@needs_torch
def test_operator_of_a_tuned_kernel_on_the_cpu() -> None:
    _check_tuned(import_module("torch"), "tuned_on_cpu", "cpu")


@needs_torch
def test_launches_in_compiled_functions_on_the_cpu() -> None:
    _check_direct(import_module("torch"), "cpu")


@needs_torch
@pytest.mark.skipif(which("g++") is None, reason="needs a compiler of C++")
def test_inductor_chooses_between_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program of the documentation; and again without torch's function, so that the kernel is chosen."""
    page = (ROOT / "docs/runtime.md").read_text()
    (program,) = [block.text for block in blocks(page) if "autotune_select_algorithm" in block.text]
    (tmp_path / "program.py").write_text(program)
    monkeypatch.setattr(import_module("torch._inductor.config"), "force_disable_caches", True)
    names = run_path(str(tmp_path / "program.py"))
    assert capsys.readouterr().out == "torch.Size([8, 64])\n"
    del names["choices"][1:]
    x = names["torch"].rand(4, 32)
    function = names["torch"].compile(lambda x: names["double"](x + 1), fullgraph=True, dynamic=False)
    assert function(x).equal(2 * (x + 1))


@pytest.mark.gpu
def test_operator_on_a_gpu() -> None:
    _check(import_module("torch"), "scaled_on_cuda", "cuda")


@pytest.mark.gpu
def test_operator_of_a_tuned_kernel_on_a_gpu() -> None:
    _check_tuned(import_module("torch"), "tuned_on_cuda", "cuda")


@pytest.mark.gpu
def test_launches_in_compiled_functions_on_a_gpu() -> None:
    _check_direct(import_module("torch"), "cuda")
