# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Verdicts on kernels of suites that differ from the expected ones, with the reason."""

from collections.abc import Mapping
from types import MappingProxyType

_SAME = "all threads write the same value, or read it while others write it"
_RETURNED = "the threads that miss the barrier have returned, and PTX waits for those that have not"
_UNDEFINED = "the value or index is undefined, which is the fault that is found"
KNOWN: Mapping[str, str] = MappingProxyType({
    "CUDA/cooperative_groups/fail/divergence_grid_group": _RETURNED,
    "CUDA/cooperative_groups/fail/divergence_thread_block": _RETURNED,
    "CUDA/function_pointers/funcptr_to_ptr_add": "the fault needs an argument that is another function",
    "CUDA/globalarray/fail": "the host would have to change constant memory",
    "CUDA/loop_unwind": _SAME,
    "CUDA/memcpy/fail_arrayofstruct": _UNDEFINED,
    "CUDA/pointertests/test12": _SAME,
    "OpenCL/array_bounds_tests/array_in_array": _UNDEFINED,
    "OpenCL/reducedstrengthnonloopbug": "the fault is in a function that the kernel does not call",
    "OpenCL/undef_tests/uninitialised_local_int": _UNDEFINED,
    "OpenCL/undef_tests/uninitialised_local_ptr": _UNDEFINED,
    "const_ident": "addresses of constants in memory are those of the host, in registers those of the simulator",
    "ldmatrix": "lanes read by ldmatrix what others have stored, without a barrier: a race",
    "mma_m16n8k16_f32_bf16_bf16_f32_2x": "its second warp writes beyond the output",
})  # fmt: skip
"""The reasons by the names of kernels."""
