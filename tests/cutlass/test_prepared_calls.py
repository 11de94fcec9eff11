# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of compiled functions on a GPU: prepared once for arguments of the same shapes, and made anew for others."""

import struct
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.runtime.compiled.artifact import Artifact
from tilefold.runtime.cuda.driver import Driver, Library
from tilefold.runtime.cuda.loaded_kernel import Kernel
from tilefold.runtime.cuda.prepared import Prepared

from tests.runtime.fakes import FakeDriver, FakeLibrary
from tests.work import calls
from tilefold import cute
from tilefold.cute.host.compiled import CompiledFunction
from tilefold.cute.runtime import from_dlpack, make_fake_compact_tensor, make_fake_tensor, make_ptr


class DeviceArray:
    """A matrix of f32 on a GPU, by rows."""

    def __init__(self, address: int, rows: int, columns: int) -> None:
        self.shape = rows, columns
        data = {"data": (address, False), "shape": self.shape, "typestr": "<f4", "version": 3}
        self.__cuda_array_interface__ = data


class CUstream(int):
    """A stream as cuda-python has it."""


class Engine:
    """The engine of a device that keeps its launches."""

    def __init__(self) -> None:
        self.library = FakeLibrary()
        self.driver = FakeDriver(self.library)
        self.prepared: dict[Artifact, Prepared] = {}
        self.loads = 0

    def load(self, artifact: Artifact) -> Prepared:
        self.loads += 1
        if artifact not in self.prepared:
            kernel = Kernel(cast(Driver, self.driver), artifact)
            self.prepared[artifact] = Prepared(kernel, cast(Library, self.library))
        self.library.kinds = artifact.kinds
        return self.prepared[artifact]

    def launches(self) -> list[tuple[int, int, list[float]]]:
        """The blocks, the stream and the values, in ascending order, of the launches since the last question."""
        form = "<" + "".join(kind.packing for kind in self.library.kinds).replace("P", "Q")
        made = [(each.grid[0], each.stream, sorted(struct.unpack(form, each.values))) for each in self.library.launched]
        self.library.launched.clear()
        return made


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    made = Engine()

    def gpu_engine(ordinal: int) -> Engine:
        return made

    monkeypatch.setattr("tilefold.driver.devices.gpu_engine", gpu_engine)
    return made


@cute.kernel
def scale(A: cute.Tensor, B: cute.Tensor, alpha: cute.Float32, rows: cute.Int32) -> None:
    t, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    if block < rows:
        B[block, t] = alpha * A[block, t]


@cute.jit
def scaled(A: cute.Tensor, B: cute.Tensor, alpha: cute.Float32, stream: Any) -> None:
    scale(A, B, alpha, A.shape[0] - 1).launch(grid=(A.shape[0], 1, 1), block=(32, 1, 1), stream=stream)


@cute.jit
def scaled_twice(A: cute.Tensor, B: cute.Tensor, n: cute.Int32) -> None:
    scale(A, B, 2.0, n).launch(grid=(n, 1, 1), block=(32, 1, 1))
    scale(B, A, 0.5, n + 1).launch(grid=(n, 1, 1), block=(32, 1, 1))


@cute.jit
def of_pointer(a: cute.Pointer, n: cute.Int32) -> None:
    A = cute.make_tensor(a, cute.make_layout((4, 32), stride=(32, 1)))
    scale(A, A, 1.0, n).launch(grid=(4, 1, 1), block=(32, 1, 1))


def _wrapped(address: int, rows: int) -> Any:
    return from_dlpack(DeviceArray(address, rows, 32)).mark_layout_dynamic(1)


def _plain(address: int, rows: int) -> Any:
    return DeviceArray(address, rows, 32)


def _compiled(rows: int = 4) -> CompiledFunction:
    return cute.compile(scaled, _wrapped(0x1000, rows), _wrapped(0x2000, rows), 1.0, CUstream(0))


def _values(rows: int, alpha: float, a: int, b: int) -> list[float]:
    """Those of `scale`: numbers and addresses, and the extents and strides of two dynamic matrices of 32 columns."""
    return sorted([rows - 1, alpha, a, b, *(rows, 32, 32) * 2])


