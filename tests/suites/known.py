# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Verdicts on kernels of suites that differ from the expected ones, with the reason."""

from collections.abc import Mapping
from types import MappingProxyType

_FLAGS = "the barrier of the shim orders all memory, as that of CUDA does, whatever the flags of OpenCL's"
_SAME = "all threads write the same value, or read it while others write it"
_INPUT = "the fault needs contents of an array that no input has"
_UNIFORM = "the copy of the shim does not demand the same arguments of all work-items"
_SPECIFIED = "an assertion of two threads was left out, on which this one rests"
_ABSTRACT = "GPUVerify takes a loop or an array for arbitrary values; the kernel that runs has no such fault"
KNOWN: Mapping[str, str] = MappingProxyType({
    "CUDA/globalarray/fail": "the host would have to change constant memory",
    "CUDA/loop_unwind": _SAME,
    "CUDA/memcpy/fail_arrayofstruct": "the only value that is written is undefined, which is the fault that is found",
    "CUDA/pointertests/test12": _SAME,
    "CUDA/function_pointers/funcptr_to_ptr_add": "the fault needs an argument that is another function",
    "OpenCL/annotation_tests/specification_tests/pass/vacuous_spec": _SPECIFIED,
    "OpenCL/annotation_tests/specification_tests/pass/value_related_spec": _SPECIFIED,
    "OpenCL/array_bounds_tests/array_in_array": "the index is undefined, which is the fault that is found",
    "OpenCL/array_bounds_tests/array_in_array_param": _INPUT,
    **{f"OpenCL/async_work_group_copy/fail/test{n}": _UNIFORM for n in (2, 3, 5, 7, 9, 11, 12, 13, 14)},
    "OpenCL/get_global_offset": "the shim has one offset for all dimensions",
    "OpenCL/global_size/simple": "its groups have 2048 work-items, more than a block of a GPU has threads",
    "OpenCL/inter_group_and_barrier_flag_tests/fail/bad_read_then_write": _FLAGS,
    "OpenCL/inter_group_and_barrier_flag_tests/fail/bad_write_then_read": _FLAGS,
    "OpenCL/inter_group_and_barrier_flag_tests/fail/missing_global_barrier_flag": _FLAGS,
    "OpenCL/inter_group_and_barrier_flag_tests/fail/sync_within_group_wrong_flag": _FLAGS,
    "OpenCL/misc/pass/misc15": "the option that fixes the value of an argument is not read",
    "OpenCL/misc/pass/misc19": "the option that fixes the value of an argument is not read",
    "OpenCL/multidimarrays/test5": _SAME,
    "OpenCL/no_log/pass": _SAME,
    "OpenCL/reducedstrengthnonloopbug": _ABSTRACT,
    "OpenCL/report_global_id/test1": "the fault is in a block that the reduced grid does not have",
})  # fmt: skip
"""The reasons by the names of kernels."""
