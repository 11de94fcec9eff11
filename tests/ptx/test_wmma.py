# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`wmma` against NumPy: every type, both orders of each matrix."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilefold
from tests.ptx.texts import kernel

TYPES = {
    "f16": (np.float16, 8, 8, 16), "bf16": (ml_dtypes.bfloat16, 4, 4, 16), "s8": (np.int8, 2, 2, 16),
    "tf32": (np.float32, 4, 4, 8),
}  # fmt: skip


@pytest.mark.parametrize("orders", ["row.col", "col.row"])
@pytest.mark.parametrize(
    ("type", "sum"), [("f16", "f32"), ("f16", "f16"), ("bf16", "f32"), ("s8", "s32"), ("tf32", "f32")]
)
def test_products(type: str, sum: str, orders: str) -> None:
    """D = A B + C of small integers, with rows of 24 elements; C has the order of A."""
    dtype, of_a, of_b, depth = TYPES[type]
    first, second = orders.split(".")
    rng = np.random.default_rng(0)
    out = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[sum]
    a, b, c = rng.integers(-3, 4, (16, depth)), rng.integers(-3, 4, (depth, 16)), rng.integers(-3, 4, (16, 16))
    shape, letter = f"m16n16k{depth}", "f" if sum == "f32" else "r"
    count = 4 if sum == "f16" else 8

    def stored(values: np.ndarray, order: str, kind: Any) -> np.ndarray:
        rows = values if order == "row" else values.T
        memory = np.zeros((len(rows), 24), kind)
        memory[:, : rows.shape[1]] = rows
        return memory

    def registers(kind: str, begin: int, number: int) -> str:
        return "{" + ", ".join(f"%{kind}{begin + k}" for k in range(number)) + "}"

    fa, fb = registers("r", 0, of_a), registers("r", 8, of_b)
    fc, fd = registers(letter, 16, count), registers(letter, 24, count)
    types = f"{sum}.{sum}" if type == "f16" else f"{sum}.{type}.{type}.{sum}"
    body = f"""ld.param.u64 %d1, [A]; ld.param.u64 %d2, [B]; ld.param.u64 %d3, [C];
    cvta.to.global.u64 %d4, %d1; mov.u32 %r39, 24;
    wmma.load.a.sync.aligned.{first}.{shape}.global.{type} {fa}, [%d4], %r39;
    wmma.load.b.sync.aligned.{second}.{shape}.{type} {fb}, [%d2], 24;
    wmma.load.c.sync.aligned.{first}.{shape}.global.{sum} {fc}, [%d3], %r39;
    wmma.mma.sync.aligned.{first}.{second}.{shape}.{types} {fd}, {fa}, {fb}, {fc};
    wmma.store.d.sync.aligned.{first}.{shape}.global.{sum} [%d3], {fd}, %r39; ret;"""
    given = stored(c, first, out)
    call = tilefold.load_ptx(kernel(body, ".param .u64 A, .param .u64 B, .param .u64 C"))["k"]
    call(stored(a, first, dtype), stored(b, second, dtype), given).launch(grid=1, block=32)
    result = given[:, :16] if first == "row" else given[:, :16].T
    assert np.array_equal(result, (a @ b + c).astype(out))
