# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The counters of a launch: instructions by mnemonic, and the cost of each memory access."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ..base.spaces import GMEM, SMEM


@dataclass(frozen=True, slots=True)
class InstructionCount:
    """How often an instruction was executed: by warps (as an issue slot counts it) and by threads."""

    warps: int = 0
    threads: int = 0

    def __add__(self, other: "InstructionCount") -> "InstructionCount":
        return InstructionCount(self.warps + other.warps, self.threads + other.threads)


@dataclass(frozen=True, slots=True)
class AccessCount:
    """The cost of the executions of one memory operation in the source, summed over warps and blocks.

    `space` is `shared` or `global`, `kind` is `load`, `store`, `async`, `bulk`, `multicast` or `matrix`, `width` the
    bytes a thread moves, `requests` the warp-wide executions, `threads` the sum of their active threads. Of bulk
    copies and of multiplications by warpgroups, `requests` counts the copies or matrices, and `threads` their units of
    `width` bytes. A multicast's are those to further blocks, whose bytes the L2 cache need not read again.
    `transactions` are shared-memory wavefronts (passes over the 32 banks) or 32-byte sectors of global
    memory; `minimum` is the least that accesses of this width by this many threads can need.
    """

    op: str
    location: str
    space: str
    kind: str
    width: int
    requests: int = 0
    threads: int = 0
    transactions: int = 0
    minimum: int = 0

    def __add__(self, other: "AccessCount") -> "AccessCount":
        """The counts of two operations together, under the name of the first."""
        return replace(
            self,
            requests=self.requests + other.requests,
            threads=self.threads + other.threads,
            transactions=self.transactions + other.transactions,
            minimum=self.minimum + other.minimum,
        )

    @property
    def excess(self) -> int:
        """Transactions beyond the minimum: bank conflicts, or wasted sectors of global memory."""
        return self.transactions - self.minimum


@dataclass(frozen=True, slots=True)
class Counters:
    """The counts of one launch.

    `instructions` maps PTX mnemonics (`ld.global.v4.b32`) to counts, `accesses` lists the memory operations
    in the order in which they appear in the program, `steps` is the number of operations that warps executed. `lines`
    has the instructions by `file:line`.
    """

    instructions: Mapping[str, InstructionCount] = field(default_factory=lambda: MappingProxyType({}))
    accesses: tuple[AccessCount, ...] = ()
    steps: int = 0
    lines: Mapping[str, InstructionCount] = field(default_factory=lambda: MappingProxyType({}))

    def by_place(self) -> list[AccessCount]:
        """The accesses, those by one operation of the source to one memory together: a loop that is unrolled, or a copy
        of many elements, has many.
        """
        places: dict[tuple[str, str, str, str, int], AccessCount] = {}
        for access in self.accesses:
            key = access.op, access.location, access.space, access.kind, access.width
            places[key] = places[key] + access if key in places else access
        return list(places.values())

    def __str__(self) -> str:
        parts = [f"{sum(count.warps for count in self.instructions.values())} instructions of warps"]
        for name, (total, least) in (("wavefronts", self.wavefronts()), ("sectors", self.sectors())):
            if total:
                parts.append(f"{total} {name}" if total == least else f"{total} {name} where {least} would do")
        return ", ".join(parts)

    def wavefronts(self) -> tuple[int, int]:
        """Shared-memory wavefronts of the whole launch, and the minimum."""
        return self._total(SMEM.ptx)

    def sectors(self) -> tuple[int, int]:
        """Global-memory sectors of the whole launch, and the minimum."""
        return self._total(GMEM.ptx)

    def _total(self, space: str) -> tuple[int, int]:
        chosen = [access for access in self.accesses if access.space == space]
        return sum(a.transactions for a in chosen), sum(a.minimum for a in chosen)
