# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The CUDA driver API of one device: every call checked, every error decoded (CUDA Driver API, Error Handling).

The calls of every launch (CUDA Driver API, cuLaunchKernelEx), and those that take the same structures, go to the
driver's library directly. A call takes about 0.2 microseconds by ctypes where all of its arguments are made before;
through cuda-python's functions, which convert each of them, more than twice as much.
"""

import ctypes
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, NoReturn

from ...base.errors import Code, TilefoldError
from ...base.target import Target, target_of_device
from ..options import Cluster, LaunchAttributes, LaunchEvent, ProgrammaticStreamSerialization


class CudaUnavailable(TilefoldError):  # noqa: N818  # the name states the condition
    """There is no GPU, no driver, or no cuda-python."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            Code.CUDA_UNAVAILABLE,
            f"CUDA is not available: {reason}",
            'run on the simulator (--device sim, in Python device="sim"), or install an NVIDIA driver and '
            "`pip install cuda-python`",
        )


class CudaError(TilefoldError):
    """A call of CUDA failed. `status` is CUDA's name of the error, such as CUDA_ERROR_ILLEGAL_ADDRESS, and `error_code`
    its number, which the driver and the runtime share.
    """

    def __init__(self, status: str, error_code: int, message: str, hint: str = "") -> None:
        super().__init__(Code.CUDA_FAILED, message, hint)
        self.status = status
        self.error_code = error_code


_SIM = 'the simulator (--device sim, in Python device="sim")'
_ON_SIM = f"{_SIM} names the operation"
_HINTS = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": f"the kernel accessed memory outside its arguments; {_ON_SIM}",
    "CUDA_ERROR_MISALIGNED_ADDRESS": f"an address is not a multiple of the access size; {_ON_SIM}",
    "CUDA_ERROR_ASSERT": f"an assertion of the kernel, which the GPU has printed, does not hold; {_ON_SIM}",
    "CUDA_ERROR_LAUNCH_TIMEOUT": f"the kernel did not end; {_SIM} ends it after a number of steps",
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": "the block needs too many registers or too much shared memory",
    "CUDA_ERROR_OUT_OF_MEMORY": "the arguments do not fit into the GPU's memory",
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "compile for this GPU's architecture",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": "update the driver, or make machine code by ptxas (TILEFOLD_ASSEMBLER=ptxas)",
}


