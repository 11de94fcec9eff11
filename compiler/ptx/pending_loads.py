# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The registers that a load from tensor memory still writes (PTX ISA, tcgen05.ld and tcgen05.wait)."""

from collections.abc import Sequence

from ...base.errors import Code
from .operands import written_and_read
from .syntax import Instruction, PtxError


def check_pending_loads(instructions: Sequence[Instruction], file: str) -> None:
    """Refuses an instruction that writes a register which a load before it writes, too, without a wait between, in
    instructions without a branch. PtxError (E1011) at the second one.
    """
    pending: dict[str, Instruction] = {}
    for instruction in instructions:
        words = instruction.modifiers
        if instruction.opcode == "tcgen05" and words[0] == "wait::ld":
            pending.clear()
            continue
        if not pending and instruction.opcode != "tcgen05":
            continue
        written, _ = written_and_read(instruction)
        name = next((name for name in written if name in pending), None)
        if name is not None:
            line = pending[name].place.line
            text = f"{instruction.name} writes {name}, which the tcgen05.ld of line {line} may still be writing"
            hint = "wait for the load first, by tcgen05.wait::ld.sync.aligned, or take another register"
            raise PtxError(Code.PTX_PENDING, text, instruction.place, hint, file=file)
        if instruction.opcode == "tcgen05" and words[0] == "ld":
            pending.update(dict.fromkeys(written, instruction))
