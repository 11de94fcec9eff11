# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of Hopper, in the form of MLIR's dialect nvvm."""

from collections.abc import Sequence
from enum import Enum
from typing import Any

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.control.control_functions import if_
from tilefold.builder.control.exits import exit
from tilefold.builder.instructions.atomics import atomic
from tilefold.builder.instructions.extremes import fmax as larger
from tilefold.builder.instructions.extremes import fmin as smaller
from tilefold.builder.instructions.inline import inline_ptx
from tilefold.builder.instructions.mbarriers import mbarrier_try_wait
from tilefold.builder.instructions.pairs import (
    add_packed_f32x2,
    fma_packed_f32x2,
    mul_packed_f32x2,
    sub_packed_f32x2,
)
from tilefold.builder.instructions.warp import elect_one, warp_redux_sync
from tilefold.builder.primitives import lanes
from tilefold.builder.primitives.enums import MemOrder as MemOrderKind
from tilefold.builder.primitives.enums import MemScope as MemScopeKind
from tilefold.builder.primitives.enums import ReductionOp, ReductionType, SharedSpace
from tilefold.builder.primitives.tensor_maps import cp_async_bulk_tensor_shared_cluster_global, tensor_map_at
from tilefold.builder.scalars.values import Bool

__all__ = [
    "AtomicOpKind", "CpAsyncBulkTensorGlobalToSharedClusterOp", "CpAsyncBulkTensorLoadMode", "FPRoundingMode",
    "MemOrderKind", "MemScopeKind", "ReductionOp", "ReductionType", "ReduxKind", "RoundingModeKind", "SharedSpace",
    "add_packed_f32x2", "atomicrmw", "elect_sync", "exit", "fma_packed_f32x2", "fmax", "fmin", "inline_ptx",
    "mbarrier_try_wait_parity_timelimit", "mul_packed_f32x2", "red", "redux_sync", "sub_packed_f32x2",
]  # fmt: skip


class CpAsyncBulkTensorLoadMode(Enum):
    """How a tensor copy finds the elements of a box."""

    TILE = "tile"
    IM2COL = "im2col"


class RoundingModeKind(Enum):
    """How an instruction rounds: to the nearest, to zero, down, up."""

    RN = "rn"
    RZ = "rz"
    RM = "rm"
    RP = "rp"


FPRoundingMode = RoundingModeKind


class AtomicOpKind(Enum):
    """The atomic operations by the names of the dialect; FADD is ADD of floats."""

    ADD = "add"
    FADD = "fadd"
    EXCH = "exch"
    MAX = "max"
    UMAX = "umax"
    MIN = "min"
    UMIN = "umin"
    AND = "and"
    OR = "or"
    XOR = "xor"


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


def atomicrmw(op: AtomicOpKind, ptr: Any, a: Any, *, res: Any = None) -> Any:
    """Changes memory atomically and returns the old value. `res`, its type, is that of the memory."""
    return atomic(op.value.removeprefix("f"), ptr, a)


def redux_sync(
    res: Any, val: Any, kind: ReduxKind, mask_and_clamp: Any, *, abs: bool = False, nan: bool = False
) -> Any:
    """The numbers of all lanes combined, in each of them (PTX ISA, redux.sync); `res` is their type."""
    return warp_redux_sync(val, kind.value, mask_and_clamp, abs=abs, nan=nan)


def elect_sync() -> Bool:
    """Whether this is the one lane of the warp that is chosen."""
    return elect_one()


def fmax(*operands: object, c: object = None, nan: bool = False, ftz: bool = False) -> Any:
    """The largest of two or three Float32; of a number and NaN the number, with `nan` NaN; with `ftz` subnormal numbers
    are zeros. The type of the result may come first.
    """
    first = larger(*operands[-2:], nan=nan, ftz=ftz)
    return first if c is None else larger(first, c, nan=nan, ftz=ftz)


def fmin(*operands: object, c: object = None, nan: bool = False, ftz: bool = False) -> Any:
    """The smallest of two or three Float32, as `fmax`."""
    first = smaller(*operands[-2:], nan=nan, ftz=ftz)
    return first if c is None else smaller(first, c, nan=nan, ftz=ftz)


def mbarrier_try_wait_parity_timelimit(addr: Any, phase: Any, time_limit: Any) -> Bool:
    """Whether the phase of a parity has ended, after a short wait; the hardware decides how long, not `time_limit`."""
    return mbarrier_try_wait(addr, phase)


def red(
    op: ReductionOp,
    type_: ReductionType,
    a: object,
    b: Any,
    *,
    mem_order: MemOrderKind = MemOrderKind.RELAXED,
    mem_scope: MemScopeKind = MemScopeKind.GPU,
    shared_space: SharedSpace | None = None,
) -> None:
    """Changes the number at an address `a` atomically by `b`, and returns nothing (PTX ISA, red). The address says
    which memory it is in, whatever `shared_space` is.
    """
    lanes.red(op, type_, a, b, mem_order=mem_order, mem_scope=mem_scope)


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
        raise TilefoldError(Code.TARGET_TOO_OLD, "there are no copies of tiles by im2col", "copy tiles")
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
