# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accesses to memory, copies and atomic operations (PTX ISA, Data Movement and Conversion Instructions, and Parallel
Synchronization and Communication Instructions: atom, red, fence).
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, VectorType, i32
from xdsl.ir import Attribute, SSAValue

from ...dialects import ptx
from ...dialects.ptx.base import GLOBAL, SHARED, SHARED_CLUSTER, PtrType, split_vector
from .inference import SPACES
from .moves import Rule, address_of, is_float
from .registers import Registers, bits_of, type_of
from .syntax import TYPE_BITS, Address, Instruction, Integer, Operand, Register, Symbol, Vector

_WEAK = ("weak", "volatile")
_SCOPES = ("cta", "cluster", "gpu", "sys")


def address(r: Registers, operand: Operand, align: int, space: PtrType | None = None) -> SSAValue:
    """The address that an operand in brackets is. `space` is the memory that the instruction names; without one, the
    address must be known to be of some memory.
    """
    if not isinstance(operand, Address):
        raise r.refuse("expected an address in brackets")
    base: Operand = operand.base
    pointer = None if isinstance(base, Integer) else address_of(r, base)
    if pointer is None:
        if space not in (GLOBAL, SHARED):
            raise r.refuse("the address is a number of which no memory is known", "compute it from a parameter")
        number = r.read(base, IntegerType(64 if space == GLOBAL else 32))
        pointer = r.emit(ptx.IntToPtrOp(number, align, space))
    if space is not None and pointer.type != space:
        if (pointer.type, space) == (SHARED, SHARED_CLUSTER):
            return r.shifted(pointer, operand.offset)
        name = pointer.type.space.data.value if isinstance(pointer.type, PtrType) else str(pointer.type)
        raise r.refuse(f"the address is one of {name} memory")
    return r.shifted(pointer, operand.offset)


def _space(i: Instruction) -> PtrType | None:
    return next((SPACES[word] for word in i.modifiers if word in SPACES), None)


def _hints(r: Registers, i: Instruction, plain: tuple[str, ...]) -> str:
    """The cache hints among the modifiers before the type, as one text."""
    hints: list[str] = []
    for word in i.modifiers[:-1]:
        if word in SPACES or word in ("v2", "v4") or word in plain:
            continue
        if word in ("nc", "ca", "cg", "cs", "cv", "lu", "wb", "wt") or word.startswith(("L1::", "L2::")):
            hints.append(word)
        else:
            raise r.refuse(f"the modifier .{word} is not supported")
    return ".".join(hints)


def _element(r: Registers, i: Instruction, targets: tuple[Operand, ...]) -> Attribute:
    """The type of the elements that an access moves: that of floats where registers hold floats."""
    type = i.modifiers[-1]
    if is_float(type):
        return type_of(type)
    names = [target.name for target in targets if isinstance(target, Register)]
    hints = {r.floats.get(name) for name in names}
    hint = hints.pop() if len(hints) == 1 else None
    bits = TYPE_BITS[type]
    return hint if hint is not None and type[0] == "b" and bits_of(hint) == bits else IntegerType(bits)


def _load(r: Registers, i: Instruction) -> None:
    if i.modifiers[0] == "param":
        _load_parameter(r, i)
        return
    target, source = i.operands[:2]
    if len(i.operands) > 2:
        raise r.refuse("cache policies are not supported")
    targets = target.items if isinstance(target, Vector) else (target,)
    element = _element(r, i, targets)
    bytes = bits_of(element) // 8 * len(targets)
    pointer = address(r, source, bytes, _space(i))
    if any(word in ("acquire", "relaxed") for word in i.modifiers):
        scope = next((word for word in i.modifiers if word in _SCOPES), "gpu")
        if "acquire" not in i.modifiers or len(targets) > 1:
            raise r.refuse("relaxed loads are not supported", "use ld.acquire")
        r.write(target, r.emit(ptx.LoadAcquireOp(pointer, element, scope)))
        return
    type = VectorType(element, [len(targets)]) if len(targets) > 1 else element
    hints = _hints(r, i, _WEAK)
    value = r.emit(ptx.LoadOp(pointer, type, bytes, hints if pointer.type == GLOBAL else ""))
    signed = i.modifiers[-1][0] == "s"
    for index, part in enumerate(targets):
        r.write(part, r.extract(value, index) if len(targets) > 1 else value, signed=signed)


def _load_parameter(r: Registers, i: Instruction) -> None:
    """ld.param: a parameter, or a part of a structure or of a call's result."""
    target, source = i.operands
    if not isinstance(source, Address) or not isinstance(source.base, Symbol):
        raise r.refuse("the address is not that of a parameter")
    name, offset = source.base.name, source.offset + source.base.offset
    if name in r.results:
        return  # the result of a call of printf
    if name in r.structures:
        _load(r, replace(i, modifiers=("global", *i.modifiers[1:])))
        return
    if name not in r.parameters:
        raise r.refuse(f"there is no parameter {name} of a supported type")
    value, signed = r.parameters[name], i.modifiers[-1][0] == "s"
    targets = target.items if isinstance(target, Vector) else (target,)
    bits = TYPE_BITS[i.modifiers[-1]]
    if not offset and len(targets) == 1 and bits <= bits_of(value.type):
        r.write(target, r.resized(value, bits) if bits < bits_of(value.type) else value, signed=signed)
        return
    whole = r.convert(value, IntegerType(bits_of(value.type)))
    for index, part in enumerate(targets):
        at = 8 * offset + bits * index
        if at + bits > bits_of(whole.type):
            raise r.refuse(f"the parameter {name} has {bits_of(whole.type) // 8} bytes")
        shifted = r.emit(arith.ShRUIOp(whole, r.constant(at, whole.type))) if at else whole
        r.write(part, r.resized(shifted, bits), signed=signed)


