# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a launch does with its arguments, and what it refuses, seen without a device."""

import ctypes
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.parameters import POINTER, SCALARS, ParameterKind
from tilefold.runtime.compiled.artifact import Artifact, Parameter
from tilefold.runtime.cuda import driver as driver_module
from tilefold.runtime.cuda.driver import CudaError, CudaUnavailable, Driver, is_available, open_device
from tilefold.runtime.cuda.loaded_kernel import Kernel
from tilefold.runtime.cuda.packed_arguments import PackedArguments
from tilefold.runtime.engine import TensorArgument
from tilefold.runtime.errors import LaunchError

from tests.cuda.harness import artifact
from tests.emit.harness import SM80, kernel


class RecordingDriver:
    """Answers the calls of a launch as a device would, and keeps them. Its memory is the process's own."""

    ordinal = 0
    name = "a device of the tests"
    target = SM80
    max_shared_bytes = 163 * 1024

    def __init__(self, failing: str = "") -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.failing = failing
        self.capability: tuple[int, int] = (8, 0)
        self.memory: dict[int, ctypes.Array[ctypes.c_char]] = {}
        option = SimpleNamespace(
            CU_JIT_INFO_LOG_BUFFER=3,
            CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES=4,
            CU_JIT_ERROR_LOG_BUFFER=5,
            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES=6,
        )
        attribute = SimpleNamespace(
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8,
            CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED=14,
            CU_FUNC_ATTRIBUTE_NUM_REGS=4,
        )
        self.api = SimpleNamespace(
            cuMemFree=self.memory.pop,
            cuModuleUnload=str,
            cuEventDestroy=str,
            CUresult=SimpleNamespace(CUDA_ERROR_NO_BINARY_FOR_GPU=209),
            CUjit_option=option,
            CUfunction_attribute=attribute,
        )

    def activate(self) -> None: ...

    def call(self, function: str, *args: Any, doing: str = "") -> Any:
        self.calls.append((function, *args))
        if function == self.failing:
            raise CudaError("CUDA_ERROR_INVALID_PTX", 218, f"{doing}: {function} failed")
        if function == "cuMemAlloc":
            buffer = ctypes.create_string_buffer(args[0] + 256)
            address = -(-ctypes.addressof(buffer) // 256) * 256
            self.memory[address] = buffer
            return address
        if function == "cuFuncGetAttribute":
            return 168
        if function in ("cuMemcpyHtoD", "cuMemcpyDtoH"):
            ctypes.memmove(*args)
        return function


def _driver(failing: str = "") -> tuple[Driver, RecordingDriver]:
    recording = RecordingDriver(failing)
    return cast(Driver, recording), recording


def _artifact(*parameters: Parameter, block: tuple[int, int, int] = (32, 1, 1), dynamic: int = 0) -> Artifact:
    return Artifact("k", "code", SM80, parameters, block, dynamic_shared=dynamic)


def _bytes(kind: ParameterKind, value: Any) -> bytes:
    """What the kernel would read for a scalar argument."""
    driver, _ = _driver()
    (data,) = PackedArguments(driver, _artifact(Parameter("x", kind)), {"x": value}).values
    return data


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (SCALARS["i1"], True, b"\x01"),
        (SCALARS["i8"], -1, b"\xff"),
        (SCALARS["i8"], 255, b"\xff"),
        (SCALARS["i16"], np.int64(-2), b"\xfe\xff"),
        (SCALARS["i32"], 1 << 31, b"\x00\x00\x00\x80"),
        (SCALARS["i64"], -1, b"\xff" * 8),
        (SCALARS["f16"], 1.5, np.float16(1.5).tobytes()),
        (SCALARS["bf16"], 1.0, b"\x80\x3f"),
        (SCALARS["f32"], np.float64(0.1), np.float32(0.1).tobytes()),
        (SCALARS["f64"], 3, np.float64(3).tobytes()),
    ],
)
def test_scalar_is_passed_in_the_type_of_its_parameter(kind: ParameterKind, value: Any, expected: bytes) -> None:
    assert _bytes(kind, value) == expected


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (SCALARS["i1"], 2),
        (SCALARS["i8"], 256),
        (SCALARS["i8"], -129),
        (SCALARS["i32"], 1.5),
        (SCALARS["i32"], np.float32(1)),
        (SCALARS["f32"], "1"),
    ],
)
def test_scalar_that_the_type_cannot_hold(kind: ParameterKind, value: Any) -> None:
    with pytest.raises(LaunchError, match=f"argument 'x' is of type {kind.name}"):
        _bytes(kind, value)


