# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that are described only, to build kernels where there are no arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, cast

from tilefold.base.element_types import ELEMENTS
from tilefold.base.errors import Code
from tilefold.base.printable import shown
from tilefold.builder.scalars.dtypes import DType
from tilefold.dialects.tile.types import MAX_ALIGN
from tilefold.runtime.arrays.array import (
    NOWHERE,
    Array,
    ArrayError,
    canonical_strides,
    check_geometry,
    row_major,
)
from tilefold.runtime.errors import LaunchError

from .specialise import name_of_elements


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """An argument by its shape, element type, strides in elements (row-major by default) and alignment in bytes.
    tilefold can build a kernel for it and compile it for any target, but not launch it:

        spec = cute.TensorSpec((4096, 4096), cute.Float16)
        gemm(spec, spec, spec).build(block=128).ptx("sm_90")

    Declare its extents dynamic like those of arrays: `cute.dynamic(spec, modes=(0,))`.
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
        extents, steps = _numbers("shape", shape), None if stride is None else _numbers("stride", stride)
        if steps is not None and len(steps) != len(extents):
            message = f"shape {shown(extents)} and stride {shown(steps)} have different ranks"
            raise LaunchError(Code.RUN_ARGUMENT, message, "give a stride, in elements, for each extent")
        if type(align) is not int or not 1 <= align <= MAX_ALIGN or align & (align - 1):
            message = f"an alignment of {shown(align)} bytes is not a power of two up to {MAX_ALIGN}"
            raise LaunchError(Code.RUN_ARGUMENT, message, "give 1, 2, 4, 8, ...")
        try:
            check_geometry(Array(align, name_of_elements(dtype), extents, steps or row_major(extents), NOWHERE))
        except ArrayError as error:
            raise LaunchError(Code.RUN_ARGUMENT, f"the spec {error.problem}", error.hint) from None
        for name, value in zip(("shape", "dtype", "stride", "align"), (extents, dtype, steps, align), strict=True):
            object.__setattr__(self, name, value)

    @property
    def __tilefold_array__(self) -> Array:
        dtype, steps = name_of_elements(self.dtype), self.stride
        if steps is None:
            steps = canonical_strides(self.shape, row_major(self.shape), ELEMENTS[dtype].bytes)
        return Array(self.align, dtype, self.shape, steps, NOWHERE)


def _numbers(name: str, given: Any) -> tuple[int, ...]:
    """Extents or strides. LaunchError (E3106) unless they are integers of 64 bits."""
    numbers: tuple[Any, ...] = ()
    try:
        kind = cast(type[Any], type(given))
        numbers = (given,) if hasattr(kind, "__index__") and not hasattr(kind, "__iter__") else (*given,)
        found = tuple([index(number) for number in numbers if not isinstance(number, bool)])
    except TypeError:
        found = ()
    if not found or len(found) < len(numbers) or not all(-(1 << 63) <= number < 1 << 63 for number in found):
        raise LaunchError(Code.RUN_ARGUMENT, f"the {name} is {shown(given)}", "give integers of 64 bits")
    return found
