# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""multimem in PTX, on several simulated devices (PTX ISA, multimem.ld_reduce, multimem.st, multimem.red)."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import Code, TilefoldError

import tilefold
from tests.ptx.texts import kernel
from tilefold.cute.several_devices import meet, multicast, run_on_devices, symmetric

DEVICES, THREADS = 3, 32
HEAD = """
    ld.param.u64 %d1, [A]; ld.param.u64 %d2, [B]; mov.u32 %r1, %tid.x;
    mul.wide.u32 %d3, %r1, 16; add.s64 %d4, %d1, %d3; add.s64 %d5, %d2, %d3;
"""


def text(body: str) -> str:
    made = kernel(f"{HEAD}{body} ret;", ".param .u64 A, .param .u64 B")
    return made.replace(".version 8.0", ".version 8.6").replace("sm_80", "sm_90")


def run(body: str, dtype: Any, values: NDArray[Any]) -> list[NDArray[Any]]:
    """The arrays B of all devices, of which device `i` has `values[i]` in A; both are multicast addresses."""
    program = tilefold.load_ptx(text(body))["k"]

    def on(rank: int) -> NDArray[Any]:
        a, b = symmetric(values.shape[1], dtype), symmetric(values.shape[1], dtype)
        a[:] = values[rank]
        places = [multicast(array) for array in (a, b)]
        meet()
        program(*places).launch(1, THREADS)
        return b

    return run_on_devices(DEVICES, on)


WORDS = "{%r4, %r5, %r6, %r7}"


@pytest.mark.parametrize(("load", "store", "dtype", "reduce"), [
    ("relaxed.sys.global.add.v4.f32 {%f1, %f2, %f3, %f4}", "relaxed.sys.global.v4.f32 [%d5], {%f1, %f2, %f3, %f4}",
     np.float32, np.sum),
    (f"relaxed.sys.global.add.acc::f32.v4.f16x2 {WORDS}", f"relaxed.sys.global.v4.f16x2 [%d5], {WORDS}",
     np.float16, np.sum),
    (f"acquire.sys.global.max.v4.f16x2 {WORDS}", f"release.sys.global.v4.f16x2 [%d5], {WORDS}", np.float16, np.max),
    ("relaxed.sys.global.min.u64 %d6", "relaxed.sys.global.u64 [%d5], %d6", np.uint64, np.min),
    ("relaxed.sys.global.xor.b32 %r4", "relaxed.sys.global.b32 [%d5], %r4", np.uint32, np.bitwise_xor.reduce),
    ("relaxed.sys.global.add.f64 %g1", "relaxed.sys.global.f64 [%d5], %g1", np.float64, np.sum),
])  # fmt: skip
def test_a_value_of_all_devices_goes_to_all(load: str, store: str, dtype: Any, reduce: Any) -> None:
    count = THREADS * 16 // np.dtype(dtype).itemsize
    values = np.random.default_rng(0).integers(1, 50, (DEVICES, count)).astype(dtype)
    if "v4" not in load:  # one element of each 16 bytes
        values.reshape(DEVICES, THREADS, -1)[..., 1:] = 0
    body = f"multimem.ld_reduce.{load}, [%d4]; multimem.st.{store};"  # all write the same
    for found in run(body, dtype, values):
        np.testing.assert_array_equal(found, reduce(values, axis=0))


def test_reductions_in_the_memory_of_all() -> None:
    values = np.random.default_rng(1).integers(1, 50, (DEVICES, THREADS * 8)).astype(np.float16)
    body = f"""
        multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.f16x2 {WORDS}, [%d4];
        multimem.red.relaxed.sys.global.add.v4.f16x2 [%d5], {WORDS};"""
    for found in run(body, np.float16, values):
        np.testing.assert_array_equal(found, DEVICES * values.sum(axis=0))


def test_an_address_of_one_device_is_none_of_multicast_memory() -> None:
    body = "multimem.red.relaxed.gpu.global.add.u32 [%d4], 1;"
    with pytest.raises(TilefoldError, match="not one of multicast memory") as caught:
        tilefold.load_ptx(text(body))["k"](np.zeros(128, np.uint32), np.zeros(128, np.uint32)).launch(1, 32)
    assert caught.value.code is Code.SIM_OUT_OF_BOUNDS


def test_other_forms_are_refused() -> None:
    body = "multimem.red.relaxed.gpu.global.mul.u32 [%d4], 1;"
    with pytest.raises(TilefoldError, match=r"multimem\.red has add") as caught:
        tilefold.load_ptx(text(body))["k"](np.zeros(128, np.uint32), np.zeros(128, np.uint32)).launch(1, 32)
    assert caught.value.code is Code.PTX_UNSUPPORTED
