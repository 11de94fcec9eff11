# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes of a GPU programmer's first day: each message names the mistake, its place and the cure."""

import re
import traceback
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.builder.tracing.cuda_names import CUDA_NAMES
from tilefold.runtime.errors import LaunchError
from tilefold.runtime.options import LaunchOptions

from tests.python.test_mistakes import build
from tilefold import cute

# pyright: reportUndefinedVariable=false, reportCallIssue=false

EXPRESSIONS = MappingProxyType({
    # functions that are Python's, or methods
    "cute.round(n)": ("E5009", "cute has no 'round'", "Python's round(x)"),
    "cute.sum(x)": ("E5009", "cute has no 'sum'", "x.sum() of a fragment"),
    "cute.mean(x)": ("E5009", "cute has no 'mean'", "x.sum() / x.size"),
    "x.mean()": ("E5009", "a Vec has no 'mean'", "x.sum() / x.size"),
    "x.abs()": ("E5009", "a Vec has no 'abs'", "write abs(x)"),
    "x.round()": ("E5009", "a Vec has no 'round'", "round(x)"),
    "x.astype(cute.Float16)": ("E5009", "a Vec has no 'astype'", "x.to(cute.Float32)"),
    "x.clip(0, 1)": ("E5009", "a Vec has no 'clip'", "max(min(x, high), low)"),
    "x.argmax()": ("E5009", "a Vec has no 'argmax'", "cute.argmax(x)"),
    "x.exp()": ("E5009", "a Vec has no 'exp'", "cute.math.exp"),
    "A.sum()": ("E5009", "a Tensor has no 'sum'", "t.load().sum(...)"),
    "A.mean()": ("E5009", "a Tensor has no 'mean'", "of x = t.load(): write x.sum() / x.size"),
    "sum(A)": ("E5002", "Python cannot iterate over a tensor", "t.load().sum()"),
    "sum(x)": ("E5002", "Python cannot iterate over a fragment", "x.sum()"),  # in code that is not rewritten
    "round(x, 2)": ("E5002", "a value can be rounded to an integer only", "write round(x)"),
    "x.sum(axis=2)": ("E5002", "axis is 2, but the fragment has 2 modes", "from 0 to 1"),
    "x.max(axis='a')": ("E5002", "axis is 'a'", "a tuple of them"),
    # stores
    "x.store(A)": ("E5009", "a Vec has no 'store'", "t.store(x)"),
    "A[n].store(1.0)": ("E5009", "a Float has no 'store'", "t[i, j] = v"),
    "x.__setitem__(0, 1)": ("E5002", "a fragment is a value, whose elements never change", "make_rmem_tensor"),
    # names of CUDA C++
    "cute.threadIdx": ("E5009", "cute has no 'threadIdx'", "x, y, z = cute.arch.thread_idx()"),
    "threadIdx.x": ("E5009", "name 'threadIdx' is not defined", "x, y, z = cute.arch.thread_idx()"),
    "cute.arch.blockIdx": ("E5009", "cute.arch has no 'blockIdx'", "cute.arch.block_idx()"),
    "__syncthreads()": ("E5009", "name '__syncthreads' is not defined", "cute.arch.sync_threads()"),
    "cute.__syncthreads()": ("E5009", "cute has no '__syncthreads'", "cute.arch.sync_threads()"),
    "atomicAdd(A, 1)": ("E5009", "name 'atomicAdd' is not defined", "cute.arch.atomic_add(t.ptr(i, j), x)"),
    # parts of threads
    "c.partition_S(A)": ("E5009", "a TiledCopy has no 'partition_S'", ".get_slice(thread).partition_S(...)"),
    "c.partition_D(A)": ("E5009", "a TiledCopy has no 'partition_D'", ".get_slice(thread).partition_D(...)"),
    "mma.partition_A(A)": ("E5009", "a TiledMma has no 'partition_A'", ".get_slice(thread).partition_A(...)"),
    # conditions, in code that is not rewritten
    "0 < n < 5": ("E5003", "Python cannot branch on a", "write (0 < n) & (n < 5)"),
    "n > 0 and n < 5": ("E5003", "Python cannot branch on a", "write (n > 0) & (n < 5)"),
    "not n > 0": ("E5003", "Python cannot branch on a", "write ~(n > 0)"),
    "0 < x < 5": ("E5003", "Python cannot branch on a fragment", "write (0 < x) & (x < 5)"),
    "(x > 0) and (x < 5)": ("E5003", "Python cannot branch on a fragment", "write (x > 0) & (x < 5)"),
    "x > 0 or not x < 5": ("E5003", "Python cannot branch on a fragment", "write (x > 0) | ~(x < 5)"),
    "not x": ("E5003", "Python cannot branch on a fragment", "write ~(x != 0)"),
    "bool(x)": ("E5003", "Python cannot branch on a fragment", "x.any() and x.all()"),
    "1 if x > 0 else 2": ("E5003", "Python cannot branch on a fragment", "cute.where(x > 0, a, b)"),
    # shared memory
    "cute.make_smem_tensor((1024, 300), cute.Float32)": (
        "E2103", "takes 1228800 bytes of shared memory; a block has at most 232448", "a smaller tile"
    ),
    "cute.make_smem_tensor(58113, cute.Float32)": ("E2103", "takes 232452 bytes", "a smaller tile"),
})  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_mistake_is_told(expression: str) -> None:
    code, message, hint = EXPRESSIONS[expression]
    if expression.startswith("c."):
        copy = "cute.make_tiled_copy_tv(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32), "
        expression = f"{copy}cute.make_layout((4, 8)), cute.make_layout((1, 4))).{expression[2:]}"
    with pytest.raises(TilefoldError) as caught:
        build(expression)
    assert caught.value.code == code
    assert str(caught.value).startswith("user.py:1:")
    assert "^" in str(caught.value)
    assert message in caught.value.message
    assert hint in caught.value.hint


