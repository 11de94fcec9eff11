# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A copy instruction as CuTe partitions its source and destination."""

import re
from dataclasses import dataclass, field, replace
from typing import cast, final, get_args

from ...base.element_types import BY_PTX
from ...base.errors import Code, LayoutError
from ...base.spaces import SMEM
from ...base.target import Targets
from ..algebra.complement import complement
from ..algebra.core import Layout, cosize
from ..algebra.display import Displayed
from ..algebra.recast import recast_layout
from .contract import ANY_BITS, AsChosen, Contract, Named, Operand, Role, Whose
from .instructions import (
    CP_ASYNC_BYTES,
    Absent,
    AutoMove,
    BulkCopy,
    CopyInstruction,
    CpAsync,
    Move,
    TmaInstruction,
    TmemCp,
)
from .numbers import Reduced, Unpacked, check_members

MOVE_BITS = (8, 16, 32, 64, 128)
"""The widths of loads and stores."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_:<>,]{0,127}")


def check_name(name: str) -> None:
    """Raises `LayoutError` (E0301) for an invalid name of an atom, such as one with a quote or a space."""
    if not _NAME.fullmatch(name):
        raise LayoutError(Code.ATOM_INVALID, f"{name[:80]!r} cannot be the name of an atom")


@final
@dataclass(frozen=True, slots=True)
class CopyAtom(Displayed):
    """A copy by its contract, as CuTe's Copy_Atom<Copy_Traits<Op>, ValueType>.

    The layouts of source and destination map (thread, bit) to a bit of the data that the instruction moves; `ref_bits`
    is that by which tiled copies assign threads. With `val_bits`, the width of the values, `src`, `dst` and `ref` are
    the same in values.

    An instruction that is absent from PTX has layouts but cannot copy. The layouts of an instruction that unpacks
    elements to bytes are those of the bytes. `load_hint` and `store_hint` say how global memory is cached (see
    `cache_hints`). Raises `LayoutError` (E0301) if the layouts contradict each other, (E0303) if values of `val_bits`
    bits would be split among threads.
    """

    name: str
    contract: Contract
    val_bits: int = 1
    load_hint: str = ""
    store_hint: str = ""
    src: Layout = field(init=False, repr=False, compare=False)
    dst: Layout = field(init=False, repr=False, compare=False)
    ref: Layout = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        check_members((self.contract.instruction,), (get_args(CopyInstruction),))
        if not (self.contract.has(Role.SOURCE) and self.contract.has(Role.DESTINATION)):
            raise LayoutError(Code.ATOM_INVALID, f"{self.name} is not a copy: it lacks a source or a destination")
        total = cosize(self.ref_bits)
        for role, layout in (("src", self.src_bits), ("dst", self.dst_bits), ("ref", self.ref_bits)):
            repeats = isinstance(self.instruction, TmemCp)  # which repeats rows, or writes some rows of a matrix only
            if not repeats and (cosize(layout) != total or complement(layout, total).size != 1):
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
        bits = self.src_bits[1].size
        match self.instruction:
            case Move() if bits not in MOVE_BITS:
                raise LayoutError(Code.ATOM_INVALID, f"{self.name}: a load cannot move {bits} bits")
            case CpAsync(cache) if bits not in [8 * size for size in CP_ASYNC_BYTES.get(cache, ())]:
                raise LayoutError(Code.ATOM_INVALID, f"{self.name}: cp.async.{cache} cannot move {bits} bits")
            case _:
                pass

    def __hash__(self) -> int:
        return hash((self.name, self.val_bits, self.load_hint, self.store_hint))  # those of layouts take longer

    def with_value_bits(self, val_bits: int) -> "CopyAtom":
        """This atom for values of `val_bits` bits. Raises `LayoutError` (E0303) if they would be split."""
        if val_bits < 1:
            raise LayoutError(Code.ATOM_VALUE_WIDTH, f"{self.name}: values of {val_bits} bits do not exist")
        return replace(self, val_bits=val_bits)

    def check_executable(self) -> None:
        """Raises `LayoutError` if PTX has no such instruction or it changes elements (E0304), or it is narrower than a
        value (E0303).
        """
        if isinstance(self.instruction, Absent):
            raise LayoutError(Code.ATOM_OPERAND, f"PTX has no instruction for {self.name}, so it cannot copy")
        if isinstance(self.contract.numbers, Unpacked):
            raise LayoutError(
                Code.ATOM_OPERAND,
                f"{self.name} makes bytes of elements of {self.contract.numbers.bits} bits, which is more than a copy",
                "use the operation ptx.ldmatrix between tensors",
            )
        bits = self.ref_bits[1].size  # 1 for an atom whose width the compiler chooses
        if self.values * self.val_bits > max(bits, self.val_bits) or 1 < bits < self.val_bits:
            raise LayoutError(Code.ATOM_VALUE_WIDTH, f"{self.name} is narrower than a value of {self.val_bits} bits")

    @property
    def source(self) -> Operand:
        """The operand that it reads."""
        return self.contract.operand(Role.SOURCE)

    @property
    def destination(self) -> Operand:
        """The operand that it writes."""
        return self.contract.operand(Role.DESTINATION)

    @property
    def thr_id(self) -> Layout:
        """The lanes of the threads, or the ranks of the blocks, that layouts number."""
        return self.contract.ids

    @property
    def src_bits(self) -> Layout:
        """(thread, bit) to a bit of the data, where the thread reads it."""
        return _in_bits(self.source)

    @property
    def dst_bits(self) -> Layout:
        """(thread, bit) to a bit of the data, where the thread puts it."""
        return _in_bits(self.destination)

    @property
    def ref_bits(self) -> Layout:
        """(thread, bit) to a bit of the data, by which tiled copies assign threads: that of tensor memory, or of the
        registers.
        """
        cells = [operand for operand in (self.source, self.destination) if operand.named is Named.CELL]
        if cells:
            return _in_bits(cells[0])
        return self.dst_bits if self.destination.named is Named.VALUE else self.src_bits

    @property
    def bits(self) -> int | None:
        """The bits that a thread moves by one execution; None where layouts decide."""
        width = self.ref_bits[1].size
        return None if width == 1 else width

    @property
    def instruction(self) -> CopyInstruction:
        """The instruction."""
        return cast("CopyInstruction", self.contract.instruction)

    @property
    def targets(self) -> Targets:
        """The targets that have the instruction."""
        return self.contract.targets

    @property
    def loads(self) -> bool | None:
        """Whether it copies to shared memory; None if the operands decide."""
        if isinstance(self.destination.completion, AsChosen):
            return None
        return SMEM in self.destination.spaces

    @property
    def is_multicast(self) -> bool:
        """Whether it writes the memory of all blocks of a mask."""
        return self.destination.whose is Whose.MASK

    @property
    def is_paired(self) -> bool:
        """Whether an mbarrier of either block of a pair may count the bytes."""
        return isinstance(self.instruction, TmaInstruction) and self.instruction.pair

    @property
    def by_rows(self) -> bool:
        """Whether it moves four rows of a matrix by their numbers."""
        return isinstance(self.instruction, TmaInstruction) and self.instruction.by_rows

    @property
    def reduction(self) -> str:
        """How it combines elements with those of the destination; empty if it overwrites them."""
        return self.contract.numbers.operation if isinstance(self.contract.numbers, Reduced) else ""

    @property
    def is_bulk(self) -> bool:
        """Whether the async proxy copies runs of contiguous bytes."""
        return isinstance(self.instruction, BulkCopy)

    @property
    def max_bits(self) -> int | None:
        """The widest access of an atom that leaves the width to the compiler; None for any other."""
        return self.instruction.max_bits or self.val_bits if isinstance(self.instruction, AutoMove) else None

    @property
    def zfill(self) -> bool:
        """Whether a thread may copy only its first values and fill up with zeros."""
        return self.contract.has(Role.COUNT)

    @property
    def threads(self) -> int:
        """How many threads, or blocks, layouts number."""
        return self.thr_id.size

    @property
    def values(self) -> int:
        """How many values of the reference layout each thread has."""
        return self.ref[1].size

    def __str__(self) -> str:
        return f"{self.name} of {self.val_bits}-bit values"


def _in_bits(operand: Operand) -> Layout:
    """The layout of an operand by bits; that of one with an element type counts elements."""
    if operand.element == ANY_BITS:
        return operand.layout
    return recast_layout(operand.layout, BY_PTX[operand.element].bits, 1)
