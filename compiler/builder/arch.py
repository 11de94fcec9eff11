# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a thread knows of itself, and how the threads of a block wait for each other."""

from typing import Any

from xdsl.dialects import gpu as xdsl_gpu
from xdsl.dialects.builtin import IndexType

from ...dialects import gpu
from ...layout.unknown import Unknown
from .dtypes import Index
from .state import emit_value
from .values import Int


def _coordinates(op: type[Any]) -> tuple[Int, Int, Int]:
    def one(dimension: xdsl_gpu.DimensionEnum) -> Int:
        made = op.create(properties={"dimension": xdsl_gpu.DimensionAttr(dimension)}, result_types=[IndexType()])
        return Int(emit_value(made), Index, Unknown(32), nonnegative=True)

    x, y, z = (one(dimension) for dimension in xdsl_gpu.DimensionEnum)
    return x, y, z


def thread_idx() -> tuple[Int, Int, Int]:
    """The thread's coordinate in its block: x, y, z."""
    return _coordinates(gpu.ThreadIdOp)


def block_idx() -> tuple[Int, Int, Int]:
    """The block's coordinate in the grid: x, y, z."""
    return _coordinates(gpu.BlockIdOp)


def block_dim() -> tuple[Int, Int, Int]:
    """The block's size in threads: x, y, z."""
    return _coordinates(gpu.BlockDimOp)


def grid_dim() -> tuple[Int, Int, Int]:
    """The grid's size in blocks: x, y, z."""
    return _coordinates(gpu.GridDimOp)
