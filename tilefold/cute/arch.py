# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.arch`: the coordinates of a thread, and the instructions that let threads cooperate."""

from enum import Enum
from functools import total_ordering

from tilefold.base.target import WARP as WARP_SIZE
from tilefold.builder.instructions.arch import (
    ProxyKind,
    SharedSpace,
    approx,
    barrier,
    barrier_arrive,
    block_dim,
    block_idx,
    cp_async_bulk_commit_group,
    cp_async_bulk_load,
    cp_async_bulk_prefetch,
    cp_async_bulk_store,
    cp_async_bulk_wait_group,
    cp_async_commit_group,
    cp_async_wait_all,
    cp_async_wait_group,
    fence,
    fence_acq_rel_cluster,
    fence_acq_rel_cta,
    fence_acq_rel_gpu,
    fence_acq_rel_sys,
    fence_proxy,
    fence_view_async_shared,
    grid_dim,
    griddepcontrol_launch_dependents,
    griddepcontrol_wait,
    lane_idx,
    linear_thread_idx,
    nanosleep,
    prefetch,
    rcp_approx,
    setmaxregister_decrease,
    setmaxregister_increase,
    sync_threads,
    sync_warp,
    thread_idx,
    warp_idx,
    warpgroup_reg_alloc,
    warpgroup_reg_dealloc,
)
from tilefold.builder.instructions.atomics import (
    atomic,
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_exch,
    atomic_fmax,
    atomic_fmin,
    atomic_max,
    atomic_max_float32,
    atomic_min,
    atomic_or,
    atomic_xor,
    load,
    load_acquire,
    red,
    store,
    store_release,
)
from tilefold.builder.instructions.bits import (
    bitcast,
    brev,
    clz,
    cvt_f32_tf32,
    dp4a,
    isfinite,
    isinf,
    isnan,
    log2_of_pow2_int,
    mulhi,
    popc,
    prmt,
    sext_unpacked_i4_i8_intrinsic,
)
from tilefold.builder.instructions.cluster import (
    block_idx_in_cluster,
    block_in_cluster_dim,
    block_in_cluster_idx,
    clc_response,
    cluster_arrive,
    cluster_arrive_relaxed,
    cluster_dim,
    cluster_idx,
    cluster_size,
    cluster_wait,
    issue_clc_query,
    make_warp_uniform,
    mapa,
    mbarrier_init_fence,
    red_async,
    store_async,
    store_async_dsmem,
)
from tilefold.builder.instructions.cluster import mapa as map_dsmem_ptr
from tilefold.builder.instructions.extremes import fmax, fmin
from tilefold.builder.instructions.inline import (
    clock,
    clock64,
    dynamic_smem_size,
    globaltimer,
    globaltimer_lo,
    inline_ptx,
    nsmid,
    nwarpid,
    physical_warp_id,
    smid,
)
from tilefold.builder.instructions.inline import dynamic_smem_size as get_dyn_smem_size
from tilefold.builder.instructions.integers import (
    add_sat_int,
    bfe,
    bfi,
    bfind,
    lanemask_eq,
    lanemask_ge,
    lanemask_gt,
    lanemask_le,
    lanemask_lt,
    lop3,
    mad24,
    mul24,
    mul_hi,
    mul_wide,
    shf,
    sub_sat_int,
)
from tilefold.builder.instructions.math import exp, exp2, fma, log, log2
from tilefold.builder.instructions.mbarriers import (
    cp_async_mbarrier_arrive_noinc,
    mbarrier_arrive,
    mbarrier_arrive_and_expect_tx,
    mbarrier_complete_tx,
    mbarrier_conditional_try_wait,
    mbarrier_expect_tx,
    mbarrier_init,
    mbarrier_init_arrive_cnt,
    mbarrier_init_tx_bytes,
    mbarrier_test_wait,
    mbarrier_try_wait,
    mbarrier_wait,
)
from tilefold.builder.instructions.pairs import (
    add_packed_f32x2,
    calc_packed_f32x2_op,
    exp_packed_f32x2,
    fma_packed_f32x2,
    mul_packed_f32x2,
    pack_float8,
    sub_packed_f32x2,
)
from tilefold.builder.instructions.random import normal, philox, uniform
from tilefold.builder.instructions.tensor_core import (
    alloc_tmem,
    dealloc_tmem,
    fence_view_async_tmem_load,
    fence_view_async_tmem_store,
    get_max_tmem_alloc_cols,
    get_min_tmem_alloc_cols,
    relinquish_tmem_alloc_permit,
    retrieve_tmem_ptr,
)
from tilefold.builder.instructions.warp import (
    FULL_MASK,
    activemask,
    elect_one,
    match_any,
    match_sync,
    redux_sync,
    shuffle_sync,
    shuffle_sync_bfly,
    shuffle_sync_down,
    shuffle_sync_op,
    shuffle_sync_up,
    vote_all_sync,
    vote_any_sync,
    vote_ballot_sync,
    vote_uni_sync,
    warp_reduction,
    warp_reduction_max,
    warp_reduction_sum,
    warp_redux_sync,
)
from tilefold.builder.pipelines.allocator import alloc_smem, get_dyn_smem
from tilefold.dialects.ptx.tcgen05.memory import MAX_COLUMNS as SM100_TMEM_CAPACITY_COLUMNS
from tilefold.dialects.ptx.tcgen05.memory import MIN_COLUMNS as SM100_TMEM_MIN_ALLOC_COLUMNS

from .public import publish


