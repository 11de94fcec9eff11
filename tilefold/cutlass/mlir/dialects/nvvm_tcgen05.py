# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tensor core and the memory of sm_100 in the form of MLIR's dialect nvvm, by the primitives (PTX ISA, tcgen05)."""

from enum import Enum
from typing import Any

from xdsl.dialects.builtin import VectorType

from tilefold.builder.primitives import tcgen05, tcgen05_scaled
from tilefold.builder.primitives.enums import CTAGroup as CTAGroupKind
from tilefold.builder.primitives.tcgen05 import Tcgen05Fence as Tcgen05FenceKind
from tilefold.builder.primitives.tcgen05 import (
    Tcgen05LdStShape,
    tcgen05_alloc,
    tcgen05_commit,
    tcgen05_dealloc,
    tcgen05_fence,
    tcgen05_mma,
    tcgen05_wait,
)
from tilefold.builder.primitives.tcgen05 import Tcgen05Wait as Tcgen05WaitKind
from tilefold.builder.primitives.tcgen05 import tcgen05_relinquish_alloc_permit as tcgen05_relinquish_alloc
from tilefold.builder.scalars.operators import Operand
from tilefold.layout.atoms.tcgen05_shapes import shape_named
from tilefold.layout.atoms.umma_descriptors import MmaKind as Tcgen05MMAKind

Tcgen05GroupKind = CTAGroupKind
"""The name that programs of 2025 use."""

__all__ = [
    "CTAGroupKind", "Tcgen05CpMulticast", "Tcgen05CpShape", "Tcgen05FenceKind", "Tcgen05GroupKind", "Tcgen05LdStShape",
    "Tcgen05MMABlockScale", "Tcgen05MMAKind", "Tcgen05WaitKind", "tcgen05_alloc", "tcgen05_commit", "tcgen05_cp",
    "tcgen05_dealloc", "tcgen05_fence", "tcgen05_ld", "tcgen05_mma", "tcgen05_mma_block_scale",
    "tcgen05_relinquish_alloc", "tcgen05_st", "tcgen05_wait",
]  # fmt: skip


class Tcgen05MMABlockScale(Enum):
    """How many elements along K share a factor; by default as many as the kind says."""

    DEFAULT = ""
    BLOCK16 = "block16"
    BLOCK32 = "block32"


class Tcgen05CpShape(Enum):
    """The shapes of copies to tensor memory."""

    SHAPE_128x256b = "128x256b"
    SHAPE_4x256b = "4x256b"
    SHAPE_128x128b = "128x128b"
    SHAPE_64x128b = "64x128b"
    SHAPE_32x128b = "32x128b"


class Tcgen05CpMulticast(Enum):
    """The warps whose lanes a copy reaches."""

    NONE = ""
    WARPX2_02_13 = "warpx2::02_13"
    WARPX2_01_23 = "warpx2::01_23"
    WARPX4 = "warpx4"


def tcgen05_mma_block_scale(
    kind: Any,
    group: object,
    d: object,
    a: Any,
    b: Any,
    idesc: Any,
    enable_input_d: Operand,
    scale_a: object,
    scale_b: object,
    *,
    block_scale: Tcgen05MMABlockScale = Tcgen05MMABlockScale.DEFAULT,
) -> None:
    """Starts a product of scaled operands; see `primitives.tcgen05_mma_block_scale`."""
    named, word = tcgen05_scaled.MMABlockScaleKind(kind.value), block_scale.value
    scale = tcgen05_scaled.Tcgen05MMABlockScale(word) if word else None
    tcgen05_scaled.tcgen05_mma_block_scale(
        named, group, d, a, b, idesc, enable_input_d, scale_a, scale_b, scale_vec_size=scale
    )


def tcgen05_cp(
    shape: Tcgen05CpShape,
    taddr: object,
    smem_desc: Any,
    *,
    group: object = CTAGroupKind.CTA_1,
    multicast: Tcgen05CpMulticast = Tcgen05CpMulticast.NONE,
) -> None:
    """Starts a copy from shared to tensor memory; see `primitives.tcgen05_cp`."""
    tcgen05_scaled.tcgen05_cp(shape.value, taddr, smem_desc, group=group, multicast=multicast.value or None)


def tcgen05_ld(res: object, shape: Tcgen05LdStShape, *place: object, pack: bool = False) -> Operand:
    """Loads as many registers as the type `res` has words: a vector of Int32, or one of them. `place` is the address in
    tensor memory; programs of 2025 pass the repetitions before it, which follow from the type.
    """
    *_, tmem_addr = place
    words = res.get_shape()[0] if isinstance(res, VectorType) else 1
    loaded = tcgen05.tcgen05_ld(shape, tmem_addr, words // shape_named(shape.value).registers, pack=pack)
    return loaded if isinstance(res, VectorType) else loaded[0]


def tcgen05_st(shape: Tcgen05LdStShape, tmem_addr: object, val: Any, *, unpack: bool = False) -> None:
    """Stores registers: a vector of Int32, or one of them."""
    tcgen05.tcgen05_st(shape, tmem_addr, val if hasattr(val, "shape") else [val], unpack=unpack)
