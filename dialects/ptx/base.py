# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The base of every `ptx` operation: a mnemonic and the oldest target that executes it."""

from abc import ABC
from typing import ClassVar

from xdsl.irdl import IRDLOperation

from ...base.target import TargetFamily
from .types import PtrType


class PtxOp(IRDLOperation, ABC):
    """An operation that stands for one PTX instruction, or for none (address arithmetic, fragments).

    `SINCE` (for example 80 and 70: sm_80 and PTX ISA 7.0) says which target first has the instruction; the values are
    those of the "Target ISA Notes" of the instruction's section in the PTX ISA.
    """

    SINCE: ClassVar[tuple[int, int]] = 70, 60
    MNEMONIC: ClassVar[str | None] = None
    """The instruction, where it has no modifiers that depend on the operation's properties."""

    @property
    def targets(self) -> TargetFamily:
        """The targets that have the instruction with these operands, and pointers to the memory of these."""
        spaces = (value.type.requires() for value in self.operands if isinstance(value.type, PtrType))
        return TargetFamily(*max((self.requires(), *spaces)))

    def requires(self) -> tuple[int, int]:
        """The oldest target that has the instruction with these operands: sm and ten times the PTX version."""
        return self.SINCE

    def mnemonic(self) -> str | None:
        """The instruction with its modifiers as PTX spells it (`ld.global.v4.b32`), or None if none is emitted."""
        return self.MNEMONIC
