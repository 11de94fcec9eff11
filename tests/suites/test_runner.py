# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runner of suites, on kernels of its own."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.ptx.test_cuda_source import needs_nvrtc

from .case import Case, judge
from .cute_tutorials import device_text
from .gpuverify import case_of, reduced, without_pairs
from .opencl_text import as_cuda

STORE = 'extern "C" __global__ void k(int *p) { p[threadIdx.x / N] = threadIdx.x; }'


def _case(divisor: int, expected: str, **more: Any) -> Case:
    made = Case(
        "store", STORE, Path("/kernels/store.cu"), expected, (1,), (32,), (lambda _: [np.zeros(32, np.int32)],),
        nvrtc=(f"-DN={divisor}",),
    )  # fmt: skip
    return replace(made, **more)


def _in_order(given: Sequence[Any]) -> str:
    return "" if given[0].tolist() == [*range(32)] else "another order"


def _never(given: Sequence[Any]) -> str:
    return "always"


NOTHING: dict[str, Any] = {}


@needs_nvrtc
@pytest.mark.parametrize(
    ("divisor", "expected", "more", "state"),
    [
        (1, "clean", NOTHING, "right"),
        (2, "faults", {"codes": ("E3205",)}, "right"),
        (2, "faults", {"codes": ("E3202",)}, "wrong"),
        (2, "clean", {"counted": ("E3202",)}, "right"),
        (2, "clean", NOTHING, "wrong"),
        (1, "faults", NOTHING, "wrong"),
        (1, "faults", {"excuse": "another input"}, "not supported"),
        (1, "clean", {"judge": _in_order}, "right"),
        (1, "clean", {"judge": _never}, "wrong"),
        (1, "clean", {"text": "no kernel"}, "not supported"),
        (1, "clean", {"left_out": "no reason"}, "left out"),
    ],
)
def test_verdicts(divisor: int, expected: str, more: dict[str, Any], state: str) -> None:
    assert judge(_case(divisor, expected, **more)).state == state


@needs_nvrtc
def test_opencl(tmp_path: Path) -> None:
    """A kernel with an argument in local memory, a vector, and an assertion."""
    file = tmp_path / "kernel.cl"
    text = """//pass
//--local_size=32 --num_groups=2
__kernel void foo(__global int *p, __local int *q, int n) {
  __requires(n == 7);
  int2 v = (int2)(n, 1);
  q[get_local_id(0)] = v.s0 + v.y;
  barrier(CLK_LOCAL_MEM_FENCE);
  __assert(q[31 - get_local_id(0)] == 8);
  p[get_global_id(0)] = __other_int(n);
}
"""
    file.write_text(text.replace("__other_int(n)", "n"))
    assert judge(case_of(file, "foo", "OpenCL")).state == "right"
    file.write_text(text.replace("__other_int(n)", "n").replace("  barrier(CLK_LOCAL_MEM_FENCE);\n", ""))
    assert judge(case_of(file, "foo", "OpenCL")).state == "wrong"
    assert as_cuda("__kernel void f(__local float *x, __global int *y) {}") == (
        "__global__ void f( int *y) { __shared__ float x[512]; suite_fill(x);}"
    )
    assert without_pairs("__assert(__other_int(n) == n); __assert(n);") == ("true; __assert(n);", True)
    assert reduced((1024, 1024), (64, 64)) == ((2, 2), (32, 32))


def test_kernels_become_functions() -> None:
    text = "#include <x>\ntemplate <class T>\n__global__ static\n__launch_bounds__(decltype(size(M{}))::value)\nvoid\n"
    assert device_text(text + "k(CUTLASS_GRID_CONSTANT TmaA const tma_a)\n{\n}\n\nint main() {\n}\n") == (
        "template <class T>\n__device__ void\nk(TmaA const &tma_a)\n{\n}\n"
    )
