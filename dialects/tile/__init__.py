# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `tile` dialect: tensors, views of them, tiled copies and MMAs, and the atoms that they expand to."""

from typing import TYPE_CHECKING

from ...base.on_demand import imports_for_type_checkers, on_demand

if TYPE_CHECKING:
    from .alias import AliasOp, ChooseOp, PeerOp
    from .coord_type import CoordTensorType
    from .coordinates import BoundsOp, CoordinateOp, IdentityOp
    from .copies import AtomCallOp, CopyOp, PrefetchTensorOp
    from .copy_types import CopyAtomAttr, TiledCopyType
    from .custom import InstructionOp
    from .dialect import TILE
    from .elementwise import FillOp, MapOp, YieldOp
    from .folded import Crd2IdxOp, ViewOp
    from .fragments import FragmentOp, MakeFragmentAOp, MakeFragmentBOp, MakeFragmentCOp, MakeFragmentLikeOp
    from .gemm import GemmOp, MmaCallOp
    from .kernel import ReturnOp, TileKernelOp
    from .memory import AllocOp, LoadOp, PrintOp, PrintTensorOp, PtrOp, StoreOp, TensorAtOp
    from .mma_types import MmaAtomAttr, TiledMmaType
    from .partition import LocalPartitionOp, PartitionDOp, PartitionSOp, RetileDOp, RetileSOp
    from .rasterize import RasterizeOp
    from .recast import RecastOp
    from .run_time import DimOp, GetScalarsOp, MakeTensorOp, StrideOp
    from .tensor_memory import TmemAllocOp, TmemDeallocOp
    from .tiled_copy import TiledCopyOp
    from .tiled_mma import PartitionAOp, PartitionBOp, PartitionCOp, TiledMmaOp
    from .tma import CoordTensorOp, PrefetchOp, TensorMapOp, TmaCallOp, TmaPartitionOp, TmaTensorOp
    from .tma_memory import CopyTensorMapOp, TensorMapPtrOp, UpdateTensorMapOp
    from .tma_types import TmaType
    from .types import TensorType
    from .views import (
        CoalesceOp,
        CompositionOp,
        DomainOffsetOp,
        FlatDivideOp,
        GroupModesOp,
        LocalTileOp,
        LogicalDivideOp,
        OuterPartitionOp,
        SelectOp,
        SliceOp,
        TiledDivideOp,
        ZippedDivideOp,
    )
else:  # few kernels need many of the operations, whose definitions take long to import
    __getattr__ = on_demand(__name__, imports_for_type_checkers(__name__))

__all__ = [
    "AliasOp", "AllocOp", "AtomCallOp", "BoundsOp", "ChooseOp", "CoalesceOp", "CompositionOp", "CoordTensorOp",
    "CoordTensorType", "CoordinateOp", "CopyAtomAttr", "CopyOp", "CopyTensorMapOp", "Crd2IdxOp", "DimOp",
    "DomainOffsetOp", "FillOp", "FlatDivideOp", "FragmentOp", "GemmOp", "GetScalarsOp", "GroupModesOp", "IdentityOp",
    "InstructionOp", "LoadOp", "LocalPartitionOp", "LocalTileOp", "LogicalDivideOp", "MakeFragmentAOp",
    "MakeFragmentBOp", "MakeFragmentCOp", "MakeFragmentLikeOp", "MakeTensorOp", "MapOp", "MmaAtomAttr", "MmaCallOp",
    "OuterPartitionOp", "PartitionAOp", "PartitionBOp", "PartitionCOp", "PartitionDOp", "PartitionSOp", "PeerOp",
    "PrefetchOp", "PrefetchTensorOp", "PrintOp", "PrintTensorOp", "PtrOp", "RasterizeOp", "RecastOp", "RetileDOp",
    "RetileSOp", "ReturnOp", "SelectOp", "SliceOp", "StoreOp", "StrideOp", "TILE", "TensorAtOp", "TensorMapOp",
    "TensorMapPtrOp", "TensorType", "TileKernelOp", "TiledCopyOp", "TiledCopyType", "TiledDivideOp", "TiledMmaOp",
    "TiledMmaType", "TmaCallOp", "TmaPartitionOp", "TmaTensorOp", "TmaType", "TmemAllocOp",
    "TmemDeallocOp", "UpdateTensorMapOp", "ViewOp", "YieldOp",
    "ZippedDivideOp",
]  # fmt: skip
