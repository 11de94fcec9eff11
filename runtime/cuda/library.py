# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The driver's library called directly, for the calls of every launch (CUDA Driver API, cuLaunchKernelEx), and for
those that take the same structures.

A call takes about 0.2 microseconds by ctypes where all of its arguments are made before; through cuda-python's
functions, which convert each of them, more than twice as much.
"""

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from ..options import Cluster, LaunchAttributes, LaunchEvent, ProgrammaticStreamSerialization

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
