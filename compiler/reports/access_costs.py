# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The costs of accesses to shared and global memory, by the place in the source and the instruction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from xdsl.ir import Operation

from ...base.spaces import GMEM, SMEM, Space
from ...dialects.ptx import EntryOp, PtxOp
from ...passes.analysis.access_costs import MemoryAccess, memory_accesses


class Words(NamedTuple):
    """The words for a memory's costs: its transaction, the subject examined, and a good and a bad access."""

    unit: str
    subject: str
    good: str
    bad: str


WORDS: Mapping[Space, Words] = MappingProxyType({
    SMEM: Words("wavefront", "bank conflicts are", "no bank conflicts", "bank conflicts"),
    GMEM: Words("sector", "its sectors are", "coalesced", "not coalesced"),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class AccessCost:
    """The accesses by one instruction at one place to one memory, such as the `operations` of a copy, when each warp of
    a block executes each of them once: `executions` by warps in all, and the `transactions` of all of them together,
    which may be up to `most` where the alignment of an offset is unknown. `unknown` says why that is not known, if so.
    """

    op: Operation
    space: Space
    mnemonic: str
    operations: int
    executions: int
    transactions: int
    most: int
    least: int
    unknown: str

    @property
    def count(self) -> str:
        """The transactions in digits, as a range where they may be more."""
        return str(self.transactions) if self.transactions == self.most else f"{self.transactions}-{self.most}"

    def __str__(self) -> str:
        words = WORDS[self.space]
        if self.unknown:
            return f"{words.subject} not known at compile time: {self.unknown}"
        total, most, least = self.transactions, self.most, self.least
        per = f"in {self.executions} executions by warps"
        if self.executions and all(number % self.executions == 0 for number in (total, most, least)):
            total, most, least = (number // self.executions for number in (total, most, least))
            per = "each time a warp executes it"
        number = f"{total} to {most}" if total != most else str(total)
        text = f"{number} {words.unit}{'s' if most != 1 else ''} {per}"
        if most == least:
            return f"{text}, {words.good}"
        why = words.bad if total != least else "the alignment is known only when the kernel runs"
        return f"{text} where {least} would do: {why}"


def access_costs(entry: EntryOp) -> list[AccessCost]:
    """The costs of a kernel at stage `instr`, in its order."""
    groups: dict[tuple[str, str, Space], list[MemoryAccess]] = {}
    for access in memory_accesses(entry):
        assert isinstance(access.op, PtxOp)
        key = str(access.op.location), access.op.mnemonic() or access.op.name, access.space
        groups.setdefault(key, []).append(access)
    return [_together(mnemonic, accesses) for (_, mnemonic, _), accesses in groups.items()]


def _together(mnemonic: str, accesses: Sequence[MemoryAccess]) -> AccessCost:
    unknown = next((access.unknown for access in accesses if access.unknown), "")
    numbers = zip(*((a.warps, a.transactions, a.most, a.least) for a in accesses), strict=True)
    warps, transactions, most, least = (0 if unknown else sum(column) for column in numbers)
    first = accesses[0]
    return AccessCost(first.op, first.space, mnemonic, len(accesses), warps, transactions, most, least, unknown)
