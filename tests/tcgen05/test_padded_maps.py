# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads that pad elements of 4 and 6 bits to bytes, as tcgen05.mma takes them that mixes types."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import Code

from tests.sim.harness import fault, launch
from tests.tcgen05.numbered import PADDED, changed

KERNEL = PADDED.partition("run.launch")[0]
SIX = changed(
    KERNEL,
    ("b4x16_p64 A dims (128, 160) strides (64)", "b6x16_p32 A dims (128, 160) strides (96)"),
    ("10240", "15360"),
    ("0x8081690", f"{0x8080010 | 4 << 7 | 3 << 10:#x}"),
)
"""The same of A of e3m2 and B of e2m3."""


def codes(packed: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """The elements (160, 128) of packed rows, one in each byte."""
    single = np.unpackbits(packed.reshape(160, -1), axis=1, bitorder="little").reshape(160, 128, bits)
    return np.packbits(single, axis=2, bitorder="little")[:, :, 0]


@pytest.mark.parametrize("bits", [4, 6])
def test_a_load_pads_the_elements_of_both_operands(bits: int) -> None:
    packed = np.random.default_rng(0).integers(0, 256, 160 * 128 * bits // 8, np.uint8)
    d = np.zeros(128 * 32, np.float32)
    launch(KERNEL if bits == 4 else SIX, block=(128, 1, 1), A=packed, D=d)
    types: list[Any] = [ml_dtypes.float6_e3m2fn, ml_dtypes.float6_e2m3fn]
    types = [ml_dtypes.float4_e2m1fn] * 2 if bits == 4 else types
    rows = codes(packed, bits)[:, :32]
    a, b = (part.view(kind).astype(np.float32) for part, kind in zip((rows[:128], rows[128:]), types, strict=True))
    assert np.array_equal(d.reshape(128, 32), a @ b.T)


def test_elements_beyond_the_tensor_are_zero() -> None:
    """Rows of B that the tensor lacks."""
    packed, d = np.full(144 * 64, 0x22, np.uint8), np.zeros(128 * 32, np.float32)
    launch(changed(KERNEL, ("dims (128, 160)", "dims (128, 144)")), block=(128, 1, 1), A=packed, D=d)
    assert np.array_equal(d.reshape(128, 32), np.repeat([32.0, 0.0], 16)[None] + np.zeros((128, 1)))


def test_stores_of_padded_elements_are_not_modelled() -> None:
    load = "      ptx.cp.async.bulk.tensor.load %map[%zero, %zero], %s, %full\n"
    text = changed(KERNEL, (load, f"{load}      ptx.cp.async.bulk.tensor.store %map[%zero, %zero], %s\n"))
    found = fault(
        text, Code.SIM_UNSUPPORTED.id, block=(128, 1, 1), A=np.zeros(160 * 64, np.uint8), D=np.zeros(4096, "f")
    )
    assert "stores elements of 4 bits without the bytes that pad them" in found.message
