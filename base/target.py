# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPUs that kernels are compiled for: their instructions and limits.

An architecture is named as PTX's `.target` directive names it: `sm_90` runs on compute capability 9.0 and on
every later GPU, `sm_90a` has the features of exactly 9.0, `sm_100f` those common to the 10.x family.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Literal, final

from .errors import Code, TilefoldError

WARP = 32
"""The threads of a warp, which are its lanes."""
WARPGROUP = 128
"""The threads of a warpgroup: four warps; the number of the first is a multiple of 4."""
STATIC_SHARED_BYTES = 48 * 1024
"""Shared memory that a kernel can declare; more must be asked for at launch (CUDA C++ Programming Guide)."""
RESERVED_SHARED_BYTES = 1024
"""Shared memory that the system takes for each block, from compute capability 8.0 on."""

MAX_THREADS = 1024
"""Threads a block can have (CUDA C++ Programming Guide, Technical Specifications per Compute Capability)."""
MAX_BLOCK = (1024, 1024, 64)
"""The largest block in x, y and z (the same table)."""
MAX_BLOCKS = 32
"""Blocks that a multiprocessor can hold at a time, at most (the same table)."""
MAX_REGISTERS = 255
"""Registers that a thread can have, at most (the same table)."""
REGISTER_UNIT, MIN_SET_REGISTERS, MAX_SET_REGISTERS = 8, 24, 256
"""The step of the register count that setmaxnreg takes, and its limits (PTX ISA, setmaxnreg)."""
MAX_GRID = (2**31 - 1, 65535, 65535)
"""The largest grid in x, y and z (the same table)."""
BARRIERS = 16
"""The barriers of a block, by number (PTX ISA, bar.sync)."""
MAX_CLUSTER, PORTABLE_CLUSTER = 16, 8
"""Blocks that a cluster can have, at most, and on every GPU that has clusters (CUDA C++ Programming Guide, Thread Block
Clusters).
"""
MAX_LOCAL_BYTES = 512 * 1024
"""Local memory that a thread can have (the same table)."""
BANKS, BANK_BYTES = 32, 4
"""The banks of shared memory, and the bytes that each serves at a time (CUDA C++ Programming Guide, Shared Memory)."""
SECTOR_BYTES = 32
"""The unit in which global memory is moved (CUDA C++ Best Practices Guide, Coalesced Access to Global Memory)."""

DEFAULT_ARCH = "sm_80"
"""The default target: its PTX runs on every GPU since 2020."""


@dataclass(frozen=True, slots=True)
class Capability:
    """The GPUs of a compute capability, 90 for 9.0, and the capacity of its multiprocessors: threads, blocks, and KiB
    of shared memory (CUDA C++ Programming Guide, Technical Specifications per Compute Capability).

    `ptx_version` is the PTX ISA version that is written for them: at least the version that they and their instructions
    need (PTX ISA, Release Notes). LLVM 22 writes these and nvJitLink 13 assembles them. `suffixes` are those of
    targets: `a` has the features of this GPU alone, `f` those of its family. `units` are the multiprocessors of a
    common GPU: T4, A100, A40, Jetson Orin, L40S, H100, B200, B300, Jetson Thor, RTX PRO 6000, GB10.
    """

    sm: int
    ptx_version: int
    suffixes: str
    threads: int
    blocks: int
    shared_kib: int
    units: int


_TARGETS: Mapping[str, Capability] = MappingProxyType({
    f"sm_{capability.sm}{suffix}": capability
    for capability in (
        Capability(75, 80, "", threads=1024, blocks=16, shared_kib=64, units=40),
        Capability(80, 80, "", threads=2048, blocks=32, shared_kib=164, units=108),
        Capability(86, 80, "", threads=1536, blocks=16, shared_kib=100, units=84),
        Capability(87, 80, "", threads=1536, blocks=16, shared_kib=164, units=16),
        Capability(89, 87, "", threads=1536, blocks=24, shared_kib=100, units=142),
        Capability(90, 87, "a", threads=2048, blocks=32, shared_kib=228, units=132),
        Capability(100, 88, "af", threads=2048, blocks=32, shared_kib=228, units=148),
        Capability(103, 88, "af", threads=2048, blocks=32, shared_kib=228, units=148),
        Capability(110, 90, "af", threads=1536, blocks=24, shared_kib=228, units=20),
        Capability(120, 88, "af", threads=1536, blocks=24, shared_kib=100, units=188),
        Capability(121, 88, "af", threads=1536, blocks=24, shared_kib=100, units=48),
    )
    for suffix in ("", *capability.suffixes)
})  # fmt: skip
"""The targets by name, oldest first."""


class TargetError(TilefoldError):
    """A target that is unknown, or too old for a kernel."""


MAX_SHARED_BYTES = max(capability.shared_kib for capability in _TARGETS.values()) * 1024 - RESERVED_SHARED_BYTES
"""Shared memory that a block can have on any target, at most."""


