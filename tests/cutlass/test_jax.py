# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Host functions as calls of JAX, and the frames by which XLA calls them."""

import ctypes
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

import tilefold.cutlass as cutlass
from tilefold import cute
from tilefold.cutlass import xla_frames
from tilefold.cutlass.jax import TensorSpec, cutlass_call, cutlass_to_jax_dtype, get_export_disabled_safety_checks
from tilefold.cutlass.jax import jax_to_cutlass_dtype as kernel_dtype


@cute.kernel
def _scaled_sum(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, factor: cutlass.Constexpr) -> None:
    m, t = cute.arch.block_idx()[0], cute.arch.thread_idx()[0]
    c[m, t] = a[m, t] * factor + b[m, t]


@cute.jit
def scaled_sum(stream: Any, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, *, factor: cutlass.Constexpr) -> None:
    _scaled_sum(a, b, c, factor).launch(grid=a.shape[0], block=a.shape[1], stream=stream)


def _frame(number: int, *arrays: "np.ndarray[Any, Any]", stage: int = 3) -> tuple[Any, Any]:
    """A frame as XLA makes it, whose last array is the result; and what must live as long."""
    types = {name: number for number, name in xla_frames._TYPES.items()}  # pyright: ignore[reportPrivateUsage]
    buffers: list[Any] = []
    for array in arrays:
        dims = (ctypes.c_int64 * array.ndim)(*array.shape)
        buffers.append(
            xla_frames._Buffer(0, None, types[array.dtype.name], array.ctypes.data, array.ndim, dims)  # pyright: ignore[reportPrivateUsage]
        )
    pointers = [ctypes.pointer(buffer) for buffer in buffers]
    args, rets = (
        (ctypes.POINTER(xla_frames._Buffer) * len(part))(*part)  # pyright: ignore[reportPrivateUsage]
        for part in (pointers[:-1], pointers[-1:])
    )
    scalar = xla_frames._Scalar(5, ctypes.pointer(ctypes.c_int64(number)))  # pyright: ignore[reportPrivateUsage]
    values = (ctypes.POINTER(xla_frames._Scalar) * 1)(ctypes.pointer(scalar))  # pyright: ignore[reportPrivateUsage]
    messages: list[bytes] = []

    def create(error: Any) -> int:
        messages.append(error.contents.message)
        return 7

    frame = xla_frames._Frame()  # pyright: ignore[reportPrivateUsage]
    frame.stage = stage
    frame.args.count, frame.args.buffers = len(pointers) - 1, args
    frame.rets.count, frame.rets.buffers = 1, rets
    frame.attributes.count, frame.attributes.values = 1, values
    api = xla_frames._Api(create_error=xla_frames._CREATE_ERROR(create))  # pyright: ignore[reportPrivateUsage]
    frame.api = ctypes.pointer(api)
    return frame, (messages, buffers, args, rets, values, api)


def test_a_frame_has_arrays_without_copies() -> None:
    seen: list[int] = []

    def run(number: int, args: xla_frames.Arrays, results: xla_frames.Arrays) -> None:
        seen.append(number)
        results[0][...] = args[0].T + args[1]

    x, y, z = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((3, 2), np.float32), np.zeros((3, 2), np.float32)
    handler = xla_frames.handler(run)
    frame, _held = _frame(11, x, y, z)
    assert handler(ctypes.byref(frame)) is None
    np.testing.assert_array_equal(z, x.T + 1)
    frame.stage = 0  # nothing is executed yet
    assert handler(ctypes.byref(frame)) is None
    assert seen == [11]


def test_a_frame_returns_errors() -> None:
    def run(number: int, args: xla_frames.Arrays, results: xla_frames.Arrays) -> None:
        raise ValueError(f"no call {number}")

    x = np.zeros(3, np.int32)
    frame, held = _frame(5, x, x)
    assert xla_frames.handler(run)(ctypes.byref(frame)) == 7
    assert held[0] == [b"no call 5"]


def test_calls_of_jax() -> None:
    jax: Any = pytest.importorskip("jax")
    jnp: Any = pytest.importorskip("jax.numpy")
    a, b = jnp.arange(12.0).reshape(3, 4), jnp.ones((3, 4))

    @jax.jit
    def f(a: Any, b: Any) -> Any:
        spec = TensorSpec(mode=(1, 0))
        call = cutlass_call(scaled_sum, output_shape_dtype=a, input_spec=(spec, spec), output_spec=spec, factor=3)
        return call(a, b) * 2

    np.testing.assert_array_equal(f(a, b), (a * 3 + b) * 2)
    exported = jax.export.export(f, disabled_checks=get_export_disabled_safety_checks())(a, b)
    np.testing.assert_array_equal(exported.call(a, b), (a * 3 + b) * 2)

    def in_place(stream: Any, a: Any, b: Any, *, factor: int) -> None:
        scaled_sum(stream, a, b, a, factor=factor)

    again = cutlass_call(in_place, output_shape_dtype=a, input_output_aliases={0: 0}, factor=2)
    np.testing.assert_array_equal(jax.jit(again)(a, b), a * 2 + b)
    assert kernel_dtype(cutlass_to_jax_dtype(cute.BFloat16)) is cute.BFloat16


def test_specs_that_do_not_fit() -> None:
    jnp: Any = pytest.importorskip("jax.numpy")
    call = cutlass_call(scaled_sum, output_shape_dtype=jnp.zeros(3), input_spec=(None,))
    with pytest.raises(TilefoldError, match="1 specs for 2 arrays"):
        call(jnp.zeros(3), jnp.zeros(3))
