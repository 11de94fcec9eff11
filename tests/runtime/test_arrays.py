# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of other libraries: what is read of them, which are refused, and the types that kernels get for them."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefold.layout.algebra.integers import Unknown
from tilefold.runtime.arrays.array import NOWHERE, Array, array_of, is_array, read_dlpack, row_major
from tilefold.runtime.arrays.host_tensors import HostTensors
from tilefold.runtime.arrays.signature import ArraySpec, Dynamic, dynamic, fit_conditions, infer_array_spec
from tilefold.runtime.engine import TensorArgument
from tilefold.runtime.errors import LaunchError

from tests.runtime.fakes import Tensor


class _Only:
    """An array by some of its interfaces only."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class Unversioned:
    """An array of a library that knows no DLPack 1.0, as JAX does not, where nothing says whether it is read-only."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self) -> Any:
        return self._array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "int8", "uint8", "int16", "uint32", "int64", "bool"])
def test_numpy_and_dlpack_say_the_same(name: str) -> None:
    array = np.zeros((4, 6, 5), name)[1:, ::2, :]
    found = array_of("A", array)
    assert found == read_dlpack(array)
    assert replace(found, writable=False) == read_dlpack(Unversioned(array))
    array.setflags(write=False)
    assert replace(found, writable=False) == read_dlpack(array)
    assert found.address == array.ctypes.data
    assert (found.shape, found.strides, found.device) == ((3, 3, 5), (30, 10, 1), None)
    assert found.itemsize == array.itemsize
    assert found.span == 2 * 30 + 2 * 10 + 4 + 1


@pytest.mark.parametrize(
    ("dtype", "name"),
    [(ml_dtypes.bfloat16, "bf16"), (ml_dtypes.float8_e4m3fn, "f8E4M3FN"), (ml_dtypes.float8_e5m2, "f8E5M2")],
)
def test_types_that_the_interface_has_no_name_for(dtype: Any, name: str) -> None:
    array = np.ones((2, 3), dtype)
    found = array_of("A", array)
    assert found.dtype == name
    storage = HostTensors({"A": found}).arguments["A"].storage
    assert storage.dtype == dtype
    storage[4] = 2
    assert array[1, 1] == 2
    assert TensorArgument.of(array.T).storage.tolist() == [1, 1, 1, 1, 2, 1]


@given(st.data())
def test_strides_of_extents_of_one_depend_on_the_other_modes_alone(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 4))
    shape = data.draw(st.lists(st.sampled_from([1, 1, 3, 8]), min_size=rank, max_size=rank))
    array = np.zeros([n + data.draw(st.integers(0, 2)) for n in shape], data.draw(st.sampled_from(["f2", "f4", "f8"])))
    array = np.transpose(array, data.draw(st.permutations(range(rank))))
    array = array[tuple(slice(n) for n in shape if n)] if array.shape >= tuple(shape) else array
    found = array_of("A", array)
    odd: Any = _Only(__array_interface__={**array.__array_interface__, "strides": tuple(
        step if n != 1 else array.itemsize * data.draw(st.integers(0, 99))
        for n, step in zip(array.shape, array.strides, strict=True)
    )})  # fmt: skip
    assert array_of("A", odd) == found == read_dlpack(array)
    modes = list(zip(found.shape, found.strides, array.strides, strict=True))
    assert all(step * array.itemsize == given for n, step, given in modes if n != 1)
    ones = [step for n, step, _ in modes if n == 1]
    is_contiguous = any(step == 1 for n, step, _ in modes if n != 1)
    assert ones.count(1) == (0 if is_contiguous or not ones else 1)
    assert all(step >= found.span and step * array.itemsize % 16 == 0 for step in ones if step != 1)


def test_cuda_array_interface() -> None:
    interface: dict[str, Any] = {"data": (0x100, False), "shape": (3, 4), "typestr": "<f2", "strides": (2, 6)}
    array = _Only(__cuda_array_interface__=interface, device=SimpleNamespace(id=2))
    assert is_array(array)
    assert array_of("A", array) == Array(0x100, "f16", (3, 4), (1, 3), 2)
    interface["strides"] = None
    assert array_of("A", array).strides == (4, 1)


