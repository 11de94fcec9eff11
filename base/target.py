# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPUs that kernels are compiled for: their instructions and their shared memory.

An architecture is named as PTX's `.target` directive names it: `sm_90` runs on compute capability 9.0 and on
every later GPU, `sm_90a` has the features of exactly 9.0, `sm_100f` those common to the 10.x family.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Literal, final

from .errors import Code, TilefoldError

STATIC_SHARED_BYTES = 48 * 1024
"""Shared memory that a kernel can declare; more must be asked for at launch (CUDA C++ Programming Guide)."""

MAX_THREADS = 1024
"""Threads a block can have (CUDA C++ Programming Guide, Technical Specifications per Compute Capability)."""
MAX_BLOCK = (1024, 1024, 64)
"""The largest block in x, y and z (the same table)."""
MAX_BLOCKS = 32
"""Blocks that a multiprocessor can hold at a time, at most (the same table)."""
MAX_REGISTERS = 255
"""Registers that a thread can have, at most (the same table)."""
MAX_GRID = (2**31 - 1, 65535, 65535)
"""The largest grid in x, y and z (the same table)."""

DEFAULT_ARCH = "sm_80"
"""The target where none is given: its PTX runs on every GPU since 2020."""

# The PTX ISA version written for each architecture: at least what the architecture and its instructions
# need (PTX ISA, Release Notes). LLVM 22 writes these and nvJitLink 13 assembles them.
_PTX_VERSION: Mapping[str, int] = MappingProxyType(
    {
        "sm_75": 80,
        "sm_80": 80,
        "sm_86": 80,
        "sm_87": 80,
        "sm_89": 87,
        "sm_90": 87,
        "sm_90a": 87,
        "sm_100": 88,
        "sm_100a": 88,
        "sm_100f": 88,
        "sm_103": 88,
        "sm_103a": 88,
        "sm_103f": 88,
        "sm_110": 90,
        "sm_110a": 90,
        "sm_110f": 90,
        "sm_120": 88,
        "sm_120a": 88,
        "sm_120f": 88,
        "sm_121": 88,
        "sm_121a": 88,
        "sm_121f": 88,
    }
)

# KiB of shared memory a block can ask for (CUDA C++ Programming Guide, Technical Specifications per Compute
# Capability).
_SHARED_KIB: Mapping[int, int] = MappingProxyType({
    75: 64, 80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227, 103: 227, 110: 227, 120: 99, 121: 99,
})  # fmt: skip


class TargetError(TilefoldError):
    """A target that is unknown, or too old for what a kernel uses."""


def known_targets() -> tuple[str, ...]:
    """The names of all architectures, oldest first."""
    return tuple(_PTX_VERSION)


@dataclass(frozen=True)
class Target:
    """An architecture to compile for. Raises TargetError, which lists the known ones, for any other name."""

    arch: str = DEFAULT_ARCH

    def __post_init__(self) -> None:
        if self.arch not in _PTX_VERSION:
            raise TargetError(
                Code.TARGET_UNKNOWN,
                f"unknown target {self.arch[:40]!r}",
                f"known targets: {', '.join(known_targets())}",
            )

    def __str__(self) -> str:
        return self.arch

    @cached_property
    def sm(self) -> int:
        """The compute capability as one number: 90 for sm_90 and sm_90a."""
        return int(self.arch.removeprefix("sm_").rstrip("af"))

    @cached_property
    def suffix(self) -> str:
        """`a` (this GPU alone), `f` (its family) or nothing (this and every later GPU)."""
        return self.arch.removeprefix(f"sm_{self.sm}")

    @property
    def ptx_version(self) -> int:
        """The version of the PTX ISA that is written: 87 for `.version 8.7`."""
        return _PTX_VERSION[self.arch]

    @property
    def max_shared_bytes(self) -> int:
        """The bytes of shared memory that one block can use, at most."""
        return _SHARED_KIB[self.sm] * 1024

    @property
    def has_clusters(self) -> bool:
        """Whether blocks can be launched in clusters (PTX ISA, Cluster of Cooperative Thread Arrays)."""
        return self.sm >= 90

    def runs_on(self, major: int, minor: int) -> bool:
        """Whether PTX for this target runs on compute capability `major.minor` (PTX ISA, .target)."""
        own_major, own_minor = divmod(self.sm, 10)
        if self.suffix == "a":
            return (major, minor) == (own_major, own_minor)
        if self.suffix == "f":
            return major == own_major and minor >= own_minor
        return (major, minor) >= (own_major, own_minor)

    def check_shared_bytes(self, size: int, kernel: str) -> None:
        """Raises TargetError where a block needs more shared memory (`size` bytes) than this target has."""
        if size > self.max_shared_bytes:
            raise TargetError(
                Code.TARGET_SHARED_MEMORY,
                f"kernel '{kernel}' needs {size} bytes of shared memory; a block has at most "
                f"{self.max_shared_bytes} on {self.arch}",
                "use smaller or fewer shared-memory tensors, or a target with more shared memory",
            )


@final
@dataclass(frozen=True, slots=True)
class TargetFamily:
    """The targets that have an instruction (PTX ISA, Target ISA Notes), from sm_`min_sm` and PTX `min_ptx` (87) on.

    `suffix` says which of these: "" all, "f" those with a suffix, which have the features of their family, "a"
    sm_`min_sm`a alone: sm_90a is not "90 or newer". `generation`, such as 10 for 10.x, is set where no other has the
    instruction.
    """

    min_sm: int
    min_ptx: int
    suffix: Literal["", "f", "a"] = ""
    generation: int | None = None

    def includes(self, target: Target) -> bool:
        """Whether `target` has the instruction."""
        return self.refusal("", target) is None

    def refusal(self, instruction: str, target: Target) -> tuple[str, str] | None:
        """Why `target` lacks `instruction`, and a hint; None where it has it."""
        other = f"or use an instruction that {target} has"
        only = f"sm_{self.min_sm}a"
        if self.suffix == "a" and target.arch != only:
            return f"{instruction} is an instruction of {only} alone, not of {target}", f"compile for --target {only}"
        if target.sm < self.min_sm or target.ptx_version < self.min_ptx:
            return (
                f"{instruction} needs sm_{self.min_sm} and PTX {_version(self.min_ptx)}; {target} is older",
                f"compile for --target sm_{self.min_sm} or newer, {other}",
            )
        if self.suffix and not target.suffix:
            return (
                f"{instruction} is an instruction of single architectures; {target} stands for all later ones too",
                f"compile for --target {target}a",
            )
        if self.generation is not None and target.sm // 10 != self.generation:
            return (
                f"{instruction} is an instruction of sm_{self.generation}x alone, not of {target}",
                f"compile for --target sm_{self.generation}0f, {other}",
            )
        return None

    def __str__(self) -> str:
        return f"sm_{self.min_sm}{self.suffix}, PTX {_version(self.min_ptx)}"


def _version(ptx: int) -> str:
    return f"{ptx // 10}.{ptx % 10}"


def target_of_device(major: int, minor: int) -> Target:
    """The target that uses most of a GPU of compute capability `major.minor`.

    TargetError for a GPU that is older than every target.
    """
    fitting = [target for name in known_targets() if (target := Target(name)).runs_on(major, minor)]
    if not fitting:
        raise TargetError(
            Code.TARGET_UNKNOWN,
            f"compute capability {major}.{minor} is older than every target",
            f"the oldest is {known_targets()[0]}",
        )
    return max(fitting, key=lambda target: (target.sm, target.suffix == "a"))
