# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a DLPack capsule says (DLPack, Python Specification; the structure is that of dlpack.h, version 0.8)."""

import ctypes
from struct import Struct, unpack
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


_TENSOR = Struct("@PiiiBBHPPQ")
"""DLTensor: data, kind and number of the device, modes, the type's code, bits and lanes, shape, strides, offset."""

_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def dlpack_array(array: Any) -> Array:
    """What an array's capsule says. The array must outlive its use, as it does during a launch.

    ArrayError where the array is neither in the host's memory nor in that of a CUDA device, or of a type that kernels
    do not have.
    """
    kind, device = array.__dlpack_device__()
    if kind not in _HOST_DEVICES and kind not in _CUDA_DEVICES:
        raise ArrayError(f"is on a device of another kind (DLPack's {int(kind)})", "move it to the GPU or to the host")
    capsule = array.__dlpack__()
    # The capsule is not renamed to "used_dltensor", so its own destructor releases it.
    found = ctypes.string_at(_pointer_of(capsule, _CAPSULE_NAME), _TENSOR.size)
    data, _, _, modes, code, bits, lanes, extents, steps, offset = _TENSOR.unpack(found)
    name = _TYPES.get((code, bits))
    if name is None or lanes != 1:
        raise ArrayError(f"has elements of DLPack's type {code} of {bits} bits, which no kernel has")
    shape = _integers(extents, modes)
    strides = _integers(steps, modes) if steps else row_major(shape)
    return Array(data + offset, name, shape, strides, int(device) if kind in _CUDA_DEVICES else None)


def _integers(address: int, count: int) -> tuple[int, ...]:
    return unpack(f"@{count}q", ctypes.string_at(address, 8 * count)) if count else ()
