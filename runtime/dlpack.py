# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a DLPack capsule says (DLPack, Python Specification; the structure is that of dlpack.h, version 0.8)."""

import ctypes
from typing import Any

from .arrays import Array, ArrayError, row_major

CPU = 1
"""kDLCPU"""
_HOST_DEVICES = (CPU, 3)  # kDLCPU, kDLCUDAHost
_CUDA_DEVICES = (2, 13)  # kDLCUDA, kDLCUDAManaged
_CAPSULE_NAME = b"dltensor"

_TYPES = {
    (0, 8): "i8", (0, 16): "i16", (0, 32): "i32", (0, 64): "i64",
    (1, 8): "ui8", (1, 16): "ui16", (1, 32): "ui32", (1, 64): "ui64",
    (2, 16): "f16", (2, 32): "f32", (2, 64): "f64",
    (4, 16): "bf16", (6, 8): "i1", (10, 8): "f8E4M3FN", (12, 8): "f8E5M2",
}  # fmt: skip
"""Element types by the code and the bits of a DLDataType."""


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


def dlpack_array(array: Any) -> Array:
    """What an array's capsule says. The array must outlive its use, as it does during a launch.

    ArrayError where the array is neither in the host's memory nor in that of a CUDA device, or of a type that kernels
    do not have.
    """
    kind, device = array.__dlpack_device__()
    if int(kind) not in (*_HOST_DEVICES, *_CUDA_DEVICES):
        raise ArrayError(f"is on a device of another kind (DLPack's {int(kind)})", "move it to the GPU or to the host")
    capsule = array.__dlpack__()
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _Tensor.from_address(get_pointer(capsule, _CAPSULE_NAME))
    # The capsule was not renamed to "used_dltensor", so its own destructor releases it.
    shape = tuple(ctypes.cast(tensor.shape, ctypes.POINTER(ctypes.c_int64))[: tensor.ndim]) if tensor.ndim else ()
    steps = ctypes.cast(tensor.strides, ctypes.POINTER(ctypes.c_int64)) if tensor.strides else None
    type = tensor.dtype
    name = _TYPES.get((int(type.code), int(type.bits)))
    if name is None or type.lanes != 1:
        raise ArrayError(f"has elements of DLPack's type {type.code} of {type.bits} bits, which no kernel has")
    return Array(
        int(tensor.data or 0) + int(tensor.byte_offset),
        name,
        shape,
        row_major(shape) if steps is None else tuple(steps[: tensor.ndim]),
        int(device) if int(kind) in _CUDA_DEVICES else None,
    )
