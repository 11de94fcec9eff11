# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runner of suites, on kernels of its own."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import Code, TilefoldError

from tests.ptx.test_cuda_source import needs_nvrtc
from tilefold.cute.loaded_ptx import PtxKernel

from .case import Case, judge
from .cute_tutorials import device_text
from .device_part import device_part
from .gpuverify import case_of, reduced, without_pairs
from .opencl_text import as_cuda
from .tabled import TABLES, arguments, difference, references
from .zluda import numbers

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


def _doubled(given: Sequence[Any]) -> str:
    return "" if given[0].tolist() == [*range(0, 64, 2)] else "not doubled"


def _counted(kernel: PtxKernel) -> Sequence[Any]:
    return [np.arange(32, dtype=np.int32)]


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


PROGRAM = """\
#include <vector>
#include "cells.h"
static int *buffer; // of the host
const char *TITLE = "a { in a text";
template <class T> __device__ T twice(T x) { return x + x; }
void reference(std::vector<Cell> &cells) { for (auto &c : cells) { c.x *= WIDTH; } }
__global__ void __launch_bounds__(WIDTH) k(Cell *cells) { cells[threadIdx.x].x = twice(cells[threadIdx.x].x); }
__global__ void other(int *p) { *p = undefined_name; }
int main() { k<<<1, WIDTH>>>(nullptr); }
"""


@needs_nvrtc
def test_the_device_part_of_a_program(tmp_path: Path) -> None:
    (tmp_path / "cells.h").write_text("#define WIDTH 32\nstruct Cell { int x; };\nstruct Other { std::string s; };\n")
    file = tmp_path / "program.cu"
    file.write_text(PROGRAM)
    text = device_part(file, "k")
    for name, is_kept in (("Cell", True), ("twice", True), ("k(", True), ("Other", False), ("main", False)):
        assert (name in text) is is_kept, name
    assert all(name not in text for name in ("reference", "buffer", "TITLE", "other", "<vector>"))
    assert judge(replace(_case(1, "clean", judge=_doubled), text=text, inputs=(_counted,))).state == "right"


@pytest.mark.parametrize("table", TABLES)
def test_references_know_wrong_results(table: str) -> None:
    """Each reference refuses the arguments as they are before the launch, and takes its own results."""
    for number, kernel in enumerate(TABLES[table]):
        if not kernel.fault:
            given = list(arguments(table, number))
            assert difference(table, number, given), kernel.name
            for place, wanted in references(table, number).items():
                given[place] = np.broadcast_to(np.asarray(wanted), given[place].shape).astype(given[place].dtype)
            assert not difference(table, number, given), kernel.name


def test_a_missing_compiler_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise TilefoldError(Code.FOREIGN_UNAVAILABLE, "NVRTC cannot be loaded")

    monkeypatch.setattr("tests.suites.case.compile_cuda", missing)
    with pytest.raises(TilefoldError, match="cannot be loaded"):
        judge(_case(1, "faults"))


def test_numbers_of_rust() -> None:
    for text, wanted in (
        ("0xFFu8, 1", np.array([255, 1], np.uint8)),
        ("-2i32, i32::MIN, i32::max_value()", np.array([-2, -(2**31), 2**31 - 1], np.int32)),
        ("half::f16::from_f32(-0.5), half::f16::from_bits(0x3C00)", np.array([-0.5, 1], np.float16)),
        ("f32::INFINITY, 1_0.5f32", np.array([np.inf, 10.5], np.float32)),
        ("0b1_01u64", np.array([5], np.uint64)),
    ):
        read = numbers(text)
        assert read is not None
        assert read.dtype == wanted.dtype
        assert read.tolist() == wanted.tolist()
    assert numbers("std::f32::consts::E / 2f32") is None
