# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches: their arguments, limits, output and reports."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tilefold.base.limits import Limits
from tilefold.runtime.engine import LaunchConfig, TensorArgument
from tilefold.runtime.errors import LaunchError
from tilefold.runtime.sim.faults import SimulationError
from tilefold.runtime.sim.preparation import SimProgram

from tests.sim.harness import SimEngine, entry, fault, launch, module_of, unwritten

TENSOR = """
!T = !tile.tensor<f16, gmem, align<16>, "(4,8):(1,4)">
gpu.module @kernels {
  tile.kernel @k(%A: !T, %n: i32, %x: f32) threads(32) {
    return
  }
}"""


def arguments(**changes: Any) -> dict[str, Any]:
    return {"A": np.zeros(32, np.float16), "n": 1, "x": 1.5, **changes}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"A": np.zeros(31, np.float16)}, "'A' spans 32 elements, the array has 31"),
        ({"A": np.zeros(32, np.float32)}, "'A' has elements of f16, but the array has float32"),
        ({"A": np.zeros(32, ml_dtypes.bfloat16)}, "'A' has elements of f16, but the array has bfloat16"),
        ({"A": 5}, "'A' is a tensor, and 5 is not"),
        ({"n": np.zeros(3)}, "'n' is of type i32, but a TensorArgument was given"),
        ({"n": 1.5}, "'n' is of type i32, but 1.5 was given"),
        ({"n": 2**32}, "'n' is of type i32, but 4294967296 was given"),
        ({"z": 1}, "the kernel has no argument 'z'"),
    ],
)
def test_arguments_that_do_not_fit(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(LaunchError) as error:
        launch(TENSOR, **arguments(**changes))
    assert words in error.value.message
    assert error.value.code == "E3106"


def test_a_missing_argument() -> None:
    with pytest.raises(LaunchError, match=r"argument 'A' of type .* is missing"):
        launch(TENSOR, n=1, x=1.0)


def test_arguments_that_fit() -> None:
    launch(TENSOR, **arguments())
    launch(TENSOR, **arguments(n=2**32 - 1, x=np.float32(2)))


def test_storage_is_one_dimensional() -> None:
    with pytest.raises(LaunchError, match="E3106"):
        TensorArgument(np.zeros((4, 8)))


def test_grid_and_block() -> None:
    with pytest.raises(LaunchError, match="is for blocks of"):
        launch(TENSOR, block=(64, 1, 1), **arguments())
    with pytest.raises(LaunchError, match="the grid is"):
        LaunchConfig((0, 1, 1), (32, 1, 1))
    with pytest.raises(LaunchError, match="E3105"):
        launch(TENSOR, grid=(2**31 - 1, 1, 1), **arguments())


@pytest.mark.parametrize("name", ["k", "@k", "kernels::k", "@kernels::@k"])
def test_kernels_by_name(name: str) -> None:
    assert SimProgram(module_of(TENSOR), name).find().sym_name.data == "k"


@pytest.mark.parametrize("name", ["q", "other::k"])
def test_no_such_kernel(name: str) -> None:
    with pytest.raises(LaunchError) as error:
        SimProgram(module_of(TENSOR), name).find()
    assert error.value.code == "E3107"
    assert "@kernels::@k" in error.value.hint


FOREVER = """
%true = arith.constant true
scf.while () : () -> () {
  scf.condition(%true)
} do {
  scf.yield
}"""


COUNTING = """
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%many = arith.constant 1000000000 : i32
%end = scf.while (%n = %zero) : (i32) -> i32 {
  %more = arith.cmpi ne, %n, %many : i32
  scf.condition(%more) %n : i32
} do {
^bb0(%k : i32):
  %next = arith.addi %k, %one : i32
  scf.yield %next : i32
}"""


def test_a_kernel_that_does_not_end() -> None:
    error = fault(entry(COUNTING), "E3210", engine=SimEngine(budget=Limits(steps=100_000)))
    assert "100000 steps" in error.message
    assert error.site is not None
    assert error.site.op == "scf.while"


def test_a_kernel_that_prints_without_end() -> None:
    text = entry(FOREVER.replace("  scf.yield", '  ptx.printf "0123456789"() :\n  scf.yield'))
    engine = SimEngine(budget=Limits(characters=1000), sink=lambda _: None)
    error = fault(text, "E3210", engine=engine)
    assert "printed 1000 characters" in error.message
    assert error.site is not None
    assert error.site.op == "ptx.printf"


@pytest.mark.parametrize(
    "text",
    [
        entry("", "%A: !ptx.ptr<global> align 16"),
        entry("%s = ptx.smem.alloc 1000000 align 16", "%A: !ptx.ptr<global> align 16"),
        entry("%l = ptx.local.alloc 60000 align 16", "%A: !ptx.ptr<global> align 16"),
    ],
)
def test_memory_budget(text: str) -> None:
    small = np.zeros(16 if "alloc" in text else 1_000_000, np.uint8)
    engine = SimEngine(budget=Limits(bytes=1_000_000))
    assert "its budget is 1000000" in fault(text, "E3211", engine=engine, A=small).message
    launch(text, A=small)


def test_operations_without_a_rule_are_refused_before_anything_runs() -> None:
    body = """
        ptx.printf "hello"() :
        %t = gpu.thread_id x
        %v = arith.index_cast %t : index to i32
        %r = math.ipowi %v, %v : i32"""
    output: list[str] = []
    error = fault(entry(body), "E3201", engine=SimEngine(sink=output.append))
    assert "math.ipowi at test.cute:7:" in error.message
    assert output == []


def test_types_without_values_are_refused() -> None:
    error = fault(entry("%c = arith.constant 1 : i128"), "E3201")
    assert "no values of type i128" in error.message


def test_printf() -> None:
    body = r"""
        %t = gpu.thread_id x
        %i = arith.index_cast %t : index to i32
        %m = arith.constant -1 : i32
        %l = arith.constant -5000000000 : i64
        %f = arith.constant 1.5 : f32
        %d = arith.constant 1.0e-7 : f64
        ptx.printf "%d|%i|%u|%x|%lld|%llu|%llx|%f|%e|%g|100%%\n"
          (%i, %m, %m, %m, %l, %l, %l, %f, %f, %d) : i32, i32, i32, i32, i64, i64, i64, f32, f32, f64"""
    lines = launch(entry(body, threads="3"), block=(3, 1, 1)).output.splitlines()
    high = (1 << 64) - 5_000_000_000
    rest = f"-1|4294967295|ffffffff|-5000000000|{high}|{high:x}|1.500000|1.500000e+00|1e-07|100%"
    assert lines == [f"{i}|{rest}" for i in range(3)]


def test_printf_of_active_lanes_in_order() -> None:
    body = """
        %t = gpu.thread_id x
        %i = arith.index_cast %t : index to i32
        %c2 = arith.constant 2 : index
        %c0 = arith.constant 0 : index
        %odd = arith.remui %t, %c2 : index
        %even = arith.cmpi eq, %odd, %c0 : index
        scf.if %even {
          ptx.printf "%d "(%i) : i32
        }"""
    assert launch(entry(body)).output.split() == [str(i) for i in range(0, 32, 2)]


def test_results_of_a_failed_launch_are_not_written_back() -> None:
    body = """
        %v = arith.constant 5 : i32
        %t = gpu.thread_id x
        ptx.st %v, %A align 4 : i32, !ptx.ptr<global>
        %z = arith.constant 0 : index
        %r = arith.divui %t, %z : index"""
    array = np.zeros(4, np.int32)
    with pytest.raises(SimulationError):
        launch(entry(body, "%A: !ptx.ptr<global> align 16", "1"), block=(1, 1, 1), A=array)
    assert not array.any()


def test_the_report_sums_blocks_and_warps() -> None:
    body = """
        %t = gpu.thread_id x
        %b = gpu.block_id x
        %c64 = arith.constant 64 : index
        %c4 = arith.constant 4 : index
        %base = arith.muli %b, %c64 : index
        %i = arith.addi %base, %t : index
        %o = arith.muli %i, %c4 : index
        %p = ptx.ptr_add %A, %o : !ptx.ptr<global>, index -> !ptx.ptr<global>
        %v = arith.index_cast %i : index to i32
        ptx.st %v, %p align 4 : i32, !ptx.ptr<global>"""
    array = np.zeros(192, np.int32)
    text = entry(body, "%A: !ptx.ptr<global> align 16", "64")
    result = launch(text, (3, 1, 1), (64, 1, 1), A=unwritten(array))
    assert array.tolist() == list(range(192))
    count = result.counters.instructions["st.global.b32"]
    assert (count.warps, count.threads) == (6, 192)
    (access,) = result.counters.accesses
    assert (access.space, access.kind, access.width) == ("global", "store", 4)
    assert (access.requests, access.threads, access.transactions, access.excess) == (6, 192, 24, 0)
    assert access.location == "test.cute:13:9"
    assert result.counters.sectors() == (24, 24)
    assert result.counters.wavefronts() == (0, 0)
    assert result.counters.steps == 6 * 11
    assert result.seconds > 0
