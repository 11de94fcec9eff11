# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: matrix instructions, as inline assembly of the text of their atom's instruction.

The assembly has no side effect, so that LLVM erases a product that is not used, and is convergent, so that it stays
where all lanes of the warp execute it.
"""

from xdsl.ir import Operation

from ...dialects import ptx
from ...dialects.ptx.mma import register_types
from ...layout.atoms.mma_registers import Registers, registers
from .inline_assembly import register
from .text import quote
from .writer import FunctionWriter, Rule, rule


def _mma_sync(w: FunctionWriter, op: ptx.MmaSyncOp) -> None:
    atom = op.atom
    groups = [registers(atom, operand) for operand in "DABC"]
    text = quote(f"{op.mnemonic()} {_operands(groups)};")
    letters = [register(type, op)[1] for operand in "DABC" for type in register_types(atom, operand)]
    results = groups[0].count
    constraints = ",".join([f"={letter}" for letter in letters[:results]] + letters[results:])
    types = [w.type(result) for result in op.d]
    returned = types[0] if results == 1 else f"{{ {', '.join(types)} }}"
    values = ", ".join(w.typed(value) for value in op.operands)
    call = w.temp(f'call {returned} asm {text}, "{constraints}"({values}) convergent nounwind memory(none)')
    for index, result in enumerate(op.d):
        w.bind(result, call if results == 1 else w.temp(f"extractvalue {returned} {call}, {index}"))


def _operands(groups: list[Registers]) -> str:
    """`{$0,$1}, {$2}, ...`: the registers of each operand."""
    numbers = iter(range(sum(group.count for group in groups)))
    return ", ".join("{" + ",".join(f"${next(numbers)}" for _ in range(group.count)) + "}" for group in groups)


PTX_MMA: tuple[tuple[type[Operation], Rule], ...] = (rule(ptx.MmaSyncOp, _mma_sync),)
