# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The CUDA engine: launches compiled kernels on a GPU through cuda-python's driver binding, loaded when first used."""

from .cuda_engine import CudaEngine, Timing
from .driver import CudaError, CudaUnavailable, Driver, is_available, open_device

__all__ = [
    "CudaEngine",
    "CudaError",
    "CudaUnavailable",
    "Driver",
    "Timing",
    "is_available",
    "open_device",
]
