# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single instructions on pointers and arrays, and the words that they take (`cutlass.experimental.primitives`).

Each argument that is an address is a pointer, an array, or where a tensor begins.
"""

from tilefold.builder.instructions.inline import inline_ptx
from tilefold.builder.instructions.printing import printf as print_runtime
from tilefold.builder.primitives.barriers import (
    bar_warp_sync,
    barrier_cluster_arrive,
    barrier_cluster_arrive_relaxed,
    barrier_cluster_wait,
    barrier_cta_arrive,
    barrier_cta_red,
    barrier_cta_sync,
    barrier_cta_sync_aligned,
    cluster_ctarank,
    cp_async_mbarrier_arrive,
    elect_sync,
    fence_mbarrier_init,
    fence_proxy,
    griddepcontrol,
    mapa,
    mbarrier_arrive,
    mbarrier_arrive_expect_tx,
    mbarrier_expect_tx,
    mbarrier_init,
    mbarrier_inval,
    mbarrier_try_wait_parity,
    mbarrier_try_wait_timelimit,
    setmaxregister,
)
from tilefold.builder.primitives.enums import (
    AtomicOp,
    CTAGroup,
    GridDepAction,
    LoadShape,
    LoadSrcFormat,
    MemOrder,
    MemScope,
    MMALayout,
    Proxy,
    ReductionKind,
    ReductionOp,
    ReductionType,
    SetMaxRegisterAction,
    SharedSpace,
    Shfl,
    StoreShape,
    TensormapField,
    VoteSync,
)
from tilefold.builder.primitives.lanes import atomicrmw, red, redux_sync, shfl_sync, vote_sync
from tilefold.builder.primitives.tensor_maps import (
    cp_async_bulk_tensor_global_shared_cta,
    cp_async_bulk_tensor_shared_cluster_global,
    cp_async_bulk_tensor_shared_cta_global,
    fence_proxy_acquire,
    fence_proxy_release,
    prefetch_tensormap,
    tensormap_replace,
)
from tilefold.builder.primitives.transfers import (
    cp_async_bulk_commit_group,
    cp_async_bulk_global_shared_cta,
    cp_async_bulk_prefetch,
    cp_async_bulk_shared_cluster_global,
    cp_async_bulk_wait_group,
    cp_async_commit_group,
    cp_async_shared_global,
    cp_async_wait_group,
    ldmatrix,
    stmatrix,
)

__all__ = [
    "AtomicOp", "CTAGroup", "GridDepAction", "LoadShape", "LoadSrcFormat", "MMALayout", "MemOrder", "MemScope", "Proxy",
    "ReductionKind", "ReductionOp", "ReductionType", "SetMaxRegisterAction", "SharedSpace", "Shfl", "StoreShape",
    "TensormapField", "VoteSync", "atomicrmw", "bar_warp_sync", "barrier_cluster_arrive",
    "barrier_cluster_arrive_relaxed",
    "barrier_cluster_wait", "barrier_cta_arrive", "barrier_cta_red", "barrier_cta_sync", "barrier_cta_sync_aligned",
    "cluster_ctarank", "cp_async_bulk_commit_group", "cp_async_bulk_global_shared_cta", "cp_async_bulk_prefetch",
    "cp_async_bulk_shared_cluster_global", "cp_async_bulk_tensor_global_shared_cta",
    "cp_async_bulk_tensor_shared_cluster_global", "cp_async_bulk_tensor_shared_cta_global", "cp_async_bulk_wait_group",
    "cp_async_commit_group", "cp_async_mbarrier_arrive", "cp_async_shared_global", "cp_async_wait_group", "elect_sync",
    "fence_mbarrier_init", "fence_proxy", "fence_proxy_acquire", "fence_proxy_release", "griddepcontrol", "inline_ptx",
    "ldmatrix", "mapa", "mbarrier_arrive", "mbarrier_arrive_expect_tx", "mbarrier_expect_tx", "mbarrier_init",
    "mbarrier_inval", "mbarrier_try_wait_parity", "mbarrier_try_wait_timelimit", "prefetch_tensormap", "print_runtime",
    "red", "redux_sync", "setmaxregister", "shfl_sync", "stmatrix", "tensormap_replace", "vote_sync",
]  # fmt: skip
