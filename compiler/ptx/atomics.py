# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Atomic operations (PTX ISA, Parallel Synchronization and Communication Instructions: atom, red).

Accesses to multicast memory are here, too (PTX ISA, multimem.ld_reduce, multimem.st, multimem.red).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, SSAValue

from ...dialects import ptx
from ...dialects.ptx.base import GLOBAL, split_vector
from .accesses import SCOPES, accessed, address, changed
from .inference import SPACES
from .moves import Rule, is_float
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


_ORDERS = ("weak", "relaxed", "acquire", "release")
_PLAIN = ("global", "acc::f32", "acc::f16", "v2", "v4", "v8")


def _multimem(r: Registers, i: Instruction) -> None:
    """multimem: one access of all elements of a vector to the memory of all devices."""
    form, *words = i.modifiers
    type = words[-1]
    order = next((word for word in words if word in _ORDERS and word != "weak"), None)
    scope = next((word for word in words if word in SCOPES), None)
    kinds = [word for word in words[:-1] if word not in (*_ORDERS, *SCOPES, *_PLAIN)]
    if type not in TYPE_BITS or len(kinds) != (form != "st"):
        raise r.refuse("the form is not supported")
    kind = "".join(kinds)
    kind = f"u{kind}" if kind in ("min", "max") and type[0] == "u" else kind
    if form == "ld_reduce":
        target, where = i.operands
        items = _items(target)
        pointer = address(r, where, TYPE_BITS[type] // 8 * len(items), GLOBAL)
        made = ptx.MultimemLdReduceOp(kind, pointer, _whole(type, len(items)), order=order, scope=scope)
        _write(r, items, type, r.emit(made))
        return
    where, source = i.operands
    items = _items(source)
    pointer = address(r, where, TYPE_BITS[type] // 8 * len(items), GLOBAL)
    value = _read(r, items, type)
    if form == "st":
        r.add(ptx.MultimemStOp(value, pointer, order=order, scope=scope))
    elif form == "red":
        r.add(ptx.MultimemRedOp(kind, pointer, value, order=order, scope=scope))
    else:
        raise r.refuse("the form is not supported")


def _items(operand: Operand) -> Sequence[Operand]:
    return operand.items if isinstance(operand, Vector) else (operand,)


def _whole(type: str, count: int) -> Attribute:
    """The type of a value in some registers, those of pairs as one vector of numbers."""
    element, pair = _parts(type)
    return VectorType(element, [count * pair]) if count * pair > 1 else element


def _parts(type: str) -> tuple[Attribute, int]:
    """The type of the numbers in a register, and how many there are."""
    element, pair = split_vector(type_of(type))
    return element, max(pair, 1)


def _write(r: Registers, items: Sequence[Operand], type: str, value: SSAValue) -> None:
    signed = type[0] == "s"
    if len(items) == 1:
        r.write(items[0], value, signed=signed)
        return
    _, pair = _parts(type)
    for index, item in enumerate(items):
        parts = [r.extract(value, pair * index + part) for part in range(pair)]
        r.write(item, parts[0] if pair == 1 else r.vector(parts), signed=signed)


def _read(r: Registers, items: Sequence[Operand], type: str) -> SSAValue:
    values = [r.read(item, type_of(type)) for item in items]
    if len(values) == 1:
        return values[0]
    _, pair = _parts(type)
    return r.vector([r.extract(value, part) for value in values for part in range(pair)] if pair > 1 else values)


MULTIMEM: Mapping[str, Rule] = MappingProxyType({"multimem": _multimem})
"""The rule by its opcode."""