@total_ordering
class Arch(Enum):
    """Targets by compute capability, in its order; those of features of one GPU or family come after the plain one."""

    sm_75 = (7, 5, "")
    sm_80 = (8, 0, "")
    sm_86 = (8, 6, "")
    sm_87 = (8, 7, "")
    sm_89 = (8, 9, "")
    sm_90 = (9, 0, "")
    sm_90a = (9, 0, "a")
    sm_100 = (10, 0, "")
    sm_100a = (10, 0, "a")
    sm_100f = (10, 0, "f")
    sm_101 = (10, 1, "")
    sm_101a = (10, 1, "a")
    sm_101f = (10, 1, "f")
    sm_103 = (10, 3, "")
    sm_103a = (10, 3, "a")
    sm_103f = (10, 3, "f")
    sm_110 = (11, 0, "")
    sm_110a = (11, 0, "a")
    sm_110f = (11, 0, "f")
    sm_120 = (12, 0, "")
    sm_120a = (12, 0, "a")
    sm_120f = (12, 0, "f")
    sm_121 = (12, 1, "")
    sm_121a = (12, 1, "a")
    sm_121f = (12, 1, "f")

    @property
    def major(self) -> int:
        """The first number of the compute capability."""
        return self.value[0]

    @property
    def minor(self) -> int:
        """The second number of the compute capability."""
        return self.value[1]

    def is_family_of(self, arch: "Arch") -> bool:
        """Whether it is in the family of `arch`: of its major number, and not before it."""
        return self.major == arch.major and self.minor >= arch.minor

    def __lt__(self, other: "Arch") -> bool:
        return self._place() < other._place()

    def _place(self) -> tuple[int, int, str]:
        return self.value


__all__ = [
    "Arch", "FULL_MASK", "ProxyKind", "SM100_TMEM_CAPACITY_COLUMNS", "SM100_TMEM_MIN_ALLOC_COLUMNS", "SharedSpace",
    "WARP_SIZE", "activemask", "add_packed_f32x2", "add_sat_int",
    "alloc_smem", "alloc_tmem", "approx", "atomic", "atomic_add", "atomic_and", "atomic_cas", "atomic_exch",
    "atomic_fmax", "atomic_fmin", "atomic_max", "atomic_max_float32", "atomic_min", "atomic_or", "atomic_xor",
    "barrier", "barrier_arrive", "bfe", "bfi", "bfind", "bitcast", "block_dim", "block_idx", "block_idx_in_cluster",
    "block_in_cluster_dim", "block_in_cluster_idx", "brev", "calc_packed_f32x2_op", "clc_response", "clock", "clock64",
    "cluster_arrive", "cluster_arrive_relaxed", "cluster_dim", "cluster_idx", "cluster_size", "cluster_wait", "clz",
    "cp_async_bulk_commit_group", "cp_async_bulk_load", "cp_async_bulk_prefetch", "cp_async_bulk_store",
    "cp_async_bulk_wait_group", "cp_async_commit_group", "cp_async_mbarrier_arrive_noinc", "cp_async_wait_all",
    "cp_async_wait_group", "cvt_f32_tf32", "dealloc_tmem", "dp4a", "dynamic_smem_size", "elect_one", "exp", "exp2",
    "exp_packed_f32x2", "fence", "fence_acq_rel_cluster", "fence_acq_rel_cta", "fence_acq_rel_gpu", "fence_acq_rel_sys",
    "fence_proxy", "fence_view_async_shared", "fence_view_async_tmem_load", "fence_view_async_tmem_store", "fma",
    "fma_packed_f32x2", "fmax", "fmin", "get_dyn_smem", "get_dyn_smem_size", "get_max_tmem_alloc_cols",
    "get_min_tmem_alloc_cols", "globaltimer", "globaltimer_lo", "grid_dim", "griddepcontrol_launch_dependents",
    "griddepcontrol_wait", "inline_ptx", "isfinite", "isinf", "isnan", "issue_clc_query", "lane_idx", "lanemask_eq",
    "lanemask_ge", "lanemask_gt", "lanemask_le", "lanemask_lt", "linear_thread_idx", "load", "load_acquire", "log",
    "log2", "log2_of_pow2_int", "lop3", "mad24", "make_warp_uniform", "map_dsmem_ptr", "mapa", "match_any",
    "match_sync", "mbarrier_arrive", "mbarrier_arrive_and_expect_tx", "mbarrier_complete_tx",
    "mbarrier_conditional_try_wait", "mbarrier_expect_tx", "mbarrier_init", "mbarrier_init_arrive_cnt",
    "mbarrier_init_fence", "mbarrier_init_tx_bytes", "mbarrier_test_wait", "mbarrier_try_wait", "mbarrier_wait",
    "mul24", "mul_hi", "mul_packed_f32x2", "mul_wide", "mulhi", "nanosleep", "normal", "nsmid", "nwarpid",
    "pack_float8", "philox", "physical_warp_id", "popc", "prefetch", "prmt", "rcp_approx", "red", "red_async",
    "redux_sync", "relinquish_tmem_alloc_permit", "retrieve_tmem_ptr", "setmaxregister_decrease",
    "setmaxregister_increase", "sext_unpacked_i4_i8_intrinsic", "shf", "shuffle_sync", "shuffle_sync_bfly",
    "shuffle_sync_down", "shuffle_sync_op", "shuffle_sync_up", "smid", "store", "store_async", "store_async_dsmem",
    "store_release", "sub_packed_f32x2", "sub_sat_int", "sync_threads", "sync_warp", "thread_idx", "uniform",
    "vote_all_sync", "vote_any_sync", "vote_ballot_sync", "vote_uni_sync", "warp_idx", "warp_reduction",
    "warp_reduction_max", "warp_reduction_sum", "warp_redux_sync", "warpgroup_reg_alloc", "warpgroup_reg_dealloc",
]  # fmt: skip

publish(__name__)
