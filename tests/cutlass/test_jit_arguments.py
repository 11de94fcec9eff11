# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects of other libraries as arguments: by their own methods, by adapters, and as structures of C."""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import TilefoldError
from xdsl.dialects.builtin import IndexType

import tilefold.cutlass as cutlass
from tilefold import cute
from tilefold.cutlass.base_typing import JitArgument
from tilefold.cutlass.mlir import ir
from tilefold.cutlass.mlir.dialects import llvm
from tilefold.cutlass.mlir.dialects.cute import PtrType

I32 = ir.IntegerType.get_signless(32)


@cute.kernel
def fill_kernel(a: cute.Tensor, value: cute.Int32) -> None:
    a[cute.arch.thread_idx()[0]] = value


class Count:
    """A number of another library, in its own memory."""

    def __init__(self, number: Any) -> None:
        self.number = number
        self.memory = ctypes.c_int32(number) if isinstance(number, int) else None

    def address(self) -> Any:
        return ctypes.pointer(self.memory) if self.memory is not None else 0


@cutlass.register_jit_arg_adapter(Count)
class CountAdapter:
    """The count as an argument."""

    def __init__(self, count: Count) -> None:
        self.count = count

    def __c_pointers__(self) -> list[Any]:
        return [self.count.address()]

    def __get_mlir_types__(self) -> list[Any]:
        return [cutlass.Int32.mlir_type]

    def __new_from_mlir_values__(self, values: list[Any]) -> Count:
        return Count(values[0])


@cute.jit
def fill(a: cute.Tensor, count: Count) -> None:
    fill_kernel(a, count.number + 1).launch(grid=1, block=4)


def filled(function: Any, argument: Any) -> list[int]:
    a = np.zeros(4, np.int32)
    function(a, argument)
    return a.tolist()


def test_an_adapter_stands_for_objects_of_a_class() -> None:
    assert isinstance(CountAdapter(Count(1)), cutlass.JitArgument)
    assert filled(fill, Count(5)) == [6] * 4
    compiled = cute.compile(fill, np.zeros(4, np.int32), Count(1))
    assert filled(compiled, Count(7)) == [8] * 4
    assert filled(compiled, Count(-9)) == [-8] * 4
    assert len(compiled.kernels) == 1

    class Larger(Count):
        """A class below the one that has an adapter."""

    assert filled(compiled, Larger(2)) == [3] * 4


@cute.kernel
def scaled_by(a: cute.Tensor, count: Count) -> None:
    a[cute.arch.thread_idx()[0]] = count.number * 3


def test_kernels_take_them_as_well() -> None:
    a = np.zeros(4, np.int32)
    scaled_by(a, Count(5)).launch(grid=1, block=4, device="sim")
    assert a.tolist() == [15] * 4


class Matrix(ctypes.Structure):
    """A tensor in C."""

    _fields_ = (
        ("rows", ctypes.c_int32), ("data", ctypes.c_void_p), ("shape", ctypes.c_int32 * 2), ("scale", ctypes.c_float),
        ("step", ctypes.c_double), ("flag", ctypes.c_bool),
    )  # fmt: skip


class MatrixValue(ir.Value):
    """The tensor as a function sees it."""

    def member(self, *position: int) -> Any:
        return llvm.extractvalue(I32, self, position)


class MatrixArgument:
    """The tensor as an argument."""

    def __init__(self, array: NDArray[np.float32]) -> None:
        rows, columns = array.shape
        shape = (ctypes.c_int32 * 2)(rows, columns)
        self.memory = Matrix(rows, array.ctypes.data, shape, 0.5, 0.25, True)

    def __get_mlir_types__(self) -> list[Any]:
        f32, f64, i1 = cutlass.Float32.mlir_type, cutlass.Float64.mlir_type, cutlass.Boolean.mlir_type
        shape = llvm.StructType.get_literal([I32, I32])
        return [llvm.StructType.get_literal([I32, llvm.PointerType.get(), shape, f32, f64, i1])]

    def __c_pointers__(self) -> list[Any]:
        return [ctypes.addressof(self.memory)]

    def __new_from_mlir_values__(self, values: list[Any]) -> MatrixValue:
        return MatrixValue(values[0])