def _store(r: Registers, i: Instruction) -> None:
    target, source = i.operands[:2]
    if len(i.operands) > 2:
        raise r.refuse("cache policies are not supported")
    if i.modifiers[0] == "param":
        assert isinstance(target, Address)
        if isinstance(target.base, Symbol) and not target.offset and isinstance(source, Register):
            r.arguments[target.base.name] = source
            return
        raise r.refuse("the parameter is not supported")
    items = source.items if isinstance(source, Vector) else (source,)
    bits = TYPE_BITS[i.modifiers[-1]]
    type = type_of(i.modifiers[-1]) if is_float(i.modifiers[-1]) else None
    values = [r.read(item, type) if type is not None else r.raw(item, bits) for item in items]
    if len({value.type for value in values}) > 1:
        values = [r.convert(value, IntegerType(bits)) for value in values]
    if split_vector(values[0].type)[1]:
        values = [r.convert(value, IntegerType(bits)) for value in values]
    bytes = bits // 8 * len(items)
    pointer = address(r, target, bytes, _space(i))
    value = values[0] if len(values) == 1 else r.vector(values)
    if "release" in i.modifiers and len(items) == 1:
        scope = next((word for word in i.modifiers if word in _SCOPES), "gpu")
        r.add(ptx.StoreReleaseOp(value, pointer, scope))
        return
    hints = _hints(r, i, _WEAK)
    r.add(ptx.StoreOp(value, pointer, bytes, hints if pointer.type == GLOBAL else ""))


_CP_ASYNC = ("ca", "cg", "shared", "shared::cta", "global", "L2::64B", "L2::128B", "L2::256B")


def _copy(r: Registers, i: Instruction) -> None:
    """cp.async and its groups."""
    match i.modifiers[1:]:
        case ("commit_group",) if i.modifiers[0] == "async":
            r.add(ptx.CpAsyncCommitGroupOp())
        case ("wait_all",) if i.modifiers[0] == "async":
            r.add(ptx.CpAsyncWaitAllOp())
        case ("wait_group",) if i.modifiers[0] == "async" and isinstance(i.operands[0], Integer):
            r.add(ptx.CpAsyncWaitGroupOp(i.operands[0].value))
        case (cache, *rest) if i.modifiers[0] == "async" and all(word in _CP_ASYNC for word in (cache, *rest)):
            to, source, size, *more = i.operands
            if not isinstance(size, Integer) or len(more) > 1:
                raise r.refuse("the operands are not supported")
            bytes = size.value
            given = None
            if more and not (isinstance(more[0], Integer) and more[0].value == bytes):
                given = r.read(more[0], i32)
            prefetch = next((word for word in rest if word.startswith("L2::")), "")
            destination, origin = address(r, to, bytes, SHARED), address(r, source, bytes, GLOBAL)
            r.add(ptx.CpAsyncOp(cache, bytes, destination, origin, given, prefetch))
        case _:
            raise r.refuse("the instruction is not supported")


def _atomic(r: Registers, i: Instruction) -> None:
    """atom and red: of integers and floats."""
    words = list(i.modifiers)
    order = next((word for word in words if word in ("relaxed", "acquire", "release", "acq_rel")), None)
    scope = next((word for word in words if word in _SCOPES), None)
    space = _space(i)
    type, kind = words[-1], words[-2] if words[-2] != "noftz" else words[-3]
    left = {*words} - {order, scope, type, kind, "noftz", *SPACES}
    if left:
        raise r.refuse(f"the modifier .{sorted(map(str, left))[0]} is not supported")
    returns = i.opcode == "atom"
    where, *values = i.operands[1:] if returns else i.operands
    held = type_of(type)
    pointer = address(r, where, bits_of(held) // 8, space)
    if kind == "cas":
        compare, value = (r.read(value, held) for value in values)
        old = r.emit(ptx.AtomCasOp(pointer, compare, value, order, scope))
        r.write(i.operands[0], old)
        return
    if kind in ("min", "max") and type[0] == "u":
        kind = f"u{kind}"
    value = r.read(values[0], held)
    if returns:
        r.write(i.operands[0], r.emit(ptx.AtomOp(kind, pointer, value, order, scope)))
    else:
        r.add(ptx.RedOp(kind, pointer, value, order, scope))


def _fence(r: Registers, i: Instruction) -> None:
    if i.opcode == "membar":
        scopes = {"cta": "cta", "gl": "gpu", "sys": "sys"}
        if i.modifiers[0] not in scopes or len(i.modifiers) != 1:
            raise r.refuse("the fence is not supported")
        r.add(ptx.FenceOp("sc", scopes[i.modifiers[0]]))
        return
    order = next((word for word in i.modifiers if word in ("acq_rel", "sc")), "acq_rel")
    scope = next((word for word in i.modifiers if word in _SCOPES), None)
    if set(i.modifiers) - {order, scope}:
        raise r.refuse("the fence is not supported")
    r.add(ptx.FenceOp(order, scope))


def _prefetch(r: Registers, i: Instruction) -> None:
    """A prefetch changes nothing that is modelled."""
    if i.modifiers[-1] not in ("L1", "L2"):
        raise r.refuse("the instruction is not supported")


MEMORY: Mapping[str, Rule] = MappingProxyType({
    "ld": _load, "st": _store, "cp": _copy, "atom": _atomic, "red": _atomic, "fence": _fence, "membar": _fence,
    "prefetch": _prefetch,
})  # fmt: skip
"""The rules by opcode."""
