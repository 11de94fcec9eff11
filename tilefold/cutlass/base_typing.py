# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types by name, and the values in objects that programs pass (`cutlass.base_dsl.typing`)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from xdsl.ir import Attribute

from tilefold.builder.primitives.arrays import Array
from tilefold.builder.scalars.dtypes import DTYPES, DType
from tilefold.builder.scalars.values import Value
from tilefold.builder.tensors.vectors import Vector
from tilefold.cute import Constexpr, typing
from tilefold.cute.jit_arguments import DynamicExpression, JitArgument
from tilefold.cute.typing import *  # noqa: F403

from .cutlass_dsl import T
from .value_trees import extract_mlir_values

IntegerMeta = FloatMeta = DType

__STR_TO_DTYPE__: Mapping[str, DType] = MappingProxyType({**DTYPES})
"""The types of elements by name."""

__all__ = [
    "Array", "Constexpr", "DynamicExpression", "FloatMeta", "IntegerMeta", "JitArgument", "T", "Value",
    "Vector", "get_c_pointers", "get_mlir_types",
]  # fmt: skip
__all__ += typing.__all__


def get_mlir_types(obj: Any) -> list[Attribute]:
    """The types of the values in an object: those that its `__get_mlir_types__` names, or of `extract_mlir_values`."""
    if hasattr(obj, "__get_mlir_types__"):
        return list(obj.__get_mlir_types__())
    return [value.dtype.mlir_type for value in extract_mlir_values(obj)]


def get_c_pointers(obj: Any) -> list[Any]:
    """The pointers to the values in an object: those that its `__c_pointers__` names, of a container those of its
    parts. Other objects have none.
    """
    if hasattr(obj, "__c_pointers__"):
        return list(obj.__c_pointers__())
    if isinstance(obj, tuple | list):
        return [pointer for part in obj for pointer in get_c_pointers(part)]  # pyright: ignore[reportUnknownVariableType]
    return []
