# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: PTX as text, which LLVM passes on."""

from xdsl.ir import Operation

from ...dialects import ptx
from .inline_assembly import effect, from_register, in_register, register
from .writer import FunctionWriter, Rule, rule


def _inline(w: FunctionWriter, op: ptx.InlineOp) -> None:
    types = [register(result.type, op)[0] for result in op.res]
    returned = "void" if not types else types[0] if len(types) == 1 else f"{{ {', '.join(types)} }}"
    letters = [letter.strip() for letter in op.constraints.data.split(",") if letter]
    given = [in_register(w, value, op) for value in op.args]
    call = f"{effect(op.text.data, letters, given, returned)} convergent nounwind"
    if not types:
        w.emit(call)
        return
    held = w.temp(call)
    for index, result in enumerate(op.res):
        part = held if len(types) == 1 else w.temp(f"extractvalue {returned} {held}, {index}")
        from_register(w, result, part, op)


PTX_INLINE: tuple[tuple[type[Operation], Rule], ...] = (rule(ptx.InlineOp, _inline),)
