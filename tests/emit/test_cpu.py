# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the emission on the CPU: blocks, threads, barriers, numbers, and what does not run there."""

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16
from numpy.typing import NDArray
from tilefold.runtime.sim.values import fused_multiply_add, narrow

from tests.emit.cpu import NotOnCpu, run_kernel, run_on_cpu
from tests.emit.harness import kernel, llvm_of

ADDRESS = "ptx.ptr_add {0}, {1} : !ptx.ptr<{2}>, i32 -> !ptx.ptr<{2}>"
ONE = (1, 1, 1)


def test_threads_of_all_blocks_exchange_numbers_through_shared_memory() -> None:
    """Each block reverses its part, in a loop that waits twice a turn."""
    body = f"""
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %three = arith.constant 3 : i32
    %four = arith.constant 4 : i32
    %last = arith.constant 60 : i32
    %size = arith.constant 64 : i32
    %t = ptx.sreg "tid.x"
    %b = ptx.sreg "ctaid.y"
    %mine = arith.muli %t, %four : i32
    %other = arith.subi %last, %mine : i32
    %first = arith.muli %b, %size : i32
    %place = arith.addi %first, %mine : i32
    %s = ptx.smem.addr 0
    %ps = {ADDRESS.format("%s", "%mine", "shared")}
    %po = {ADDRESS.format("%s", "%other", "shared")}
    %pa = {ADDRESS.format("%a", "%place", "global")}
    scf.for %i = %zero to %three step %one : i32 {{
      %x = ptx.ld %pa align 4 : !ptx.ptr<global> -> i32
      ptx.st %x, %ps align 4 : i32, !ptx.ptr<shared>
      ptx.bar.sync 0
      %y = ptx.ld %po align 4 : !ptx.ptr<shared> -> i32
      %z = arith.addi %y, %i : i32
      ptx.st %z, %pa align 4 : i32, !ptx.ptr<global>
      ptx.bar.sync 1
    }}
    """
    text = kernel(body, "%a: !ptx.ptr<global> align 16", threads="16", shared=64)
    numbers = np.arange(48, dtype=np.int32)
    expected = numbers.reshape(3, 16)[:, ::-1] + 3
    run_kernel(llvm_of(text), "k", (1, 3, 1), (16, 1, 1), [numbers])
    assert (numbers.reshape(3, 16) == expected).all()


def test_numbers_are_given_as_their_parameters_say() -> None:
    stores = "\n".join(
        f"ptx.st %{type}, %out{type} align 8 : {type}, !ptx.ptr<global>" for type in ("i16", "i64", "f16", "f32", "f64")
    )
    given = {"i16": -3, "i64": -(2**40), "f16": 1.5, "f32": 0.1, "f64": 0.1}
    kinds = {"i16": np.int16, "i64": np.int64, "f16": np.float16, "f32": np.float32, "f64": np.float64}
    out = {type: np.zeros(1, kind) for type, kind in kinds.items()}
    args = [f"%out{type}: !ptx.ptr<global> align 8" for type in given] + [f"%{type}: {type}" for type in given]
    run_kernel(llvm_of(kernel(stores, ", ".join(args), "1")), "k", ONE, ONE, [*out.values(), *given.values()])
    assert {type: array[0] for type, array in out.items()} == {type: kinds[type](given[type]) for type in given}


Storage = NDArray[Any]
FLOATS: dict[str, Any] = {"f16": np.dtype(np.float16), "bf16": np.dtype(bfloat16)}


