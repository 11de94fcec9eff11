# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.nvgpu.warpgroup`: matrix multiplications of warpgroups (wgmma, sm_90a)."""

from tilefold.builder.tensors.warpgroup import (
    Field,
    MmaF8Op,
    MmaF16BF16Op,
    MmaI8Op,
    MmaTF32Op,
    OperandMajorMode,
    OperandSource,
    SmemLayoutAtomKind,
    commit_group,
    fence,
    make_smem_layout_atom,
    wait_group,
)

from ..public import publish

__all__ = [
    "Field", "MmaF16BF16Op", "MmaF8Op", "MmaI8Op", "MmaTF32Op", "OperandMajorMode", "OperandSource",
    "SmemLayoutAtomKind", "commit_group", "fence", "make_smem_layout_atom", "wait_group",
]  # fmt: skip

publish(__name__)
