# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: matrix instructions, as inline assembly of the text of their atom's instruction.

The assembly has no side effect, so that LLVM erases a product that is not used, and is convergent, so that it stays
where all lanes of the warp execute it.
"""

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.ir import Operation

from ...dialects import ptx
from ...layout.atoms.mma_registers import Registers, registers
from .text import quote
from .writer import FunctionWriter, Rule, rule

_LETTERS: Mapping[str, str] = MappingProxyType({"b32": "r", "f32": "f", "f64": "d"})
"""The constraint of each kind of register (PTX interoperability, inline assembly constraints)."""


def _mma_sync(w: FunctionWriter, op: ptx.MmaSyncOp) -> None:
    atom = op.atom
    groups = [registers(atom, operand) for operand in "DABC"]
    text = quote(f"{op.mnemonic()} {_operands(groups)};")
    letters = [_LETTERS[group.kind] for group in groups for _ in range(group.count)]
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
