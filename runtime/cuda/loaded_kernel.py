# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel loaded on a device (CUDA Driver API, Module Management and Execution Control), and how many of its clusters
run at a time (Occupancy, cuOccupancyMaxActiveClusters).

The driver assembles PTX (cuModuleLoadDataEx) and keeps the machine code in a cache of its own; when it loads that
again, it says nothing. So messages about lost speed are kept in the cache of tilefold.

The blocks of a cluster run in one part of the GPU, a GPC, and these differ in size. So clusters may leave
multiprocessors idle, and a cluster that is too large for every GPC does not run at all.
"""

import ctypes
import warnings
import weakref
from math import prod
from typing import Any

from ...base.assembler_warnings import assembler_warnings, check_speed
from ...base.errors import Code
from ...base.target import MAX_GRID, PORTABLE_CLUSTER
from ..compiled.artifact import Artifact
from ..compiled.store import default_store, digest
from ..engine import LaunchConfig
from ..errors import Dim3, LaunchError
from ..options import Cluster
from ..settings import allows_slower
from .driver import CudaError, Driver, LaunchConfiguration, Library, make_native_attributes


class Kernel:
    """An artifact loaded on a device and ready to launch. It is unloaded when the object is collected."""

    def __init__(self, driver: Driver, artifact: Artifact) -> None:
        """Loads the code. CudaError if it is for another architecture, LaunchError if it needs more shared memory
        than the device has; raises the errors of `load_module`.
        """
        self.artifact = artifact
        self.driver = driver
        driver.activate()
        major, minor = driver.capability
        if not artifact.target.runs_on(major, minor):
            raise CudaError(
                "CUDA_ERROR_NO_BINARY_FOR_GPU",
                int(driver.api.CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU),
                f"kernel '{artifact.kernel}' is compiled for {artifact.target}, but {driver.name} has "
                f"compute capability {major}.{minor}",
                f"compile for {driver.target}",
            )
        if artifact.dynamic_shared > driver.max_shared_bytes:
            has = f"a block has at most {driver.max_shared_bytes} on {driver.name}"
            message = f"kernel '{artifact.kernel}' needs {artifact.dynamic_shared} bytes of shared memory; {has}"
            hint = f"compile for {driver.target}, with smaller or fewer tensors in shared memory"
            raise LaunchError(Code.RUN_LAUNCH, message, hint)
        self._module: Any = load_module(driver, artifact)
        weakref.finalize(self, driver.api.cuModuleUnload, self._module).atexit = False  # the driver does then
        name = artifact.kernel.encode()
        self._function: Any = driver.call("cuModuleGetFunction", self._module, name, doing=self._doing("finding"))
        if size := artifact.dynamic_shared:
            self.set(
                "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", size, f"giving {size} bytes of shared memory to"
            )
        self.clusters: dict[Dim3, int] = {}
        """The clusters of each size that the device holds at a time, as far as they are known."""

    @property
    def handle(self) -> int:
        """The driver's handle of the kernel (CUfunction)."""
        return int(self._function)

    @property
    def registers(self) -> int:
        """The registers of a thread when it starts."""
        return self._attribute("CU_FUNC_ATTRIBUTE_NUM_REGS")

    @property
    def local_bytes(self) -> int:
        """The bytes of local memory of a thread: its stack and the spilled registers."""
        return self._attribute("CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES")

    @property
    def shared_bytes(self) -> int:
        """The bytes of shared memory of a block, without those that a launch asks for."""
        return self._attribute("CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES")

    def set(self, name: str, value: int, doing: str) -> None:
        """Sets an attribute of the kernel (CUfunction_attribute); `doing` says so in a message, before the kernel."""
        which = getattr(self.driver.api.CUfunction_attribute, name)
        self.driver.call("cuFuncSetAttribute", self._function, which, value, doing=self._doing(doing))

    def _attribute(self, name: str) -> int:
        which = getattr(self.driver.api.CUfunction_attribute, name)
        return int(self.driver.call("cuFuncGetAttribute", which, self._function, doing=self._doing("asking about")))

    def _doing(self, action: str) -> str:
        return f"{action} kernel '{self.artifact.kernel}'"


def check_launch(artifact: Artifact, config: LaunchConfig) -> LaunchConfig:
    """The launch, in the clusters that the kernel names. LaunchError (E3105) for a block that is not the kernel's, a
    grid that no GPU has, clusters that are not the kernel's, and for clusters where the kernel's target has none.
    """
    if config.block != artifact.block:
        raise LaunchError(
            Code.RUN_LAUNCH,
            f"kernel '{artifact.kernel}' runs in blocks of {artifact.block} threads, not {config.block}",
            "launch it with the block that it declares",
        )
    if any(size > most for size, most in zip(config.grid, MAX_GRID, strict=True)):
        message = f"the grid is {config.grid}; a GPU has at most {MAX_GRID} blocks"
        raise LaunchError(Code.RUN_LAUNCH, message, "x can be the largest; let each block do more")
    config = config.of_kernel(artifact.cluster, artifact.non_portable)
    config.check_target(artifact.target)
    return config


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


_LOG_BYTES = 65536


def load_module(driver: Driver, artifact: Artifact) -> Any:
    """Loads an artifact's code in the current context.

    CudaError if the driver refuses it, with the words of its assembler. TilefoldError (E2303) where the assembler
    makes a kernel slower than it is written, unless the settings allow that; then a RuntimeWarning, except for those
    that cost next to nothing.
    """
    option, code = driver.api.CUjit_option, artifact.code
    errors, messages = bytearray(_LOG_BYTES), bytearray(_LOG_BYTES)
    options = {option.CU_JIT_ERROR_LOG_BUFFER: errors, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: _LOG_BYTES}
    if isinstance(code, str):
        options |= {option.CU_JIT_INFO_LOG_BUFFER: messages, option.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: _LOG_BYTES}
    try:
        module = driver.call(
            "cuModuleLoadDataEx",
            code.encode() + b"\0" if isinstance(code, str) else code,
            len(options),
            list(options),
            list(options.values()),
            doing=f"loading kernel '{artifact.kernel}'",
        )
    except CudaError as error:
        if words := _text(errors):
            raise CudaError(error.status, error.error_code, f"{error.message}: {words}", error.hint) from error
        raise
    if isinstance(code, str):
        try:
            _check(driver, artifact, code, _text(messages))
        except Exception:
            driver.api.cuModuleUnload(module)
            raise
    return module


def _check(driver: Driver, artifact: Artifact, ptx: str, log: str) -> None:
    store = default_store()
    if store is not None:
        key = digest("log of the driver", ptx, artifact.target.arch, str(driver.call("cuDriverGetVersion")))
        if assembler_warnings(log):
            store.put(key, log.encode())
        elif (kept := store.get(key)) is not None:
            log = kept.decode("utf-8", "replace")
    check_speed(log, allows_slower())
    for message in assembler_warnings(log):
        if not message.harmless:
            warnings.warn(message.remark, RuntimeWarning, stacklevel=2)


def _text(log: bytearray) -> str:
    return bytes(log).split(b"\0")[0].decode("utf-8", "replace").strip()