def known_targets() -> tuple[str, ...]:
    """The names of all architectures, oldest first."""
    return tuple(_TARGETS)


@dataclass(frozen=True)
class Target:
    """An architecture to compile for. Raises TargetError, which lists the known ones, for any other name."""

    arch: str = DEFAULT_ARCH

    def __post_init__(self) -> None:
        if self.arch not in _TARGETS:
            meant = f"sm_{self.arch.removeprefix('compute_').removeprefix('sm').lstrip('-_ ')}".lower()
            near = f"did you mean {meant}? " if meant in _TARGETS else ""
            raise TargetError(
                Code.TARGET_UNKNOWN,
                f"unknown target {self.arch[:40]!r}",
                f"{near}known targets: {', '.join(known_targets())}",
            )

    def __str__(self) -> str:
        return self.arch

    @property
    def capability(self) -> Capability:
        """The GPUs that execute its code, or, without a suffix, the oldest of them."""
        return _TARGETS[self.arch]

    @property
    def sm(self) -> int:
        """The compute capability as one number: 90 for sm_90 and sm_90a."""
        return self.capability.sm

    @cached_property
    def suffix(self) -> str:
        """`a` (only this GPU), `f` (its family) or nothing (this and every later GPU)."""
        return self.arch.removeprefix(f"sm_{self.sm}")

    @property
    def ptx_version(self) -> int:
        """The version of the PTX ISA that is written: 87 for `.version 8.7`."""
        return self.capability.ptx_version

    @property
    def max_shared_bytes(self) -> int:
        """The bytes of shared memory that one block can use, at most."""
        return self.capability.shared_kib * 1024 - self.reserved_shared_bytes

    @property
    def reserved_shared_bytes(self) -> int:
        """The bytes of shared memory that the system takes for each block."""
        return RESERVED_SHARED_BYTES if self.sm >= 80 else 0

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
        """Raises TargetError if a block needs more shared memory (`size` bytes) than this target has."""
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
        """Why `target` lacks `instruction`, and a hint; None if it has it."""
        other = f"or use an instruction that {target} has"
        only = f"sm_{self.min_sm}a"
        if self.suffix == "a" and target.arch != only:
            return f"{instruction} is an instruction of {only} only, not of {target}", f"compile for --target {only}"
        if target.sm >= self.min_sm and target.ptx_version < self.min_ptx:
            has = _version(target.ptx_version)
            return (
                f"{instruction} needs PTX {_version(self.min_ptx)}; the PTX of {target} is {has}",
                f"{self._newer(target)}{other.removeprefix('or ')}",
            )
        if target.sm < self.min_sm:
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
                f"{instruction} is an instruction of sm_{self.generation}x only, not of {target}",
                f"compile for --target sm_{self.generation}0f, {other}",
            )
        return None

    def _newer(self, target: Target) -> str:
        """A hint at the oldest target whose PTX is new enough, and which has what later targets have, too."""
        for name, capability in _TARGETS.items() if not self.suffix and self.generation is None else ():
            if capability.sm > target.sm and capability.ptx_version >= self.min_ptx:
                return f"compile for --target {name} or newer, or "
        return ""

    def __str__(self) -> str:
        return f"sm_{self.min_sm}{self.suffix}, PTX {_version(self.min_ptx)}"


@final
@dataclass(frozen=True, slots=True)
class Targets:
    """A set of families; each target of any of them has an instruction."""

    families: frozenset[TargetFamily]

    @property
    def oldest(self) -> TargetFamily:
        """The family that begins with the oldest target."""
        return min(self.families, key=lambda family: (family.min_sm, family.min_ptx, family.suffix))

    def includes(self, target: Target) -> bool:
        """Whether `target` has the instruction."""
        return any(family.includes(target) for family in self.families)

    def refusal(self, instruction: str, target: Target) -> tuple[str, str] | None:
        """Why `target` lacks `instruction`, and a hint; None if it has it. If there are several families, the
        reason comes from one that reaches the target's generation, or else from the oldest.
        """
        if self.includes(target):
            return None
        near = [x for x in self.families if x.min_sm <= target.sm and x.suffix != "a"]
        near = [x for x in near if x.generation in (None, target.sm // 10)]
        return max(near, key=lambda x: x.min_sm, default=self.oldest).refusal(instruction, target)

    def since(self, sm: int, ptx: int) -> "Targets":
        """The targets of the set that are at least sm_`sm` and have PTX `ptx`."""
        return Targets(
            frozenset([replace(x, min_sm=max(x.min_sm, sm), min_ptx=max(x.min_ptx, ptx)) for x in self.families])
        )

    def __str__(self) -> str:
        return " or ".join(map(str, sorted(self.families, key=lambda family: (family.min_sm, family.min_ptx))))


def targets(min_sm: int, min_ptx: int, suffix: Literal["", "f", "a"] = "") -> Targets:
    """The set of one family."""
    return Targets(frozenset((TargetFamily(min_sm, min_ptx, suffix),)))


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
