# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attributes of objects of any class are carried by branches and loops, wherever they are set."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from tilefold.compiler.frontend.diagnostics import ProgramError

from tilefold import cute
from tilefold.cute.runtime import from_dlpack, make_ptr

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportAttributeAccessIssue=false


class Sums:
    """An accumulator that sets its attributes itself, with an object within."""

    def __init__(self, start: Any = 0) -> None:
        self.total = start
        self.inner = Slotted()
        self.inner.owner = self

    def add(self, x: Any) -> None:
        self.total = self.total + x
        self.inner.most = cute.math.max(self.inner.most, x)


class Slotted:
    __slots__ = ("most", "owner")

    def __init__(self) -> None:
        self.most = 0
        self.owner: Any = None


class Counted:
    count: Any = 0


class Method:
    """A kernel with an object that stays as it was."""

    def __init__(self) -> None:
        self.n = 3
        self.parts: list[Any] = [1, 2]

    @cute.kernel
    def run(self, out):
        t, _, _ = cute.arch.thread_idx()
        if t > 4:
            self.n = 7
            self.parts[1] = t
        out[t] = self.n + self.parts[1]


class Pair:
    """An object that programs make anew: control flow carries it as it does a dataclass."""

    def __init__(self, low: Any, high: Any) -> None:
        self.low, self.high = low, high

    def __extract_mlir_values__(self) -> list[Any]:
        return [self.low, self.high]

    def __new_from_mlir_values__(self, values: list[Any]) -> "Pair":
        return Pair(*values)

    def widened(self, x: Any) -> "Pair":
        return Pair(cute.math.min(self.low, x), cute.math.max(self.high, x))


def run(kernel: Any) -> list[int]:
    out = np.zeros(8, np.int32)
    kernel(out).launch(1, 8, device="sim")
    return out.tolist()


