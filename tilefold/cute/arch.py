# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.arch`: the coordinates of a thread, and the instructions by which threads cooperate."""

from tilefold.compiler.builder.instructions.arch import (
    approx,
    atomic,
    atomic_add,
    atomic_cas,
    atomic_exch,
    atomic_max,
    atomic_min,
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
    cp_async_mbarrier_arrive,
    cp_async_wait_all,
    cp_async_wait_group,
    fence,
    fence_proxy_async,
    grid_dim,
    griddepcontrol_launch_dependents,
    griddepcontrol_wait,
    lane_idx,
    linear_thread_idx,
    load_acquire,
    mbarrier_arrive,
    mbarrier_arrive_and_expect_tx,
    mbarrier_complete_tx,
    mbarrier_expect_tx,
    mbarrier_init,
    mbarrier_wait,
    nanosleep,
    red,
    store_release,
    sync_warp,
    thread_idx,
    warp_idx,
)
from tilefold.compiler.builder.instructions.inline import inline_ptx
from tilefold.compiler.builder.instructions.warp import (
    FULL_MASK,
    activemask,
    elect_one,
    match_any,
    redux_sync,
    shuffle_sync,
    shuffle_sync_bfly,
    shuffle_sync_down,
    shuffle_sync_up,
    vote_all,
    vote_any,
    vote_ballot,
    vote_uni,
    warp_reduce,
)

__all__ = [
    "FULL_MASK", "activemask", "approx", "atomic", "atomic_add", "atomic_cas", "atomic_exch", "atomic_max",
    "atomic_min", "barrier", "barrier_arrive", "block_dim", "block_idx", "cp_async_bulk_commit_group",
    "cp_async_bulk_load", "cp_async_bulk_prefetch", "cp_async_bulk_store", "cp_async_bulk_wait_group",
    "cp_async_commit_group", "cp_async_mbarrier_arrive", "cp_async_wait_all", "cp_async_wait_group", "elect_one",
    "fence", "fence_proxy_async", "grid_dim", "griddepcontrol_launch_dependents", "griddepcontrol_wait",
    "inline_ptx", "lane_idx", "linear_thread_idx", "load_acquire", "match_any", "mbarrier_arrive",
    "mbarrier_arrive_and_expect_tx", "mbarrier_complete_tx", "mbarrier_expect_tx", "mbarrier_init", "mbarrier_wait",
    "nanosleep", "red", "redux_sync",
    "shuffle_sync", "shuffle_sync_bfly", "shuffle_sync_down", "shuffle_sync_up", "store_release", "sync_warp",
    "thread_idx", "vote_all", "vote_any", "vote_ballot", "vote_uni", "warp_idx", "warp_reduce",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
