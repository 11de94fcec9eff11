# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPU that programs are compiled for, and the version of CUDA, as programs ask for them before they choose a
kernel.
"""

from enum import Enum
from functools import total_ordering
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from tilefold.base.errors import Code, TilefoldError
from tilefold.driver.devices import gpu_engine
from tilefold.runtime.cuda import is_available
from tilefold.runtime.settings import program_arch

__all__ = ["Arch", "BaseDSL", "CUDA_VERSION", "CudaVersion", "target_version"]


@total_ordering
class Arch(Enum):
    """Targets by compute capability, in its order; those of features of one GPU or family come after the plain one."""

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


class BaseDSL:
    """The target of kernels: `BaseDSL._get_dsl().get_arch_enum()`."""

    @classmethod
    def _get_dsl(cls) -> "BaseDSL":
        return cls()

    def get_arch_enum(self) -> Arch:
        """The target of the GPU, or that of Hopper's where there is none, which the simulator has; `CUTE_DSL_ARCH`
        names another. TilefoldError (E4003) for an unknown one.
        """
        if wished := program_arch():
            if wished not in Arch.__members__:
                known = ", ".join(Arch.__members__)
                raise TilefoldError(
                    Code.CLI_VALUE, f"CUTE_DSL_ARCH={wished[:40]} is not a target", f"known are {known}"
                )
            return Arch[wished]
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
    """Whether the version of CUDA is none before `min_version` and none after `max_version`, such as "13.1"."""
    above = min_version is None or _numbers(min_version) <= CUDA_VERSION
    return above and (max_version is None or _numbers(max_version) >= CUDA_VERSION)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