def test_attributes_are_carried() -> None:
    @cute.kernel
    def kernel(out):
        t, _, _ = cute.arch.thread_idx()
        sums, other, names = Sums(), Sums(1), SimpleNamespace(odd=0)
        counted = Counted()
        for i in cute.range(t):
            if i % 2 == 0:
                sums.add(i)
            else:
                other.total = other.total * 2
                counted.count += 1
                names.odd += 1
            other.inner.most = 5
        while sums.total > 10:
            sums.total -= 10
        out[t] = sums.total + 100 * sums.inner.most + 1000 * other.total + 10000 * sums.inner.owner.inner.most
        if counted.count != names.odd:
            out[t] = -1

    wanted: list[int] = []
    for t in range(8):
        even = [i for i in range(t) if i % 2 == 0]
        total = sum(even) - 10 * (sum(even) > 10)
        wanted.append(total + 100 * max(even, default=0) + 1000 * 2 ** (t // 2) + 10000 * max(even, default=0))
    assert run(kernel) == wanted


def test_object_of_a_method_stays_as_it_was() -> None:
    method = Method()
    for _ in range(2):
        assert run(method.run) == [5, 5, 5, 5, 5, 12, 13, 14]
        assert (method.n, method.parts) == (3, [1, 2])
        Method.run._built.clear()  # pyright: ignore


def test_objects_that_differ_have_no_value() -> None:
    @cute.kernel
    def kernel(out):
        t, _, _ = cute.arch.thread_idx()
        a, b = Sums(1), Sums(2)
        if t > 3:
            a = b
        out[t] = a.total

    with pytest.raises(ProgramError, match="'a' has no value here: it is a Sums on one path and another Sums") as error:
        run(kernel)
    assert error.value.code == "E5007"


def test_attributes_on_some_paths_only() -> None:
    @cute.kernel
    def on_a_path(out):
        t, _, _ = cute.arch.thread_idx()
        a = Sums(1)
        if t > 3:
            a.extra = t
        out[t] = a.extra

    @cute.kernel
    def in_a_loop(out):
        t, _, _ = cute.arch.thread_idx()
        a = Sums(1)
        for i in range(t):
            a.extra = i
        out[t] = a.extra

    for kernel, where in ((on_a_path, "on one path of the 'if'"), (in_a_loop, "in an iteration of the loop")):
        with pytest.raises(ProgramError, match=f"'extra' has no value here: .* attribute {where}") as error:
            run(kernel)
        assert error.value.code == "E5007"
        place = error.value.diagnostics[0].place
        assert place is not None
        assert "out[t] = a.extra" in place.text


def test_attributes_that_only_a_part_of_the_kernel_has() -> None:
    @cute.kernel
    def kernel(out):
        t, _, _ = cute.arch.thread_idx()
        a = Sums(1)
        for i in range(t):
            a.parts = {}
            a.parts["t"] = i
            a.total += a.parts["t"]
        if t > 3:
            a.only = {"t": t}
            a.total += a.only["t"]
        out[t] = a.total

    assert run(kernel) == [1 + sum(range(t)) + t * (t > 3) for t in range(8)]


def test_objects_that_are_made_anew() -> None:
    @cute.kernel
    def kernel(out):
        t, _, _ = cute.arch.thread_idx()
        first = pair = Pair(t, t)
        for i in cute.range(4):
            pair = pair.widened(i * t)
        if t > 5:
            pair = Pair(t * 0, pair.high)
        pair.low = pair.low + 1
        out[t] = 100 * pair.low + pair.high + 1000 * first.low

    assert run(kernel) == [100 + 3 * t + 1000 * t for t in range(8)]


class _Sized(NamedTuple):
    size: int

    @cute.kernel
    def kernel(self, A: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        values = cute.make_rmem_tensor(self.size, cute.Float32)
        values.fill(2.0)
        A[t] = A[t] + values[self.size - 1]

    @cute.jit
    def __call__(self, A: cute.Tensor):
        self.kernel(A).launch(grid=1, block=self.size)


def test_the_numbers_of_a_named_tuple_whose_method_is_compiled_are_known() -> None:
    A = np.zeros(4, np.float32)
    _Sized(4)(A)
    cute.compile(_Sized(4), A)(A)
    assert A.tolist() == [4] * 4


class _Options(NamedTuple):
    size: cute.Constexpr
    factor: cute.Float32 | float = 2.0

    def __c_pointers__(self):
        raise AssertionError("a tuple is passed element by element")


@cute.kernel
def _scaled(A: cute.Tensor, options: _Options):
    t, _, _ = cute.arch.thread_idx()
    values = cute.make_rmem_tensor(options.size, cute.Float32)
    values.fill(options.factor)
    A[t] = values[0]


@cute.jit
def _scale(A: cute.Tensor, options: _Options):
    _scaled(A, options).launch(grid=1, block=4)


def test_the_annotations_of_a_named_tuple_count() -> None:
    A = np.zeros(4, np.float32)
    compiled = cute.compile(_scale, A, _Options(3))
    compiled(A, _Options(3, 5.0))
    assert A.tolist() == [5] * 4
    assert len(compiled.kernels) == 1


class _Addressed(NamedTuple):
    start: cute.Pointer | None
    size: cute.Int32 | int


@cute.kernel
def _filled(start: cute.Pointer, size: cute.Int32):
    t, _, _ = cute.arch.thread_idx()
    cute.make_tensor(start, cute.make_layout(size))[t] = cute.Float32(t)


@cute.jit
def _fill(where: _Addressed):
    _filled(where.start, where.size).launch(grid=1, block=4)


def test_a_number_in_the_place_of_a_pointer_is_its_address() -> None:
    A, B = np.zeros(4, np.float32), np.zeros(4, np.float32)
    kept = [from_dlpack(A), from_dlpack(B)]
    compiled = cute.compile(_fill, _Addressed(make_ptr(cute.Float32, A.ctypes.data), 4))
    compiled(_Addressed(B.ctypes.data, 4))  # pyright: ignore[reportArgumentType]
    assert (A.tolist(), B.tolist()) == ([0] * 4, [0, 1, 2, 3])
    assert len(compiled.kernels) == len(kept) - 1
