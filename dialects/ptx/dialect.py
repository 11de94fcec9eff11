# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `ptx` dialect with all its operations."""

from importlib import import_module

from xdsl.ir import Dialect

from ..definitions import find_operations
from .base import PtrType, RecipeAttr, SpaceAttr, TensorMapType

_MODULES = (
    "entry", "address", "memory", "hints", "async_copy", "matrix", "mma", "sync", "warp", "approx", "convert", "packed",
    "atomic", "multimem", "inline", "mbarrier", "bulk", "tma", "tensor_map", "cluster", "launch_control",
    "wgmma", "custom", "tcgen05.memory", "tcgen05.copies", "tcgen05.mma", "tcgen05.base",
)  # fmt: skip
"""The modules that define operations, in the order of the reference."""

PTX = Dialect(
    "ptx",
    find_operations(*(import_module(f".{name}", __package__) for name in _MODULES)),
    [PtrType, SpaceAttr, TensorMapType, RecipeAttr],
)