@pytest.mark.parametrize("wrap", [_wrapped, _plain])
def test_addresses_numbers_and_streams_differ_without_preparing_anew(engine: Engine, wrap: Any) -> None:
    made = _compiled()
    made(wrap(0x1000, 4), wrap(0x2000, 4), 3.0, CUstream(5))
    assert engine.launches() == [(4, 5, _values(4, 3.0, 0x1000, 0x2000))]
    before = engine.loads
    made(wrap(0x3000, 4), wrap(0x4000, 4), 4.0, CUstream(6))
    made(wrap(0x1000, 4), wrap(0x2000, 4), alpha=5.0, stream=CUstream(5))
    assert engine.launches() == [
        (4, 6, _values(4, 4.0, 0x3000, 0x4000)),
        (4, 5, _values(4, 5.0, 0x1000, 0x2000)),
    ]
    assert engine.loads == before


def test_numbers_of_a_type_are_passed_as_those_of_python(engine: Engine) -> None:
    made = _compiled()
    for alpha in (cute.Float32(3.0), cute.Float32(4.5), 5.0):
        made(_wrapped(0x1000, 4), _wrapped(0x2000, 4), alpha, CUstream(0))
    assert engine.launches() == [(4, 0, _values(4, alpha, 0x1000, 0x2000)) for alpha in (3.0, 4.5, 5.0)]
    assert engine.loads == 2  # one for each class
    both, a, b = (0x1000, 0x2000), DeviceArray(0x1000, 4, 32), DeviceArray(0x2000, 4, 32)
    twice = cute.compile(scaled_twice, a, b, 2)
    for n in (3, 3, 2):
        twice(a, b, cute.Int32(n))
    assert engine.launches() == [
        (n, 0, sorted(call)) for n in (3, 3, 2) for call in ((2.0, n, *both), (0.5, n + 1, *both))
    ]
    assert engine.loads == 6


def test_other_extents_have_other_grids_and_values(engine: Engine) -> None:
    made = _compiled()
    for rows in (4, 7, 4, 7):
        made(_wrapped(0x1000, rows), _wrapped(0x2000, rows), 1.0, CUstream(0))
    assert engine.launches() == [(rows, 0, _values(rows, 1.0, 0x1000, 0x2000)) for rows in (4, 7, 4, 7)]
    assert engine.loads == 2
    assert len(made.kernels) == 1


def test_strides_alignment_and_elements_are_compared(engine: Engine) -> None:
    made = _compiled()
    made(_wrapped(0x1000, 4), _wrapped(0x2000, 4), 1.0, CUstream(0))
    strided = DeviceArray(0x1000, 4, 32)
    strided.__cuda_array_interface__["strides"] = (256, 4)
    made(strided, _wrapped(0x2000, 4), 1.0, CUstream(0))
    made(_wrapped(0x1004, 4), _wrapped(0x2000, 4), 1.0, CUstream(0))
    assert engine.loads == 3
    assert [values[-2] for _, _, values in engine.launches()] == [0x1000, 0x1000, 0x1004]


def test_numbers_of_grids_are_compared_and_all_launches_are_made(engine: Engine) -> None:
    a, b = DeviceArray(0x1000, 4, 32), DeviceArray(0x2000, 4, 32)
    made, both = cute.compile(scaled_twice, a, b, 2), (0x1000, 0x2000)
    for n in (2, 3, 2):
        made(a, b, n)
    expected = [(n, 0, sorted(call)) for n in (2, 3, 2) for call in ((2.0, n, *both), (0.5, n + 1, *both))]
    assert engine.launches() == expected
    assert engine.loads == 4


