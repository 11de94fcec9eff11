# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in the `llvm` dialect: their conversions round once, whatever LLVM makes of them."""

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.target import Target
from tilefold.compiler.cute_ir.emit_gpu_binary import write_llvm
from tilefold.compiler.machine.nvptx import compile_llvm
from tilefold.dialects.gpu import ModuleOp

from tests.emit.harness import parse
from tests.emit.numbers import decoded, encoded, rounded
from tests.emit.ptx_interpreter import run_ptx

ARCHES = ("sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120")
INTEGERS = np.array(
    [(1 << 24) + (1 << 16) + 1, -(1 << 24) - (1 << 16) - 1, 0x7FFFFFFF, -(1 << 31), 257, 258, -1, 0, 0x01810001, 3],
    np.int32,
)
"""Some lie just above the middle between two numbers of bf16, and f32 has only that middle."""


def ptx_of(body: str, args: str, arch: str, functions: str = "") -> str:
    """The PTX of a kernel in the `llvm` dialect for a target."""
    module = parse(
        f"gpu.module @m {{\n{functions}\nllvm.func @k({args}) attributes {{gpu.kernel, nvvm.kernel}} {{\n"
        f"{body}\nllvm.return\n}} }}"
    )
    program = module.body.block.first_op
    assert isinstance(program, ModuleOp)
    return compile_llvm(write_llvm(program, Target(arch)), Target(arch))


ARGUMENTS = "%a: !llvm.ptr<1>, %b: !llvm.ptr<1>"


def elements(count: int, body: str) -> str:
    """`body` for the integers %x0, %x1, ... of `%a`, of which it makes %y0, %y1, ...; {i} is the number of one."""
    lines: list[str] = []
    for i in range(count):
        lines += [
            f"%p{i} = llvm.getelementptr %a[{i}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32",
            f"%x{i} = llvm.load %p{i} : !llvm.ptr<1> -> i32",
            body.replace("{i}", str(i)),
            f"%q{i} = llvm.getelementptr %b[{i}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, bf16",
            f"llvm.store %y{i}, %q{i} : bf16, !llvm.ptr<1>",
        ]
    return "\n".join(lines)


def in_bf16(bits: NDArray[np.uint16]) -> NDArray[np.float64]:
    return np.asarray(decoded(bits, "bf16"), np.float64)


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(
    "body",
    [
        "%y{i} = llvm.sitofp %x{i} : i32 to bf16",
        "%d{i} = llvm.sitofp %x{i} : i32 to f64\n%y{i} = llvm.fptrunc %d{i} : f64 to bf16",
        "%w{i} = llvm.sext %x{i} : i32 to i64\n%y{i} = llvm.sitofp %w{i} : i64 to bf16",
    ],
)
def test_an_integer_becomes_the_nearest_number_of_bf16(body: str, arch: str) -> None:
    made = np.zeros(INTEGERS.size, np.uint16)
    ptx = ptx_of(elements(INTEGERS.size, body), ARGUMENTS, arch)
    run_ptx(ptx, 1, 1, [INTEGERS.copy(), made])
    np.testing.assert_array_equal(in_bf16(made), rounded(INTEGERS.astype(np.float64), "bf16"))


@pytest.mark.parametrize("arch", ARCHES)
def test_a_vector_of_integers_is_rounded_as_its_elements(arch: str) -> None:
    size = INTEGERS.size
    made = np.zeros(size, np.uint16)
    body = f"""
    %x = llvm.load %a {{alignment = 4 : i64}} : !llvm.ptr<1> -> vector<{size}xi32>
    %y = llvm.sitofp %x : vector<{size}xi32> to vector<{size}xbf16>
    llvm.store %y, %b {{alignment = 2 : i64}} : vector<{size}xbf16>, !llvm.ptr<1>
    """
    run_ptx(ptx_of(body, ARGUMENTS, arch), 1, 1, [INTEGERS.copy(), made])
    np.testing.assert_array_equal(in_bf16(made), rounded(INTEGERS.astype(np.float64), "bf16"))


