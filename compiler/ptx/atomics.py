# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Atomic operations (PTX ISA, Parallel Synchronization and Communication Instructions: atom, red)."""

from dataclasses import replace
from functools import partial

from xdsl.ir import SSAValue

from ...dialects import ptx
from .accesses import SCOPES, accessed, changed
from .inference import SPACES
from .moves import is_float
from .registers import Registers, bits_of, type_of
from .syntax import TYPE_BITS, Address, Instruction, Operand, Vector

_VECTORS = ("v2", "v4", "v8")


def atomic(r: Registers, i: Instruction) -> None:
    """atom and red for integers, floats, and the elements of vectors (PTX ISA, atom: vector types)."""
    words = [word for word in i.modifiers if word not in _VECTORS]
    order = next((word for word in words if word in ("relaxed", "acquire", "release", "acq_rel")), None)
    scope = next((word for word in words if word in SCOPES), None)
    type = next(word for word in reversed(words) if word in TYPE_BITS)
    known = (order, scope, "noftz", "L2::cache_hint", *SPACES)
    kind = next((word for word in words if word not in known and word != type), "")
    left = {*words} - {type, kind, *known}
    if left:
        raise r.refuse(f"the modifier .{sorted(map(str, left))[0]} is not supported")
    if kind in ("min", "max") and type[0] == "u":
        kind = f"u{kind}"
    is_extreme = kind in ("min", "max") and is_float(type)
    returns = i.opcode == "atom"
    where, *values = i.operands[1:] if returns else i.operands
    change = partial(_change, r, i, kind, (order, scope))
    if len(words) == len(i.modifiers):
        if is_extreme:
            raise r.refuse(f"PTX has .{kind}.{type} of vectors only")
        result = change(where, *(r.read(value, type_of(type)) for value in values[: 1 + (kind == "cas")]))
        if returns and result is not None:
            r.write(i.operands[0], result)
        return
    given, targets = values[0], i.operands[0] if returns else values[0]
    if not isinstance(where, Address) or not isinstance(given, Vector) or not isinstance(targets, Vector):
        raise r.refuse("the operands are not supported")
    step = 2 if is_extreme and not type.endswith("x2") else 1  # there are no extremes of one half
    for first in range(0, len(given.items), step):
        parts = [r.read(item, type_of(type)) for item in given.items[first : first + step]]
        at = replace(where, offset=where.offset + TYPE_BITS[type] // 8 * first)
        result = change(at, parts[0] if step == 1 else r.vector(parts))
        for index, target in enumerate(targets.items[first : first + step]):
            if returns and result is not None:
                r.write(target, result if step == 1 else r.extract(result, index))


def _change(
    r: Registers, i: Instruction, kind: str, how: tuple[str | None, str | None], where: Operand, *values: SSAValue
) -> SSAValue | None:
    """Changes memory by an operation with an order and a scope, with its value, or one to compare with before it; the
    old value, if there is one.
    """
    order, scope = how

    def access(pointer: SSAValue) -> SSAValue | None:
        pointer = changed(r, pointer)
        if kind == "cas":
            return r.emit(ptx.AtomCasOp(pointer, *values, order=order, scope=scope))
        if i.opcode == "atom" or kind == "exch":
            return r.emit(ptx.AtomOp(kind, pointer, values[0], order=order, scope=scope))
        r.add(ptx.RedOp(kind, pointer, values[0], order=order, scope=scope))
        return None

    return accessed(r, i, where, bits_of(values[0].type) // 8, access)
