# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of CUDA C++, of its kernels in Python and of Triton, with their forms here (CUDA C++ Programming Guide, C++
Language Extensions).
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any

_INDICES = {
    ("threadIdx", "thread_idx"): "x, y, z = cute.arch.thread_idx()",
    ("blockIdx", "block_idx"): "x, y, z = cute.arch.block_idx()",
    ("blockDim", "block_dim"): "x, y, z = cute.arch.block_dim()",
    ("gridDim", "grid_dim"): "x, y, z = cute.arch.grid_dim()",
    ("clusterIdx",): "x, y, z = cute.arch.cluster_idx()",
    ("clusterDim",): "x, y, z = cute.arch.cluster_dim()",
    ("laneId", "lane_id", "laneid"): "cute.arch.lane_idx()",
    ("warpId", "warp_id", "warpid"): "cute.arch.warp_idx()",
    ("warpSize", "warp_size"): "cute.arch.WARP_SIZE",
    ("program_id",): "x, y, z = cute.arch.block_idx()",
    ("num_programs",): "x, y, z = cute.arch.grid_dim()",
}
_BARRIERS = {
    ("syncthreads", "__syncthreads", "barrier_sync"): "cute.arch.sync_threads()",
    ("syncwarp", "__syncwarp"): "cute.arch.sync_warp()",
    ("threadfence", "__threadfence"): "cute.arch.fence_acq_rel_gpu()",
    ("threadfence_block", "__threadfence_block"): "cute.arch.fence_acq_rel_cta()",
    ("threadfence_system", "__threadfence_system"): "cute.arch.fence_acq_rel_sys()",
    ("__nanosleep",): "cute.arch.nanosleep(...)",
    ("cluster_sync",): "cute.arch.cluster_arrive() and cute.arch.cluster_wait()",
}
_LANES = {
    ("__shfl_sync", "shfl_sync"): "cute.arch.shuffle_sync(x, lane)",
    ("__shfl_xor_sync", "shfl_xor_sync"): "cute.arch.shuffle_sync_bfly(x, mask)",
    ("__shfl_up_sync", "shfl_up_sync"): "cute.arch.shuffle_sync_up(x, n)",
    ("__shfl_down_sync", "shfl_down_sync"): "cute.arch.shuffle_sync_down(x, n)",
    ("__ballot_sync", "ballot_sync", "__ballot"): "cute.arch.vote_ballot_sync(p)",
    ("__any_sync", "any_sync", "__any"): "cute.arch.vote_any_sync(p)",
    ("__all_sync", "all_sync", "__all"): "cute.arch.vote_all_sync(p)",
    ("__activemask", "activemask"): "cute.arch.activemask()",
    ("__match_any_sync",): "cute.arch.match_any(x)",
    ("__reduce_add_sync", "__reduce_min_sync", "__reduce_max_sync"): "cute.arch.warp_redux_sync",
    ("warp_reduce", "warpReduce"): "cute.arch.warp_reduction",
}
_ATOMICS = {
    ("atomicAdd", "atomicSub"): "cute.arch.atomic_add(t.ptr(i, j), x)",
    ("atomicExch",): "cute.arch.atomic_exch(t.ptr(i, j), x)",
    ("atomicMin",): "cute.arch.atomic_min(t.ptr(i, j), x)",
    ("atomicMax",): "cute.arch.atomic_max(t.ptr(i, j), x)",
    ("atomicAnd",): "cute.arch.atomic_and(t.ptr(i, j), x)",
    ("atomicOr",): "cute.arch.atomic_or(t.ptr(i, j), x)",
    ("atomicXor",): "cute.arch.atomic_xor(t.ptr(i, j), x)",
    ("atomicCAS",): "cute.arch.atomic_cas(t.ptr(i, j), cmp=x, val=y)",
}
_FUNCTIONS = {
    ("__popc", "__popcll"): "cute.arch.popc(x)",
    ("__clz", "__clzll"): "cute.arch.clz(x)",
    ("__ffs",): "32 - cute.arch.clz(x & -x)",
    ("__brev", "__brevll"): "cute.arch.brev(x)",
    ("__dp4a",): "cute.arch.dp4a(a, b, c)",
    ("__mulhi", "__umulhi"): "cute.arch.mul_hi(a, b)",
    ("__byte_perm",): "cute.arch.prmt(a, b, selector)",
    ("__ldg", "__ldcg", "__ldcs"): "t[i, j], the compiler chooses the load",
    ("expf", "__expf"): "cute.math.exp(x)",
    ("logf", "__logf"): "cute.math.log(x)",
    ("sinf", "__sinf"): "cute.math.sin(x)",
    ("cosf", "__cosf"): "cute.math.cos(x)",
    ("tanhf",): "cute.math.tanh(x)",
    ("sqrtf", "__fsqrt_rn"): "cute.math.sqrt(x)",
    ("rsqrtf", "__frsqrt_rn"): "cute.math.rsqrt(x)",
    ("fmaf", "__fmaf_rn"): "cute.math.fma(a, b, c)",
    ("powf", "__powf"): "x ** y",
    ("fabsf", "fabs"): "abs(x)",
    ("maximum", "fmaxf", "fmax"): "cute.math.max",
    ("minimum", "fminf", "fmin"): "cute.math.min",
    ("__half2float", "__bfloat162float", "__int2float_rn"): "x.to(cute.Float32)",
    ("__float2half", "__float2half_rn"): "x.to(cute.Float16)",
    ("__float2bfloat16",): "x.to(cute.BFloat16)",
    ("__float2int_rn",): "round(x)",
    ("__float2int_rz",): "x.to(cute.Int32)",
    ("static_cast", "reinterpret_cast"): "x.to(cute.Float32), which converts",
    ("__trap",): "cute.testing.assert_(condition, text)",
}
_DECLARATIONS = {
    ("__shared__", "shared_memory"): "cute.make_smem_tensor(shape, cute.Float32)",
    ("__global__",): "@cute.kernel above the function",
    ("__device__",): "@cute.jit above the function",
    ("__launch_bounds__",): "@cute.kernel(min_blocks=2), the launch says how many threads a block has",
    ("dim3", "Dim3"): "a tuple: grid=(x, y, z)",
    ("__half", "half"): "cute.Float16",
    ("__nv_bfloat16", "nv_bfloat16", "bfloat16_t"): "cute.BFloat16",
    ("half_t",): "cute.Float16",
    ("float32_t",): "cute.Float32",
    ("int32_t",): "cute.Int32",
    ("uint32_t",): "cute.Uint32",
    ("int64_t",): "cute.Int64",
}


def _by_name() -> Mapping[str, str]:
    groups = (_INDICES, _BARRIERS, _LANES, _ATOMICS, _FUNCTIONS, _DECLARATIONS)
    return MappingProxyType({name: cure for group in groups for names, cure in group.items() for name in names})


CUDA_NAMES = _by_name()
"""The forms here by the names elsewhere, as a user writes them."""


class NamedEnum(Enum):
    """The base of enumerations whose members programs also give by their names in small letters."""

    @classmethod
    def _missing_(cls, value: object) -> Any:
        return cls.__members__.get(str(value).upper())
