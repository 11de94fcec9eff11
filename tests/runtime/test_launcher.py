# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prepared launches: what reaches the driver, and when a launch may not be taken for one like another."""

import struct
import threading
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tilefold.base.parameters import POINTER, SCALARS
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.integers import Unknown
from tilefold.runtime.arrays.signature import Dynamic, dynamic
from tilefold.runtime.compiled.artifact import Parameter
from tilefold.runtime.cuda.comparison import Rules
from tilefold.runtime.cuda.direct import Args
from tilefold.runtime.cuda.launcher import Launcher
from tilefold.runtime.cuda.prepared import Prepared
from tilefold.runtime.errors import LaunchError
from tilefold.runtime.options import LaunchAttributes, launch_attributes
from tilefold.runtime.streams import current_stream_of, handle_of

from tests.runtime.fakes import FakeLibrary, Tensor, prepared, torch_module

__all__ = ["torch_module"]
pytestmark = pytest.mark.usefixtures("torch_module")

A, B = Parameter("A", POINTER, 16), Parameter("B", POINTER, 16)
N = Parameter("n", SCALARS["i32"])
BLOCK, GRID = (32, 1, 1), (5, 1, 1)


class Resolving:
    """Prepares each new combination once more, and keeps what it was asked for."""

    def __init__(self, make: Callable[[], Prepared | None]) -> None:
        self.asked: list[Args] = []
        self.make = make

    def __call__(
        self, args: Args, block: Any, grid: Any, stream: Any, attributes: LaunchAttributes
    ) -> tuple[Any, Prepared | None]:
        self.asked.append(args)
        return "resolved", self.make()


def _launcher(
    *parameters: Parameter,
    constants: frozenset[str] = frozenset(),
    **rules: Any,
) -> Any:
    library = FakeLibrary()
    kernel = [each for each in parameters if each.name not in constants]
    resolve = Resolving(lambda: prepared(library, *kernel))
    names = tuple(parameter.name for parameter in parameters)
    return Launcher(Rules(names, constants, **rules), resolve), resolve, library


def test_second_launch_of_the_same_types_goes_to_the_driver() -> None:
    launcher, resolve, library = _launcher(A, N)
    assert launcher.launch((Tensor(0x1000), 3), BLOCK, GRID) == "resolved"
    assert launcher.launch((Tensor(0x2000), 4), BLOCK, (7, 2)) is None
    assert len(resolve.asked) == 1
    (launched,) = library.launched
    assert (launched.grid, launched.block, launched.stream, launched.attributes) == ((7, 2, 1), BLOCK, 0, [])
    assert launched.values == struct.pack("<Qi", 0x2000, 4)
    assert launched.function > 1000


