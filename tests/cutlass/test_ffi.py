# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that are compiled for TVM FFI: calls take arrays alone, and refuse those that the function is not for."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.runtime.errors import LaunchError

from tilefold import cute
from tilefold.cute.host.compiled import CompiledFunction
from tilefold.cute.host.options import EnableTVMFFI, FrontendNext
from tilefold.cute.runtime import from_dlpack, make_fake_compact_tensor, make_fake_stream, make_fake_tensor

Vector = NDArray[np.float32]


class CUstream(int):
    """A stream as cuda-python has it."""


@cute.kernel
def add_one_kernel(a: cute.Tensor, b: cute.Tensor) -> None:
    t = cute.arch.block_idx()[0] * 32 + cute.arch.thread_idx()[0]
    if t < a.shape[0]:
        b[t] = a[t] + 1


@cute.jit
def add_one(a: cute.Tensor, b: cute.Tensor, stream: Any) -> None:
    add_one_kernel(a, b).launch(grid=cute.ceil_div(a.shape[0], 32), block=32, stream=stream)


def vector(count: int) -> Vector:
    return np.arange(count, dtype=np.float32)


@pytest.fixture(scope="module")
def compiled() -> CompiledFunction:
    """The function for two vectors of as many elements, a multiple of 16."""
    n = cute.sym_int(divisibility=16)
    a, b = (make_fake_compact_tensor(cute.Float32, (n,)) for _ in range(2))
    return cute.compile(add_one, a, b, make_fake_stream(), options="--enable-tvm-ffi")


@pytest.mark.parametrize(
    ("wrong", "kind", "words"),
    [
        (lambda: (vector(32), 1), TypeError, r"argument 'b' is of type int, but is annotated as a tensor"),
        (lambda: (vector(32), vector(48)), ValueError, r"'b' has extent 0 48, but extent 0 of argument 'a' is 32"),
        (lambda: (vector(40), vector(40)), ValueError, r"'a' is \(40\):\(1\) of f32; .* for \(\?\{div=16\}\):\(1\)"),
        (lambda: (vector(32), vector(32).astype(np.int32)), ValueError, r"'b' is \(32\):\(1\) of i32; .* of f32"),
        (lambda: (vector(32), vector(64)[::2]), ValueError, r"'b' is \(32\):\(2\) of f32"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    compiled: CompiledFunction, wrong: Callable[[], Any], kind: type[Exception], words: str
) -> None:
    a, b = vector(48), np.zeros(48, np.float32)
    compiled(a, b, CUstream(0))
    assert np.array_equal(b, a + 1)
    with pytest.raises(LaunchError, match=words) as caught:
        compiled(*wrong(), CUstream(0))
    assert isinstance(caught.value, kind)
    assert caught.value.code == "E3106"
    assert len(compiled.kernels) == 1


def test_static_extents_are_not_compiled_again() -> None:
    made = cute.compile[EnableTVMFFI, FrontendNext](add_one, from_dlpack(vector(10)), vector(10), CUstream(0))
    assert type(made).__name__ == "TVMFFIJitCompiledFunction"  # as programs ask
    with pytest.raises(ValueError, match=r"'a' is \(5\):\(1\) of f32; the function is compiled for \(10\):\(1\)"):
        made(vector(5), vector(10), CUstream(0))


def test_the_stride_of_a_single_element_may_be_any() -> None:
    one = make_fake_tensor(cute.Float32, (1,), (0,))
    made = cute.compile(add_one, one, one, None, options="--enable-tvm-ffi")
    b = np.zeros(1, np.float32)
    made(np.ones(5, np.float32)[::5], b, None)
    assert b[0] == 2


def test_the_stride_of_a_single_row_need_not_be_the_promised_multiple() -> None:
    rows = [make_fake_tensor(cute.Float32, (cute.sym_int(), cute.sym_int()), (cute.sym_int(64, 4), 1))] * 2
    made = cute.compile(add_one, *rows, None, options="--enable-tvm-ffi")
    b = np.zeros((1, 1), np.float32)
    made(np.ones((1, 1), np.float32), b, None)
    assert b[0, 0] == 2


def test_strides_of_one_symbol_are_equal_without_the_option_too() -> None:
    step = cute.sym_int()
    rows = [make_fake_tensor(cute.Float32, (cute.sym_int(),), (step,)) for _ in range(2)]
    made = cute.compile(add_one, *rows, None)
    a, b = vector(64)[::2], np.zeros(64, np.float32)[::2]
    made(a, b, None)
    assert np.array_equal(b, a + 1)
    with pytest.raises(LaunchError, match=r"'b' has stride 0 1, but stride 0 of argument 'a' is 2"):
        made(a, vector(32), None)


def test_the_stream_of_the_environment_is_not_passed() -> None:
    a = make_fake_compact_tensor(cute.Float32, (cute.sym_int(),))
    made = cute.compile(add_one, a, a, make_fake_stream(use_tvm_ffi_env_stream=True))
    b = np.zeros(7, np.float32)
    made(vector(7), b)
    assert np.array_equal(b, vector(7) + 1)
