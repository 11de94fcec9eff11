# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `ptx` dialect: one operation is one PTX instruction, with the semantics of the PTX ISA."""

from typing import TYPE_CHECKING

from ...base.on_demand import imports_for_type_checkers, on_demand

if TYPE_CHECKING:
    from ...layout.atoms.bulk_copy import BULK_UNIT
    from .address import IntToPtrOp, PtrAddOp, PtrToIntOp
    from .approx import ApproximateOp, CosOp, Ex2Op, Lg2Op, RcpOp, RsqrtOp, SinOp, SqrtOp, TanhOp
    from .async_copy import CpAsyncCommitGroupOp, CpAsyncOp, CpAsyncWaitAllOp, CpAsyncWaitGroupOp
    from .atomic import AtomCasOp, AtomOp, FenceOp, LoadAcquireOp, RedOp, StoreReleaseOp
    from .base import (
        GLOBAL,
        LOCAL,
        MAP,
        MAP_BYTES,
        SHARED,
        SHARED_CLUSTER,
        PtrType,
        PtxOp,
        RecipeAttr,
        SpaceAttr,
        TensorMapType,
        access_registers,
        scalar_bits,
        value_bytes,
    )
    from .bulk import (
        BULK_REDUCTIONS,
        BulkCommitGroupOp,
        BulkLoadOp,
        BulkPrefetchOp,
        BulkReduceOp,
        BulkSendOp,
        BulkStoreOp,
        BulkWaitGroupOp,
        FenceProxyAsyncOp,
    )
    from .cluster import (
        ClusterArriveOp,
        ClusterWaitOp,
        FenceMbarrierInitOp,
        GetCtaRankOp,
        MapaOp,
        PairLeaderOp,
        RedAsyncOp,
        StAsyncOp,
    )
    from .convert import CVT_FORMS, CvtOp, Dp4aOp, PrmtOp
    from .custom import CustomOp
    from .dialect import PTX
    from .entry import EntryOp, RetOp, SregOp
    from .hints import CreatePolicyOp
    from .inline import InlineOp
    from .launch_control import FirstCtaidOp, IsCanceledOp, TryCancelOp
    from .matrix import LdMatrixOp, MovMatrixOp, StMatrixOp
    from .mbarrier import (
        MAX_ARRIVALS,
        MAX_TRANSACTION,
        CpAsyncMbarrierArriveOp,
        MbarrierArriveExpectTxOp,
        MbarrierArriveOp,
        MbarrierArriveStateOp,
        MbarrierCompleteTxOp,
        MbarrierExpectTxOp,
        MbarrierInitOp,
        MbarrierInvalOp,
        MbarrierTestWaitOp,
        MbarrierTryWaitOp,
        MbarrierTryWaitStateOp,
        MbarrierWaitOp,
    )
    from .memory import BULK_WORD, LoadOp, LocalAllocOp, SmemAddrOp, SmemAllocOp, StoreBulkOp, StoreOp
    from .mma import MmaSyncOp, MmaSyncScaledOp, MmaSyncSparseOp
    from .multimem import MultimemLdReduceOp, MultimemRedOp, MultimemStOp
    from .packed import F32x2Op, MinMax3Op
    from .sync import (
        BarArriveOp,
        BarRedOp,
        BarSyncOp,
        BarWarpSyncOp,
        GridDependencyWaitOp,
        LaunchDependentsOp,
        NanosleepOp,
        PrintfOp,
        wrong_count,
    )
    from .tcgen05.base import TENSOR, TensorDescriptorOp
    from .tcgen05.copies import (
        TensorLoadReducedOp,
        TensorLoadRegistersOp,
        TensorShiftOp,
        TensorStoreRegistersOp,
        TmaCopySharedOp,
    )
    from .tcgen05.memory import TensorAllocOp, TensorDeallocOp, TensorFenceOp, TensorRelinquishOp, TensorWaitOp
    from .tcgen05.mma import TensorCommitOp, TensorMmaOp, TensorMmaScaledOp, TensorMmaWsOp
    from .tensor_map import (
        MAP_FIELDS,
        CopyTensorMapOp,
        CvtaTensorMapOp,
        FenceTensorMapAcquireOp,
        FenceTensorMapReleaseOp,
        LoadTensorMapOp,
        TensorMapCpFenceOp,
        TensorMapReplaceOp,
    )
    from .tma import (
        PrefetchTensorMapOp,
        TensorLoadOp,
        TensorPrefetchOp,
        TensorReduceOp,
        TensorStoreOp,
        TmaCopyOp,
    )
    from .warp import ActivemaskOp, ElectSyncOp, MatchAnySyncOp, ReduxSyncOp, ShflSyncOp, ShflSyncValidOp, VoteSyncOp
    from .wgmma import (
        MAX_WGMMA_GROUPS,
        SetMaxNRegOp,
        WgmmaCommitGroupOp,
        WgmmaDescriptorOp,
        WgmmaFenceOp,
        WgmmaMmaAsyncOp,
        WgmmaWaitGroupOp,
    )
