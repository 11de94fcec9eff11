# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch._scaled_mm` with a scale for each block of elements along K, which torch has on Blackwell GPUs only."""

from functools import wraps
from typing import Any

_ROWS, _COLUMNS, _PART = 128, 4, 32
"""A tile of scales has 128 rows and 4 columns, in which rows r, r + 32, r + 64 and r + 96 are neighbours."""

_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def scaled_products_on_host(torch: Any) -> None:
    """Makes `torch._scaled_mm` multiply operands of 4 or 8 bits whose scales are e4m3 for 16 or ue8m0 for 32 elements,
    in the layout of cuBLAS: in f64, so that one rounding follows. All other scales are those of torch.
    """
    of_torch = torch._scaled_mm
    block_of = {torch.float8_e4m3fn: 16, torch.float8_e8m0fnu: 32}

    @wraps(of_torch)
    def scaled_mm(
        a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any = None, scale_result: Any = None, out_dtype: Any = None,
        use_fast_accum: bool = False,
    ) -> Any:  # fmt: skip
        block = block_of.get(scale_a.dtype)
        if block is None or scale_b.dtype != scale_a.dtype:
            return of_torch(a, b, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum)
        rows, columns = _numbers(torch, a), _numbers(torch, b.transpose(0, 1))
        scaled = (_scaled(torch, x, scale, block) for x, scale in ((rows, scale_a), (columns, scale_b)))
        product = torch.matmul(*(x if i == 0 else x.transpose(0, 1) for i, x in enumerate(scaled)))
        return (product if bias is None else product + bias).to(out_dtype or torch.bfloat16)

    torch._scaled_mm = scaled_mm


def _numbers(torch: Any, matrix: Any) -> Any:
    """The elements of a matrix whose rows are contiguous, in f64: of packed ones the low half of a byte comes first."""
    if matrix.dtype != torch.float4_e2m1fn_x2:
        return matrix.to(torch.float64)
    bytes = matrix.contiguous().view(torch.uint8)
    codes = torch.stack((bytes & 15, bytes >> 4), dim=-1).flatten(-2)
    values = torch.tensor([*_E2M1, *(-x for x in _E2M1)], dtype=torch.float64)
    return values[codes.long()]


def _scaled(torch: Any, matrix: Any, scales: Any, block: int) -> Any:
    """A matrix times its scales. ValueError if they are not those of whole tiles."""
    rows, k = matrix.shape
    across, down = -(-k // (block * _COLUMNS)), -(-rows // _ROWS)
    if scales.numel() != across * down * _ROWS * _COLUMNS:
        raise ValueError(f"{scales.numel()} scales for {rows} x {k} elements, not {across * down * _ROWS * _COLUMNS}")
    numbers = scales.contiguous().view(torch.uint8).flatten().view(scales.dtype).to(torch.float64)
    tiles = numbers.reshape(down, across, _PART, _ROWS // _PART, _COLUMNS).permute(0, 3, 2, 1, 4)
    plain = tiles.reshape(down * _ROWS, across * _COLUMNS)[:rows]
    return matrix * plain.repeat_interleave(block, dim=1)[:, :k]
