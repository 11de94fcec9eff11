# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`wmma` against NumPy: every shape and type, both orders of each matrix."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tilefold.base.errors import Code, TilefoldError
from tilefold.base.target import Target

import tilefold
from tests.ptx.test_printing import check_printed
from tests.ptx.texts import kernel

NUMPY: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "s8": np.int8, "u8": np.uint8, "tf32": np.float32,
    "f64": np.float64, "f32": np.float32, "s32": np.int32,
}  # fmt: skip
DEEP = ("m16n16k16", "m32n8k16", "m8n32k16")
ORDERS = ("row.col", "col.row")
REGISTERS = {"m16n16k16": (4, 4), "m32n8k16": (8, 2), "m8n32k16": (2, 8), "m16n16k8": (4, 4), "m8n8k4": (1, 1)}
"""Those of A and B of 16 bits, and of other types where a shape has no other."""


def cases() -> Iterator[tuple[str, str, str, str]]:
    for shape in DEEP:
        yield from [(shape, "f16", "f32", "f32"), (shape, "f16", "f16", "f16"), (shape, "bf16", "f32", "f32")]
        yield from [(shape, "s8", "s32", "s32"), (shape, "u8", "s32", "s32")]
    yield from [("m16n16k16", "f16", "f32", "f16"), ("m32n8k16", "f16", "f16", "f32")]
    yield from [("m16n16k8", "tf32", "f32", "f32"), ("m8n8k4", "f64", "f64", "f64")]


def vector(kind: str, begin: int, number: int) -> str:
    return "{" + ", ".join(f"%{kind}{begin + k}" for k in range(number)) + "}"


def sums(shape: str, type: str) -> tuple[str, int]:
    """The kind and number of the registers of an accumulator."""
    return {"f16": "r", "s32": "r", "f32": "f", "f64": "g"}[type], 2 if "m8n8" in shape else 4 if type == "f16" else 8


