# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What accesses to shared memory cost, put together by the place in the source and the instruction."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from ..dialects.ptx import EntryOp, PtxOp
from ..passes.bank_conflicts import SharedAccess, shared_accesses


@dataclass(frozen=True, slots=True)
class SharedCost:
    """The accesses by one instruction at one place, such as the `operations` of a copy, when each warp of a block
    executes each of them once: `executions` by warps in all, and what they cost together. `unknown` says why that is
    not known, if so.
    """

    op: Operation
    mnemonic: str
    operations: int
    executions: int
    wavefronts: int
    least: int
    unknown: str

    def __str__(self) -> str:
        if self.unknown:
            return f"bank conflicts are not known at compile time: {self.unknown}"
        total, least, per = self.wavefronts, self.least, f"in {self.executions} executions by warps"
        if self.executions and total % self.executions == least % self.executions == 0:
            total, least = total // self.executions, least // self.executions
            per = "each time a warp executes it"
        words = f"{total} wavefront{'s' if total != 1 else ''} {per}"
        return f"{words}, no bank conflicts" if total == least else f"{words} where {least} would do: bank conflicts"


def shared_costs(entry: EntryOp) -> list[SharedCost]:
    """The costs of a kernel at stage `instr`, in its order."""
    groups: dict[tuple[str, str], list[SharedAccess]] = {}
    for access in shared_accesses(entry):
        assert isinstance(access.op, PtxOp)
        groups.setdefault((str(access.op.location), access.op.mnemonic() or access.op.name), []).append(access)
    return [_together(mnemonic, accesses) for (_, mnemonic), accesses in groups.items()]


def _together(mnemonic: str, accesses: Sequence[SharedAccess]) -> SharedCost:
    unknown = next((access.unknown for access in accesses if access.unknown), "")
    warps, wavefronts, least = (
        0 if unknown else sum(numbers)
        for numbers in zip(*((a.warps, a.wavefronts, a.least) for a in accesses), strict=True)
    )
    return SharedCost(accesses[0].op, mnemonic, len(accesses), warps, wavefronts, least, unknown)
