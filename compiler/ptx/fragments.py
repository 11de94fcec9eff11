# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The registers that are in use while a multiplication runs asynchronously. They are memory of the thread here, as
fragments are, with the registers of an operand one behind the other.

Two operands that name some of the same registers share their memory, if these have the same places in both. Then two
registers may have one place, as `%f9` and `%f1` here do:

    wgmma.mma_async... {%f1, %f2}, ...;  add.f32 %f9, %f1, 1.0;  wgmma.mma_async... {%f9, %f2}, ...;

That is right as long as no instruction writes one of them while another one's value may still be read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...base.errors import Code
from .flow import BasicBlock, exposed_and_written, live_registers
from .operands import is_product, written_and_read
from .syntax import Instruction, PtxError, Register, Vector


@dataclass(frozen=True)
class FragmentMemory:
    """The `homes` of registers: the operand that names their memory, and their places there; and for each operand that
    which names its memory, the longest of those that share it.
    """

    homes: Mapping[str, tuple[Vector, int]]
    names: Mapping[Vector, Vector]

    @property
    def wholes(self) -> tuple[Vector, ...]:
        """The operands that name memory, in the order of the text."""
        return tuple(dict.fromkeys(self.names.values()))

    def check(self, blocks: Sequence[BasicBlock], file: str) -> None:
        """PtxError (E1009) where an instruction writes a register while the value of another one in its place may still
        be read, or a multiplication writes one of several registers of a place and nothing reads it.
        """
        sharing: dict[tuple[Vector, int], set[str]] = {}
        for name, home in self.homes.items():
            sharing.setdefault(home, set()).add(name)
        others = {name: names - {name} for names in sharing.values() if len(names) > 1 for name in names}
        if not others:
            return
        exposed: dict[BasicBlock, set[str]] = {}
        written: dict[BasicBlock, set[str]] = {}
        for block in blocks:
            early, written[block] = exposed_and_written(block, others.__contains__)
            exposed[block] = early & others.keys()
        live = live_registers(blocks, exposed, written)
        for block in blocks:
            after = set[str]().union(*(live[successor] for successor in block.successors))
            for instruction in reversed(block.instructions):
                targets, sources = written_and_read(instruction)
                for name in targets:
                    kept = others.get(name, set[str]()) & after
                    is_lost = name in others and name not in after and is_product(instruction)
                    if kept or is_lost:
                        raise _refusal(min(kept, default=name), instruction, file)
                after = after.difference(targets).union(sources)


def find_fragments(
    operands: Iterable[tuple[Instruction, Vector]], file: str, *, as_written: bool = False
) -> FragmentMemory:
    """The memory of the operands of these instructions. PtxError (E1009) for a register at different places in two of
    them, unless they are to be `as_written`, only to be looked at.
    """
    names: dict[Vector, Vector] = {}
    homes: dict[str, tuple[Vector, int]] = {}
    for instruction, vector in operands:
        if vector in names:
            continue
        names[vector] = vector
        for index, item in enumerate(vector.items):
            if not isinstance(item, Register):
                continue
            other, place = homes.setdefault(item.name, (vector, index))
            if place == index:
                _join(names, vector, other)
            elif not as_written:
                raise _refusal(item.name, instruction, file)
    whole = {vector: _named(names, vector) for vector in names}
    return FragmentMemory({name: (whole[vector], index) for name, (vector, index) in homes.items()}, whole)


def _named(names: Mapping[Vector, Vector], vector: Vector) -> Vector:
    """The operand that names the memory of another one."""
    while names[vector] != vector:
        vector = names[vector]
    return vector


def _join(names: dict[Vector, Vector], first: Vector, second: Vector) -> None:
    """Lets two operands share their memory: that of the longer one."""
    short, long = sorted((_named(names, first), _named(names, second)), key=lambda vector: len(vector.items))
    names[short] = long


def _refusal(name: str, instruction: Instruction, file: str) -> PtxError:
    text = f"{name} is a register of two different operands of wgmma, which is not supported"
    return PtxError(Code.PTX_UNSUPPORTED, text, instruction.place, file=file)