# statements of kernels, each with the line of its mistake


def chained(out: Any) -> None:
    x = out.load()
    b = 0 < x < 5  # error: E5003, write (0 < x) & (x < 5)
    print(b)


def joined(out: Any) -> None:
    x = out.load()
    if (x > 0) and (x < 5):  # error: E5003, write (x > 0) & (x < 5)
        out[0] = 1


def negated(out: Any) -> None:
    x = out.load()
    out.store(cute.where(not x, x, 1.0))  # error: E5003, write ~(x != 0)


def a_branch_on_elements(out: Any) -> None:
    x = out.load()
    if x > 0:  # error: E5003, cute.where(x > 0, a, b)
        out[0] = 1


def assigned(out: Any) -> None:
    x = out.load()
    x[0] = 1  # error: E5002, cute.make_rmem_tensor(x.shape, x.dtype)


def added_to(out: Any) -> None:
    x = out.load()
    x[0] += 1  # error: E5002, cute.make_rmem_tensor(x.shape, x.dtype)


def index_of_a_thread(out: Any) -> None:
    out[threadIdx.x] = 1  # type: ignore  # noqa: F821  # error: E5009, cute.arch.thread_idx()


def barrier(out: Any) -> None:
    __syncthreads()  # type: ignore  # noqa: F821  # error: E5009, cute.arch.sync_threads()


FUNCTIONS = [chained, joined, negated, a_branch_on_elements, assigned, added_to, index_of_a_thread, barrier]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_message_is_at_the_line(function: Callable[..., Any]) -> None:
    from inspect import getsourcelines

    lines, start = getsourcelines(function)
    number, text = next((i, line) for i, line in enumerate(lines, start) if "# error: " in line)
    code, _, hint = text.partition("# error: ")[2].strip().partition(", ")
    with pytest.raises(TilefoldError) as caught:
        cute.kernel(function)(np.zeros(8, np.float32)).build(32)
    assert str(caught.value).startswith(f"{__file__}:{number}:")
    assert caught.value.code == code
    assert hint in caught.value.hint


# classes of names


def test_each_name_of_cuda_has_a_form_that_exists() -> None:
    """The hints name functions of `cute`, in a module as well as on their own."""
    for name, cure in CUDA_NAMES.items():
        for path in re.findall(r"cute(?:\.\w+)+", cure):
            thing: Any = cute
            for part in path.split(".")[1:]:
                thing = getattr(thing, part)
        for written in (name, f"cute.{name}"):
            if written == f"cute.{name}" and hasattr(cute, name):
                continue
            with pytest.raises(TilefoldError, match="E5009") as caught:
                build(written)
            assert caught.value.hint, written


@pytest.mark.parametrize("name", [name for name in dir(np.ndarray) if not name.startswith("_")])
def test_each_method_of_numpys_arrays_has_an_answer(name: str) -> None:
    """A fragment has it, or the hint says more than a list of methods or a similar name."""
    if hasattr(cute.TensorSSA, name):
        return
    for owner in ("x", "A"):
        if owner == "A" and hasattr(cute.Tensor, name):
            continue
        with pytest.raises(TilefoldError, match="E5009") as caught:
            build(f"{owner}.{name}")
        assert f"has no '{name}'" in caught.value.message
        assert caught.value.hint
        assert not caught.value.hint.startswith(("it has", "did you mean"))