def test_pointers_are_only_addresses(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilefold.runtime.cuda.is_available", lambda: True)
    made = cute.compile(of_pointer, make_ptr(cute.Float32, 0x1000, assumed_align=16), 1)
    for address in (0x1000, 0x3000):
        made(make_ptr(cute.Float32, address, assumed_align=16), 3)
    assert engine.loads == 1
    for address in (0x4000, 0x5000):  # arrays in the place of their pointers
        made(DeviceArray(address, 4, 32), 3)
    assert [values[-1] for _, _, values in engine.launches()] == [0x1000, 0x3000, 0x4000, 0x5000]
    assert engine.loads == 2
    with pytest.raises(TilefoldError, match=r"E3106.*array of i32, and .* a pointer to Float32"):
        made(np.zeros(4, np.int32), 3)


def test_numbers_out_of_their_range_are_refused_after_a_call_that_fitted(engine: Engine) -> None:
    a, b = DeviceArray(0x1000, 4, 32), DeviceArray(0x2000, 4, 32)
    made = cute.compile(scaled_twice, a, b, 2)
    made(a, b, 2)
    with pytest.raises(TilefoldError, match="E3106"):
        made(a, b, 1 << 40)
    with pytest.raises(TypeError, match="missing"):
        made(a, b)
    assert len(engine.launches()) == 2


class Scaling(NamedTuple):
    """Numbers of a call, with a constant of the function."""

    alpha: cute.Float32
    rows: cute.Int32
    threads: cute.Constexpr = 32
    rest: object = None


@dataclass(frozen=True)
class Matrices:
    """Two matrices."""

    source: cute.Tensor
    target: cute.Tensor


@cute.jit
def of_parts(matrices: Matrices, scaling: Scaling, others: Any, more: Any) -> None:
    scale(matrices.source, others[0], scaling.alpha, scaling.rows).launch(grid=(4, 1, 1), block=(scaling.threads, 1, 1))
    scale(more["target"], matrices.target, 2.0, 3).launch(grid=(4, 1, 1), block=(32, 1, 1))


def test_parts_of_containers_are_compared_and_passed(engine: Engine) -> None:
    def arguments(first: int, alpha: float, rows: int, rest: object = None) -> tuple[Any, ...]:
        a, b, c, d = (DeviceArray(first + 0x1000 * n, 4, 32) for n in range(4))
        return (
            Matrices(cast(Any, a), cast(Any, b)),
            Scaling(cast(Any, alpha), cast(Any, rows), 32, rest),
            [c],
            {"target": d},
        )

    made = cute.compile(of_parts, *arguments(0x1000, 1.0, 2))
    made(*arguments(0x1000, 1.0, 2))
    loads = engine.loads
    made(*arguments(0x8000, 3.0, 1))
    plain = arguments(0x8000, 3.0, 1)
    made(plain[0], tuple(plain[1]), *plain[2:])  # the same numbers in a plain tuple
    given = arguments(0x9000, 5.0, 2)
    assert calls(lambda: made(*given)) < 150  # none of which depends on the kernels
    assert engine.loads == loads + 2  # for the plain tuple alone
    own = sorted((2.0, 3, 0xB000, 0x9000))
    assert engine.launches() == [
        (4, 0, sorted((1.0, 2, 0x1000, 0x3000))),
        (4, 0, sorted((2.0, 3, 0x4000, 0x2000))),
        *[(4, 0, sorted((3.0, 1, 0x8000, 0xA000))), (4, 0, own)] * 2,
        (4, 0, sorted((5.0, 2, 0x9000, 0xB000))),
        (4, 0, sorted((2.0, 3, 0xC000, 0xA000))),
    ]
    other = arguments(0x1000, 1.0, 2)
    with pytest.raises(TilefoldError):
        made(*other[:2], [], other[3])
    with pytest.raises(TilefoldError, match="E3106"):
        made(*arguments(0x1000, 1.0, 1 << 40))
    assert not engine.launches()


@cute.jit
def of_any_shape(A: cute.Tensor, B: cute.Tensor, n: cute.Int32, alpha: cute.Float32) -> None:
    if n > 100:
        n = n - 100
    rows = cute.ceil_div(A.shape[0], n)
    scale(A, B, alpha * 0.5, rows + 1).launch(grid=(rows, 1, 1), block=(32, 1, 1))


def test_calls_of_many_shapes_are_prepared_once_for_all(engine: Engine) -> None:
    rows = cute.sym_int()
    made = cute.compile(
        of_any_shape,
        make_fake_compact_tensor(cute.Float32, (rows, 32), stride_order=(1, 0)),
        make_fake_tensor(cute.Float32, (rows, 32), (cute.sym_int(divisibility=4), 1)),
        3,
        1.0,
    )

    def call(rows: int, n: int, alpha: float, first: int = 0x1000, others: int | None = None) -> None:
        made(DeviceArray(first, rows, 32), DeviceArray(2 * first, others or rows, 32), n, alpha)

    def expected(rows: int, n: int, alpha: float, first: int = 0x1000) -> tuple[int, int, list[float]]:
        grid = -(-rows // n)
        return grid, 0, sorted([alpha * 0.5, grid + 1, first, 2 * first, rows, rows, 32])

    for rows in range(4, 16):
        call(rows, 3, 2.0)
    assert engine.launches() == [expected(rows, 3, 2.0) for rows in range(4, 16)]
    loads = engine.loads
    assert loads < 12
    for rows in range(20, 60):
        call(rows, rows % 7 + 1, rows / 4, 0x1000 * rows)
    assert engine.launches() == [expected(rows, rows % 7 + 1, rows / 4, 0x1000 * rows) for rows in range(20, 60)]
    assert engine.loads == loads
    assert calls(lambda: call(61, 5, 1.0)) < 200  # a call that is not prepared makes thousands
    engine.launches()
    call(61, 104, 1.0)  # compiled for numbers up to 100
    assert engine.launches() == [expected(61, 4, 1.0)]
    assert engine.loads == loads + 1
    with pytest.raises(TilefoldError, match="extent 0 62, but extent 0 of argument 'A' is 61"):
        call(61, 5, 1.0, others=62)


@cute.jit
def leading_zeros(x: cute.Int32) -> cute.Int32:
    found, done = cute.Int32(32), False
    for i in cute.range(32):
        if ((1 << (31 - i)) & x) and not done:
            found, done = cute.Int32(i), True
    return found


@cute.jit
def by_leading_zeros(A: cute.Tensor, B: cute.Tensor) -> None:
    n = 1 << (32 - leading_zeros(A.shape[0]))
    scale(A, B, 1.0, n).launch(grid=(n, 1, 1), block=(32, 1, 1))


def test_helpers_that_compute_numbers_are_no_reason_to_compile_anew(engine: Engine) -> None:
    made = cute.compile(by_leading_zeros, _wrapped(0x1000, 4), _wrapped(0x2000, 4))
    for rows in (*range(4, 40), 200):
        made(_wrapped(0x1000, rows), _wrapped(0x2000, rows))
        powers = 1 << rows.bit_length()
        assert engine.launches() == [(powers, 0, sorted([1.0, powers, 0x1000, 0x2000, *(rows, 32, 32) * 2]))]
    assert len(made.kernels) == 1
    assert engine.loads <= 9


def test_strides_that_only_happened_to_be_divisible_may_be_others(engine: Engine) -> None:
    def padded(address: int, step: int) -> Any:
        array = DeviceArray(address, 4, 32)
        array.__cuda_array_interface__["strides"] = (4 * step, 4)
        return array

    a, b = (from_dlpack(padded(address, 32)).mark_layout_dynamic(1) for address in (0x1000, 0x2000))
    made = cute.compile(scaled, a, b, 1.0, CUstream(0), options="--enable-tvm-ffi")
    for step in (36, 34, 33, 40):
        made(padded(0x1004, step), padded(0x2000, 32), 1.0, CUstream(0))
    assert [values.count(step) for (_, _, values), step in zip(engine.launches(), (36, 34, 33, 40), strict=True)] == [
        1
    ] * 4
    assert len(made.kernels) <= 4
    declared = cute.compile(
        scaled,
        make_fake_tensor(cute.Float32, (4, 32), (cute.sym_int(divisibility=4), 1)),
        make_fake_tensor(cute.Float32, (4, 32), (cute.sym_int(divisibility=4), 1)),
        1.0,
        CUstream(0),
        options="--enable-tvm-ffi",
    )
    declared(padded(0x1000, 36), padded(0x2000, 32), 1.0, CUstream(0))
    with pytest.raises(TilefoldError, match="E3106"):
        declared(padded(0x1000, 34), padded(0x2000, 32), 1.0, CUstream(0))
