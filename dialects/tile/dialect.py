# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `tile` dialect with all its operations."""

from importlib import import_module

from xdsl.ir import Dialect

from ..definitions import find_operations
from .coord_type import CoordTensorType
from .copy_types import CopyAtomAttr, TiledCopyType
from .mma_types import MmaAtomAttr, TiledMmaType
from .tma_types import TmaType
from .types import TensorType

_MODULES = (
    "kernel", "rasterize", "memory", "alias", "views", "recast", "run_time", "coordinates",
    "tiled_copy", "partition", "tma", "tma_memory", "tiled_mma", "tensor_memory", "fragments", "gemm", "copies",
    "elementwise", "folded", "custom",
)  # fmt: skip
"""The modules that define operations, in the order of the reference."""

TILE = Dialect(
    "tile",
    find_operations(*(import_module(f".{name}", __package__) for name in _MODULES)),
    [TensorType, CoordTensorType, TiledCopyType, TiledMmaType, TmaType, CopyAtomAttr, MmaAtomAttr],
)
