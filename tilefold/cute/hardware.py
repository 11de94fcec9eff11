# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sizes of a GPU that determine grids of persistent blocks."""

from typing import TYPE_CHECKING

from tilefold.base.errors import Code
from tilefold.base.target import MAX_CLUSTER

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
