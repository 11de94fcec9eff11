# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sizes of a GPU that determine grids of persistent blocks."""

from typing import TYPE_CHECKING

from tilefold.base.errors import Code
from tilefold.base.target import MAX_CLUSTER, Target

if TYPE_CHECKING:
    from tilefold.runtime.cuda import CudaEngine

_EMPTY = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry empty()\n{\n\tret;\n}\n"


class HardwareInfo:
    """The sizes of a GPU, by its number. Its methods raise CudaUnavailable (E3301) if the GPU does not exist."""

    def __init__(self, device_id: int = 0) -> None:
        self.device_id = device_id

    def get_max_active_clusters(self, cluster_size: int) -> int:
        """The number of clusters of this size that run at a time, if each block fills a multiprocessor. Raises
        LaunchError (E3105) for an impossible size, and for a GPU without clusters.

        A grid of persistent blocks has this number of clusters, or fewer if there are fewer tiles.
        """
        from tilefold.runtime.compiled.artifact import Artifact
        from tilefold.runtime.cuda.clusters import query_max_active_clusters
        from tilefold.runtime.errors import LaunchError

        if type(cluster_size) is not int or not 1 <= cluster_size <= MAX_CLUSTER:
            hint = f"a cluster has 1 to {MAX_CLUSTER} blocks"
            raise LaunchError(Code.RUN_LAUNCH, f"a cluster cannot have {cluster_size!r} blocks", hint)
        engine = self._engine
        if not engine.driver.target.has_clusters:
            message = f"{engine.driver.name} has no clusters"
            raise LaunchError(Code.RUN_LAUNCH, message, "GPUs of compute capability 9.0 and newer have them")
        filling = engine.driver.max_shared_bytes
        prepared = engine.load(Artifact("empty", _EMPTY, Target("sm_90"), (), (128, 1, 1), dynamic_shared=filling))
        return query_max_active_clusters(prepared.kernel, prepared.library, (cluster_size, 1, 1))

    def get_device_multiprocessor_count(self) -> int:
        """The number of multiprocessors."""
        return self._attribute("CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT")

    def get_l2_cache_size_in_bytes(self) -> int:
        """The bytes of the L2 cache."""
        return self._attribute("CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE")

    def _attribute(self, name: str) -> int:
        driver = self._engine.driver
        return driver.attribute(getattr(driver.api.CUdevice_attribute, name))

    @property
    def _engine(self) -> "CudaEngine":
        from tilefold.driver.devices import gpu_engine

        return gpu_engine(self.device_id)