@pytest.mark.parametrize("arch", ARCHES)
def test_a_true_bit_is_minus_one(arch: str) -> None:
    made = np.zeros(2, np.uint16)
    zero = '%z{i} = llvm.mlir.constant(0 : i32) : i32\n%c{i} = llvm.icmp "ne" %x{i}, %z{i} : i32\n'
    body = elements(2, zero + "%y{i} = llvm.sitofp %c{i} : i1 to bf16")
    run_ptx(ptx_of(body, ARGUMENTS, arch), 1, 1, [np.array([0, 5], np.int32), made])
    np.testing.assert_array_equal(in_bf16(made), [0.0, -1.0])


PRODUCT = """
llvm.func @product(%x: vector<4xbf16>, %y: vector<4xbf16>) -> vector<4xf32> {
  %p = llvm.fpext %x : vector<4xbf16> to vector<4xf32>
  %q = llvm.fpext %y : vector<4xbf16> to vector<4xf32>
  %r = llvm.fmul %p, %q : vector<4xf32>
  llvm.return %r : vector<4xf32>
}
"""
INLINE = "\n".join(PRODUCT.splitlines()[2:5])
CALL = "%r = llvm.call @product(%x, %y) : (vector<4xbf16>, vector<4xbf16>) -> vector<4xf32>"


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(("multiply", "functions"), [(INLINE, ""), (CALL, PRODUCT)], ids=["inline", "called"])
def test_a_product_in_f32_is_not_one_of_the_type_it_is_rounded_to(multiply: str, functions: str, arch: str) -> None:
    """Also where another function multiplies, of which LLVM makes a part of the kernel."""
    body = f"""
    %b = llvm.getelementptr %a[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, bf16
    %c = llvm.getelementptr %a[8] : (!llvm.ptr<1>) -> !llvm.ptr<1>, bf16
    %x = llvm.load %a {{alignment = 8 : i64}} : !llvm.ptr<1> -> vector<4xbf16>
    %y = llvm.load %b {{alignment = 8 : i64}} : !llvm.ptr<1> -> vector<4xbf16>
    {multiply}
    %h = llvm.fptrunc %r : vector<4xf32> to vector<4xf16>
    llvm.store %h, %c {{alignment = 8 : i64}} : vector<4xf16>, !llvm.ptr<1>
    """
    numbers = rounded(np.array([1e6, 2.0**-30, 3.0, 257.0, 1e-4, 2.0**20, 5.0, 257.0]), "bf16")
    memory = np.concatenate([encoded(numbers, "bf16").astype(np.uint16), np.zeros(4, np.uint16)])
    run_ptx(ptx_of(body, "%a: !llvm.ptr<1>", arch, functions), 1, 1, [memory])
    products = rounded(numbers[:4] * numbers[4:], "f32")
    np.testing.assert_array_equal(decoded(memory[8:], "f16"), rounded(products, "f16"))


@pytest.mark.parametrize(("wide", "narrow"), [("f64", "f32"), ("f64", "bf16"), ("f32", "bf16"), ("f32", "f16")])
def test_a_remainder_is_not_one_of_a_narrow_type(wide: str, narrow: str) -> None:
    """LLVM would round the first operand to f16, where it is infinite, or end the process."""
    body = f"""
    %b = llvm.getelementptr %a[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, bf16
    %c = llvm.getelementptr %a[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, bf16
    %x = llvm.load %a : !llvm.ptr<1> -> bf16
    %y = llvm.load %b : !llvm.ptr<1> -> f16
    %u = llvm.fpext %x : bf16 to {wide}
    %v = llvm.fpext %y : f16 to {wide}
    %r = llvm.frem %u, %v : {wide}
    %n = llvm.fptrunc %r : {wide} to {narrow}
    llvm.store %n, %c {{alignment = 4 : i64}} : {narrow}, !llvm.ptr<1>
    """
    ptx = ptx_of(body, "%a: !llvm.ptr<1>", "sm_80")
    assert f"div.rn.{wide}" in ptx
    assert ptx.count("cvt.rn.f16") == (narrow == "f16")


def test_a_pointer_keeps_its_address_space() -> None:
    body = "%x = llvm.load %a : !llvm.ptr<1> -> i32\nllvm.store %x, %s : i32, !llvm.ptr<3>"
    ptx = ptx_of(body, "%a: !llvm.ptr<1>, %s: !llvm.ptr<3>", "sm_80")
    assert "ld.global.b32" in ptx
    assert "st.shared.b32" in ptx
