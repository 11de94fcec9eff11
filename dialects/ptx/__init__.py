# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `ptx` dialect: how. One operation is one PTX instruction, with the semantics that the PTX ISA gives it."""

from xdsl.ir import Dialect

from .async_copy import CpAsyncCommitGroupOp, CpAsyncOp, CpAsyncWaitAllOp, CpAsyncWaitGroupOp
from .base import PtxOp
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
        PrintfOp,
    ],
    [PtrType, StateSpaceAttr],
)

__all__ = [
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