OTHERS: dict[str, tuple[Any, ...]] = {
    "dtype": (Tensor(0x1000, dtype="float16"), 3),
    "shape": (Tensor(0x1000, (8, 4)), 3),
    "stride": (Tensor(0x1000, stride=(1, 4)), 3),
    "another stride": (Tensor(0x1000, stride=(1, 8)), 3),
    "device": (Tensor(0x1000, device=1), 3),
    "host": (Tensor(0x1000, device=-1), 3),
    "alignment": (Tensor(0x1004), 3),
    "wider number": (Tensor(0x1000), 1 << 31),
    "truth value": (Tensor(0x1000), True),
    "float": (Tensor(0x1000), 3.0),
    "no tensor": (None, 3),
    "swapped": (3, Tensor(0x1000)),
    "too few": (Tensor(0x1000),),
    "too many": (Tensor(0x1000), 3, 4),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_arguments_of_another_type_are_resolved(other: tuple[Any, ...]) -> None:
    launcher, resolve, library = _launcher(A, N)
    for args in ((Tensor(0x1000), 3), (Tensor(0x3000), 4), other):
        launcher.launch(args, BLOCK, GRID)
    assert resolve.asked[1:] == [other]
    assert len(library.launched) == 1
    launcher.launch((Tensor(0x1000), 3), BLOCK, GRID)  # the first one is known as before
    assert len(resolve.asked) == 2
    assert len(library.launched) == 2


def test_tensor_that_changes_in_place_is_read_again() -> None:
    launcher, resolve, library = _launcher(A)
    tensor = Tensor(0x1000)
    for _ in range(2):
        launcher.launch((tensor,), BLOCK, GRID)
    tensor.address = 0x5000
    launcher.launch((tensor,), BLOCK, GRID)
    assert library.launched[-1].values == struct.pack("<Q", 0x5000)
    tensor.shape = (2, 16)
    launcher.launch((tensor,), BLOCK, GRID)
    assert len(resolve.asked) == 2


def test_another_block_is_another_kernel() -> None:
    launcher, resolve, _ = _launcher(A)
    for block in ((32, 1, 1), (64, 1, 1), (32, 1, 1), (64, 1, 1)):
        launcher.launch((Tensor(0x1000),), block, GRID)
    assert len(resolve.asked) == 2


def test_constants_and_none_are_part_of_the_type_and_not_passed() -> None:
    constant = Parameter("C", SCALARS["i32"])
    launcher, resolve, library = _launcher(A, constant, B, constants=frozenset({"C"}))
    for tile in (8, 16, 8, True, 8.0):
        launcher.launch((Tensor(0x1000), tile, Tensor(0x2000)), BLOCK, GRID)
    assert [args[1] for args in resolve.asked] == [8, 16, True, 8.0]
    assert library.launched[0].values == struct.pack("<QQ", 0x1000, 0x2000)
    launcher.launch((Tensor(0x1000), 8, None), BLOCK, GRID)
    assert resolve.asked[-1][2] is None
    changing = [8]
    for count, expected in ((8, 6), (8, 6), (9, 7), (8, 7)):  # what is in a list counts
        changing[0] = count
        launcher.launch((Tensor(0x1000), changing, Tensor(0x2000)), BLOCK, GRID)
        assert len(resolve.asked) == expected


def test_current_stream_of_torch_is_read_in_each_launch(torch_module: SimpleNamespace) -> None:
    launcher, _, library = _launcher(A)
    for stream in (0, 0x30, 0x40):
        torch_module.stream = stream
        launcher.launch((Tensor(0x1000),), BLOCK, GRID)
    launcher.launch((Tensor(0x1000),), BLOCK, GRID, 0x50)
    launcher.launch((Tensor(0x1000),), BLOCK, GRID, SimpleNamespace(cuda_stream=0x60), launch_attributes(None, True))
    launcher.launch((Tensor(0x1000),), BLOCK, GRID)
    assert [each.stream for each in library.launched] == [0x30, 0x40, 0x50, 0x60, 0x40]
    serialised = [(6, (1, 0, 0, 0))]
    assert [each.attributes for each in library.launched] == [[], [], [], serialised, []]


def test_current_stream_of_a_torch_without_the_private_function() -> None:
    def current_stream(gpu: int) -> SimpleNamespace:
        return SimpleNamespace(cuda_stream=0x30 + gpu)

    torch = SimpleNamespace(_C=SimpleNamespace(), cuda=SimpleNamespace(current_stream=current_stream))
    assert current_stream_of(torch)(2) == 0x32


def test_handle_of_streams_of_other_libraries() -> None:
    assert handle_of(SimpleNamespace(ptr=5)) == 5
    assert handle_of(SimpleNamespace(cuda_stream=6)) == 6
    assert handle_of(SimpleNamespace(__cuda_stream__=lambda: (0, 7))) == 7
    assert handle_of(import_module("cuda.bindings.driver").CUstream(8)) == 8
    with pytest.raises(LaunchError, match="a str is not a stream"):
        handle_of("default")


def test_grid_that_no_gpu_launches_is_refused_and_forgotten() -> None:
    launcher, _, library = _launcher(A)
    launcher.launch((Tensor(0x1000),), BLOCK, GRID)
    for grid in ((0,), (1, 2, 3, 4), (1.5,), (1, 65536)):
        with pytest.raises(LaunchError) as caught:
            launcher.launch((Tensor(0x1000),), BLOCK, grid)
        assert caught.value.code == "E3105"
    changing = [3]
    launcher.launch((Tensor(0x1000),), BLOCK, changing)
    changing[0] = 4
    launcher.launch((Tensor(0x1000),), BLOCK, changing)
    assert [each.grid for each in library.launched] == [(3, 1, 1), (4, 1, 1)]


def test_number_that_its_type_cannot_hold_is_resolved() -> None:
    small = Parameter("n", SCALARS["i8"])
    launcher, resolve, library = _launcher(small)
    for number in (1, 2, 300):
        launcher.launch((number,), BLOCK, GRID)
    assert resolve.asked == [(1,), (300,)]
    assert library.launched[0].values[:1] == b"\x02"


def test_dynamic_extents_and_strides_are_passed() -> None:
    tensor = Parameter("A", POINTER, 16, Layout((Unknown(32, 8), Unknown()), (Unknown(32, 4), 1)))
    rule = Dynamic(divisibility={0: 8})
    launcher, resolve, library = _launcher(tensor, dynamic={"A": rule})
    for shape in ((8, 4), (16, 8), (24, 12)):
        launcher.launch((Tensor(0x1000, shape),), BLOCK, GRID)
    assert len(resolve.asked) == 1
    assert library.launched[-1].values == struct.pack("<Qiii", 0x1000, 24, 12, 12)
    launcher.launch((Tensor(0x1000, (8, 6)),), BLOCK, GRID)  # the stride 6 is divided by 2 only
    assert len(resolve.asked) == 2
    with pytest.raises(LaunchError, match="argument 'A': extent 9 of mode 0 is not a multiple of 8"):
        launcher.launch((Tensor(0x1000, (9, 4)),), BLOCK, GRID)
    for rows in (8, 16, 24):
        launcher.launch((dynamic(Tensor(0x1000, (rows, 12)), divisibility={0: 8}),), BLOCK, GRID)
    assert len(resolve.asked) == 4
    assert library.launched[-1].values == struct.pack("<Qiii", 0x1000, 24, 12, 12)


def test_launch_without_a_context_makes_one_current() -> None:
    launcher, _, library = _launcher(A)
    launcher.launch((Tensor(0x1000),), BLOCK, GRID)
    library.current = 0
    library.statuses = [201]
    launcher.launch((Tensor(0x1000),), BLOCK, GRID)
    assert [each.context for each in library.launched] == [77]
    library.statuses = [700]
    with pytest.raises(RuntimeError, match="launching kernel 'k': cuLaunchKernelEx 700"):
        launcher.launch((Tensor(0x1000),), BLOCK, GRID)


def test_with_many_devices_the_current_one_stays_current() -> None:
    launcher, _, library = _launcher(A)
    launcher.launch((Tensor(0x1000),), BLOCK, GRID)
    library.current = 55
    library.statuses = [400]
    launcher.launch((Tensor(0x1000),), BLOCK, GRID)
    assert [each.context for each in library.launched] == [77]
    assert library.current == 55


def test_threads_do_not_mix_their_arguments() -> None:
    launcher, _, library = _launcher(A, B, N)
    launcher.launch((Tensor(16), Tensor(16), 1), BLOCK, GRID)

    def run(number: int) -> None:
        for each in range(300):
            address = 16 * (1000 * number + each)
            launcher.launch((Tensor(address), Tensor(address), address), BLOCK, (number,))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(library.launched) == 1800
    for each in library.launched:
        a, b, n = struct.unpack("<QQi", each.values)
        assert a == b == n
        assert each.grid == (a // 16000, 1, 1)


def test_dynamic_shared_memory_is_asked_for() -> None:
    library = FakeLibrary()
    launcher = Launcher(Rules(()), Resolving(lambda: prepared(library, dynamic_shared=65536)))
    launcher.launch((), BLOCK, GRID)
    launcher.launch((), BLOCK, GRID)
    assert library.launched[0].shared == 65536


class Interface:
    """An array that says what it is by an interface alone."""

    def __init__(self, address: int, shape: tuple[int, ...] = (4, 8), typestr: str = "<f4") -> None:
        self.__cuda_array_interface__ = {"data": (address, False), "shape": shape, "typestr": typestr}


def test_arrays_by_their_interface() -> None:
    launcher, resolve, library = _launcher(A)
    for address in (0x100, 0x200, 0x300):
        launcher.launch((Interface(address),), BLOCK, GRID)
    assert [each.values for each in library.launched] == [struct.pack("<Q", each) for each in (0x200, 0x300)]
    assert len(resolve.asked) == 1
    others = (Interface(0x104), Interface(0x100, (8, 4)), Interface(0x100, typestr="<i4"), Interface(0x100, (32,)))
    for expected, other in enumerate(others, 2):
        for _ in range(2):
            launcher.launch((other,), BLOCK, GRID)
        assert len(resolve.asked) == expected
    changing = Interface(0x100)
    launcher.launch((changing,), BLOCK, GRID)
    assert len(resolve.asked) == 5
    changing.__cuda_array_interface__["shape"] = (2, 2)
    launcher.launch((changing,), BLOCK, GRID)
    assert len(resolve.asked) == 6
    changing.__cuda_array_interface__["data"] = (0x100, True)  # read-only: whoever resolves says so
    assert launcher.fast((changing,), BLOCK, GRID, None, False) is NotImplemented


def test_arrays_in_wrappers() -> None:
    launcher, resolve, library = _launcher(A, B)
    for address in (0x100, 0x200):
        wrapped = SimpleNamespace(__tilefold_array__=Tensor(address))
        launcher.launch((wrapped, SimpleNamespace(__tilefold_array__=Interface(address))), BLOCK, GRID)
    assert library.launched[0].values == struct.pack("<QQ", 0x200, 0x200)
    launcher.launch((wrapped, wrapped), BLOCK, GRID)
    launcher.launch((Tensor(0x100), wrapped), BLOCK, GRID)
    assert len(resolve.asked) == 3


def test_numbers_of_declared_types_and_of_numpy() -> None:
    names = [
        Parameter("a", SCALARS["i8"]),
        Parameter("b", SCALARS["i64"]),
        Parameter("c", SCALARS["f32"]),
        Parameter("d", SCALARS["i16"]),
    ]
    launcher, resolve, library = _launcher(*names, ranges={"a": (0, 255), "b": (-(1 << 63), (1 << 63) - 1)})
    first = (1, 2, np.float32(0.5), np.int16(-2))
    for args in (first, (255, -(1 << 63), np.float32(1.5), np.int16(-3)), (0, 5, np.float32(2), np.int16(7))):
        launcher.launch(args, BLOCK, GRID)
    assert len(resolve.asked) == 1
    assert library.launched[0].values == struct.pack("<Bqfh", 255, -(1 << 63), 1.5, -3)
    for position, other in ((0, 256), (0, -1), (0, True), (1, 1 << 63), (2, 0.5), (2, np.float64(0.5)), (3, -2)):
        launcher.launch((*first[:position], other, *first[position + 1 :]), BLOCK, GRID)
        assert resolve.asked[-1][position] is other


def test_grids_and_blocks_that_may_change() -> None:
    launcher, resolve, library = _launcher(A)
    block = [32]
    for size in (32, 64, 32):
        block[0] = size
        launcher.launch((Tensor(0x1000),), block, GRID)
    assert len(resolve.asked) == 2
    assert len(library.launched) == 1
    with pytest.raises(LaunchError, match="the block is"):
        launcher.launch((Tensor(0x1000),), {32}, GRID)