def test_tensor_of_torch() -> None:
    tensor = Tensor(0x200, (4, 8), (1, 4), "bfloat16", device=1)
    assert array_of("A", tensor) == Array(0x200, "bf16", (4, 8), (1, 4), 1)
    assert array_of("A", Tensor(0x200, device=-1)).device is None
    described = Tensor(0, (4, 8), device=-1)
    described.device = SimpleNamespace(type="meta")
    assert array_of("A", described).device == NOWHERE
    fake: Any = Tensor(0, (4, 8), device=-1)
    fake.fake_mode = SimpleNamespace()
    assert array_of("A", fake).device == NOWHERE


@pytest.mark.parametrize(("shape", "strides", "expected"), [
    ((4, 8), (8, 1), Array(0x200, "f4E2M1FN", (4, 16), (16, 1), 0)),
    ((4, 8, 3), (1, 4, 32), Array(0x200, "f4E2M1FN", (8, 8, 3), (1, 8, 64), 0)),
    ((1, 4, 8), (1, 8, 1), Array(0x200, "f4E2M1FN", (1, 4, 16), (2, 16, 1), 0)),
])  # fmt: skip
def test_pairs_of_torch_are_elements_of_4_bits(
    shape: tuple[int, ...], strides: tuple[int, ...], expected: Array
) -> None:
    assert array_of("A", Tensor(0x200, shape, strides, "float4_e2m1fn_x2")) == expected


def _sparse() -> Tensor:
    tensor = Tensor(0x100)
    tensor.layout = "torch.sparse_coo"
    return tensor


def _elsewhere() -> Tensor:
    tensor = Tensor(0x100, device=-1)
    tensor.device = SimpleNamespace(type="mps")
    return tensor


def _negated() -> Tensor:
    tensor = Tensor(0x100)
    tensor.negated = True
    return tensor


class _Locked:
    """An array that its library does not give away."""

    def __dlpack__(self) -> Any:
        raise BufferError("in use\nby others")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


REFUSED: list[tuple[Any, str]] = [
    (_negated(), "is a view that torch negates when reading it"),
    (Tensor(0), "has no memory"),
    (Tensor(0x200, (4, 8), (16, 2), "float4_e2m1fn_x2"), "has pairs of 4-bit elements in no mode of stride 1"),
    (_Locked(), "cannot be read as an array: BufferError: in use$"),
    (_Only(__array_interface__={"shape": (3,), "typestr": "<f4"}), "cannot be read as an array: KeyError: 'data'"),
    (_Only(__array_interface__={"data": None}), "cannot be read as an array: TypeError: cannot unpack"),
    (np.zeros((2, 2))[::-1], r"has negative strides \(-2, 1\)"),
    (np.zeros((2, 0)), r"is empty: its shape is \(2, 0\)"),
    (np.zeros(3, "complex64"), "has elements of type complex64, which kernels do not support"),
    (np.zeros(3, ">f4"), "has elements of type >f4, of the other byte order"),
    (np.zeros(3, [("a", "f4"), ("b", "u1")])["a"], r"has strides of \(5,\) bytes, between its elements"),
    (_Only(__cuda_array_interface__={"data": (1, True), "shape": (3,), "typestr": "<f4"}), "is read-only"),
    ([1, 2], "is not an array but a list"),
    (_sparse(), "is a sparse_coo tensor"),
    (_elsewhere(), "is on the device"),
    (_Only(__dlpack_device__=lambda: (7, 0), __dlpack__=None), "is on a device of another kind"),
]


@pytest.mark.parametrize(("array", "problem"), REFUSED)
def test_array_that_no_kernel_takes(array: Any, problem: str) -> None:
    with pytest.raises(LaunchError, match=f"(?m)argument 'A' {problem}") as caught:
        array_of("A", array)
    assert caught.value.code == "E3106"


@given(shape=st.lists(st.integers(1, 5), max_size=4), order=st.randoms())
def test_host_tensor_is_the_memory_of_the_array(shape: list[int], order: Any) -> None:
    axes = list(range(len(shape)))
    order.shuffle(axes)
    array = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape).transpose(axes)
    argument = HostTensors({"A": array_of("A", array)}).arguments["A"]
    assert argument.layout is not None
    for coordinate in np.ndindex(array.shape):
        index = sum(c * s for c, s in zip(coordinate, array_of("A", array).strides, strict=True))
        assert argument.storage[index] == array[coordinate]
    argument.storage[0] = -1
    assert array.reshape(-1)[0] == -1


