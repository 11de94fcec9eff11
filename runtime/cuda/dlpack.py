# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The address of a DLPack array (DLPack, Python Specification; the structure is that of dlpack.h, version 0.8)."""

import ctypes
from collections.abc import Sequence
from typing import Any

from ...layout.core import Layout, make_row_major_layout
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


def array_layout(shape: Sequence[int], strides: Sequence[int] | None) -> Layout:
    """The layout of an array, from its shape and its strides in elements; without strides the last mode is fastest."""
    if strides is None:
        return make_row_major_layout(tuple(shape)) if shape else Layout(1, 0)
    return Layout(tuple(shape), tuple(strides))


def cuda_tensor(name: str, array: Any, ordinal: int) -> tuple[int, Layout]:
    """The address of the array's first element, and its layout. The array must outlive its use, as it does during a
    launch.

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
    shape = ctypes.cast(tensor.shape, ctypes.POINTER(ctypes.c_int64))[: tensor.ndim] if tensor.ndim else []
    steps = ctypes.cast(tensor.strides, ctypes.POINTER(ctypes.c_int64)) if tensor.strides else None
    strides = None if steps is None else steps[: tensor.ndim]
    return int(tensor.data or 0) + int(tensor.byte_offset), array_layout(shape, strides)
