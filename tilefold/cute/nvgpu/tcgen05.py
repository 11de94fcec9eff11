# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.nvgpu.tcgen05`: matrix multiplications into tensor memory, and its copies (sm_100a and sm_103a)."""

import sys

from tilefold.builder.instructions.tensor_core import commit
from tilefold.builder.tensors.descriptors import make_umma_smem_desc
from tilefold.builder.tensors.nvgpu import CtaGroup
from tilefold.builder.tensors.scaled_umma import (
    BlockScaledMmaOp,
    MmaMXF4NVF4Op,
    MmaMXF4Op,
    MmaMXF8F6F4Op,
    MmaMXF8Op,
    SM103MmaMXF4NVF4Op,
    SM103MmaMXF4Op,
)
from tilefold.builder.tensors.tensor_memory import (
    Cp2x64x128b0123Op,
    Cp2x64x128b0213Op,
    Cp4x32x128bOp,
    Cp4x256bOp,
    Cp128x128bOp,
    Cp128x256bOp,
    Ld16x32bx2Op,
    Ld16x64bOp,
    Ld16x128bOp,
    Ld16x256bOp,
    Ld32x32bOp,
    LdRed16x32bx2Op,
    LdRed32x32bOp,
    Pack,
    Repetition,
    St16x32bx2Op,
    St16x64bOp,
    St16x128bOp,
    St16x256bOp,
    St32x32bOp,
    TmemLoadRedOp,
    Unpack,
    find_tmem_tensor_col_offset,
    get_s2t_smem_desc_tensor,
    get_tmem_copy_properties,
    is_tmem_load,
    is_tmem_store,
    make_s2t_copy,
    make_tmem_copy,
    tile_to_mma_shape,
)
from tilefold.builder.tensors.umma import (
    Field,
    MmaF8F6F4Op,
    MmaF16BF16Op,
    MmaFP8Op,
    MmaI8Op,
    MmaTF32Op,
    OperandSource,
    SmemLayoutAtomKind,
    make_smem_layout_atom,
)
from tilefold.builder.tensors.umma import UmmaOp as MmaOp
from tilefold.builder.tensors.warpgroup import OperandMajorMode

from ..public import publish

copy = mma = sys.modules[__name__]
"""The names of the modules in which programs look for copies and multiplications: this one has all of them."""

__all__ = [
    "BlockScaledMmaOp", "Cp128x128bOp", "Cp128x256bOp", "Cp2x64x128b0123Op", "Cp2x64x128b0213Op", "Cp4x256bOp",
    "Cp4x32x128bOp", "CtaGroup", "Field", "Ld16x128bOp", "Ld16x256bOp", "Ld16x32bx2Op", "Ld16x64bOp", "Ld32x32bOp",
    "LdRed16x32bx2Op", "LdRed32x32bOp", "MmaF16BF16Op", "MmaF8F6F4Op", "MmaFP8Op", "MmaI8Op", "MmaMXF4NVF4Op",
    "MmaMXF4Op", "MmaMXF8F6F4Op", "MmaMXF8Op", "MmaOp", "MmaTF32Op", "OperandMajorMode", "OperandSource", "Pack",
    "Repetition", "SM103MmaMXF4NVF4Op", "SM103MmaMXF4Op", "SmemLayoutAtomKind", "St16x128bOp", "St16x256bOp",
    "St16x32bx2Op", "St16x64bOp", "St32x32bOp", "TmemLoadRedOp", "Unpack", "commit", "find_tmem_tensor_col_offset",
    "get_s2t_smem_desc_tensor", "get_tmem_copy_properties", "is_tmem_load", "is_tmem_store", "make_s2t_copy",
    "make_smem_layout_atom", "make_tmem_copy", "make_umma_smem_desc", "tile_to_mma_shape",
]  # fmt: skip

publish(__name__)
