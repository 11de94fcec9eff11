# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types by name, and the values in objects that programs pass (`cutlass.base_dsl.typing`)."""

from collections.abc import Mapping
from types import MappingProxyType

from tilefold.builder.primitives.arrays import Array
from tilefold.builder.scalars.dtypes import DTYPES, DType
from tilefold.builder.scalars.values import Value
from tilefold.builder.tensors.vectors import Vector
from tilefold.cute import Constexpr, typing
from tilefold.cute.jit_arguments import DynamicExpression, JitArgument
from tilefold.cute.typing import *  # noqa: F403

from .cutlass_dsl import T
from .value_trees import get_c_pointers, get_mlir_types

IntegerMeta = FloatMeta = DType

__STR_TO_DTYPE__: Mapping[str, DType] = MappingProxyType({**DTYPES})
"""The types of elements by name."""

__all__ = [
    "Array", "Constexpr", "DynamicExpression", "FloatMeta", "IntegerMeta", "JitArgument", "T", "Value",
    "Vector", "get_c_pointers", "get_mlir_types",
]  # fmt: skip
__all__ += typing.__all__