@cute.jit
def show(matrix: Any) -> None:
    pointer = cute.make_ptr(cute.Float32, matrix.member(1))
    shape = matrix.member(2, 0), matrix.member(2, 1)
    cute.printf("{} {} {} {} {}\n", matrix.member(0), shape, matrix.member(3), matrix.member(4), matrix.member(5))
    tensor = cute.make_tensor(pointer, cute.make_layout(shape, stride=(shape[1], 1)))
    cute.print_tensor(tensor)


def test_structures_of_c(capfd: pytest.CaptureFixture[str]) -> None:
    a, b = (np.arange(6, dtype=np.float32).reshape(2, 3) + start for start in (0, 10))
    keep = cute.runtime.from_dlpack(a), cute.runtime.from_dlpack(b)
    compiled = cute.compile(show, MatrixArgument(a))
    for array in (a, b):
        compiled(MatrixArgument(array))
        first, _, *rows = capfd.readouterr().out.splitlines()
        assert first == "2 (2,3) 0.500000 0.250000 1"
        assert [[float(number) for number in row.split()] for row in rows] == array.tolist()
    assert len(keep) == 2


class Sums:
    """Values of a host function, which a kernel takes."""

    def __init__(self, tensor: Any, offset: Any) -> None:
        self.tensor, self.offset = tensor, offset

    def __extract_mlir_values__(self) -> list[Any]:
        return [cutlass.extract_mlir_values(self.tensor), cutlass.extract_mlir_values(self.offset)]

    def __new_from_mlir_values__(self, values: list[Any]) -> "Sums":
        return Sums(values[0], values[1])


@cute.kernel
def add_kernel(x: Sums) -> None:
    i = cute.arch.thread_idx()[0]
    x.tensor[i] = x.tensor[i] + x.offset


@cute.jit
def add(a: cute.Tensor, offset: cute.Int32) -> None:
    add_kernel(Sums(a, offset)).launch(grid=1, block=4)


def test_dynamic_expressions_reach_kernels() -> None:
    assert isinstance(Sums(1, 2), cutlass.DynamicExpression)
    assert filled(add, 5) == [5] * 4


class Buffer:
    """A pointer of a program, to whose methods its own lead."""

    def __init__(self, pointer: Any) -> None:
        self.pointer = pointer

    def __c_pointers__(self) -> Any:
        return self.pointer.__c_pointers__()

    def __get_mlir_types__(self) -> Any:
        return self.pointer.__get_mlir_types__()

    def __new_from_mlir_values__(self, values: list[Any]) -> "Buffer":
        return Buffer(self.pointer.__new_from_mlir_values__(values))


@cute.jit
def fill_buffer(buffer: Any) -> None:
    fill_kernel(cute.make_tensor(buffer.pointer, cute.make_layout(4)), 3).launch(grid=1, block=4)


def test_objects_with_pointers_of_ours_need_not_be_read() -> None:
    a = np.zeros(4, np.int32)
    compiled = cute.compile(fill_buffer, Buffer(cute.runtime.make_ptr(cute.Int32, a.ctypes.data)))
    compiled(Buffer(cute.runtime.make_ptr(cute.Int32, a.ctypes.data)))
    assert a.tolist() == [3] * 4


class HostPointer(cute.Pointer):
    """A pointer to the memory of the host, of a program's own class."""

    def __init__(self, address: int, space: Any) -> None:
        self._address, self._space = ctypes.c_void_p(address), space

    def __c_pointers__(self) -> list[int]:
        return [ctypes.addressof(self._address)]

    def __get_mlir_types__(self) -> list[Any]:
        return [PtrType.get(cute.Int32.mlir_type, self._space, 16)]

    def __new_from_mlir_values__(self, values: list[Any]) -> Any:
        return values[0]


@cute.jit
def fill_by(pointer: cute.Pointer, n: cute.Int32) -> None:
    fill_kernel(cute.make_tensor(pointer, cute.make_layout(n)), 3).launch(grid=1, block=4)


def test_pointers_of_a_derived_class() -> None:
    """Calls of the compiled function may pass an address in its place."""
    a, b = np.zeros((2, 4), np.int32)
    pointer = HostPointer(a.ctypes.data, cute.AddressSpace.gmem)
    compiled = cute.compile(fill_by, pointer, 4)
    compiled(pointer, 4)
    compiled(b.ctypes.data, 4)
    assert [*a, *b] == [3] * 8


