# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`gpu`: coordinates and sizes, from PTX's special registers, with the ranges that the launch guarantees.

LLVM narrows arithmetic by the ranges: a thread index below 128 needs 7 bits.
"""

from xdsl.dialects import gpu as xdsl_gpu
from xdsl.dialects.gpu import DimensionEnum
from xdsl.ir import Operation, SSAValue

from ...dialects import gpu
from .writer import FunctionWriter, Rule, rule

_GRID_MAX = {
    DimensionEnum.X: 2**31 - 1,
    DimensionEnum.Y: 65535,
    DimensionEnum.Z: 65535,
}
"""Blocks in each direction of a grid (CUDA C++ Programming Guide, Technical Specifications per Compute
Capability)."""

_AXES = (DimensionEnum.X, DimensionEnum.Y, DimensionEnum.Z)


def _register(w: FunctionWriter, result: SSAValue, name: str, low: int, high: int) -> None:
    """Reads a 32-bit special register whose value is in low..high, both included."""
    above = high + 1 if high + 1 < 2**31 else high + 1 - 2**32  # LLVM writes the bound as a signed i32
    value = w.temp(f"call range(i32 {low}, {above}) i32 @llvm.nvvm.read.ptx.sreg.{name}()")
    type = w.type(result)
    w.bind(result, value if type == "i32" else w.temp(f"zext nneg i32 {value} to {type}"))


def _thread_id(w: FunctionWriter, op: gpu.ThreadIdOp) -> None:
    axis = op.dimension.data
    size = w.threads[_AXES.index(axis)]
    if size == 1:
        w.bind(op.result, "0")
    else:
        _register(w, op.result, f"tid.{axis.value}", 0, size - 1)


def _block_dim(w: FunctionWriter, op: gpu.BlockDimOp) -> None:
    w.bind(op.result, str(w.threads[_AXES.index(op.dimension.data)]))


def _block_id(w: FunctionWriter, op: gpu.BlockIdOp) -> None:
    axis = op.dimension.data
    _register(w, op.result, f"ctaid.{axis.value}", 0, _GRID_MAX[axis] - 1)


def _grid_dim(w: FunctionWriter, op: gpu.GridDimOp) -> None:
    axis = op.dimension.data
    _register(w, op.result, f"nctaid.{axis.value}", 1, _GRID_MAX[axis])


def _lane_id(w: FunctionWriter, op: xdsl_gpu.LaneIdOp) -> None:
    _register(w, op.result, "laneid", 0, 31)


GPU: tuple[tuple[type[Operation], Rule], ...] = (
    rule(gpu.ThreadIdOp, _thread_id),
    rule(gpu.BlockDimOp, _block_dim),
    rule(gpu.BlockIdOp, _block_id),
    rule(gpu.GridDimOp, _grid_dim),
    rule(xdsl_gpu.LaneIdOp, _lane_id),
)
