# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Synonyms: names of CUDA C++, CuTe C++ and Python with ours, for messages about unknown names."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from .cuda_names import CUDA_NAMES

_NAMES = {
    **CUDA_NAMES,
    **dict.fromkeys(("make_shape", "make_stride", "make_coord", "make_tile"), "a Python tuple"),
    **dict.fromkeys(("dot", "matmul", "mma"), "cute.gemm"),
    **{name: f"cute.ReductionOp.{name}" for name in ("ADD", "MUL", "MAX", "MIN", "AND", "OR", "XOR")},
    **dict.fromkeys(("setmaxnreg", "setmaxnreg_inc"), "cute.arch.setmaxregister_increase"),
    "setmaxnreg_dec": "cute.arch.setmaxregister_decrease",
    "fma_packed_f32x2": "cute.fma, of two elements of a fragment",
    "add_packed_f32x2": "+, of two elements of a fragment",
    "mul_packed_f32x2": "*, of two elements of a fragment",
    "sub_packed_f32x2": "-, of two elements of a fragment",
    "CpAsyncOp": "cute.nvgpu.cpasync.CopyG2SOp",
    "max": "max(x, y) or cute.math.max(x, y), and x.max() of all elements of a fragment",
    "min": "min(x, y) or cute.math.min(x, y), and x.min() of all elements of a fragment",
    "sum": "x.sum() of a fragment, and Python's sum",
    "round": "Python's round(x), of a value or a fragment",
    **dict.fromkeys(("prod", "any", "all"), "a method of fragments, such as x.any()"),
    "mean": "x.sum() / x.size of a fragment",
    "cp_async_fence": "cute.arch.cp_async_commit_group",
    "copy_if": "cute.copy(..., pred=...)",
    "cp_async": "cute.nvgpu.cpasync.CopyG2SOp, for cute.make_copy_atom",
    "ldmatrix": "cute.nvgpu.warp.LdMatrix8x8x16bOp, for cute.make_copy_atom",
    "cast": "x.to(...)",
    "zeros": "cute.full",
}

_TWO_FORMS = ("max", "min")
"""Names whose meaning here depends on the operands."""

_NEWER = re.compile(
    r"tcgen05|tmem|umma|blackwell|sm100|clc_|^Clc|ClcFetch|block_?scale|^(make_tiled_tma_atom_[AB]|mma_major_mode|"
    r"mixed_input_helpers|compute_epilogue_tile_shape|PipelineTmaMultiConsumersAsync|MmaMX\w*|MXF\w*|"
    r"LdMatrix16x16x8bOp|StMatrix16x8x8bOp|S2TCopyMode|sext_unpacked_i4_i8_intrinsic)$",
    re.IGNORECASE,
)
"""Names of public programs for instructions that GPUs before sm_100 lack, and for helpers of these."""


_OTHER_TOOLS: Mapping[str, str] = MappingProxyType({
    "jax": "kernels are called with JAX's arrays, not within functions that JAX compiles",
    "task_scheduling": "programs of tasks are not supported: write a kernel whose warps share the work",
})  # fmt: skip
"""Modules of public programs for other tools, with what to do here."""


def newer(name: str) -> str:
    """A hint for a name that has a meaning on sm_100 and later GPUs alone, or to another tool; empty for others."""
    if name in _OTHER_TOOLS:
        return _OTHER_TOOLS[name]
    return "it needs instructions of sm_100 or later GPUs, which are not supported" if _NEWER.search(name) else ""


def called_here(name: str, vocabulary: Mapping[str, Sequence[str]]) -> str:
    """A hint with our name for a name that a module lacks; empty without a synonym. `vocabulary` has the names
    of each module by its name.
    """
    found = [module for module, names in vocabulary.items() if name in names]
    if found and name not in _TWO_FORMS:  # of several modules the one that kernels take most often
        return f"here it is {min(found, key=lambda module: (not module.endswith('.math'), module.count('.')))}.{name}"
    return f"here it is {_NAMES[name]}" if name in _NAMES else ""