else:  # few kernels need many of the operations, whose definitions take long to import
    __getattr__ = on_demand(__name__, imports_for_type_checkers(__name__))

__all__ = [
    "ActivemaskOp", "ApproximateOp", "AtomCasOp", "AtomOp", "BULK_REDUCTIONS", "BULK_UNIT", "BULK_WORD", "BarArriveOp",
    "BarRedOp",
    "BarSyncOp", "BarWarpSyncOp", "BulkCommitGroupOp", "BulkLoadOp", "BulkPrefetchOp", "BulkReduceOp", "BulkSendOp",
    "BulkStoreOp", "BulkWaitGroupOp", "CVT_FORMS", "ClusterArriveOp", "ClusterWaitOp", "CopyTensorMapOp", "CosOp",
    "CpAsyncCommitGroupOp", "CpAsyncMbarrierArriveOp", "CpAsyncOp", "CpAsyncWaitAllOp", "CpAsyncWaitGroupOp",
    "CreatePolicyOp", "CustomOp", "CvtOp", "CvtaTensorMapOp", "Dp4aOp", "ElectSyncOp", "EntryOp", "Ex2Op", "F32x2Op",
    "FenceMbarrierInitOp", "FenceOp", "FenceProxyAsyncOp", "FenceTensorMapAcquireOp", "FenceTensorMapReleaseOp",
    "FirstCtaidOp", "GLOBAL", "GetCtaRankOp", "GridDependencyWaitOp", "InlineOp", "IntToPtrOp", "IsCanceledOp", "LOCAL",
    "LaunchDependentsOp", "LdMatrixOp", "Lg2Op", "LoadAcquireOp", "LoadOp", "LoadTensorMapOp", "LocalAllocOp", "MAP",
    "MAP_BYTES", "MAP_FIELDS", "MAX_ARRIVALS", "MAX_TRANSACTION", "MAX_WGMMA_GROUPS", "MapaOp", "MatchAnySyncOp",
    "MbarrierArriveExpectTxOp", "MbarrierArriveOp", "MbarrierArriveStateOp", "MbarrierCompleteTxOp",
    "MbarrierExpectTxOp", "MbarrierInitOp", "MbarrierInvalOp", "MbarrierTestWaitOp", "MbarrierTryWaitOp",
    "MbarrierTryWaitStateOp", "MbarrierWaitOp", "MinMax3Op", "MmaSyncOp", "MmaSyncScaledOp", "MmaSyncSparseOp",
    "MovMatrixOp",
    "MultimemLdReduceOp", "MultimemRedOp", "MultimemStOp",
    "NanosleepOp", "PTX", "PairLeaderOp", "PrefetchTensorMapOp", "PrintfOp", "PrmtOp", "PtrAddOp", "PtrToIntOp",
    "PtrType", "PtxOp", "RcpOp", "RecipeAttr", "RedAsyncOp", "RedOp", "ReduxSyncOp", "RetOp", "RsqrtOp", "SHARED",
    "SHARED_CLUSTER", "SetMaxNRegOp", "ShflSyncOp", "ShflSyncValidOp", "SinOp", "SmemAddrOp", "SmemAllocOp",
    "SpaceAttr", "SqrtOp", "SregOp", "StAsyncOp", "StMatrixOp", "StoreBulkOp", "StoreOp", "StoreReleaseOp", "TENSOR",
    "TanhOp",
    "TensorAllocOp", "TensorCommitOp", "TmaCopyOp", "TmaCopySharedOp", "TensorDeallocOp", "TensorDescriptorOp",
    "TensorFenceOp", "TensorLoadOp", "TensorLoadReducedOp", "TensorLoadRegistersOp", "TensorMapCpFenceOp",
    "TensorMapReplaceOp", "TensorMapType", "TensorMmaOp", "TensorMmaScaledOp", "TensorMmaWsOp", "TensorPrefetchOp",
    "TensorReduceOp", "TensorRelinquishOp", "TensorShiftOp", "TensorStoreOp", "TensorStoreRegistersOp", "TensorWaitOp",
    "TryCancelOp", "VoteSyncOp", "WgmmaCommitGroupOp", "WgmmaDescriptorOp", "WgmmaFenceOp", "WgmmaMmaAsyncOp",
    "WgmmaWaitGroupOp", "access_registers", "scalar_bits", "value_bytes", "wrong_count",
]  # fmt: skip
