# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of CUDA as programs see them (`cutlass.base_dsl.runtime.cuda`)."""

from importlib import import_module
from typing import Any

from tilefold.base.errors import Code
from tilefold.cute.missing_name import MissingName
from tilefold.runtime.cuda.driver import CudaError as DSLCudaRuntimeError

load_cubin_module_data = MissingName(
    "load_cubin_module_data",
    (Code.BUILD_NAME, "machine code is not loaded by load_cubin_module_data", "TILEFOLD_PTXAS names the assembler"),
)
"""Programs keep the function that they replace by one of their own, which loads machine code of another assembler."""


def checkCudaErrors(result: tuple[Any, ...]) -> Any:
    """The results of a call of cuda-python without its status: None, one result, or a tuple of several.

    `result` is all that a function of `cuda.bindings.driver` or `cuda.bindings.runtime` returned. Raises
    DSLCudaRuntimeError (E3302) for any status but success.
    """
    status, *results = result
    if int(status) != 0:
        raise DSLCudaRuntimeError(status.name, int(status), f"CUDA answers {status.name} ({_description(status)})")
    return results[0] if len(results) == 1 else tuple(results) or None


def _description(status: Any) -> str:
    """CUDA's sentence about a status of its driver or runtime."""
    if status.name.startswith("CUDA_"):
        words: bytes = import_module("cuda.bindings.driver").cuGetErrorString(status)[1]
    else:
        words = import_module("cuda.bindings.runtime").cudaGetErrorString(status)[1]
    return words.decode()


__all__ = ["DSLCudaRuntimeError", "checkCudaErrors", "load_cubin_module_data"]