def test_row_major_of_numpy() -> None:
    assert row_major((2, 3, 4)) == tuple(s // 8 for s in np.zeros((2, 3, 4)).strides)
    assert row_major(()) == ()


def _spec(shape: tuple[int, ...], strides: tuple[int, ...] | None = None, **rule: Any) -> ArraySpec:
    array = Array(0x1000, "f16", shape, row_major(shape) if strides is None else strides, 0)
    return infer_array_spec("A", array, Dynamic(**rule) if rule else None)


def test_type_is_static_unless_it_is_declared_dynamic() -> None:
    assert _spec((6, 8)) == ArraySpec("f16", (6, 8), (8, 1), 16)
    assert _spec((6, 8), modes=(0,)) == ArraySpec("f16", (Unknown(), 8), (8, 1), 16)
    assert _spec((6, 8), modes=(1,)) == ArraySpec("f16", (6, Unknown()), (Unknown(32, 8), 1), 16)
    assert _spec((6, 8), modes=-1) == _spec((6, 8), modes=(1,))
    assert _spec((6, 24), modes=(0, 1), divisibility=3) == ArraySpec(
        "f16", (Unknown(32, 3), Unknown(32, 3)), (Unknown(32, 8), 1), 16
    )
    assert _spec((6, 2), (1, 6), modes=(0,), width=64).strides == (1, Unknown(64, 2))
    assert _spec((2, 1 << 31), (1 << 31, 1), modes=(1,), width=64).strides == (Unknown(64, 8), 1)


def test_alignment_of_the_address_is_part_of_the_type() -> None:
    found = [
        infer_array_spec("A", Array(address, "f32", (4,), (1,), 0)).align for address in (0x1000, 0x1008, 0x1004, 0)
    ]
    assert found == [16, 8, 4, 16]


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"divisibility": 4}, "extent 6 of mode 0 is not a multiple of 4"),
        ({"modes": (2,)}, r"has 2 modes; \[2\] are declared dynamic"),
        ({"align": 8192}, "is at address 0x1000, which is not a multiple of 8192 bytes"),
        ({"modes": ("x",)}, r"has 2 modes; \['x'\] are declared dynamic"),
        ({"divisibility": {-1: 3}}, "extent 8 of mode 1 is not a multiple of 3"),
        ({"divisibility": 0}, "divisibility=0 does not consist of positive integers"),
        ({"divisibility": 2.5}, "divisibility=2.5 does not consist of positive integers"),
        ({"align": 3}, "an alignment of 3 bytes is not a power of two"),
        ({"width": 16}, "width=16 is not a width of extents"),
    ],
)
def test_promise_that_does_not_hold(rule: dict[str, Any], problem: str) -> None:
    with pytest.raises(LaunchError, match=problem):
        _spec((6, 8), **rule)


def test_extent_that_exceeds_its_width() -> None:
    with pytest.raises(LaunchError, match="exceeds 32 bits"):
        _spec((1 << 31,), modes=(0,))


@pytest.mark.parametrize("what", [None, [1], dynamic(np.zeros(2))])
def test_only_arrays_are_marked(what: Any) -> None:
    with pytest.raises(LaunchError, match="has no extents"):
        dynamic(what)


def test_marked_array_keeps_its_rule() -> None:
    array = np.zeros((4, 4))
    marked = dynamic(array, modes=[1], divisibility=2)
    assert (marked.array is array, marked.rule.modes, marked.rule.divisibility) == (True, (1,), ((None, 2),))


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("divisibility", [1, 2])
@pytest.mark.parametrize("modes", [None, (0,), (1,), ()])
def test_arrays_fit_a_type_where_they_have_it(modes: Any, divisibility: int, width: int) -> None:
    rule = Dynamic(modes=modes, divisibility=divisibility, width=width)
    axes = list(product((0, 2, 3), (0, 1, 2, 4, 6, 8, 1 << 31)))
    arrays = [Array(64, "f32", (m, n), (s, t), 0) for (m, s), (n, t) in product(axes, axes)]

    def type_of(array: Array) -> ArraySpec | None:
        try:
            return infer_array_spec("A", array, rule) if 0 not in array.shape else None
        except LaunchError:
            return None

    types = [type_of(array) for array in arrays]
    for spec in {each for each in types if each is not None}:
        condition = compile(" and ".join(["True", *fit_conditions(spec, rule, 4, ("m", "n"), ("s", "t"))]), "", "eval")
        for array, found in zip(arrays, types, strict=True):
            (m, n), (s, t) = array.shape, array.strides
            assert eval(condition, {"m": m, "n": n, "s": s, "t": t}) is (found == spec), (spec, array)
