# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The record that describes one copy instruction."""

import re
from dataclasses import dataclass, field, replace
from typing import final

from ...base.errors import Code, LayoutError
from ...base.spaces import Space
from ...base.target import TargetFamily
from ..algebra.complement import complement
from ..algebra.core import Layout, cosize
from ..algebra.display import Displayed
from ..algebra.recast import recast_layout
from .instructions import CopyInstruction, CpAsync, LdMatrix, Move

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_:<>,]{0,127}")


def check_name(name: str) -> None:
    """Raises `LayoutError` (E0301) for an invalid name of an atom, such as one with a quote or a space."""
    if not _NAME.fullmatch(name):
        raise LayoutError(Code.ATOM_INVALID, f"{name[:80]!r} cannot be the name of an atom")


@final
@dataclass(frozen=True, slots=True)
class CopyAtom(Displayed):
    """A copy instruction of one or more threads, as CuTe's Copy_Atom<Copy_Traits<Op>, ValueType>.

    The three layouts map (thread, bit) to a bit of the data that the instruction moves: `src_bits` where a
    thread reads it, `dst_bits` where a thread puts it, and `ref_bits` is that by which tiled copies assign threads.
    With `val_bits`, the width of the values, `src`, `dst` and `ref` are the same in values. Threads are numbered by
    `thr_id`, which maps them to lanes.

    `instruction` is None if PTX has none: such an atom has layouts but cannot copy. `targets` are those that have
    it. The layouts of an instruction that unpacks elements to bytes are those of the bytes. `load_hint` and
    `store_hint` say how global memory is cached (see `cache`). Raises `LayoutError` (E0301) if the layouts contradict
    each other, (E0303) if values of `val_bits` bits would be split among threads.
    """

    name: str
    thr_id: Layout
    src_bits: Layout
    dst_bits: Layout
    ref_bits: Layout
    src_spaces: tuple[Space, ...]
    dst_spaces: tuple[Space, ...]
    targets: TargetFamily
    instruction: CopyInstruction | None
    source: str
    val_bits: int = 1
    load_hint: str = ""
    store_hint: str = ""
    src: Layout = field(init=False, repr=False, compare=False)
    dst: Layout = field(init=False, repr=False, compare=False)
    ref: Layout = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        total = cosize(self.ref_bits)
        for role, layout in (("src", self.src_bits), ("dst", self.dst_bits), ("ref", self.ref_bits)):
            if len(layout) != 2 or layout[0].size != self.thr_id.size:
                raise LayoutError(
                    Code.ATOM_INVALID,
                    f"{self.name}: the {role} layout {layout} does not have {self.thr_id.size} threads",
                )
            if cosize(layout) != total or complement(layout, total).size != 1:
                raise LayoutError(
                    Code.ATOM_INVALID, f"{self.name}: the {role} layout {layout} does not cover the {total} bits"
                )
            values = recast_layout(layout, 1, self.val_bits)
            if values[0].size != self.thr_id.size:
                raise LayoutError(
                    Code.ATOM_VALUE_WIDTH,
                    f"{self.name} cannot move values of {self.val_bits} bits: its {role} layout splits them",
                    "use narrower values, or another atom",
                )
            object.__setattr__(self, role, values)
        match self.instruction:
            case Move(bits=width) | CpAsync(bits=width) if self.src_bits[1].size != width:
                text = f"the instruction moves {width} bits per thread, the source layout is {self.src_bits}"
                raise LayoutError(Code.ATOM_INVALID, f"{self.name}: {text}")
            case _:
                pass

    def with_value_bits(self, val_bits: int) -> "CopyAtom":
        """This atom for values of `val_bits` bits. Raises `LayoutError` (E0303) if they would be split."""
        if val_bits < 1:
            raise LayoutError(Code.ATOM_VALUE_WIDTH, f"{self.name}: values of {val_bits} bits do not exist")
        return replace(self, val_bits=val_bits)

    def check_executable(self) -> None:
        """Raises `LayoutError` if PTX has no such instruction or it changes elements (E0304), or it is narrower than a
        value (E0303).
        """
        if self.instruction is None:
            raise LayoutError(Code.ATOM_OPERAND, f"PTX has no instruction for {self.name}, so it cannot copy")
        if isinstance(self.instruction, LdMatrix) and (unpacked := self.instruction.unpacked_bits) is not None:
            raise LayoutError(
                Code.ATOM_OPERAND,
                f"{self.name} makes bytes of elements of {unpacked} bits, which is more than a copy",
                "use the operation ptx.ldmatrix between tensors",
            )
        bits = self.ref_bits[1].size  # 1 for an atom whose width the compiler chooses
        if self.values * self.val_bits > max(bits, self.val_bits) or 1 < bits < self.val_bits:
            raise LayoutError(Code.ATOM_VALUE_WIDTH, f"{self.name} is narrower than a value of {self.val_bits} bits")

    @property
    def zfill(self) -> bool:
        """Whether a thread may copy only its first values and fill up with zeros."""
        return isinstance(self.instruction, CpAsync) and self.instruction.zfill

    @property
    def threads(self) -> int:
        """How many threads execute the instruction together."""
        return self.thr_id.size

    @property
    def values(self) -> int:
        """How many values of the reference layout each thread has."""
        return self.ref[1].size

    def __str__(self) -> str:
        return f"{self.name} of {self.val_bits}-bit values"
