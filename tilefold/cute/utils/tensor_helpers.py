# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Torch tensors whose elements are floats of 8 bits, stored as bytes."""

from tilefold.builder.scalars.dtypes import DType

from ..runtime import RuntimeTensor, from_dlpack
from ..testing import convert


def is_fp8_dtype(dtype: DType) -> bool:
    """Whether `dtype` is a type of floats of 8 bits."""
    return dtype.is_float and dtype.bits == 8


def create_cute_tensor_for_fp8(
    storage_tensor: object, dtype: DType, leading_dim: int, source_f32_tensor: object = None
) -> RuntimeTensor:
    """A torch tensor as an argument with a dynamic layout, aligned to 16 bytes; one of bytes as elements of `dtype`,
    with the numbers of a float32 tensor, if there is one.
    """
    made = from_dlpack(storage_tensor, assumed_align=16)
    if is_fp8_dtype(dtype):
        made.element_type = dtype
        if source_f32_tensor is not None:
            convert(source_f32_tensor, made)
    return made.mark_layout_dynamic(leading_dim)
