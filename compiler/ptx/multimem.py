# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accesses to multicast memory (PTX ISA, multimem.ld_reduce, multimem.st, multimem.red)."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, SSAValue

from ...dialects import ptx
from ...dialects.ptx.base import GLOBAL, split_vector
from .accesses import SCOPES, address
from .moves import Rule
from .registers import Registers, type_of
from .syntax import TYPE_BITS, Instruction, Operand, Vector

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
