# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that are described only, to build kernels where there are no arrays."""

from collections.abc import Sequence
from dataclasses import dataclass

from tilefold.base.errors import Code
from tilefold.compiler.builder.scalars.dtypes import DType
from tilefold.runtime.arrays.array import NOWHERE, Array, canonical_strides, row_major
from tilefold.runtime.arrays.library_types import ELEMENTS
from tilefold.runtime.errors import LaunchError

from .specialise import name_of_elements


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """An argument by its shape, element type, strides in elements (row-major by default) and alignment in bytes.
    tilefold can build a kernel for it and compile it for any target, but not launch it:

        spec = cute.TensorSpec((4096, 4096), cute.Float16)
        gemm(spec, spec, spec).build(block=128).ptx("sm_90")

    What is dynamic about it is said as of arrays: `cute.dynamic(spec, modes=(0,))`.
    """

    shape: tuple[int, ...]
    dtype: DType
    stride: tuple[int, ...] | None = None
    align: int = 16

    def __init__(
        self, shape: int | Sequence[int], dtype: DType, stride: Sequence[int] | None = None, align: int = 16
    ) -> None:
        """LaunchError (E3106) for elements that no argument has, and for senseless numbers."""
        name_of_elements(dtype)
        extents = (shape,) if isinstance(shape, int) else tuple(shape)
        steps = None if stride is None else tuple(stride)
        if steps is not None and len(steps) != len(extents):
            message = f"shape {extents} and stride {steps} have different ranks"
            raise LaunchError(Code.RUN_ARGUMENT, message, "give a stride, in elements, for each extent")
        if align < 1 or align & (align - 1):
            raise LaunchError(
                Code.RUN_ARGUMENT, f"an alignment of {align} bytes is not a power of two", "give 1, 2, 4, 8, ..."
            )
        for name, value in zip(("shape", "dtype", "stride", "align"), (extents, dtype, steps, align), strict=True):
            object.__setattr__(self, name, value)

    @property
    def __tilefold_array__(self) -> Array:
        dtype, steps = name_of_elements(self.dtype), self.stride
        if steps is None:
            steps = canonical_strides(self.shape, row_major(self.shape), ELEMENTS[dtype].bytes)
        return Array(self.align, dtype, self.shape, steps, NOWHERE)
