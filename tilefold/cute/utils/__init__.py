# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.utils`: the order in which persistent blocks compute tiles, also of groups of products; the sizes of a GPU that
their grids depend on; shared memory under the names of CuTe programs; pipelines, where older programs look for them.
Helpers for tiles of warpgroups are in `cute.utils.hopper_helpers`.
"""

from tilefold.builder.pipelines.allocator import SmemAllocator, SmemPartition, get_smem_capacity_in_bytes
from tilefold.builder.pipelines.dynamic_scheduler import (
    ClcDynamicPersistentTileScheduler,
    ClcDynamicPersistentTileSchedulerParams,
)
from tilefold.builder.pipelines.group_scheduler import (
    GroupedGemmTileSchedulerHelper,
    GroupSearchResult,
    GroupSearchState,
    StaticPersistentGroupTileScheduler,
    create_initial_search_state,
)
from tilefold.builder.pipelines.groups import Agent, CooperativeGroup, PipelineUserType
from tilefold.builder.pipelines.pipelines import PipelineAsync, PipelineTmaAsync, PipelineTmaStore
from tilefold.builder.pipelines.states import PipelineState, make_pipeline_state
from tilefold.builder.pipelines.tensor_map_manager import TensorMapManager, TensorMapUpdateMode
from tilefold.builder.pipelines.tile_scheduler import (
    PersistentTileSchedulerParams,
    StaticPersistentRuntimeTileScheduler,
    StaticPersistentTileScheduler,
    WorkTileInfo,
)
from tilefold.builder.pipelines.tmem_allocator import TmemAllocator, get_num_tmem_alloc_cols
from tilefold.builder.pipelines.view_copies import block_copy
from tilefold.builder.tensors.blackwell import compute_epilogue_tile_shape
from tilefold.builder.tensors.hopper import LayoutEnum
from tilefold.builder.tensors.hopper import make_smem_layout_a as sm90_make_smem_layout_a
from tilefold.builder.tensors.hopper import make_smem_layout_b as sm90_make_smem_layout_b
from tilefold.builder.tensors.hopper import make_smem_layout_epi as sm90_make_smem_layout_epi
from tilefold.cute.drawing import print_latex, print_latex_tv
from tilefold.cute.hardware import HardwareInfo

from ..public import publish
from . import gemm, hopper_helpers
from .tensor_helpers import create_cute_tensor_for_fp8, is_fp8_dtype

__all__ = [
    "Agent", "ClcDynamicPersistentTileScheduler", "ClcDynamicPersistentTileSchedulerParams", "CooperativeGroup",
    "GroupSearchResult", "GroupSearchState", "GroupedGemmTileSchedulerHelper", "HardwareInfo", "LayoutEnum",
    "PersistentTileSchedulerParams", "PipelineAsync", "PipelineState", "PipelineTmaAsync", "PipelineTmaStore",
    "PipelineUserType", "SmemAllocator", "SmemPartition", "StaticPersistentGroupTileScheduler",
    "StaticPersistentRuntimeTileScheduler", "StaticPersistentTileScheduler", "TensorMapManager", "TensorMapUpdateMode",
    "TmemAllocator", "WorkTileInfo", "block_copy", "compute_epilogue_tile_shape", "create_cute_tensor_for_fp8",
    "create_initial_search_state", "gemm", "get_num_tmem_alloc_cols", "get_smem_capacity_in_bytes", "hopper_helpers",
    "is_fp8_dtype", "make_pipeline_state", "print_latex", "print_latex_tv", "sm90_make_smem_layout_a",
    "sm90_make_smem_layout_b", "sm90_make_smem_layout_epi",
]  # fmt: skip

publish(__name__)