# launches


@cute.kernel
def k(A: cute.Tensor):
    A[0] = 1.0


OPTIONS = MappingProxyType({
    "blocks": "grid= is the number of blocks", "grid_dim": "grid= is", "threads": "block= is the number of threads",
    "blockDim": "block= is", "num_warps": "block=32 * warps", "shared_memory": "cute.make_smem_tensor",
    "cluster_size": "cluster= is", "gpu": 'device= is "cuda"', "devices": "did you mean device?",
    "max_step": "did you mean max_steps", "xyz": "it takes grid, block, cluster",
})  # fmt: skip


@pytest.mark.parametrize("option", OPTIONS)
def test_an_unknown_option_of_a_launch(option: str) -> None:
    A = np.zeros(4, np.float32)
    with pytest.raises(LaunchError, match=f"a launch has no option '{option}'") as caught:
        k(A).launch(grid=1, block=32, **{option: 32})  # type: ignore
    assert caught.value.code == "E3105"
    assert OPTIONS[option] in caught.value.hint


def test_every_option_of_a_launch_is_listed() -> None:
    from inspect import signature

    from tilefold.runtime.options import OPTIONS as LISTED

    known = {*signature(cute.KernelCall.launch).parameters, *LaunchOptions.__annotations__}
    assert set(LISTED) <= known
    assert {*signature(cute.KernelCall.launch).parameters} - {"self", "more"} <= set(LISTED)


@pytest.mark.parametrize("method", ["check", "costs", "bisect", "report_html"])
def test_an_unknown_option_of_another_method(method: str) -> None:
    with pytest.raises(TilefoldError, match=r"E5009.*'grids'") as caught:
        getattr(k(np.zeros(4, np.float32)), method)(grids=1, block=32)
    assert "grid" in caught.value.hint


SIZES = MappingProxyType({
    "block=2048": "the block 2048 has 2048 threads; at most 1024 are possible",
    "block=(32, 64)": "the block (32, 64) has 2048 threads; at most 1024 are possible",
    "block=(1, 1, 65)": "the block is (1, 1, 65); x, y, z can be at most (1024, 1024, 64)",
    "grid=(1, 70000)": "the grid is (1, 70000); x, y, z can be at most (2147483647, 65535, 65535)",
    "grid=2**31": "the grid is 2147483648; x, y, z can be at most",
})  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
def test_sizes_that_no_gpu_has_are_told_at_the_launch(size: str) -> None:
    """The traceback ends at the call of the user's: the kernel is right."""
    A = np.zeros(4, np.float32)
    name, _, value = size.partition("=")
    sizes = {"grid": 1, "block": 32, name: eval(value)}
    calls: list[Callable[[], object]] = [lambda: k(A).launch(**sizes), lambda: k(A).check(**sizes)]
    if name == "block":
        calls.append(lambda: k(A).build(sizes["block"]))
    for call in calls:
        with pytest.raises(LaunchError) as caught:
            call()
        assert caught.value.code == "E3105"
        assert SIZES[size] in caught.value.message
        assert caught.value.hint
        users = [frame for frame in traceback.extract_tb(caught.value.__traceback__) if frame.filename == __file__]
        assert users[-1].name == "<lambda>"


def test_sizes_within_a_host_function_are_told_at_its_line() -> None:
    @cute.jit
    def host(A: cute.Tensor):
        k(A).launch(grid=1, block=2048)

    with pytest.raises(TilefoldError, match="has 2048 threads; at most 1024") as caught:
        host(np.zeros(4, np.float32))
    assert f"{__file__}:{host.function.__code__.co_firstlineno + 2}:" in str(caught.value)


@pytest.mark.parametrize("name", ["launch", "check", "bisect", "costs"])
def test_a_method_of_calls_is_looked_for_in_the_kernel(name: str) -> None:
    @cute.kernel
    def k(A: cute.Tensor) -> None:
        A[0] = 1.0

    with pytest.raises(AttributeError, match=rf"write k\(\.\.\.\)\.{name}\(\.\.\.\)$"):
        getattr(k, name)
    with pytest.raises(AttributeError, match="has no attribute 'other_"):
        getattr(k, f"other_{name}")
