# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of Hopper, in the form of MLIR's dialect nvvm."""

from collections.abc import Sequence
from enum import Enum

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.control.control_functions import if_
from tilefold.builder.control.dispatch import exit
from tilefold.builder.instructions.arch import nanosleep
from tilefold.builder.instructions.atomics import atomic, atomic_cas
from tilefold.builder.instructions.extremes import fmax as larger
from tilefold.builder.instructions.extremes import fmin as smaller
from tilefold.builder.instructions.inline import inline_ptx
from tilefold.builder.instructions.mbarriers import mbarrier_arrive, mbarrier_arrive_and_expect_tx, mbarrier_try_wait
from tilefold.builder.instructions.pairs import (
    add_packed_f32x2,
    fma_packed_f32x2,
    mul_packed_f32x2,
    sub_packed_f32x2,
)
from tilefold.builder.instructions.warp import elect_one, warp_redux_sync
from tilefold.builder.primitives import conversions, transfers
from tilefold.builder.primitives.barriers import cp_async_mbarrier_arrive
from tilefold.builder.primitives.enums import (
    CVTPackFloat,
    FPRoundingMode,
    ReductionOp,
    ReductionType,
    SaturationModeKind,
    SharedSpace,
)
from tilefold.builder.primitives.enums import MemOrder as MemOrderKind
from tilefold.builder.primitives.enums import MemScope as MemScopeKind
from tilefold.builder.primitives.tensor_maps import cp_async_bulk_tensor_shared_cluster_global, tensor_map_at
from tilefold.builder.scalars.operators import Operand
from tilefold.builder.scalars.values import Bool

from .nvvm_tcgen05 import (
    CTAGroupKind,
    Tcgen05CpMulticast,
    Tcgen05CpShape,
    Tcgen05FenceKind,
    Tcgen05GroupKind,
    Tcgen05LdStShape,
    Tcgen05MMABlockScale,
    Tcgen05MMAKind,
    Tcgen05WaitKind,
    tcgen05_alloc,
    tcgen05_commit,
    tcgen05_cp,
    tcgen05_dealloc,
    tcgen05_fence,
    tcgen05_ld,
    tcgen05_mma,
    tcgen05_mma_block_scale,
    tcgen05_relinquish_alloc,
    tcgen05_st,
    tcgen05_wait,
)

__all__ = [
    "AtomicOpKind", "CTAGroupKind", "CVTPackFloatKind", "CpAsyncBulkTensorGlobalToSharedClusterOp",
    "CpAsyncBulkTensorLoadMode", "FPRoundingMode", "MBarrierSpaceKind", "MBarrierTxnKind", "MemOrderKind",
    "MemScopeKind", "ReductionOp", "ReductionType", "ReduxKind", "RoundingModeKind", "SaturationModeKind",
    "SharedSpace", "Tcgen05CpMulticast", "Tcgen05CpShape", "Tcgen05FenceKind", "Tcgen05GroupKind", "Tcgen05LdStShape",
    "Tcgen05MMABlockScale", "Tcgen05MMAKind", "Tcgen05WaitKind", "add_packed_f32x2", "atomicrmw",
    "cp_async_mbarrier_arrive_shared", "cvt_packfloat", "cvt_packfloat_f32", "elect_sync", "exit", "fma_packed_f32x2",
    "fmax", "fmin", "inline_ptx", "mbarrier_try_wait_parity_timelimit", "mbarrier_txn", "mul_packed_f32x2", "nanosleep",
    "red", "redux_sync", "sub_packed_f32x2", "tcgen05_alloc", "tcgen05_commit", "tcgen05_cp", "tcgen05_dealloc",
    "tcgen05_fence", "tcgen05_ld", "tcgen05_mma", "tcgen05_mma_block_scale", "tcgen05_relinquish_alloc", "tcgen05_st",
    "tcgen05_wait",
]  # fmt: skip


class CpAsyncBulkTensorLoadMode(Enum):
    """How a TMA copy finds the elements of a box."""

    TILE = "tile"
    IM2COL = "im2col"


