# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prepared launches on tensors of torch itself, in the host's memory, as far as the driver: what is told apart."""

import struct
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, SimpleNamespace
from typing import Any

import pytest
from tilefold.base.parameters import POINTER, SCALARS
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.integers import Unknown
from tilefold.runtime.arrays.signature import Dynamic
from tilefold.runtime.arrays.torch_guards import tensor_check
from tilefold.runtime.compiled.artifact import Parameter, value_name
from tilefold.runtime.cuda import direct
from tilefold.runtime.cuda.comparison import Rules
from tilefold.runtime.cuda.launcher import Launcher
from tilefold.runtime.cuda.prepared import Prepared
from tilefold.runtime.errors import LaunchError

from tests.runtime.fakes import FakeLibrary, NativeLibrary, prepared

torch: Any = pytest.importorskip("torch", reason="these are tensors of torch")

BLOCK, GRID = (32, 1, 1), (5, 1, 1)


def resolving(made: Prepared) -> Callable[..., tuple[None, Prepared]]:
    """The function of a launcher that has one kernel."""

    def resolve(*_: object) -> tuple[None, Prepared]:
        return None, made

    return resolve


@pytest.fixture(params=["one call", "attributes", "native"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Tensors are compared by torch's guards, by their attributes where there are none, or by machine code."""

    def stream(device: int) -> int:
        return 0

    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", stream, raising=False)

    def works(torch: Any) -> bool:
        return False

    if request.param == "attributes":
        monkeypatch.setattr("tilefold.runtime.arrays.torch_guards._works", works)
    if request.param == "native":
        if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
            pytest.skip("this torch does not have DLPack's functions")
        monkeypatch.setattr(direct, "REPEATS", 1)
        monkeypatch.setattr(sys.modules[__name__], "FakeLibrary", NativeLibrary)
    return request.param


class Launches:
    """A launcher for kernels of `count` tensors. `prepares` launches and says how many were prepared anew."""

    def __init__(self, count: int, made: tuple[Parameter, ...] = (), **rules: Any) -> None:
        parameters = made or tuple(Parameter(f"p{i}", POINTER, 1) for i in range(count))
        self.library = FakeLibrary()
        self.asked = 0
        self.made = prepared(self.library, *parameters)
        names = tuple(parameter.name for parameter in parameters)
        self.launcher = Launcher(Rules(names, **rules), self._resolve)

    def _resolve(self, *_: Any) -> tuple[None, Any]:
        self.asked += 1
        return None, self.made

    def prepares(self, *tensors: Any) -> int:
        """How many launches on the tensors needed preparing, of one."""
        before, launched = self.asked, len(self.library.launched)
        self.launcher.launch(tensors, BLOCK, GRID)
        new = self.asked - before
        assert len(self.library.launched) - launched == 1 - new
        if not new:
            values = self.library.launched[-1].values
            assert values[:8] == struct.pack("<Q", tensors[0].data_ptr())
            assert values[-8:] == struct.pack("<Q", tensors[-1].data_ptr())
        return new


@pytest.fixture
def fresh() -> Callable[[], Any]:
    """Makes tensors of the same type, all of which live on."""
    kept: list[Any] = []

    def make() -> Any:
        kept.append(torch.zeros(4, 8))
        return kept[-1]

    return make


def test_guards_of_this_torch_are_used(way: str) -> None:
    check = tensor_check([torch.zeros(2)], [[2]], [[1]])
    assert (check is not None) == (way != "attributes")


CHANGES: dict[str, Callable[[Any], Any]] = {
    "extents": lambda x: x.resize_(8, 4),
    "modes": lambda x: x.unsqueeze_(0),
    "strides": lambda x: x.set_(torch.zeros(64), 0, (4, 8), (16, 1)),
    "transposed": lambda x: x.resize_(8, 4).t_(),
    "element type": lambda x: setattr(x, "data", torch.zeros(4, 8, dtype=torch.float16)),
    "alignment": lambda x: x.set_(torch.zeros(64), 1, (4, 8), (8, 1)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_tensor_that_changes_in_place(change: Callable[[Any], Any], fresh: Callable[[], Any]) -> None:
    launches = Launches(2)
    a, b = fresh(), fresh()
    assert [launches.prepares(a, b) for _ in range(3)] == [1, 0, 0]
    b.set_(torch.zeros(64), 4, (4, 8), (8, 1))  # another address of the same type
    assert launches.prepares(a, b) == 0
    change(b)
    assert [launches.prepares(a, b) for _ in range(2)] == [1, 0]
    assert launches.prepares(b, a) == 1
    assert [launches.prepares(fresh(), fresh()), launches.prepares(a, b)] == [0, 0]


class Subclass(torch.Tensor):
    """A tensor with a class of its own."""


OTHERS: dict[str, Callable[[], Any]] = {
    "subclass": lambda: torch.zeros(4, 8).as_subclass(Subclass),
    "parameter": lambda: torch.nn.Parameter(torch.zeros(4, 8)),
    "negative view": lambda: torch.zeros(4, 8, dtype=torch.complex64).conj().imag,
    "negated": lambda: torch._neg_view(torch.zeros(4, 8)),
}


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_tensor_of_another_kind_is_not_taken_for_one(make: Callable[[], Any], fresh: Callable[[], Any]) -> None:
    launches = Launches(1)
    assert [launches.prepares(fresh()) for _ in range(2)] == [1, 0]
    kept = make()
    assert launches.launcher.fast((kept,), BLOCK, GRID, None, ()) is NotImplemented


def test_tensor_without_memory_is_not_launched_on(fresh: Callable[[], Any]) -> None:
    launches = Launches(1)
    a = fresh()
    assert [launches.prepares(a) for _ in range(2)] == [1, 0]
    a.untyped_storage().resize_(0)
    assert launches.launcher.fast((a,), BLOCK, GRID, None, ()) is NotImplemented


def test_tensor_that_is_given_twice(fresh: Callable[[], Any]) -> None:
    launches = Launches(3)
    a, b = fresh(), fresh()
    for _ in range(2):
        launches.prepares(a, b, a)
        launches.prepares(a, b, b)
        launches.prepares(a, b, fresh())
        launches.prepares(b, b, b)
    asked = launches.asked
    assert [launches.prepares(*each) for each in ((b, a, b), (b, a, a), (b, a, fresh()), (a, a, a))] == [0, 0, 0, 0]
    assert asked <= 4


def test_modes_of_autograd_and_inference(fresh: Callable[[], Any]) -> None:
    launches = Launches(1)
    a, leaf = fresh(), torch.zeros(4, 8, requires_grad=True)
    for _ in range(2):
        launches.prepares(a)
        launches.prepares(leaf)
        with torch.no_grad():
            launches.prepares(a)
            launches.prepares(leaf)
        with torch.inference_mode():
            launches.prepares(a)
    asked = launches.asked
    with torch.inference_mode():
        assert launches.prepares(a) == 0
    assert (launches.prepares(leaf), launches.asked) == (0, asked)


def test_dynamic_extents(fresh: Callable[[], Any]) -> None:
    layout = Layout((Unknown(32, 2), Unknown()), (Unknown(32, 4), 1))
    parameters = (Parameter("p0", POINTER, 16, layout), Parameter("p1", POINTER, 16))
    launches = Launches(2, made=parameters, dynamic={"p0": Dynamic(divisibility={0: 2})})
    other = fresh()
    wide = torch.zeros(64, 64)
    like = [torch.zeros(2, 8), torch.zeros(6, 8), wide[:8, :8], wide[8:20, 4:12]]
    assert [launches.prepares(each, other) for each in like] == [1, 0, 0, 0]
    assert launches.library.launched[-1].values == struct.pack(
        "<QiiiQ", like[-1].data_ptr(), 12, 8, 64, other.data_ptr()
    )
    unlike = (
        torch.zeros(8), torch.zeros(2, 8, dtype=torch.int32), torch.zeros(8, 2).t(), wide[:8, 1:9],
        torch.zeros(2, 9)[:, :8], torch.zeros(2, 8).as_subclass(Subclass), wide[:8, :16:2], torch.zeros(3, 8),
    )  # fmt: skip
    for each in unlike:
        assert launches.launcher.fast((each, other), BLOCK, GRID, None, ()) is NotImplemented
    assert launches.launcher.fast((other, like[0]), BLOCK, GRID, None, ()) is NotImplemented


def test_many_shapes_are_all_kept() -> None:
    launches = Launches(1)
    many = [torch.zeros(n, 3) for n in range(1, 40)]
    assert [launches.prepares(each) for each in many] == [1] * len(many)
    assert [launches.prepares(each) for each in (*many, *reversed(many))] == [0] * (2 * len(many))


def test_device_is_told_apart(fresh: Callable[[], Any]) -> None:
    launches = Launches(1)
    assert [launches.prepares(fresh()) for _ in range(2)] == [1, 0]
    elsewhere = torch.zeros(4, 8, device="meta")
    assert launches.launcher.fast((elsewhere,), BLOCK, GRID, None, ()) is NotImplemented


def test_stream_object_and_arguments_of_other_kinds(fresh: Callable[[], Any]) -> None:
    names = ("a", "n", "f", "c", "s", "none")
    library = FakeLibrary()
    made = prepared(library, Parameter("a", POINTER), Parameter("n", SCALARS["i32"]), Parameter("f", SCALARS["f32"]))
    asked: list[Any] = []

    def resolve(args: Any, *_: Any) -> tuple[None, Any]:
        asked.append(args)
        return None, made

    launcher = Launcher(Rules(names, frozenset({"c"})), resolve)
    a = fresh()
    for args in ((a, 1, 2.0, (64, 8), "relu", None), (a, -5, 3.0, (64, 8), "relu", None)):
        launcher.launch(args, BLOCK, GRID, SimpleNamespace(cuda_stream=0x60))
    assert library.launched[0].values == struct.pack("<Qif", a.data_ptr(), -5, 3.0)
    assert library.launched[0].stream == 0x60
    for args in (
        (a, 1, 2.0, (64, True), "relu", None), (a, 1, 2.0, (64, 8), "gelu", None), (a, 1, 2.0, (64, 8), "relu", 1),
        (a, True, 2.0, (64, 8), "relu", None), (a, 1, 2, (64, 8), "relu", None),
    ):  # fmt: skip
        launcher.launch(args, BLOCK, GRID)
        assert asked[-1] is args


def is_native(launcher: Launcher) -> bool:
    """Whether the latest launch is machine code."""
    return isinstance(launcher.fast, BuiltinFunctionType)


def test_repeated_launch_becomes_native(way: str, fresh: Callable[[], Any]) -> None:
    library = FakeLibrary()
    kinds = {"f": "f32", "d": "f64", "i": "i32", "u": "i32"}
    made = prepared(library, Parameter("a", POINTER), *[Parameter(name, SCALARS[kinds[name]]) for name in kinds])
    rules = Rules(("a", *kinds, "c", "none"), frozenset({"c"}), ranges={"u": (0, 2**32 - 1)})
    launcher = Launcher(rules, resolving(made))
    a, rest = fresh(), (torch.float16, None)

    def launch(*values: Any, grid: Any = GRID, stream: Any = 0) -> Any:
        before = len(library.launched)
        launcher.launch((a, *values, *rest), BLOCK, grid, stream)
        return library.launched[-1] if len(library.launched) > before else None

    for _ in range(3):
        launch(1.5, 2.5, -3, 2**32 - 1)
    assert is_native(launcher) == (way == "native")
    for values in ((0.1, 0.1, 2**31 - 1, 0), (float("inf"), float("-inf"), -(2**31), 2**31)):
        assert launch(*values).values == struct.pack("<QfdiI", a.data_ptr(), *values)
    assert launch(1.0, 1.0, 1, 1, grid=7, stream=0x70).grid == (7, 1, 1)
    assert launch(1.0, 1.0, 1, 1, grid=(2, 3), stream=SimpleNamespace(cuda_stream=0x80)).stream == 0x80
    assert launch(1.0, 1.0, 1, 1, grid=[2, 3, 4]).grid == (2, 3, 4)
    assert launch(1.0, 1.0, 1, 1, grid=(2, 3, 65535)).block == (32, 1, 1)
    assert is_native(launcher) == (way == "native")
    for values in ((1, 1.0, 1, 1), (1.0, 1.0, 2**31, 1), (1.0, 1.0, 1, -1), (1.0, 1.0, True, 1)):
        assert launch(*values) is None
    for grid in ((0, 1, 1), (1, 65536, 1), (1, 1, 1, 1), (2**31, 1, 1), 2**70, ()):
        with pytest.raises(LaunchError):
            launch(1.0, 1.0, 1, 1, grid=grid)


def test_other_context_is_recovered_from(way: str, fresh: Callable[[], Any]) -> None:
    launches = Launches(1)
    a = fresh()
    assert [launches.prepares(a) for _ in range(3)] == [1, 0, 0]
    launches.library.statuses = [201] * (2 if way == "native" else 1)  # the function in Python calls again
    assert launches.prepares(a) == 0
    launches.library.statuses = [700] * 4
    with pytest.raises(RuntimeError, match="700"):
        launches.prepares(a)


def test_tensor_maps_follow_their_tensors(way: str, fresh: Callable[[], Any]) -> None:
    recipe = f"f32 {value_name(0)} dims (8, 4) strides (32) box (4, 4)"
    library = FakeLibrary()
    made = prepared(library, Parameter("a", POINTER, 16), maps=(recipe,))
    launcher = Launcher(Rules(("a",)), resolving(made))
    a, b = fresh(), fresh()
    for each in (a, a, a, a, b, b, a, a, b):
        launcher.launch((each,), BLOCK, GRID)
        if library.launched:
            values = library.launched[-1].values
            assert struct.unpack("<Q", values[:8]) == struct.unpack("<Q", values[8:16]) == (each.data_ptr(),)
    assert len(library.launched) == 8
    assert len(library.encoded) == 2
    assert is_native(launcher) == (way == "native")


def gradient(run: Callable[[Any], Any]) -> Any:
    def of(x: Any) -> Any:
        run(x)
        return x.sum()

    return torch.func.grad(of)(torch.zeros(4, 8))


WRAPPED: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "vmap": lambda run: torch.vmap(run)(torch.zeros(2, 4, 8)),
    "grad": gradient,
    "functionalize": lambda run: torch.func.functionalize(run)(torch.zeros(4, 8)),
}


@pytest.mark.parametrize("transform", WRAPPED.values(), ids=WRAPPED)
def test_tensor_that_a_transform_wraps(transform: Any, fresh: Callable[[], Any]) -> None:
    launches = Launches(1)
    assert [launches.prepares(fresh()) for _ in range(3)] == [1, 0, 0]
    results: list[Any] = []

    def run(tensor: Any) -> Any:
        results.append(launches.launcher.fast((tensor,), BLOCK, GRID, None, ()))
        return tensor

    transform(run)
    assert results == [NotImplemented]
