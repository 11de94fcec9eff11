# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays in the host's memory as arguments of an engine, whatever library they are of."""

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

from .arrays import Array
from .engine import TensorArgument

_DTYPES: dict[str, Any] = {
    "i1": np.uint8, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
}  # fmt: skip


def host_tensor(array: Array) -> TensorArgument:
    """The memory of an array itself, which a launch reads and writes, in the element type of the IR. The array must
    outlive the launch.
    """
    dtype: Any = np.dtype(_DTYPES[array.dtype])
    memory: Any = (ctypes.c_uint8 * (array.span * array.itemsize)).from_address(array.address)
    return TensorArgument(np.frombuffer(memory, dtype), array.layout)