class MBarrierTxnKind(Enum):
    """What a thread does at an mbarrier."""

    ARRIVE = "arrive"
    ARRIVE_EXPECT_TX = "arrive_expect_tx"


class MBarrierSpaceKind(Enum):
    """The shared memory with an mbarrier: of the block, or of one in the cluster."""

    CTA = "cta"
    CLUSTER = "cluster"


class CVTPackFloatKind(Enum):
    """The pairs of floats in a register, by the names of the dialect."""

    F16x2 = "f16x2"
    BF16x2 = "bf16x2"
    E4M3x2 = "e4m3x2"
    E5M2x2 = "e5m2x2"
    E2M3x2 = "e2m3x2"
    E3M2x2 = "e3m2x2"
    E2M1x2 = "e2m1x2"
    UE8M0x2 = "ue8m0x2"


class AtomicOpKind(Enum):
    """The atomic operations by the names of the dialect; FADD is ADD of floats."""

    ADD = "add"
    FADD = "fadd"
    EXCH = "exch"
    MAX = "max"
    UMAX = "umax"
    MIN = "min"
    UMIN = "umin"
    INC = "inc"
    AND = "and"
    OR = "or"
    XOR = "xor"
    CAS = "cas"


class ReduxKind(Enum):
    """The ways in which lanes combine their numbers, by the names of the dialect."""

    ADD = "add"
    MAX = "max"
    UMAX = "umax"
    MIN = "min"
    UMIN = "umin"
    AND = "and"
    OR = "or"
    XOR = "xor"
    FMAX = "fmax"
    FMIN = "fmin"


RoundingModeKind = FPRoundingMode


def cvt_packfloat_f32(
    res: object,
    a: Operand,
    b: Operand,
    c: Operand,
    type_: CVTPackFloatKind,
    *,
    rnd: FPRoundingMode = FPRoundingMode.RN,
    sat: SaturationModeKind = SaturationModeKind.NONE,
    relu: bool = False,
    extract_hi: bool = False,
) -> Operand:
    """Two Float32 as a pair in an Int32, the type `res`; see `primitives.cvt_packfloat_f32`."""
    kind = CVTPackFloat(type_.value)
    return conversions.cvt_packfloat_f32(a, b, c, kind, rnd=rnd, sat=sat, relu=relu, extract_hi=extract_hi)


def cvt_packfloat(
    res: object,
    a: Operand,
    c: Operand,
    from_: CVTPackFloatKind,
    to: CVTPackFloatKind,
    *,
    rnd: FPRoundingMode = FPRoundingMode.RN,
    sat: SaturationModeKind = SaturationModeKind.NONE,
    relu: bool = False,
    extract_hi: bool = False,
) -> Operand:
    """A pair as one of another kind in an Int32, the type `res`; see `primitives.cvt_packfloat`."""
    kinds = CVTPackFloat(from_.value), CVTPackFloat(to.value)
    return conversions.cvt_packfloat(a, c, *kinds, rnd=rnd, sat=sat, relu=relu, extract_hi=extract_hi)


def cp_async_mbarrier_arrive_shared(addr: object, noinc: bool = False) -> None:
    """The thread's earlier asynchronous copies arrive at an mbarrier when they have ended (PTX ISA,
    cp.async.mbarrier.arrive).
    """
    cp_async_mbarrier_arrive(addr, noinc=noinc)


def atomicrmw(
    op: AtomicOpKind,
    ptr: Operand,
    a: Operand,
    *,
    b: Operand = None,
    mem_order: MemOrderKind | None = None,
    syncscope: MemScopeKind | None = None,
    res: object = None,
) -> Operand:
    """Changes memory atomically and returns the old value. CAS writes `a` where memory holds `b`. `res`, the type of
    the value, is that of the memory. Without an order it is relaxed, without a scope that of the GPU.
    """
    sem, scope = (None if kind is None else kind.value for kind in (mem_order, syncscope))
    if op is AtomicOpKind.CAS:
        return atomic_cas(ptr, b, a, sem, scope)
    return atomic(op.value.removeprefix("f"), ptr, a, sem, scope)


