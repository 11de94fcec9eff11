# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Atomic operations (PTX ISA, Parallel Synchronization and Communication Instructions: atom, red)."""

from dataclasses import replace

from xdsl.ir import SSAValue

from ...dialects import ptx
from .accesses import SCOPES, accessed, changed
from .inference import SPACES
from .registers import Registers, bits_of, type_of
from .syntax import TYPE_BITS, Address, Instruction, Vector


def atomic(r: Registers, i: Instruction) -> None:
    """atom and red: of integers and floats, of a vector for each element (PTX ISA, atom: vector types)."""
    words = list(i.modifiers)
    if {"v2", "v4", "v8"}.intersection(words):
        _elements(r, i)
        return
    order = next((word for word in words if word in ("relaxed", "acquire", "release", "acq_rel")), None)
    scope = next((word for word in words if word in SCOPES), None)
    type = next(word for word in reversed(words) if word in TYPE_BITS)
    known = (order, scope, "noftz", "L2::cache_hint", *SPACES)
    kind = next((word for word in words if word not in known and word != type), "")
    left = {*words} - {type, kind, *known}
    if left:
        raise r.refuse(f"the modifier .{sorted(map(str, left))[0]} is not supported")
    returns = i.opcode == "atom"
    where, *values = i.operands[1:] if returns else i.operands
    held = type_of(type)
    if kind in ("min", "max") and type[0] == "u":
        kind = f"u{kind}"
    if kind == "cas":
        compare, value = (r.read(value, held) for value in values[:2])
    else:
        compare, value = None, r.read(values[0], held)

    def access(pointer: SSAValue) -> SSAValue | None:
        pointer = changed(r, pointer)
        if compare is not None:
            return r.emit(ptx.AtomCasOp(pointer, compare, value, order=order, scope=scope))
        if returns or kind == "exch":
            return r.emit(ptx.AtomOp(kind, pointer, value, order=order, scope=scope))
        r.add(ptx.RedOp(kind, pointer, value, order=order, scope=scope))
        return None

    result = accessed(r, i, where, bits_of(held) // 8, access)
    if returns and result is not None:
        r.write(i.operands[0], result)


def _elements(r: Registers, i: Instruction) -> None:
    words = tuple(word for word in i.modifiers if word not in ("v2", "v4", "v8"))
    first = 1 if i.opcode == "atom" else 0
    where, values = i.operands[first : first + 2]
    targets = i.operands[0] if first else values
    if not isinstance(where, Address) or not isinstance(values, Vector) or not isinstance(targets, Vector):
        raise r.refuse("the operands are not supported")
    type = next(word for word in reversed(words) if word in TYPE_BITS)
    for index, (target, value) in enumerate(zip(targets.items, values.items, strict=True)):
        at = replace(where, offset=where.offset + TYPE_BITS[type] // 8 * index)
        operands = (target, at, value) if first else (at, value)
        atomic(r, replace(i, modifiers=words, operands=operands))
