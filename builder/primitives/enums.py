# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The words that primitives take: scopes, orders, kinds of votes, exchanges and reductions."""

from enum import Enum

from ..tracing.cuda_names import NamedEnum


class MemScope(Enum):
    """The threads among which an operation is atomic and orders accesses."""

    CTA = "cta"
    CLUSTER = "cluster"
    GPU = "gpu"
    SYS = "sys"


class MemOrder(Enum):
    """How an operation orders accesses; None is the instruction's own."""

    WEAK = None
    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acq_rel"


class VoteSync(Enum):
    """The kinds of votes of lanes."""

    ANY = "any"
    ALL = "all"
    UNI = "uni"
    BALLOT = "ballot"


class Shfl(Enum):
    """Which lane a value comes from."""

    IDX = "idx"
    UP = "up"
    DOWN = "down"
    BFLY = "bfly"


class GridDepAction(Enum):
    """The action of a block in a launch that depends on another: it waits for that one, or lets those that follow
    begin.
    """

    WAIT = "wait"
    LAUNCH_DEPENDENTS = "launch_dependents"


class ReductionKind(Enum):
    """How the lanes of a warp combine a value; FMIN and FMAX take floats, UMIN and UMAX unsigned integers."""

    ADD = "add"
    MIN = "min"
    MAX = "max"
    AND = "and"
    OR = "or"
    XOR = "xor"
    UMIN = "umin"
    UMAX = "umax"
    FMIN = "fmin"
    FMAX = "fmax"


class ReductionOp(Enum):
    """How an atomic operation changes memory."""

    ADD = "add"
    MIN = "min"
    MAX = "max"
    AND = "and"
    OR = "or"
    XOR = "xor"


class AtomicOp(Enum):
    """How `atomicrmw` changes memory; FADD takes floats, UMIN and UMAX unsigned integers. INC counts up to the value
    and then from 0 on, DEC down from it.
    """

    ADD = "add"
    FADD = "fadd"
    MIN = "min"
    MAX = "max"
    UMIN = "umin"
    UMAX = "umax"
    INC = "inc"
    DEC = "dec"
    AND = "and"
    OR = "or"
    XOR = "xor"
    EXCH = "exch"


class ReductionType(Enum):
    """The type of the number in memory that an atomic operation changes."""

    S32 = "Int32"
    U32 = "Uint32"
    B32 = "Uint32"
    S64 = "Int64"
    U64 = "Uint64"
    B64 = "Uint64"
    F16 = "Float16"
    BF16 = "BFloat16"
    F32 = "Float32"
    F64 = "Float64"


class CpReduceOp(Enum):
    """How a bulk copy combines numbers of shared memory with those of global memory."""

    ADD = "add"
    MIN = "min"
    MAX = "max"
    INC = "inc"
    DEC = "dec"
    AND = "and"
    OR = "or"
    XOR = "xor"


class CpReduceType(Enum):
    """The numbers that a bulk copy combines, by their names in PTX."""

    U32 = "u32"
    S32 = "s32"
    U64 = "u64"
    S64 = "s64"
    B32 = "b32"
    B64 = "b64"
    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"
    F64 = "f64"


class MBarrierWait(Enum):
    """Whether a wait for an mbarrier may last a short time."""

    TRY = "try"
    TEST = "test"


class MBarrierScope(Enum):
    """The threads whose writes a wait for an mbarrier makes visible."""

    CTA = "cta"
    CLUSTER = "cluster"


class MMALayout(Enum):
    """Whether matrices are moved as they are (ROW), or transposed (COL)."""

    ROW = "row"
    COL = "col"


class LoadShape(Enum):
    """The shape of the matrices that ldmatrix loads."""

    M8N8 = "m8n8"
    M8N16 = "m8n16"
    M16N16 = "m16n16"


class StoreShape(Enum):
    """The shape of the matrices that stmatrix stores."""

    M8N8 = "m8n8"
    M16N8 = "m16n8"


class LoadSrcFormat(Enum):
    """The elements that ldmatrix loads."""

    B16 = "b16"
    B8 = "b8"
    B8X16_B6X16_P32 = "b8x16.b6x16_p32"
    B8X16_B4X16_P64 = "b8x16.b4x16_p64"


class Proxy(NamedEnum):
    """The way by which memory is accessed."""

    ALIAS = "alias"
    ASYNC = "async"
    ASYNC_GLOBAL = "async.global"
    ASYNC_SHARED = "async.shared"
    GENERIC = "generic"
    TENSORMAP = "tensormap"


class TensormapField(Enum):
    """A part of a tensor map that a kernel changes."""

    GLOBAL_ADDRESS = "global_address"
    RANK = "rank"
    BOX_DIM = "box_dim"
    GLOBAL_DIM = "global_dim"
    GLOBAL_STRIDE = "global_stride"
    ELEMENT_STRIDE = "element_stride"
    ELEMTYPE = "elemtype"
    INTERLEAVE_LAYOUT = "interleave_layout"
    SWIZZLE_MODE = "swizzle_mode"
    FILL_MODE = "fill_mode"


class SharedSpace(Enum):
    """The shared memory of the own block, or of the cluster."""

    shared_cta = "cta"
    shared_cluster = "cluster"


class SetMaxRegisterAction(Enum):
    """Whether the threads of a warpgroup get registers or give them back."""

    DECREASE = "dec"
    INCREASE = "inc"


class CTAGroup(Enum):
    """How many blocks execute an instruction together (sm_100)."""

    CTA_1 = 1
    CTA_2 = 2


class FPRoundingMode(Enum):
    """How a conversion or an operation rounds: to the nearest, to zero, down, up."""

    RN = "rn"
    RZ = "rz"
    RM = "rm"
    RP = "rp"


class SaturationModeKind(Enum):
    """Whether numbers beyond the greatest finite one of a type become that number."""

    NONE = "none"
    SATFINITE = "satfinite"


class CVTPackFloat(Enum):
    """The pairs of floats in a register; those of 8 bits and fewer take half of it."""

    F16X2 = "f16x2"
    BF16X2 = "bf16x2"
    E4M3X2 = "e4m3x2"
    E5M2X2 = "e5m2x2"
    E2M3X2 = "e2m3x2"
    E3M2X2 = "e3m2x2"
    E2M1X2 = "e2m1x2"
    UE8M0X2 = "ue8m0x2"


class PermuteMode(Enum):
    """How `prmt` takes bytes: by the nibbles of its selector."""

    DEFAULT = "default"
