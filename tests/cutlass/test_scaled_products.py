# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch._scaled_mm` with scales for blocks of elements, on a machine without a GPU."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilefold.cutlass.replacements import Replacements
from tilefold.cutlass.without_gpu.scaled_products import scaled_products_on_host

torch: Any = pytest.importorskip("torch", reason="this is a product of torch")

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


@pytest.fixture
def product() -> Iterator[Any]:
    """The product here, until the end of the test."""
    with Replacements() as replaced:
        scaled_products_on_host(torch, replaced)
        yield torch._scaled_mm


def in_tiles(scales: np.ndarray) -> np.ndarray:
    """Scales in the layout of cuBLAS: element (m, k) of a tile of 128 x 4 is byte m % 32 * 16 + m // 32 * 4 + k."""
    rows, columns = scales.shape
    made = np.zeros((rows // 128, columns // 4, 512), scales.dtype)
    for m in range(rows):
        for k in range(columns):
            made[m // 128, k // 4, m % 32 * 16 + m % 128 // 32 * 4 + k % 4] = scales[m, k]
    return made.reshape(-1)


def test_fp4(product: Any) -> None:
    rng, (m, n, k) = np.random.default_rng(0), (256, 128, 128)
    operands: list[Any] = []
    scales: list[Any] = []
    bytes: list[Any] = []
    for rows in (m, n):
        codes = rng.integers(0, 16, (rows, k), dtype=np.uint8)
        operands.append(np.where(codes < 8, 1, -1) * E2M1[codes & 7])
        bytes.append(torch.from_numpy(codes[:, ::2] | codes[:, 1::2] << 4).view(torch.float4_e2m1fn_x2))
        scales.append(2.0 ** rng.integers(-3, 3, (rows, k // 16)))
    a, b = (x * s.repeat(16, axis=1) for x, s in zip(operands, scales, strict=True))
    given = [torch.from_numpy(in_tiles(s)).to(torch.float8_e4m3fn) for s in scales]
    made = product(bytes[0], bytes[1].transpose(0, 1), *given, out_dtype=torch.float32)
    np.testing.assert_array_equal(made.numpy(), (a @ b.T).astype(np.float32))


def test_wrong_number_of_scales(product: Any) -> None:
    a, scales = torch.zeros((128, 128)).to(torch.float8_e4m3fn), torch.zeros(100).to(torch.float8_e8m0fnu)
    with pytest.raises(ValueError, match="100 scales for 128 x 128 elements, not 512"):
        product(a, a.transpose(0, 1), scales, scales)


def test_other_scales_are_those_of_torch() -> None:
    given: list[Any] = []

    def of_torch(*args: Any) -> None:
        given.append(args)

    fake: Any = SimpleNamespace(float8_e4m3fn="e4m3", float8_e8m0fnu="ue8m0", _scaled_mm=of_torch)
    scaled_products_on_host(fake, Replacements())
    scale = SimpleNamespace(dtype="f32")
    fake._scaled_mm(1, 2, scale, scale)
    assert given == [(1, 2, scale, scale, None, None, None, False)]


@pytest.fixture
def grouped() -> Iterator[Any]:
    """The products of groups here, until the end of the test."""
    with Replacements() as replaced:
        scaled_products_on_host(torch, replaced)
        yield torch._scaled_grouped_mm_v2


@pytest.mark.parametrize("along_k", [False, True])
def test_groups(grouped: Any, along_k: bool) -> None:
    rng, (m, n, k), sizes, block = np.random.default_rng(1), (160, 128, 128), (32, 128), 32
    shapes = ((m, k), (2, n, k)) if not along_k else ((n, m), (k, m))
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in shapes)
    expected: list[np.ndarray] = []
    scales: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    begin = 0
    for group, size in enumerate(sizes):
        end = begin + size
        parts = (a[:, begin:end], b[:, begin:end]) if along_k else (a[begin:end], b[group])
        scaled: list[np.ndarray] = []
        for operand, own in zip(parts, scales, strict=True):
            rows, columns = operand.shape
            factors = np.zeros((-(-rows // 128) * 128, -(-columns // 128) * 4))
            factors[:rows, : columns // block] = 2.0 ** rng.integers(-2, 3, (rows, columns // block))
            own.append(in_tiles(factors))
            scaled.append(operand * factors[:rows, : columns // block].repeat(block, axis=1))
        expected.append(scaled[0] @ scaled[1].T)
        begin = end
    fp8 = torch.float8_e4m3fn
    given = [[torch.from_numpy(np.concatenate(own)).to(torch.float8_e8m0fnu)] for own in scales]
    first, second = torch.from_numpy(a).to(fp8), torch.from_numpy(b).to(fp8).transpose(-2, -1)
    offs = torch.tensor(np.cumsum(sizes), dtype=torch.int32)
    made = grouped(first, second, given[0], [3], [1], given[1], [3], [1], offs, None, torch.float32)
    np.testing.assert_array_equal(made.numpy(), (np.stack if along_k else np.concatenate)(expected))
