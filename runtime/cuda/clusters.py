# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many clusters of a kernel run at a time (CUDA Driver API, Occupancy, cuOccupancyMaxActiveClusters).

The blocks of a cluster run in one part of the GPU, a GPC, and these differ in size. So clusters may leave
multiprocessors idle, and a cluster that is too large for every GPC does not run at all.
"""

import ctypes
from math import prod

from ...base.errors import Code
from ...base.target import PORTABLE_CLUSTER
from ..errors import Dim3, LaunchError
from ..options import Cluster
from .kernel import Kernel
from .library import LaunchConfiguration, Library, make_native_attributes

_INVALID_CLUSTER_SIZE = 912
"""CUDA_ERROR_INVALID_CLUSTER_SIZE"""


def query_max_active_clusters(kernel: Kernel, library: Library, cluster: Dim3) -> int:
    """The clusters of this size, in blocks, that the kernel's device holds at a time; 0 where it can hold none.

    From then on the kernel may be launched in clusters that not every GPU has. CudaError if the driver fails.
    """
    known = kernel.clusters.get(cluster)
    if known is None:
        attributes, count = make_native_attributes((Cluster(cluster),)), ctypes.c_int()
        artifact, address = kernel.artifact, ctypes.addressof(attributes)
        configuration = LaunchConfiguration(*cluster, *artifact.block, artifact.dynamic_shared, None, address, 1)
        handle = ctypes.c_void_p(kernel.handle)
        with kernel.driver.current():
            if prod(cluster) > PORTABLE_CLUSTER:
                kernel.set("CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1, "allowing large clusters to")
            status = library.max_active_clusters(ctypes.byref(count), handle, ctypes.byref(configuration))
        if status not in (0, _INVALID_CLUSTER_SIZE):
            doing = f"counting clusters of kernel '{artifact.kernel}'"
            kernel.driver.fail("cuOccupancyMaxActiveClusters", status, doing)
        kernel.clusters[cluster] = known = 0 if status else count.value
    return known


def check_cluster(kernel: Kernel, library: Library, cluster: Dim3) -> None:
    """LaunchError (E3105) where the kernel's device cannot hold one cluster of this size."""
    if cluster == (1, 1, 1) or query_max_active_clusters(kernel, library, cluster):
        return
    artifact = kernel.artifact
    message = (
        f"a cluster of {cluster} blocks of kernel '{artifact.kernel}' does not fit {kernel.driver.name}: each has "
        f"{prod(artifact.block)} threads with {kernel.registers} registers, and "
        f"{artifact.static_shared + artifact.dynamic_shared} bytes of shared memory"
    )
    raise LaunchError(Code.RUN_LAUNCH, message, "launch in smaller clusters, or use less of these")