def text(shape: str, type: str, d: str, c: str, orders: str, *, operation: str = "", stride: str = "40") -> str:
    first, second = orders.split(".")
    if type in ("s4", "u4", "b1"):
        of_a = of_b = 1
    else:
        of_a, of_b = REGISTERS[shape]
        of_a, of_b = (
            (8, 8)
            if type == "f16"
            else (max(of_a // 2, 1), max(of_b // 2, 1))
            if type in ("s8", "u8")
            else (of_a, of_b)
        )
    kind = "g" if type == "f64" else "r"
    fa, fb = vector(kind, 0, of_a), vector(kind, 8, of_b)
    (kind_c, of_c), (kind_d, of_d) = sums(shape, c), sums(shape, d)
    fc, fd = vector(kind_c, 16, of_c), vector(kind_d, 24, of_d)
    types = f"{d}.{c}" if type == "f16" else f"{d}.{type}.{type}.{c}"
    body = f"""ld.param.u64 %d1, [A]; ld.param.u64 %d2, [B]; ld.param.u64 %d3, [C]; ld.param.u64 %d5, [D];
    cvta.to.global.u64 %d4, %d1; mov.u32 %r39, {stride};
    wmma.load.a.sync.aligned.{first}.{shape}.global.{type} {fa}, [%d4], %r39;
    wmma.load.b.sync.aligned.{second}.{shape}.{type} {fb}, [%d2], {stride};
    wmma.load.c.sync.aligned.{first}.{shape}.global.{c} {fc}, [%d3], 40;
    wmma.mma{operation}.sync.aligned.{first}.{second}.{shape}.{types} {fd}, {fa}, {fb}, {fc};
    wmma.store.d.sync.aligned.{first}.{shape}.global.{d} [%d5], {fd}, 40; ret;"""
    return kernel(body, ".param .u64 A, .param .u64 B, .param .u64 C, .param .u64 D").replace(".f32 %f", ".b32 %f")


def stored(values: np.ndarray, order: str, kind: Any) -> np.ndarray:
    """A matrix with rows, or columns, of 40 elements."""
    rows = values if order == "row" else values.T
    memory = np.zeros((len(rows), 40), kind)
    memory[:, : rows.shape[1]] = rows
    return memory


@pytest.mark.parametrize(
    ("shape", "type", "d", "c", "orders"),
    [(*case, orders) for n, case in enumerate(cases()) for m, orders in enumerate(ORDERS) if n < 2 or n % 2 == m],
)
def test_products(shape: str, type: str, d: str, c: str, orders: str) -> None:
    """D = A B + C of small integers; C and D have the order of A."""
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    rng = np.random.default_rng(0)
    low = 0 if type == "u8" else -3
    a, b = (rng.integers(low, 4, (int(x), int(y))) for x, y in ((m, k), (k, n)))
    sum, (first, second) = rng.integers(-3, 4, (int(m), int(n))), orders.split(".")
    result = stored(np.zeros_like(sum), first, NUMPY[d])
    call = tilefold.load_ptx(text(shape, type, d, c, orders))["k"]
    given = stored(a, first, NUMPY[type]), stored(b, second, NUMPY[type]), stored(sum, first, NUMPY[c])
    call(*given, result).launch(grid=1, block=32)
    made = result[:, : int(n)] if first == "row" else result[:, : int(m)].T
    assert np.array_equal(made, (a @ b + sum).astype(NUMPY[d]))


@pytest.mark.parametrize(("type", "operation"), [("s4", ""), ("u4", ""), ("b1", ".xor.popc"), ("b1", ".and.popc")])
def test_products_of_parts_of_bytes(type: str, operation: str) -> None:
    rng = np.random.default_rng(0)
    depth, bits = (128, 1) if type == "b1" else (32, 4)
    low, high = {"s4": (-8, 8), "u4": (0, 16), "b1": (0, 2)}[type]
    a, b = rng.integers(low, high, (8, depth)), rng.integers(low, high, (8, depth))
    words = [
        (x.astype(np.uint64).reshape(8, -1, 32 // bits) % (1 << bits) << np.arange(0, 32, bits, dtype=np.uint64))
        .sum(axis=2).astype(np.uint32) for x in (a, b)
    ]  # fmt: skip
    c = stored(rng.integers(-3, 4, (8, 8)), "row", np.int32)
    result = np.zeros_like(c)
    program = text(f"m8n8k{depth}", type, "s32", "s32", "row.col", operation=operation, stride=str(depth))
    tilefold.load_ptx(program)["k"](*words, c, result).launch(grid=1, block=32)
    product = (a[:, None] != b).sum(2) if operation == ".xor.popc" else a @ b.T
    assert np.array_equal(result[:, :8], product + c[:, :8])


def test_without_a_stride_matrices_are_dense() -> None:
    body = """ld.param.u64 %d1, [A]; ld.param.u64 %d2, [B];
    wmma.load.c.sync.aligned.row.m8n32k16.f16 {%r0, %r1, %r2, %r3}, [%d1];
    wmma.store.d.sync.aligned.col.m8n32k16.f16 [%d2], {%r0, %r1, %r2, %r3}; ret;"""
    a, b = np.arange(256, dtype=np.float16).reshape(8, 32), np.zeros((32, 8), np.float16)
    tilefold.load_ptx(kernel(body, ".param .u64 A, .param .u64 B"))["k"](a, b).launch(grid=1, block=32)
    assert np.array_equal(a, b.T)


def test_other_shapes_are_refused() -> None:
    program = text("m16n16k16", "bf16", "f32", "f32", "row.col").replace("f32.bf16.bf16", "f32.tf32.tf32")
    with pytest.raises(TilefoldError, match="the shape or the type is not supported") as caught:
        tilefold.load_ptx(program)["k"](*[np.zeros(1)] * 4).launch(grid=1, block=32)
    assert caught.value.code is Code.PTX_UNSUPPORTED


def test_what_is_printed_assembles() -> None:
    check_printed(text("m8n32k16", "f16", "f16", "f32", "row.col"), Target("sm_80"))
