# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The address of a DLPack array (DLPack, Python Specification; the structure is that of dlpack.h, version 0.8)."""

import ctypes
from typing import Any

from ...layout.errors import Code
from ..engine import LaunchError

_CUDA_DEVICES = (2, 13)  # kDLCUDA, kDLCUDAManaged
_CAPSULE_NAME = b"dltensor"


class _Device(ctypes.Structure):
    _fields_ = (("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


def cuda_address(name: str, array: Any, ordinal: int) -> int:
    """The address of the array's first element. The array must outlive its use, as it does during a launch.

    LaunchError where the array is not on CUDA device `ordinal`.
    """
    kind, device = array.__dlpack_device__()
    if int(kind) not in _CUDA_DEVICES:
        raise LaunchError(
            Code.RUN_ARGUMENT,
            f"argument '{name}' is an array that is not in the GPU's memory",
            "move it there, or pass a NumPy array, which is copied",
        )
    if device != ordinal:
        raise LaunchError(
            Code.RUN_ARGUMENT, f"argument '{name}' is on device {device}, the kernel runs on device {ordinal}"
        )
    capsule = array.__dlpack__()
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _Tensor.from_address(get_pointer(capsule, _CAPSULE_NAME))
    # The capsule was not renamed to "used_dltensor", so its own destructor releases it.
    return int(tensor.data or 0) + int(tensor.byte_offset)