def _map(op: str, types: list[str], result: str, columns: list[Storage], out: Storage) -> None:
    """Applies an operation to each row, one thread a row."""
    bits = [int("".join(filter(str.isdigit, type))) // 8 for type in (*types, result)]
    lines = ['%t = ptx.sreg "tid.x"']
    for index, (type, size) in enumerate(zip((*types, result), bits, strict=True)):
        lines += [f"%size{index} = arith.constant {size} : i32", f"%o{index} = arith.muli %t, %size{index} : i32"]
        lines += [f"%p{index} = {ADDRESS.format(f'%a{index}', f'%o{index}', 'global')}"]
        if index < len(types):
            lines += [f"%x{index} = ptx.ld %p{index} align {size} : !ptx.ptr<global> -> {type}"]
    lines += [f"%r = {op}", f"ptx.st %r, %p{len(types)} align {bits[-1]} : {result}, !ptx.ptr<global>"]
    args = ", ".join(f"%a{index}: !ptx.ptr<global> align 16" for index in range(len(types) + 1))
    text = kernel("\n".join(lines), args, str(out.size))
    run_kernel(llvm_of(text), "k", ONE, (out.size, 1, 1), [*columns, out])


@pytest.mark.parametrize("type", FLOATS)
def test_narrow_floats_are_rounded_once(type: str) -> None:
    rng = np.random.default_rng(0)
    numbers = [(rng.standard_normal(512) * 2.0 ** rng.integers(-6, 6, 512)).astype(FLOATS[type]) for _ in range(3)]
    out = np.zeros(512, FLOATS[type])
    _map(f"math.fma %x0, %x1, %x2 : {type}", [type] * 3, type, numbers, out)
    a, b, c = numbers
    assert np.array_equal(out, fused_multiply_add(a, b, c, FLOATS[type]))
    halfway = 1 + 2.0**-8 + 2.0 ** -rng.integers(20, 50, 512) * rng.choice([-1, 0, 1], 512)
    _map(f"arith.truncf %x0 : f64 to {type}", ["f64"], type, [halfway], out)
    assert np.array_equal(out, narrow(halfway, FLOATS[type]))


def test_conversions_to_integers_saturate() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 1e30, -1.5, 2.5], np.float32)
    out, wide = np.zeros(8, np.int32), np.zeros(8, np.int64)
    _map("arith.fptosi %x0 : f32 to i32", ["f32"], "i32", [values], out)
    _map("arith.fptosi %x0 : f32 to i64", ["f32"], "i64", [values], wide)
    least, greatest = -(2**31), 2**31 - 1
    assert out.tolist() == [0, greatest, least, greatest, least, greatest, -1, 2]
    least, greatest = -(2**63), 2**63 - 1
    assert wide.tolist() == [least, greatest, least, 3 * 10**9, -3 * 10**9, greatest, -1, 2]


def test_the_greater_of_zeros_and_of_nan() -> None:
    left = np.array([0.0, -0.0, np.nan, 1.0], np.float32)
    right = np.array([-0.0, 0.0, 1.0, np.nan], np.float32)
    out = np.zeros(4, np.float32)
    _map("arith.maxnumf %x0, %x1 : f32", ["f32"] * 2, "f32", [left, right], out)
    assert np.signbit(out).tolist() == [False] * 4
    assert out.tolist() == [0, 0, 1, 1]
    _map("arith.minnumf %x0, %x1 : f32", ["f32"] * 2, "f32", [left, right], out)
    assert np.signbit(out).tolist() == [True, True, False, False]


def test_accesses_with_cache_hints_are_accesses() -> None:
    body = """
    %x = ptx.ld %a cache "cs" align 16 : !ptx.ptr<global> -> vector<4xi32>
    ptx.st %x, %b cache "cs" align 16 : vector<4xi32>, !ptx.ptr<global>
    %y = ptx.ld %a cache "cg" align 1 : !ptx.ptr<global> -> i8
    ptx.st %y, %c cache "cs" align 1 : i8, !ptx.ptr<global>
    """
    text = llvm_of(
        kernel(body, "%a: !ptx.ptr<global> align 16, %b: !ptx.ptr<global> align 16, %c: !ptx.ptr<global> align 1", "1")
    )
    assert "ld.global.cs" in text
    a, b, c = np.arange(4, dtype=np.int32) + 200, np.zeros(4, np.int32), np.zeros(2, np.uint8)
    run_on_cpu(text, [a, b, c])
    assert (a == b).all()
    assert c.tolist() == [200, 0]


def test_an_instruction_that_does_not_run_is_named() -> None:
    text = llvm_of(
        kernel("%x = ptx.activemask\nptx.st %x, %a align 4 : i32, !ptx.ptr<global>", "%a: !ptx.ptr<global> align 4")
    )
    with pytest.raises(NotOnCpu, match=r"activemask\.b32 does not run on the CPU"):
        run_kernel(text, "k", ONE, (32, 1, 1), [np.zeros(1, np.int32)])


def test_memory_beside_an_array_is_not_written() -> None:
    store = f"""
    %x = arith.constant 4 : i32
    %p = {ADDRESS.format("%a", "%x", "global")}
    ptx.st %x, %p align 4 : i32, !ptx.ptr<global>
    """
    text = llvm_of(kernel(store, "%a: !ptx.ptr<global> align 4", "1"))
    run_on_cpu(text, [np.zeros(2, np.int32)])
    with pytest.raises(AssertionError, match="wrote memory beside its array"):
        run_on_cpu(text, [np.zeros(1, np.int32)])