def redux_sync(
    res: object, val: object, kind: ReduxKind, mask_and_clamp: object, *, abs: bool = False, nan: bool = False
) -> Operand:
    """The numbers of all lanes combined, in each of them (PTX ISA, redux.sync); `res` is their type."""
    return warp_redux_sync(val, kind.value, mask_and_clamp, abs=abs, nan=nan)


def elect_sync() -> Bool:
    """Whether this is the elected lane of its warp."""
    return elect_one()


def fmax(*operands: object, c: object = None, nan: bool = False, ftz: bool = False) -> Operand:
    """The largest of two or three Float32; of a number and NaN the number, with `nan` NaN; with `ftz` subnormal numbers
    are zeros. The type of the result may come first.
    """
    first = larger(*operands[-2:], nan=nan, ftz=ftz)
    return first if c is None else larger(first, c, nan=nan, ftz=ftz)


def fmin(*operands: object, c: object = None, nan: bool = False, ftz: bool = False) -> Operand:
    """The smallest of two or three Float32, as `fmax`."""
    first = smaller(*operands[-2:], nan=nan, ftz=ftz)
    return first if c is None else smaller(first, c, nan=nan, ftz=ftz)


def mbarrier_try_wait_parity_timelimit(addr: Operand, phase: Operand, time_limit: object) -> Bool:
    """Whether the phase of a parity has ended, after a short wait; the hardware decides how long, not `time_limit`."""
    return mbarrier_try_wait(addr, phase)


def mbarrier_txn(
    addr: Operand,
    txcount: Operand,
    *,
    kind: MBarrierTxnKind,
    space: MBarrierSpaceKind = MBarrierSpaceKind.CTA,
    order: MemOrderKind = MemOrderKind.RELEASE,
) -> None:
    """Arrives `txcount` times, or once after it adds `txcount` to the bytes that the phase expects. The address says
    which block it is in, whatever `space` is; a weaker order than release becomes that.
    """
    if kind is MBarrierTxnKind.ARRIVE:
        mbarrier_arrive(addr, arrive_count=txcount)
    else:
        mbarrier_arrive_and_expect_tx(addr, txcount)


def red(
    op: ReductionOp,
    type_: ReductionType,
    a: object,
    b: Operand,
    *,
    mem_order: MemOrderKind = MemOrderKind.RELAXED,
    mem_scope: MemScopeKind = MemScopeKind.GPU,
    shared_space: SharedSpace | None = None,
) -> None:
    """Changes the number at an address `a` atomically by `b`, and returns nothing (PTX ISA, red). The address says
    which memory it is in, whatever `shared_space` is.
    """
    transfers.red(op, type_, a, b, mem_order=mem_order, mem_scope=mem_scope)


def CpAsyncBulkTensorGlobalToSharedClusterOp(
    dstMem: object,
    tmaDescriptor: object,
    coordinates: Sequence[object],
    mbar: object,
    im2colOffsets: Sequence[object] = (),
    multicastMask: object = None,
    l2CacheHint: object = None,
    predicate: object = True,
    loadMode: CpAsyncBulkTensorLoadMode = CpAsyncBulkTensorLoadMode.TILE,
) -> None:
    """Copies a box to shared memory by the tensor map at an address, where a predicate holds. Raises TilefoldError
    (E2102) for im2col.
    """
    if loadMode is not CpAsyncBulkTensorLoadMode.TILE:
        raise TilefoldError(Code.TARGET_TOO_OLD, "TMA copies in im2col mode are not supported", "copy tiles")
    if_(
        predicate,
        lambda: cp_async_bulk_tensor_shared_cluster_global(
            dstMem,
            tensor_map_at(tmaDescriptor),
            coordinates,
            mbar,
            im2colOffsets,
            multicast_mask=multicastMask,
            cache_policy=l2CacheHint,
        ),
    )
