# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of torch with a scale for each block of elements along K, which torch has on Blackwell GPUs only:
`torch._scaled_mm`, and `torch.nn.functional.scaled_grouped_mm` by `torch._scaled_grouped_mm_v2`.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from types import ModuleType
from typing import Any

from ..replacements import Replacements
from .host_memory import TorchTensor

_ROWS, _COLUMNS, _PART = 128, 4, 32
"""A tile of scales has 128 rows and 4 columns, in which rows r, r + 32, r + 64 and r + 96 are neighbours."""

_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def scaled_products_on_host(torch: ModuleType, replaced: Replacements) -> None:
    """Makes torch multiply operands of 4 or 8 bits whose scales are e4m3 for 16 or ue8m0 for 32 elements, in the layout
    of cuBLAS: in f64, so that one rounding follows. All other scales are those of torch.
    """
    of_torch = torch._scaled_mm
    block_of = {torch.float8_e4m3fn: 16, torch.float8_e8m0fnu: 32}
    if hasattr(torch, "_scaled_grouped_mm_v2"):
        replaced.set(torch, _scaled_grouped_mm_v2=_grouped_on_host(torch, block_of))

    @wraps(of_torch)
    def scaled_mm(
        a: TorchTensor, b: TorchTensor, scale_a: TorchTensor, scale_b: TorchTensor, bias: TorchTensor = None,
        scale_result: TorchTensor = None, out_dtype: Any = None,
        use_fast_accum: bool = False,
    ) -> Any:  # fmt: skip
        block = block_of.get(scale_a.dtype)
        if block is None or scale_b.dtype != scale_a.dtype:
            return of_torch(a, b, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum)
        rows, columns = _numbers(torch, a), _numbers(torch, b.transpose(0, 1))
        scaled = (_scaled(torch, x, _flat(torch, scale), block) for x, scale in ((rows, scale_a), (columns, scale_b)))
        product = torch.matmul(*(x if i == 0 else x.transpose(0, 1) for i, x in enumerate(scaled)))
        return (product if bias is None else product + bias).to(out_dtype or torch.bfloat16)

    replaced.set(torch, _scaled_mm=scaled_mm)


def _grouped_on_host(torch: ModuleType, block_of: Mapping[Any, int]) -> Callable[..., object]:
    """The same for the product of each group of rows with a matrix of its own, or of each group of columns of A with
    its rows of B.
    """
    of_torch = torch._scaled_grouped_mm_v2

    @wraps(of_torch)
    def scaled_grouped_mm(
        a: TorchTensor, b: TorchTensor, scale_a: TorchTensor, recipe_a: Any, swizzle_a: Any, scale_b: TorchTensor,
        recipe_b: Any, swizzle_b: Any,
        offs: Any = None, bias: TorchTensor = None, out_dtype: Any = None, contraction_dim: Any = (),
        use_fast_accum: bool = False,
    ) -> Any:  # fmt: skip
        block = block_of.get(scale_a[0].dtype)
        if block is None or offs is None or bias is not None or a.ndim != 2:
            return of_torch(
                a, b, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, offs, bias, out_dtype,
                contraction_dim, use_fast_accum,
            )  # fmt: skip
        numbers = _numbers(torch, a), _numbers(torch, b.transpose(-2, -1))
        scales, of_groups = zip(*((_flat(torch, first), rest) for first, *rest in (scale_a, scale_b)), strict=True)
        used, products, begin = [0, 0], list[Any](), 0
        for group, end in enumerate(offs.tolist()):
            of_a, of_b = numbers
            pair = (of_a[begin:end], of_b[group]) if b.ndim == 3 else (of_a[:, begin:end], of_b[:, begin:end])
            operands: list[TorchTensor] = []
            for side, operand in enumerate(pair):
                size = _tiles(operand, block)[2]
                own = scales[side][used[side] : used[side] + size]
                operands.append(_scaled(torch, operand, own, block))
                used[side] += size
            product = torch.matmul(operands[0], operands[1].transpose(0, 1))
            for of_group in (*of_groups[0], *of_groups[1]):
                product = product * of_group[group].to(torch.float64)
            products.append(product)
            begin = end
        joined = torch.cat(products) if b.ndim == 3 else torch.stack(products)
        return joined.to(out_dtype or torch.bfloat16)

    return scaled_grouped_mm


def _numbers(torch: ModuleType, matrix: TorchTensor) -> TorchTensor:
    """The elements of a matrix whose rows are contiguous, in f64: of packed ones the low half of a byte comes first."""
    if matrix.dtype != torch.float4_e2m1fn_x2:
        return matrix.to(torch.float64)
    bytes = matrix.view(torch.uint8).contiguous()
    codes = torch.stack((bytes & 15, bytes >> 4), dim=-1).flatten(-2)
    values = torch.tensor([*_E2M1, *(-x for x in _E2M1)], dtype=torch.float64)
    return values[codes.long()]


def _flat(torch: ModuleType, scales: TorchTensor) -> TorchTensor:
    """Scales in the order of memory, in f64."""
    return scales.contiguous().view(torch.uint8).flatten().view(scales.dtype).to(torch.float64)


def _tiles(matrix: TorchTensor, block: int) -> tuple[int, int, int]:
    """The tiles of a matrix's scales along K and along its rows, and the number of scales in them."""
    rows, k = matrix.shape
    across, down = -(-k // (block * _COLUMNS)), -(-rows // _ROWS)
    return across, down, across * down * _ROWS * _COLUMNS


def _scaled(torch: ModuleType, matrix: TorchTensor, scales: TorchTensor, block: int) -> TorchTensor:
    """A matrix times its scales. ValueError if they are not those of whole tiles."""
    rows, k = matrix.shape
    across, down, count = _tiles(matrix, block)
    if scales.numel() != count:
        raise ValueError(f"{scales.numel()} scales for {rows} x {k} elements, not {count}")
    tiles = scales.reshape(down, across, _PART, _ROWS // _PART, _COLUMNS).permute(0, 3, 2, 1, 4)
    plain = tiles.reshape(down * _ROWS, across * _COLUMNS)[:rows]
    return matrix * plain.repeat_interleave(block, dim=1)[:, :k]
