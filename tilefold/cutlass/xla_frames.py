# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of functions in Python by XLA's foreign function interface: the frame of a call, by ctypes.

Source: xla/ffi/api/c_api.h, version 0.
"""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_METADATA, _INTERNAL, _EXECUTE, _VERSION = 1, 13, 3, (0, 1)
_TYPES = {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32", 9: "uint64",
    10: "float16", 11: "float32", 12: "float64", 16: "bfloat16", 19: "float8_e5m2", 20: "float8_e4m3fn",
}  # fmt: skip
"""The names of element types in NumPy and ml_dtypes."""


class _Extension(ctypes.Structure):
    _fields_ = (("size", ctypes.c_size_t), ("type", ctypes.c_int), ("next", ctypes.c_void_p))


class _Version(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("major", ctypes.c_int), ("minor", ctypes.c_int),
    )  # fmt: skip


class _Metadata(ctypes.Structure):
    _fields_ = (("size", ctypes.c_size_t), ("version", _Version))


class _MetadataExtension(ctypes.Structure):
    _fields_ = (("base", _Extension), ("metadata", ctypes.POINTER(_Metadata)))


class _Buffer(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p), ("rank", ctypes.c_int64), ("dims", ctypes.POINTER(ctypes.c_int64)),
    )  # fmt: skip


class _Buffers(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("count", ctypes.c_int64),
        ("types", ctypes.c_void_p), ("buffers", ctypes.POINTER(ctypes.POINTER(_Buffer))),
    )  # fmt: skip


class _Scalar(ctypes.Structure):
    _fields_ = (("dtype", ctypes.c_int), ("value", ctypes.POINTER(ctypes.c_int64)))


class _Attributes(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("count", ctypes.c_int64),
        ("types", ctypes.c_void_p), ("names", ctypes.c_void_p), ("values", ctypes.POINTER(ctypes.POINTER(_Scalar))),
    )  # fmt: skip


class _Error(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("message", ctypes.c_char_p),
        ("code", ctypes.c_int),
    )  # fmt: skip


_CREATE_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Error))


class _Api(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("version", _Version),
        ("internal", ctypes.c_void_p), ("create_error", _CREATE_ERROR),
    )  # fmt: skip


class _Frame(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t), ("extension", ctypes.POINTER(_Extension)), ("api", ctypes.POINTER(_Api)),
        ("context", ctypes.c_void_p), ("stage", ctypes.c_int), ("args", _Buffers), ("rets", _Buffers),
        ("attributes", _Attributes),
    )  # fmt: skip


_HANDLER = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Frame))
Arrays = Sequence["np.ndarray[Any, Any]"]


def handler(run: Callable[[int, Arrays, Arrays], None]) -> Any:
    """A handler of calls for XLA: `run` gets the only attribute of the call, an integer, and its arguments and results
    as arrays without copies. An exception of `run` is the call's error, with its message.
    """

    def handle(frame: Any) -> int | None:
        call = frame.contents
        if call.extension and call.extension.contents.type == _METADATA:
            found = ctypes.cast(call.extension, ctypes.POINTER(_MetadataExtension)).contents.metadata.contents
            found.version.major, found.version.minor = _VERSION
            return None
        if call.stage != _EXECUTE:
            return None
        try:
            run(call.attributes.values[0].contents.value[0], _arrays(call.args), _arrays(call.rets))
        except BaseException as error:  # which must not pass through XLA
            made = _Error(ctypes.sizeof(_Error), None, str(error).encode(), _INTERNAL)
            return call.api.contents.create_error(ctypes.byref(made))
        return None

    return _HANDLER(handle)


def _arrays(given: _Buffers) -> Arrays:
    return [_array(given.buffers[place].contents) for place in range(given.count)]


def _array(buffer: _Buffer) -> "np.ndarray[Any, Any]":
    """The memory of a buffer, row by row."""
    if buffer.dtype not in _TYPES:
        raise TypeError(f"kernels have no elements of XLA's type {buffer.dtype}")
    import ml_dtypes

    name = _TYPES[buffer.dtype]
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    shape = tuple(buffer.dims[mode] for mode in range(buffer.rank))
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if not count:
        return np.empty(shape, dtype)
    memory: Any = (ctypes.c_uint8 * count).from_address(buffer.data)
    return np.frombuffer(memory, np.uint8).view(dtype).reshape(shape)