def test_storage_is_copied_there_and_back_and_freed() -> None:
    driver, recording = _driver()
    storage = np.arange(8, dtype=np.float32)
    packed = PackedArguments(driver, _artifact(Parameter("A", POINTER, 16)), {"A": TensorArgument(storage)})
    (address,) = recording.memory
    assert packed.values == [address.to_bytes(8, "little")]
    assert ctypes.string_at(address, storage.nbytes) == storage.tobytes()
    ctypes.memset(address, 0, 4)  # what a kernel would do
    storage[1] = 99.0
    packed.read_back()
    assert storage.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    del packed
    assert not recording.memory


class _OnDevice:
    def __init__(self, address: int, read_only: bool = False) -> None:
        self.__cuda_array_interface__ = {"data": (address, read_only), "shape": (4,), "typestr": "<f4"}


def test_device_array_is_passed_as_it_is() -> None:
    driver, recording = _driver()
    packed = PackedArguments(driver, _artifact(Parameter("A", POINTER, 16)), {"A": _OnDevice(0x1000)})
    assert packed.values == [(0x1000).to_bytes(8, "little")]
    assert recording.calls == []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (_OnDevice(0x1004), "0x1004, which is not a multiple of 16"),
        (_OnDevice(0x1000, read_only=True), "read-only"),
        (np.zeros(4, np.float32), "not in the GPU's memory"),
        (3, "is a tensor, not a int"),
    ],
)
def test_tensor_that_cannot_be_passed(value: Any, message: str) -> None:
    driver, _ = _driver()
    with pytest.raises(LaunchError, match=message) as caught:
        PackedArguments(driver, _artifact(Parameter("A", POINTER, 16)), {"A": value})
    assert caught.value.code == "E3106"


def test_missing_and_unknown_arguments() -> None:
    driver, _ = _driver()
    program = _artifact(Parameter("n", SCALARS["i32"]))
    with pytest.raises(LaunchError, match="argument 'n' is missing"):
        PackedArguments(driver, program, {})
    with pytest.raises(LaunchError, match="unknown argument 'm'"):
        PackedArguments(driver, program, {"n": 1, "m": 2})


def test_code_for_another_architecture_is_not_loaded() -> None:
    driver, recording = _driver()
    recording.capability = (7, 5)
    with pytest.raises(CudaError, match=r"compiled for sm_80, but .* has compute capability 7\.5"):
        Kernel(driver, _artifact())
    assert recording.calls == []


def test_failure_of_the_driver_names_the_kernel() -> None:
    driver, _ = _driver("cuModuleLoadDataEx")
    with pytest.raises(CudaError, match="loading kernel 'k'"):
        Kernel(driver, _artifact())


def test_artifact_knows_what_a_launch_needs() -> None:
    text = kernel("", "%A: !ptx.ptr<global> align 64, %n: i32, %x: bf16", threads="8, 4", shared=60_000)
    made = artifact(text, SM80)
    assert made.parameters == (
        Parameter("A", POINTER, 64),
        Parameter("n", SCALARS["i32"]),
        Parameter("x", SCALARS["bf16"]),
    )
    assert (made.kernel, made.block, made.static_shared, made.dynamic_shared) == ("k", (8, 4, 1), 0, 60_000)
    assert isinstance(made.code, str)
    assert artifact(kernel("", shared=48), SM80).static_shared == 48


def test_artifact_of_a_parameter_that_no_launch_can_pass() -> None:
    with pytest.raises(TilefoldError, match=r"a launch cannot pass parameter 'v' of type vector<4xf32>"):
        artifact(kernel("", "%v: vector<4xf32>"), SM80)


@pytest.mark.parametrize("error", [ImportError("no module"), RuntimeError("no libcuda.so\nsearched here")])
def test_without_cuda_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def missing(name: str) -> Any:
        raise error

    monkeypatch.setattr(driver_module, "import_module", missing)
    open_device.cache_clear()
    try:
        with pytest.raises(CudaUnavailable, match="CUDA is not available: no") as caught:
            open_device()
        assert (caught.value.code, "--device sim" in caught.value.hint) == ("E3301", True)
        assert not is_available()
    finally:
        open_device.cache_clear()


def test_addresses_that_a_gpu_knows() -> None:
    def attribute(kind: int, address: int) -> tuple[int, int]:
        return (0, 2) if (kind, address) == (2, 64) else (1, 0)

    kinds = SimpleNamespace(CU_POINTER_ATTRIBUTE_MEMORY_TYPE=2)
    driver: Any = SimpleNamespace(api=SimpleNamespace(CUpointer_attribute=kinds, cuPointerGetAttribute=attribute))
    assert [Driver.knows(driver, address) for address in (64, 65)] == [True, False]
