# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launching kernels of Python: arguments of all kinds on the simulator, refusals, what is built anew."""

import operator
import pickle
import re
import warnings
from dataclasses import dataclass
from typing import Annotated, Any

import ml_dtypes
import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.layout.algebra.integers import Unknown
from tilefold.runtime.errors import LaunchError

from tests.runtime.fakes import Tensor
from tilefold import cute
from tilefold.cute.kernel import Kernel

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportInvalidTypeForm=false

THREADS = 32


@cute.kernel
def scaled(A, B, factor, bias=None, N: cute.Constexpr = THREADS):
    i, _, _ = cute.arch.thread_idx()
    value = A[i] * factor
    if bias is not None:
        value = value + bias[i]
    B[i] = value


def _arrays(dtype: Any = np.float32) -> tuple[Any, Any]:
    return np.arange(THREADS).astype(dtype), np.zeros(THREADS, dtype)


def _run(kernel: Any, *args: Any, **kwargs: Any) -> Any:
    return kernel(*args, **kwargs).launch(1, THREADS, device="sim")


def test_arguments_by_position_by_name_and_left_out() -> None:
    a, b = _arrays()
    _run(scaled, a, b, 2.0)
    np.testing.assert_array_equal(b, 2 * a)
    _run(scaled, a, B=b, factor=3.0, bias=a)
    np.testing.assert_array_equal(b, 4 * a)
    _run(scaled, a, b, 2.0, None, N=7)
    np.testing.assert_array_equal(b, 2 * a)


def test_result_says_what_the_simulator_counted() -> None:
    a, b = _arrays()
    result = _run(scaled, a, b, 2.0)
    assert result is not None
    assert result.counters.steps > 0


@pytest.mark.parametrize(
    ("args", "kwargs", "problem"),
    [
        ((), {}, "scaled() is missing a required argument: 'A'"),
        ((1, 2, 3, 4, 5, 6), {}, "scaled() takes 5 positional arguments but 6 were given"),
        ((1,), {"A": 2}, "multiple values for argument 'A'"),
        ((1,), {"C": 2}, "unexpected keyword argument 'C'"),
    ],
)
def test_call_that_does_not_fit_the_function(args: tuple[Any, ...], kwargs: dict[str, Any], problem: str) -> None:
    with pytest.raises(TypeError, match=re.escape(problem)):
        scaled(*args, **kwargs)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32, np.uint8, ml_dtypes.bfloat16])
def test_elements_of_each_type_are_those_of_the_array(dtype: Any) -> None:
    @cute.kernel
    def copy(A, B):
        i, _, _ = cute.arch.thread_idx()
        B[i] = A[i]

    a, b = _arrays(dtype)
    _run(copy, a, b)
    np.testing.assert_array_equal(a, b)


def test_arrays_that_are_views() -> None:
    base = np.zeros((THREADS, 4), np.float32)
    a, _ = _arrays()
    _run(scaled, a, base[:, 2], 1.0)
    np.testing.assert_array_equal(base[:, 2], a)
    assert not base[:, [0, 1, 3]].any()


