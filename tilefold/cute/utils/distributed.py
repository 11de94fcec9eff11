# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.utils.distributed`: memory of several devices. Multicast addresses stand for the same place on each; flags say
how far the others are. Without GPUs see `tilefold.cute.several_devices`.
"""

from functools import partial

from tilefold.builder.instructions.atomics import atomic_add
from tilefold.builder.instructions.multimem import (
    multimem_ld_reduce,
    multimem_red_add1,
    multimem_st,
    red_add1,
    spin_lock_atom_cas_acquire_wait,
    spin_lock_atom_cas_relaxed_wait,
    spin_lock_ld_lt_relaxed_wait,
)
from tilefold.cute.dtypes import BFloat16, Float16, Float32

from ..public import publish

atomicAdd = atomic_add  # noqa: N816 - its name there
multimem_ld_reduce_4xf32 = partial(multimem_ld_reduce, dtype=Float32, num_elements=4)
multimem_ld_reduce_8xf16 = partial(multimem_ld_reduce, dtype=Float16, num_elements=8)
multimem_ld_reduce_8xbf16 = partial(multimem_ld_reduce, dtype=BFloat16, num_elements=8)
multimem_st_4xb32 = multimem_st
multimem_red_release_sys_add1 = partial(multimem_red_add1, order="release", scope="sys")
multimem_red_relaxed_gpu_add1 = partial(multimem_red_add1, order="relaxed", scope="gpu")

__all__ = [
    "atomicAdd", "multimem_ld_reduce", "multimem_ld_reduce_4xf32", "multimem_ld_reduce_8xbf16",
    "multimem_ld_reduce_8xf16", "multimem_red_add1", "multimem_red_relaxed_gpu_add1", "multimem_red_release_sys_add1",
    "multimem_st", "multimem_st_4xb32", "red_add1", "spin_lock_atom_cas_acquire_wait",
    "spin_lock_atom_cas_relaxed_wait", "spin_lock_ld_lt_relaxed_wait",
]  # fmt: skip

publish(__name__)
