# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.nvgpu`: the instructions of atoms. Asynchronous copies are in `cute.nvgpu.cpasync`, instructions of warps in
`cute.nvgpu.warp`, of warpgroups in `cute.nvgpu.warpgroup`, multiplications into tensor memory in `cute.nvgpu.tcgen05`.
"""

from tilefold.base.errors import TilefoldError as OpError
from tilefold.builder.tensors.memory_attributes import (
    CacheEvictionPriority,
    L2PrefetchSize,
    MemoryOrder,
    MemoryScope,
)
from tilefold.builder.tensors.nvgpu import (
    CopyG2ROp,
    CopyR2GOp,
    CopyR2SOp,
    CopyS2ROp,
    CopyUniversalOp,
    LoadCacheMode,
    MmaOp,
    MmaUniversalOp,
    MovMatrixOp,
)
from tilefold.builder.tensors.nvgpu import CopyR2GOp as CopyStgOp
from tilefold.builder.tensors.operand_copies import make_tiled_tma_atom_A, make_tiled_tma_atom_B
from tilefold.builder.tensors.operand_copies import make_tiled_tma_atom_A as make_tma_tile_atom_A
from tilefold.builder.tensors.operand_copies import make_tiled_tma_atom_B as make_tma_tile_atom_B
from tilefold.builder.tensors.warpgroup import OperandMajorMode

from ..public import publish
from . import cpasync, tcgen05, warp, warpgroup

__all__ = [
    "CacheEvictionPriority", "CopyG2ROp", "CopyR2GOp", "CopyR2SOp", "CopyS2ROp", "CopyStgOp", "CopyUniversalOp",
    "L2PrefetchSize", "LoadCacheMode", "MemoryOrder", "MemoryScope", "MmaOp", "MmaUniversalOp", "MovMatrixOp",
    "OpError", "OperandMajorMode", "cpasync", "make_tiled_tma_atom_A", "make_tiled_tma_atom_B",
    "make_tma_tile_atom_A", "make_tma_tile_atom_B", "tcgen05", "warp", "warpgroup",
]  # fmt: skip

publish(__name__)
