# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `tile` dialect: what moves. Tensors, views of them, tiled copies, and the atoms that these come down to."""

from xdsl.ir import Dialect

from .copies import AtomCallOp, CopyOp
from .folded import Crd2IdxOp, ViewOp
from .kernel import ReturnOp, TileKernelOp
from .memory import AllocOp, LoadOp, PrintOp, PrintTensorOp, StoreOp
from .partition import PartitionDOp, PartitionSOp, TiledCopyOp
from .types import CopyAtomAttr, Space, SpaceAttr, TensorType, TiledCopyType
from .views import (
    CoalesceOp,
    CompositionOp,
    FlatDivideOp,
    GroupModesOp,
    LocalTileOp,
    LogicalDivideOp,
    SelectOp,
    SliceOp,
    TiledDivideOp,
    ZippedDivideOp,
)

TILE = Dialect(
    "tile",
    [
        TileKernelOp,
        ReturnOp,
        AllocOp,
        LocalTileOp,
        SliceOp,
        LogicalDivideOp,
        ZippedDivideOp,
        TiledDivideOp,
        FlatDivideOp,
        CompositionOp,
        CoalesceOp,
        SelectOp,
        GroupModesOp,
        TiledCopyOp,
        PartitionSOp,
        PartitionDOp,
        CopyOp,
        LoadOp,
        StoreOp,
        PrintOp,
        PrintTensorOp,
        Crd2IdxOp,
        ViewOp,
        AtomCallOp,
    ],
    [TensorType, TiledCopyType, CopyAtomAttr, SpaceAttr],
)

__all__ = [
    "TILE",
    "AllocOp",
    "AtomCallOp",
    "CoalesceOp",
    "CompositionOp",
    "CopyAtomAttr",
    "CopyOp",
    "Crd2IdxOp",
    "FlatDivideOp",
    "GroupModesOp",
    "LoadOp",
    "LocalTileOp",
    "LogicalDivideOp",
    "PartitionDOp",
    "PartitionSOp",
    "PrintOp",
    "PrintTensorOp",
    "ReturnOp",
    "SelectOp",
    "SliceOp",
    "Space",
    "SpaceAttr",
    "StoreOp",
    "TensorType",
    "TileKernelOp",
    "TiledCopyOp",
    "TiledCopyType",
    "TiledDivideOp",
    "ViewOp",
    "ZippedDivideOp",
]