class Scaled(JitArgument):
    """Fields of which those that are Python's numbers are constants, as the base of a library's arguments has it."""

    def __init__(self, alpha: Any, count: Any, power: int) -> None:
        self.alpha, self.count, self.power = alpha, count, power

    def _dynamic(self) -> dict[str, Any]:
        return {name: part for name, part in vars(self).items() if not isinstance(part, int | float)}

    def __c_pointers__(self) -> list[Any]:
        return [pointer for part in self._dynamic().values() for pointer in part.__c_pointers__()]

    def __get_mlir_types__(self) -> list[Any]:
        return [type for part in self._dynamic().values() for type in part.__get_mlir_types__()]

    def __new_from_mlir_values__(self, values: Sequence[Any]) -> "Scaled":
        parts = zip(self._dynamic().items(), values, strict=True)
        return Scaled(**{**vars(self), **{name: cutlass.new_from_mlir_values(x, [v]) for (name, x), v in parts}})


@cute.kernel
def scale_kernel(a: cute.Tensor, scaled: Scaled) -> None:
    assert isinstance(scaled.alpha, cutlass.Float32)
    assert isinstance(scaled.count, cutlass.Int32)
    t = cute.arch.thread_idx()[0]
    if t < scaled.count:
        a[t] = a[t] * scaled.alpha**scaled.power * TWO


@cute.jit
def scale(a: cute.Tensor, scaled: Scaled) -> None:
    scale_kernel(a, scaled).launch(grid=1, block=4)


TWO = cutlass.Float32(2)


def test_numbers_with_types_are_no_constants() -> None:
    a = np.ones(4, np.float32)
    compiled = cute.compile(scale, a, Scaled(cutlass.Float32(3), cutlass.Int32(4), 2))
    for function in (compiled, scale):
        for alpha, count in ((3, 2), (5, 3)):
            a[:] = 1
            function(a, Scaled(cutlass.Float32(alpha), cutlass.Int32(count), 2))
            assert a.tolist() == [2 * alpha**2] * count + [1] * (4 - count)
    assert len(compiled.kernels) == 1


def test_numbers_with_types_compute_as_python_does() -> None:
    x, n = cutlass.Float32(1.5), cutlass.Int32(7)
    results = [x + 1, 2 - x, n // 2, -n, n * x, 1 << cutlass.Int32(3), n / 2, abs(cutlass.Int64(-1)) + n]
    assert [str(result) for result in results] == ["2.5", "0.5", "3", "-7", "10.5", "8", "3.5", "8"]
    assert [result.dtype.name for result in results[4:]] == ["Float32", "Int32", "Float32", "Int64"]
    assert (n == 7, n < x, int(x), [*range(cutlass.Int32(2))], f"{x:.2f}") == (True, False, 1, [0, 1], "1.50")
    assert (cutlass.Int32(x), repr(x)) == (1, "Float32(1.5)")
    assert (np.ones(2, np.float32) * x).dtype == np.float32
    with pytest.raises(TypeError):
        range(x)  # pyright: ignore[reportArgumentType]


class Faulty:
    """An argument that says too little, or of values that C lacks."""

    def __init__(self, types: list[Any], pointers: list[Any]) -> None:
        self.types, self.pointers = types, pointers

    def __get_mlir_types__(self) -> list[Any]:
        return self.types

    def __c_pointers__(self) -> list[Any]:
        return self.pointers

    def __new_from_mlir_values__(self, values: list[Any]) -> Any:
        return values


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        (Faulty([I32], []), "argument 'count' has 1 types and 0 pointers"),
        (Faulty([I32], [0]), "argument 'count' has a null pointer for its value 0"),
        (Faulty([I32], [ctypes.c_int32()]), "argument 'count' has a c_int in place of a pointer"),
        (Faulty([IndexType()], [4096]), "argument 'count0' has a value of type index"),
    ],
)
def test_faulty_arguments(argument: Faulty, words: str) -> None:
    with pytest.raises(TilefoldError, match=words) as caught:
        filled(fill, argument)
    assert caught.value.code == "E3106"


def test_a_structure_has_its_members_alone() -> None:
    with pytest.raises(TilefoldError, match="has no member 6"):
        llvm.extractvalue(I32, MatrixValue(llvm.StructValue((1, 2))), [6])
    with pytest.raises(TilefoldError, match="not packed"):
        llvm.StructType.get_literal([I32], packed=True)