class Driver:
    """One device with its primary context, which it shares with every other user of the device in this process."""

    def __init__(self, ordinal: int) -> None:
        """Opens device `ordinal`. CudaUnavailable where there is no driver or no such device."""
        try:
            self.api: Any = import_module("cuda.bindings.driver")
            status = self.api.cuInit(0)[0]
        except (ImportError, RuntimeError) as error:  # cuda-python reports a missing driver as a RuntimeError
            raise CudaUnavailable(str(error).splitlines()[0]) from error
        if int(status) != 0:
            raise CudaUnavailable(f"the driver answers {status.name}")
        count: int = self.call("cuDeviceGetCount")
        if ordinal >= count:
            raise CudaUnavailable(f"there is no device {ordinal}; the driver knows {count}")
        self.ordinal = ordinal
        self.device_count = count
        self.device: Any = self.call("cuDeviceGet", ordinal)
        self.name = bytes(self.call("cuDeviceGetName", 256, self.device)).split(b"\0")[0].decode()
        attribute = self.api.CUdevice_attribute
        self.capability: tuple[int, int] = (
            self.attribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            self.attribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        )
        self.max_shared_bytes = self.attribute(attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
        self._context = self.call("cuDevicePrimaryCtxRetain", self.device)

    @property
    def target(self) -> Target:
        """The target that uses most of this device."""
        return target_of_device(*self.capability)

    def attribute(self, which: object) -> int:
        """One attribute of the device (CUDA Driver API, cuDeviceGetAttribute)."""
        return int(self.call("cuDeviceGetAttribute", which, self.device))

    def knows(self, address: int) -> bool:
        """Whether an address is in memory of a GPU, or in the host's that GPUs reach (cuPointerGetAttribute)."""
        kind = self.api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
        return int(self.api.cuPointerGetAttribute(kind, address)[0]) == 0

    def activate(self) -> None:
        """Makes the device's context current in the calling thread, as every call below needs it."""
        self.call("cuCtxSetCurrent", self._context)

    @contextmanager
    def current(self) -> Generator[None, None, None]:
        """Within it the device's context is current in the calling thread; then the previous one is again. If there was
        none, this one stays.
        """
        before = self.call("cuCtxGetCurrent")
        self.activate()
        try:
            yield
        finally:
            if int(before):
                self.call("cuCtxSetCurrent", before)

    def call(self, function: str, *args: object, doing: str = "") -> Any:
        """Calls a driver function and returns its result: None, one value, or a tuple of several.

        CudaError for any status but success; `doing` names the work that the call is part of, for its message.
        """
        status, *results = getattr(self.api, function)(*args)
        if int(status) != 0:
            self.fail(function, int(status), doing=doing)
        if not results:
            return None
        return results[0] if len(results) == 1 else tuple(results)

    def fail(self, function: str, status: int, doing: str = "") -> NoReturn:
        """Raises the CudaError for a status that a driver function has returned; `doing` as for `call`."""
        name, words = self._describe(status)
        where = f"{doing}: " if doing else ""
        raise CudaError(name, status, f"{where}{function} failed with {name} ({words})", _HINTS.get(name, ""))

    def _describe(self, status: int) -> tuple[str, str]:
        try:
            known = self.api.CUresult(status)
        except ValueError:  # of a driver that is newer than cuda-python
            return f"CUDA_ERROR_{status}", "unknown"
        name, words = self.api.cuGetErrorName(known)[1], self.api.cuGetErrorString(known)[1]
        return (name.decode(), words.decode()) if name and words else (f"CUDA_ERROR_{status}", "unknown")


@cache
def open_device(ordinal: int = 0) -> Driver:
    """The driver of a device, opened once in a process. CudaUnavailable where there is none."""
    return Driver(ordinal)


def is_available() -> bool:
    """Whether there is a driver and a GPU."""
    try:
        open_device()
    except CudaUnavailable:
        return False
    return True


COOPERATIVE = 2
"""CU_LAUNCH_ATTRIBUTE_COOPERATIVE"""
PROGRAMMATIC_EVENT = 7
"""CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT"""
LAUNCH_COMPLETION_EVENT = 12
"""CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT"""
CLUSTER_DIMENSION = 4
"""CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION"""
PROGRAMMATIC_STREAM_SERIALIZATION = 6
"""CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION"""


class NativeAttribute(ctypes.Structure):
    """CUlaunchAttribute, with its union of 64 bytes as integers."""

    _fields_ = (("id", ctypes.c_uint32), ("pad", ctypes.c_uint32), ("value", ctypes.c_uint32 * 16))


def make_native_attributes(attributes: LaunchAttributes) -> "ctypes.Array[NativeAttribute]":
    """The attributes of a launch as the driver takes them."""
    native = (NativeAttribute * len(attributes))()
    for to, attribute in zip(native, attributes, strict=True):
        match attribute:
            case Cluster():
                to.id, to.value[:3] = CLUSTER_DIMENSION, attribute.size
            case LaunchEvent():
                to.id = PROGRAMMATIC_EVENT if attribute.programmatic else LAUNCH_COMPLETION_EVENT
                to.value[:2] = attribute.handle & 0xFFFFFFFF, attribute.handle >> 32
                to.value[2:4] = attribute.flags, int(attribute.at_start)
            case _:
                programmatic = isinstance(attribute, ProgrammaticStreamSerialization)
                to.id, to.value[0] = PROGRAMMATIC_STREAM_SERIALIZATION if programmatic else COOPERATIVE, 1
    return native


class LaunchConfiguration(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid_x", ctypes.c_uint32),
        ("grid_y", ctypes.c_uint32),
        ("grid_z", ctypes.c_uint32),
        ("block_x", ctypes.c_uint32),
        ("block_y", ctypes.c_uint32),
        ("block_z", ctypes.c_uint32),
        ("shared_bytes", ctypes.c_uint32),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint32),
    )


class Library:
    """The functions that a launch calls. Each returns the driver's status as an integer, 0 for success."""

    def __init__(self) -> None:
        """Loads the driver's library. OSError if there is none."""
        loaded: Any = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        self.launch: Callable[..., int] = loaded.cuLaunchKernelEx
        self.encode_tensor_map: Callable[..., int] | None = getattr(loaded, "cuTensorMapEncodeTiled", None)
        self.max_active_clusters: Callable[..., int] = loaded.cuOccupancyMaxActiveClusters


@cache
def load_library() -> Library:
    """The driver's library, loaded once in a process. OSError if there is none."""
    return Library()
