# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.utils`: the order in which persistent blocks compute tiles, also of groups of products; the sizes of a GPU that
their grids depend on; shared memory under the names of CuTe programs; pipelines, where older programs look for them.
Helpers for tiles of warpgroups are in `cute.utils.hopper_helpers`.
"""

from typing import TYPE_CHECKING

from tilefold.base.errors import Code
from tilefold.base.target import MAX_CLUSTER
from tilefold.builder.pipelines.allocator import SmemAllocator, SmemPartition, get_smem_capacity_in_bytes
from tilefold.builder.pipelines.group_scheduler import (
    GroupedGemmTileSchedulerHelper,
    GroupSearchResult,
    GroupSearchState,
    StaticPersistentGroupTileScheduler,
    create_initial_search_state,
)
from tilefold.builder.pipelines.groups import Agent, CooperativeGroup, PipelineUserType
from tilefold.builder.pipelines.participants import PipelineState, make_pipeline_state
from tilefold.builder.pipelines.pipelines import PipelineAsync, PipelineTmaAsync, PipelineTmaStore
from tilefold.builder.pipelines.tensor_map_manager import TensorMapManager, TensorMapUpdateMode
from tilefold.builder.pipelines.tile_scheduler import (
    ClcDynamicPersistentTileScheduler,
    ClcDynamicPersistentTileSchedulerParams,
    PersistentTileSchedulerParams,
    StaticPersistentRuntimeTileScheduler,
    StaticPersistentTileScheduler,
    WorkTileInfo,
)
from tilefold.builder.pipelines.tmem_allocator import TmemAllocator, get_num_tmem_alloc_cols
from tilefold.builder.pipelines.view_copies import block_copy
from tilefold.builder.scalars.dtypes import DType
from tilefold.builder.tensors.blackwell import compute_epilogue_tile_shape
from tilefold.builder.tensors.hopper import LayoutEnum
from tilefold.builder.tensors.hopper import make_smem_layout_a as sm90_make_smem_layout_a
from tilefold.builder.tensors.hopper import make_smem_layout_b as sm90_make_smem_layout_b
from tilefold.builder.tensors.hopper import make_smem_layout_epi as sm90_make_smem_layout_epi
from tilefold.cute.drawing import print_latex, print_latex_tv

from ..public import publish
from ..runtime import RuntimeTensor, from_dlpack
from ..testing import convert
from . import gemm, hopper_helpers

if TYPE_CHECKING:
    from tilefold.driver.devices import Device


class HardwareInfo:
    """The sizes of a GPU, by its number. Its methods raise CudaUnavailable (E3301) if the GPU does not exist."""

    def __init__(self, device_id: int = 0) -> None:
        self.device_id = device_id

    def get_max_active_clusters(self, cluster_size: int) -> int:
        """The number of clusters of this size that run at a time, if each block fills a multiprocessor. Raises
        LaunchError (E3105) for an impossible size, and for a GPU without clusters.

        A grid of persistent blocks has this number of clusters, or fewer if there are fewer tiles.
        """
        from tilefold.runtime.errors import LaunchError

        if type(cluster_size) is not int or not 1 <= cluster_size <= MAX_CLUSTER:
            hint = f"a cluster has 1 to {MAX_CLUSTER} blocks"
            raise LaunchError(Code.RUN_LAUNCH, f"a cluster cannot have {cluster_size!r} blocks", hint)
        return self._device.max_active_clusters(cluster_size)

    def get_device_multiprocessor_count(self) -> int:
        """The number of multiprocessors."""
        return self._device.multiprocessors

    def get_l2_cache_size_in_bytes(self) -> int:
        """The bytes of the L2 cache."""
        return self._device.l2_bytes

    @property
    def _device(self) -> "Device":
        from tilefold.driver.devices import devices_of_process

        return devices_of_process().gpu(self.device_id)


def is_fp8_dtype(dtype: DType) -> bool:
    """Whether `dtype` is a type of floats of 8 bits."""
    return dtype.is_float and dtype.bits == 8


def create_cute_tensor_for_fp8(
    storage_tensor: object, dtype: DType, leading_dim: int, source_f32_tensor: object = None
) -> RuntimeTensor:
    """A torch tensor as an argument with a dynamic layout, aligned to 16 bytes; one of bytes as elements of `dtype`,
    with the numbers of a float32 tensor, if there is one.
    """
    made = from_dlpack(storage_tensor, assumed_align=16)
    if is_fp8_dtype(dtype):
        made.element_type = dtype
        if source_f32_tensor is not None:
            convert(source_f32_tensor, made)
    return made.mark_layout_dynamic(leading_dim)


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
