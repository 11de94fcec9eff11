# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `ptx` dialect: how. One operation is one PTX instruction, with the semantics that the PTX ISA gives it."""

from xdsl.ir import Dialect

from .approx import ApproximateOp, CosOp, Ex2Op, Lg2Op, RcpOp, RsqrtOp, SinOp, SqrtOp, TanhOp
from .async_copy import CpAsyncCommitGroupOp, CpAsyncOp, CpAsyncWaitAllOp, CpAsyncWaitGroupOp
from .base import PtxOp
from .convert import CVT_FORMS, CvtOp, Dp4aOp, PrmtOp
from .entry import EntryOp, RetOp
from .matrix import LdMatrixOp, MovMatrixOp, StMatrixOp
from .memory import LoadOp, LocalAllocOp, PtrAddOp, SmemAddrOp, SmemAllocOp, StoreOp
from .mma import MmaSyncOp
from .sreg import SregOp
from .sync import BarSyncOp, BarWarpSyncOp, PrintfOp
from .types import (
    GLOBAL,
    LOCAL,
    SHARED,
    PtrType,
    StateSpace,
    StateSpaceAttr,
    access_registers,
    scalar_bits,
    value_bytes,
)
from .warp import ActivemaskOp, ElectSyncOp, MatchAnySyncOp, ReduxSyncOp, ShflSyncOp, VoteSyncOp

PTX = Dialect(
    "ptx",
    [
        EntryOp,
        RetOp,
        SregOp,
        PtrAddOp,
        LoadOp,
        StoreOp,
        LocalAllocOp,
        SmemAllocOp,
        SmemAddrOp,
        CpAsyncOp,
        CpAsyncCommitGroupOp,
        CpAsyncWaitGroupOp,
        CpAsyncWaitAllOp,
        LdMatrixOp,
        StMatrixOp,
        MovMatrixOp,
        MmaSyncOp,
        BarSyncOp,
        BarWarpSyncOp,
        ShflSyncOp,
        VoteSyncOp,
        MatchAnySyncOp,
        ReduxSyncOp,
        ElectSyncOp,
        ActivemaskOp,
        Ex2Op,
        Lg2Op,
        RcpOp,
        RsqrtOp,
        SqrtOp,
        SinOp,
        CosOp,
        TanhOp,
        CvtOp,
        PrmtOp,
        Dp4aOp,
        PrintfOp,
    ],
    [PtrType, StateSpaceAttr],
)

__all__ = [
    "CVT_FORMS",
    "ApproximateOp",
    "CvtOp",
    "PrmtOp",
    "Dp4aOp",
    "Ex2Op",
    "Lg2Op",
    "RcpOp",
    "RsqrtOp",
    "SqrtOp",
    "SinOp",
    "CosOp",
    "TanhOp",
    "ShflSyncOp",
    "VoteSyncOp",
    "MatchAnySyncOp",
    "ReduxSyncOp",
    "ElectSyncOp",
    "ActivemaskOp",
    "MmaSyncOp",
    "GLOBAL",
    "LOCAL",
    "PTX",
    "SHARED",
    "BarSyncOp",
    "BarWarpSyncOp",
    "CpAsyncCommitGroupOp",
    "CpAsyncOp",
    "CpAsyncWaitAllOp",
    "CpAsyncWaitGroupOp",
    "EntryOp",
    "LdMatrixOp",
    "LoadOp",
    "LocalAllocOp",
    "MovMatrixOp",
    "PrintfOp",
    "PtrAddOp",
    "PtrType",
    "PtxOp",
    "RetOp",
    "SmemAddrOp",
    "SmemAllocOp",
    "SregOp",
    "StateSpace",
    "StateSpaceAttr",
    "StMatrixOp",
    "StoreOp",
    "access_registers",
    "scalar_bits",
    "value_bytes",
]
