# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of the library that repeat launches, on tensors of torch as far as the driver: the addresses that they pass,
and how few functions of Python they call.
"""

import ctypes
import sys
from collections.abc import Callable, Generator, Sequence
from types import FrameType
from typing import Any

import pytest
from tilefold.base.parameters import POINTER, Placed
from tilefold.runtime.compiled.artifact import Parameter

from tests.runtime.fakes import FakeLibrary, prepared
from tilefold import kernels
from tilefold.kernels import operator, replay
from tilefold.kernels.replay import Launch

torch: Any = pytest.importorskip("torch", reason="these are tensors of torch")

MOST = 5
"""The most calls of functions of Python: the function, its operator, the replay, and two by which torch says whether it
compiles.
"""
MOST_WITH_A_COUNTER = 10
"""The same for attention, which takes a counter."""


class Driver:
    """Stands for a GPU: `launches` have the addresses that each launch was given."""

    def __init__(self) -> None:
        self.launches: list[tuple[int, ...]] = []
        self.prepared = 0

    def run(self, launch: Launch, first: Any) -> None:
        """Takes the place of a launch that nothing has prepared."""
        self.launches.append(tuple(x.data_ptr() for x in self._tensors(launch.made(first))))

    def prepare(self, launch: Launch, args: Sequence[Any], device: str) -> Any:
        """Takes the place of `prepared_for`: a kernel of addresses alone."""
        bound = launch.kernel(*args).bound
        tensors = [bound.values[name] for name in bound.arrays]

        def record(configuration: Any, function: Any, parameters: Any, extra: None) -> int:
            values = (ctypes.string_at(parameters._obj[i], POINTER.size) for i in range(len(tensors)))
            self.launches.append(tuple(int.from_bytes(value, "little") for value in values))
            return 0

        library = FakeLibrary()
        library.launch = record
        self.prepared += 1
        made = [Parameter(f"p{i}", POINTER, 1) for i in range(len(tensors))]
        return prepared(library, *made), [POINTER.pack(Placed(x.data_ptr())) for x in tensors], tensors

    @staticmethod
    def _tensors(args: Sequence[Any]) -> list[Any]:
        given = [getattr(arg, "array", arg) for arg in args]
        return [arg for arg in given if isinstance(arg, torch.Tensor)]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Generator[Driver]:
    """A GPU that does nothing; functions that have repeated nothing yet, and forget what they repeat on it."""
    found = Driver()

    def run(launch: Launch, first: Any, device: str) -> None:
        found.run(launch, first)

    def stream(device: int) -> int:
        return 0

    monkeypatch.setattr(Launch, "run", run)
    monkeypatch.setattr(replay, "prepared_for", found.prepare)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", stream, raising=False)

    def forget() -> None:
        operators: list[Any] = [*vars(operator)["_OPERATORS"].values()]
        for made in operators:
            kept: Any = made.__dict__
            for calls in ("run", "lean", "function"):
                kept.pop(calls, None)

    forget()
    yield found
    forget()


def halves(*shape: int) -> Any:
    torch.manual_seed(0)
    return torch.randn(*shape).half()


CASES: dict[str, Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "gemm": lambda: (kernels.gemm, (halves(8, 64), halves(16, 64))),
    "gemm of many rows": lambda: (kernels.gemm, (halves(512, 64), halves(512, 64))),
    "linear": lambda: (kernels.linear, (halves(2, 4, 64), halves(16, 64), halves(16), "silu", halves(2, 4, 16))),
    "scaled_gemm": lambda: (
        kernels.scaled_gemm,
        (*(torch.zeros(n, 128).to(torch.float8_e4m3fn) for n in (8, 16)), torch.ones(8, 1), torch.ones(1, 1)),
    ),
    "grouped_gemm": lambda: (
        kernels.grouped_gemm, (halves(2, 8, 64), halves(2, 16, 64), torch.ones(2, dtype=torch.int32)),
    ),
    "attention": lambda: (kernels.attention, (halves(1, 32, 2, 64), halves(1, 32, 2, 64), halves(1, 32, 2, 64))),
    "decode_attention": lambda: (
        kernels.decode_attention, (halves(1, 1, 2, 64), halves(1, 32, 2, 64), halves(1, 32, 2, 64)),
    ),
    "softmax": lambda: (kernels.softmax, (halves(4, 64),)),
    "rms_norm": lambda: (kernels.rms_norm, (halves(4, 64), halves(64), halves(4, 64))),
    "layer_norm": lambda: (kernels.layer_norm, (halves(4, 64), halves(64), halves(64))),
    "cross_entropy": lambda: (kernels.cross_entropy, (halves(4, 64), torch.zeros(4, dtype=torch.int64))),
    "rope": lambda: (kernels.rope, (halves(1, 4, 2, 16), halves(8, 8), halves(8, 8))),
    "swiglu": lambda: (kernels.swiglu, (halves(4, 64), halves(4, 64))),
    "quantize": lambda: (kernels.quantize, (halves(4, 64), "int8")),
}  # fmt: skip


def calls_of(run: Callable[[], Any]) -> tuple[list[str], Any]:
    """The functions of Python that a run calls, but for those that stand for the driver; and its result."""
    names = list[str]()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and not any(name in frame.f_code.co_filename for name in ("tests", "ctypes")):
            names.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        result = run()
    finally:
        sys.setprofile(None)
    return names, result


@pytest.mark.parametrize("name", CASES)
def test_calls_alike_take_few_functions_and_pass_the_addresses_at_hand(name: str, driver: Driver) -> None:
    function, args = CASES[name]()
    function(*args)
    (first,), prepared_before = driver.launches, driver.prepared
    function(*args)  # which makes the memory of a launch
    fresh = tuple(x.clone() if isinstance(x, torch.Tensor) else x for x in args)
    names, result = calls_of(lambda: function(*fresh))
    assert len(names) <= (MOST_WITH_A_COUNTER if name == "attention" else MOST), names
    assert driver.prepared == prepared_before
    results: list[Any] = [*result] if isinstance(result, tuple) else [result]
    second = driver.launches[-1]
    tensors: list[Any] = [x for x in fresh if isinstance(x, torch.Tensor)]
    moved = {old.data_ptr(): new.data_ptr() for old, new in zip(args, fresh, strict=True) if old is not new}
    for old, new in zip(first, second, strict=True):
        if old in moved:
            assert new == moved[old]
    assert {x.data_ptr() for x in (*tensors, *results)} <= set(second)


def test_other_tensors_are_not_taken_for_those_before(driver: Driver) -> None:
    x = halves(4, 64)
    kernels.softmax(x)
    for other in (halves(8, 64), halves(4, 128)[:, :64], x.float(), halves(4, 65)[:, 1:]):
        before = driver.prepared
        for _ in range(2):
            kernels.softmax(other)
            kernels.softmax(x)
        assert driver.prepared == before + 1


def test_one_tensor_for_two_arguments(driver: Driver) -> None:
    x, y = halves(4, 64), halves(4, 64)
    for gate, up in ((x, y), (x, x), (y, x), (y, y), (x, y)):
        kernels.swiglu(gate, up)
        assert driver.launches[-1][:2] == (gate.data_ptr(), up.data_ptr())
    assert driver.prepared == 2


def test_parameters_with_and_without_gradients(driver: Driver) -> None:
    x, w = halves(4, 64), torch.nn.Parameter(halves(64))
    with torch.no_grad():
        for _ in range(3):
            assert not kernels.rms_norm(x, w).requires_grad
    assert driver.prepared == 1
    for _ in range(3):
        y = kernels.rms_norm(x, w)
        assert y.requires_grad
        y.backward(torch.ones_like(y))
    with torch.no_grad():
        assert not kernels.rms_norm(x, w).requires_grad
    assert driver.prepared == 1 + 1 + 2  # with the sums that the gradient reads, and the gradient's two kernels