class Exporting:
    """An array that has DLPack alone."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def test_arrays_by_dlpack_are_not_copied() -> None:
    a, b = _arrays()
    _run(scaled, Exporting(a), Exporting(b), 2.0)
    np.testing.assert_array_equal(b, 2 * a)


def _count(kernel: Kernel) -> int:
    return len(kernel._built)  # pyright: ignore[reportPrivateUsage]


def test_one_kernel_for_arguments_of_the_same_types() -> None:
    @cute.kernel
    def fill(A, value, N: cute.Constexpr):
        i, _, _ = cute.arch.thread_idx()
        A[i] = value

    def launch(*args: Any, block: Any = THREADS) -> int:
        fill(*args).launch(1, block, device="sim")
        return _count(fill)

    a, b = _arrays()
    assert [launch(a, 1.0, 1), launch(b, 2.0, 1), launch(a[:], 3.0, 1)] == [1, 1, 1]
    assert b[0] == 2
    assert launch(a, 1, 1) == 2
    assert launch(a, 1.0, 2) == 3
    assert launch(np.zeros(2 * THREADS, np.float32), 1.0, 1) == 4
    assert launch(a.astype(np.float16), 1.0, 1) == 5
    assert launch(a, 1.0, 1, block=(THREADS, 1)) == 5
    assert launch(a, 1.0, 1, block=[16]) == 6


def test_dynamic_extents_serve_many_arrays() -> None:
    @cute.kernel
    def double(A, B):
        x, _, _ = cute.arch.block_idx()
        i, _, _ = cute.arch.thread_idx()
        B[x, i] = A[x, i] + A[x, i]

    for rows, columns in ((1, 32), (3, 64), (2, 96)):
        a = np.random.default_rng(0).random((rows, columns)).astype(np.float32)
        b = np.zeros_like(a)
        call = double(cute.dynamic(a, divisibility={1: 32}), cute.dynamic(b, divisibility={1: 32}))
        call.launch(rows, 32, device="sim")
        np.testing.assert_array_equal(b[:, :32], a[:, :32] * 2)
    assert _count(double) == 1
    with pytest.raises(LaunchError, match="argument 'A': extent 33 of mode 1 is not a multiple of 32"):
        double(cute.dynamic(np.zeros((2, 33), np.float32), divisibility={1: 32}), None).build(32)


def test_dynamic_parameters_by_annotation() -> None:
    @cute.kernel
    def copy(A: cute.Dynamic(), B: cute.Dynamic(modes=(0,))):
        i, _, _ = cute.arch.thread_idx()
        B[i] = A[i]

    for length in (32, 40, 50):
        a, b = np.arange(length, dtype=np.int32), np.zeros(length, np.int32)
        copy(a, b).launch(1, 32, device="sim")
        np.testing.assert_array_equal(b[:32], a[:32])
    assert _count(copy) == 1
    (built,) = copy._built.values()  # pyright: ignore[reportPrivateUsage]
    layout = built.artifact("sm_80").parameters[0].layout
    assert layout is not None
    assert layout.shape in ((Unknown(),), Unknown())


def test_dynamic_parameters_in_forms_for_type_checkers() -> None:
    @cute.kernel
    def copy(
        A: Annotated[cute.Tensor, cute.Dynamic(modes=-1)], B: Annotated[cute.Tensor, "out", cute.Dynamic] | None = None
    ):
        assert B is not None
        i, _, _ = cute.arch.thread_idx()
        B[i] = A[i]

    for length in (32, 40):
        a, b = np.arange(length, dtype=np.int32), np.zeros(length, np.int32)
        copy(a, b).launch(1, 32, device="sim")
        np.testing.assert_array_equal(b[:32], a[:32])
    assert _count(copy) == 1
    with pytest.raises(LaunchError, match="argument 'B' is of type int, but is annotated as a tensor"):
        copy(np.zeros(1), 1).build(32)


def test_annotated_numbers_have_the_type_that_they_say() -> None:
    @cute.kernel
    def fill(A, value: cute.Float16, n: cute.Int64):
        i, _, _ = cute.arch.thread_idx()
        if i < n:
            A[i] = value

    a = np.zeros(THREADS, np.float16)
    _run(fill, a, 1.5, 3)
    assert a.tolist() == [1.5] * 3 + [0] * (THREADS - 3)
    _run(fill, a, 2, np.int32(1))
    assert _count(fill) == 1


@dataclass
class Pair:
    """Two arrays of one argument."""

    a: Any
    b: Any
    times: int


def test_arrays_in_other_objects() -> None:
    @cute.kernel
    def add(pair, others):
        i, _, _ = cute.arch.thread_idx()
        total = pair.a[i] * pair.times
        for other in others:
            total = total + other[i]
        pair.b[i] = total

    a, b = _arrays(np.int32)
    _run(add, Pair(a, b, 3), [a, a])
    np.testing.assert_array_equal(b, 5 * a)


def test_containers_are_told_apart() -> None:
    @cute.kernel
    def kernel(out, given):
        i, _, _ = cute.arch.thread_idx()
        out[i] = given["a"][0] if isinstance(given, dict) else 2 * given[0]["a"]

    out = np.zeros(THREADS, np.int32)
    for given, expected in (({"a": [7]}, 7), ([{"a": 7}], 14)):
        _run(kernel, out, given)
        assert set(out) == {expected}


class Size(tuple[int, ...]):
    """A tuple that takes integers only, as torch.Size does."""

    def __new__(cls, given: Any) -> "Size":
        return super().__new__(cls, [operator.index(each) for each in given])


@dataclass(frozen=True)
class Described:
    """A dataclass whose annotations are text, as they are under `from __future__ import annotations`."""

    count: "cute.Int64"
    limit: "cute.Constexpr[int]"


def test_annotations_of_fields_and_tuples_of_other_classes() -> None:
    @cute.kernel
    def kernel(out, shape, given):
        assert type(given.limit) is int
        assert given.count.dtype == cute.Int64
        i, _, _ = cute.arch.thread_idx()
        out[i] = given.count + shape[1]

    out = np.zeros(THREADS, np.int64)
    _run(kernel, out, Size((1, 2)), Described(3, 4))  # pyright: ignore[reportArgumentType]
    assert set(out) == {5}


@cute.kernel
def annotated(A: cute.Tensor, n: cute.Int32 = 1, B: cute.Tensor | None = None, C: cute.Dynamic() = None):  # pyright: ignore
    i, _, _ = cute.arch.thread_idx()
    A[i] = n


@pytest.mark.parametrize(
    ("name", "value"),
    [("A", 1), ("A", [1]), ("A", "text"), ("A", np.float32(1)), ("B", 1), ("C", (1,)), ("n", "1"), ("n", np.zeros(1))],
)
def test_argument_of_another_kind_than_its_annotation(name: str, value: Any) -> None:
    what = "number" if name == "n" else "tensor"
    given = {"A": np.zeros(THREADS, np.int32), name: value}
    with pytest.raises(LaunchError, match=f"argument '{name}' is of type .*, but is annotated as a {what}"):
        _run(annotated, **given)
    _run(annotated, np.zeros(THREADS, np.int32), B=np.zeros(1), C=cute.dynamic(np.zeros(1)))


def test_kernels_are_shown_by_name_and_found_by_name() -> None:
    a, b = _arrays()
    call = scaled(a, b, 1.0)
    assert repr(scaled) == "<kernel scaled(A, B, factor, bias, N)>"
    assert repr(call) == f"<call of {scaled!r}>"
    assert repr(call.build(THREADS)) == "<kernel scaled that is built for blocks of (32, 1, 1) threads>"
    assert pickle.loads(pickle.dumps(scaled)) is scaled


def test_numbers_that_are_too_large_are_infinite() -> None:
    a, b = _arrays()
    with warnings.catch_warnings(action="error"):
        _run(scaled, a + 1, b, 1e300)
    assert set(b) == {np.inf}


@cute.kernel
def both(A, B):
    """Adds to both, one after the other."""
    i, _, _ = cute.arch.thread_idx()
    A[i] = A[i] + 1
    B[i] = B[i] + 10


@cute.kernel
def added(out, a, b):
    i, _, _ = cute.arch.thread_idx()
    out[i] = a[i] + b[i]


def test_arrays_that_are_the_same_memory() -> None:
    a = np.zeros(THREADS, np.int32)
    _run(both, a, a)
    assert set(a) == {11}
    a, out = np.arange(2 * THREADS, dtype=np.int32), np.zeros(THREADS, np.int32)
    _run(added, out, a[1:], a[2:])  # none of which the kernel writes to
    np.testing.assert_array_equal(out, a[1 : THREADS + 1] + a[2 : THREADS + 2])
    _run(added, a, a[:THREADS], out)  # of which two begin at the same place
    np.testing.assert_array_equal(a[:THREADS], np.arange(THREADS) + out)
    with pytest.raises(TilefoldError, match="of arguments out and a and b"):
        _run(added, a[1:], a, a[2:])
    rows = np.arange(4 * THREADS, dtype=np.int32).reshape(THREADS, 4)
    expected = rows.copy()
    expected[:, 2] = rows[:, 1] + rows[:, 3]
    _run(added, rows[:, 2], rows[:, 1], rows[:, 3])
    np.testing.assert_array_equal(rows, expected)


def test_arrays_that_are_read_only() -> None:
    a, b = np.broadcast_to(np.int32(3), (THREADS,)), np.zeros(THREADS, np.int32)
    _run(added, b, a, a)
    assert set(b) == {6}
    a = np.arange(THREADS, dtype=np.int32)
    a.flags.writeable = False
    with pytest.raises(LaunchError, match="the kernel writes to argument 'out', which is read-only"):
        _run(added, a, b, b)
    assert a.tolist() == [*range(THREADS)]


REFUSED: list[tuple[Any, str]] = [
    (Tensor(0x1000), "argument 'A' is in the memory of GPU 0, which the simulator cannot reach"),
    (np.zeros(4, "complex64"), "argument 'A' has elements of type complex64"),
    (np.zeros((2, 2))[::-1], "argument 'A' has negative strides"),
]


@pytest.mark.parametrize(("array", "problem"), REFUSED)
def test_array_that_is_refused(array: Any, problem: str) -> None:
    with pytest.raises(LaunchError, match=problem) as caught:
        _run(scaled, array, np.zeros(4, np.float32), 1.0)
    assert caught.value.code == "E3106"


def test_arrays_in_different_places() -> None:
    _, b = _arrays()
    with pytest.raises(LaunchError, match="argument 'B' is in the host's memory, argument 'A' on GPU 1"):
        scaled(Tensor(0x1000, (THREADS,), device=1), b, 1.0).launch(1, THREADS)
    with pytest.raises(LaunchError, match="argument 'A' is on GPU 1, not on cuda:0"):
        scaled(Tensor(0x1000, (THREADS,), device=1), None, 1.0).launch(1, THREADS, device="cuda:0")


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "simulator", "sim:1", None, 0])
def test_device_that_there_is_not(device: Any) -> None:
    a, b = _arrays()
    for call in (scaled(a, b, 1.0), scaled(a, b, 1.0)):
        with pytest.raises(LaunchError, match=f"device is {device!r}"):
            call.launch(1, THREADS, device=device)
        call.build(THREADS)  # binds the arguments, so that the next launch goes another way


def test_stage_is_one_and_is_simulated() -> None:
    a, b = _arrays()
    with pytest.raises(TilefoldError, match="unknown stage 'late'"):
        scaled(a, b, 1.0).launch(1, THREADS, stage="late")
    with pytest.raises(LaunchError, match="stage is 'instr', and device 'cuda'"):
        scaled(a, b, 1.0).launch(1, THREADS, stage="instr", device="cuda")
    with pytest.raises(TilefoldError, match="unknown stage 'late'"):
        scaled.ir("late")


@pytest.mark.parametrize("size", [np.int64(THREADS), (np.uint8(THREADS), 1), [THREADS, np.int32(1), 1]])
def test_sizes_of_numpy(size: Any) -> None:
    a, b = _arrays()
    scaled(a, b, 2.0).launch(np.int32(1), size, device="sim")
    np.testing.assert_array_equal(b, 2 * a)


@pytest.mark.parametrize(
    ("grid", "block"), [(True, 32), ("1", 32), (0, 32), ((1, 1, 1, 1), 32), (1, -1), (1, (32, 0)), (1.0, 32)]
)
def test_sizes_that_are_none(grid: Any, block: Any) -> None:
    a, b = _arrays()
    with pytest.raises(TilefoldError) as caught:
        scaled(a, b, 1.0).launch(grid, block, device="sim")
    assert caught.value.code == "E3105"


def test_host_arrays_are_taken_by_functions_of_the_host() -> None:
    @cute.jit
    def host(a, b):
        assert a.shape == (THREADS,)
        scaled(a, b, 2.0).launch(1, THREADS, device="sim")

    a, b = _arrays()
    host(a, b)
    np.testing.assert_array_equal(b, 2 * a)


def test_machine_code_is_kept_for_the_next_process(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = _arrays()
    first = scaled(a, b, 5.0).build(THREADS)
    artifact = first.artifact("sm_80")

    from tilefold.driver import machine_code

    monkeypatch.setattr(machine_code, "_assemble", None)  # cannot be called
    again = Kernel(scaled.function)(a, b, 5.0).build(THREADS)
    assert again is not first
    assert again.artifact("sm_80") == artifact


@pytest.mark.parametrize(("dtype", "name"), [(np.float16, "Float16"), (np.uint8, "Uint8"), (np.bool_, "Boolean")])
def test_kernels_are_built_for_descriptions(dtype: Any, name: str) -> None:
    @cute.kernel
    def copy(A: cute.Tensor, B):
        i, _, _ = cute.arch.thread_idx()
        B[i, 0] = A[i, 0]

    array = np.zeros((THREADS, 8), dtype)[:, ::2]
    spec = cute.TensorSpec((THREADS, 4), getattr(cute, name), (8, 2))
    built = copy(array, cute.dynamic(array)).build(THREADS)
    assert copy(spec, cute.dynamic(spec)).build(THREADS) is built
    assert "copy" in built.ptx("sm_90")
    less = copy(spec, cute.TensorSpec(spec.shape, spec.dtype, align=4)).build(THREADS)
    assert [each.align for each in less.artifact("sm_80").parameters] == [16, 4]
    for device in ("sim", "auto", "cuda"):
        with pytest.raises(LaunchError, match="argument 'A' is a description of a tensor without memory"):
            copy(spec, spec).launch(1, THREADS, device=device)


def test_descriptions_that_are_refused() -> None:
    refused: list[tuple[Any, str]] = [
        (((4,), cute.Uint1), "arguments cannot have elements of type Uint1"),
        ((4, cute.Float32, (1, 1)), "different ranks"),
        ((4, cute.Float32, None, 3), "an alignment of 3 bytes is not a power of two"),
    ]
    for arguments, problem in refused:
        with pytest.raises(LaunchError, match=problem):
            cute.TensorSpec(*arguments)


def test_a_launch_in_brackets_says_how_to_write_it() -> None:
    @cute.kernel
    def scale(A: cute.Tensor):
        A[0] = A[0] * 2.0

    with pytest.raises(TilefoldError, match=r"scale\[...\] does not launch the kernel") as caught:
        scale[1, 32](np.zeros(1, np.float32))
    assert caught.value.hint == "write scale(...).launch(grid=..., block=...)"
