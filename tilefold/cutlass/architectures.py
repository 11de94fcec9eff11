# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPU that programs are compiled for, and the version of CUDA, as programs ask for them before they choose a
kernel.

The state of CUDA in the process is `cutlass.cuda`.
"""

from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from tilefold.builder.pipelines.allocator import SMEM_CAPACITY
from tilefold.cute.arch import Arch
from tilefold.driver import devices
from tilefold.driver.devices import gpu_engine
from tilefold.runtime.cuda import is_available
from tilefold.runtime.settings import program_target

__all__ = [
    "Arch", "BaseDSL", "CUDA_VERSION", "CudaVersion", "SMEM_CAPACITY", "default_stream", "initialize_cuda_context",
    "stream_sync", "target_version",
]  # fmt: skip


class BaseDSL:
    """The target of kernels: `BaseDSL._get_dsl().get_arch_enum()`."""

    @classmethod
    def _get_dsl(cls) -> "BaseDSL":
        return cls()

    def get_arch_enum(self) -> Arch:
        """The GPU's target, or without a GPU Hopper's, which is the simulator's; `CUTE_DSL_ARCH`
        names another. TilefoldError (E4003) for an unknown one.
        """
        if wished := program_target():
            return Arch[wished.arch]
        if not is_available():
            return Arch.sm_90a
        name = gpu_engine(0).driver.target.arch
        return Arch[name if name in Arch.__members__ else name.rstrip("af")]


class CudaVersion(NamedTuple):
    """A version of CUDA's tools."""

    major: int
    minor: int


def _cuda_version() -> CudaVersion:
    try:
        major, minor, *_ = version("nvidia-nvjitlink").split(".")
    except PackageNotFoundError:
        return CudaVersion(13, 0)
    return CudaVersion(int(major), int(minor))


CUDA_VERSION = _cuda_version()
"""The version of the assembler that is installed with tilefold."""


def target_version(*, min_version: str | None = None, max_version: str | None = None) -> bool:
    """Whether the CUDA version lies between `min_version` and `max_version`, such as "13.1", both included."""
    above = min_version is None or _numbers(min_version) <= CUDA_VERSION
    return above and (max_version is None or _numbers(max_version) >= CUDA_VERSION)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def initialize_cuda_context(device_id: int = 0) -> None:
    """Does nothing: the first launch makes a GPU ready."""


def default_stream() -> int:
    """The default stream, as launches take it."""
    return 0


def stream_sync(stream: object = 0) -> None:
    """Waits for the work in a stream. Raises CudaError for a fault in it. Without a GPU it does nothing."""
    if devices.chosen_device("auto") == "cuda":
        devices.gpu_engine(0).driver.call("cuStreamSynchronize", stream, doing="waiting for a stream")
