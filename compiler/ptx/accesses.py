# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accesses to memory, copies and fences (PTX ISA, Data Movement and Conversion Instructions, and Parallel
Synchronization and Communication Instructions: fence).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerType, VectorType, i1, i32, i64
from xdsl.ir import Attribute, Block, SSAValue

from ...dialects import ptx
from ...dialects.ptx.base import GLOBAL, LOCAL, MAP, SHARED, SHARED_CLUSTER, PtrType, split_vector
from .inference import GENERIC, SPACES
from .moves import Rule, address_of, is_float
from .registers import Registers, bits_of, type_of
from .syntax import TYPE_BITS, Address, Instruction, Integer, Operand, Register, Symbol, Vector
from .variables import RESERVED_BYTES, RESERVED_SHARED

_WEAK = ("weak", "volatile")
_HINT = "L2::cache_hint"
SCOPES = ("cta", "cluster", "gpu", "sys")


def address(r: Registers, operand: Operand, align: int, space: PtrType | None = None) -> SSAValue:
    """The address that an operand in brackets is. `space` is the memory that the instruction names; without one, the
    address must be known to be of some memory.
    """
    if not isinstance(operand, Address):
        raise r.refuse("expected an address in brackets")
    base: Operand = operand.base
    pointer = None if isinstance(base, Integer) else address_of(r, base)
    if pointer is None:
        if space is None:
            raise r.refuse("the address is a number whose memory is unknown", "compute it from a parameter")
        number = r.number(base, space.space.data.address_bits)
        pointer = r.emit(ptx.IntToPtrOp(number, align, space))
    if space is not None and pointer.type != space:
        if (pointer.type, space) == (SHARED, SHARED_CLUSTER):
            return r.shifted(pointer, operand.offset)
        name = pointer.type.space.data.keyword if isinstance(pointer.type, PtrType) else str(pointer.type)
        raise r.refuse(f"the address is one of {name} memory")
    return r.shifted(pointer, operand.offset)


def accessed(
    r: Registers,
    i: Instruction,
    operand: Operand,
    align: int,
    access: Callable[[SSAValue], SSAValue | None],
) -> SSAValue | None:
    """Appends an access to an address; its result, if it has one. A generic address whose memory is unknown is
    global, local or shared, as the number says; atomic operations reach no local memory.
    """
    space = _space(i)
    is_number = isinstance(operand, Address) and (
        isinstance(operand.base, Integer) or address_of(r, operand.base) is None
    )
    if space is not None or not is_number:
        return access(address(r, operand, align, space))
    assert isinstance(operand, Address)
    number, offset = r.number(operand.base, 64), operand.offset
    kinds = [GLOBAL, LOCAL, SHARED] if r.has_local and i.opcode not in ("atom", "red") else [GLOBAL, SHARED]

    def reach(first: PtrType, *others: PtrType) -> SSAValue | None:
        """The access, to the first of these memories whose addresses begin at or below the number."""
        if not others:
            pointer = r.emit(ptx.IntToPtrOp(r.resized(number, first.space.data.address_bits), align, first))
            return access(r.shifted(pointer, offset))
        begins = r.emit(arith.CmpiOp(number, r.constant(GENERIC[first], i64), "uge"))
        outer, blocks = r.block, list[Block]()
        result: SSAValue | None = None
        for kinds in ((first,), others):
            blocks.append(Block())
            r.enter(blocks[-1])
            result = reach(*kinds)
            r.add(scf.YieldOp(*([] if result is None else [result])))
        r.enter(outer)
        op = r.add(scf.IfOp(begins, [] if result is None else [result.type], [blocks[0]], [blocks[1]]))
        return None if result is None else op.results[0]

    return reach(*kinds)


def tensor_map(r: Registers, operand: Operand) -> tuple[SSAValue, list[SSAValue]]:
    """A tensor map and coordinates. A map at an address that is a number is in global memory: a generic address of
    constant memory, or of a parameter, comes from the address of a variable (PTX ISA, cp.async.bulk.tensor).
    """
    if not isinstance(operand, Address) or isinstance(operand.base, Integer) or operand.offset:
        raise r.refuse("the tensor map is not supported")
    map = address_of(r, operand.base)
    if map is None:
        number = r.resized(r.number(operand.base, 64), GLOBAL.space.data.address_bits)
        map = r.emit(ptx.IntToPtrOp(number, ptx.MAP_BYTES, GLOBAL))
    if map.type == GLOBAL:
        map = r.emit(ptx.CvtaTensorMapOp(map))
    if map.type != MAP:
        raise r.refuse("the address is not the address of a tensor map")
    return map, [r.read(item, i32) for item in operand.coordinates]


def _space(i: Instruction) -> PtrType | None:
    return next((SPACES[word] for word in i.modifiers if word in SPACES), None)


def _hints(r: Registers, i: Instruction, plain: tuple[str, ...]) -> str:
    """The cache hints among the modifiers before the type, as one text."""
    hints: list[str] = []
    for word in i.modifiers[:-1]:
        if "nc" in hints and word in ("ca", "cg", "cs"):
            continue  # hints of a load that only reads have no effect besides
        if word in SPACES or word in ("v2", "v4", "v8", _HINT) or word in plain:
            continue
        if word in ("nc", "ca", "cg", "cs", "cv", "lu", "wb", "wt") or word.startswith(("L1::", "L2::")):
            hints.append(word)
        else:
            raise r.refuse(f"the modifier .{word} is not supported")
    return ".".join(hints)


def _policy(r: Registers, i: Instruction, rest: list[Operand]) -> SSAValue | None:
    """The cache policy, the last operand of an instruction that says so; takes it from the others."""
    policy = r.read(rest.pop(), i64) if _HINT in i.modifiers and rest else None
    if rest and i.opcode != "cp":
        raise r.refuse("the operands are not supported")
    return policy


def _element(r: Registers, i: Instruction, targets: tuple[Operand, ...]) -> Attribute:
    """The type of the elements that an access moves: that of floats where registers hold floats."""
    type = i.modifiers[-1]
    if is_float(type) or type == "b128":
        return type_of(type)
    names = [target.name for target in targets if isinstance(target, Register)]
    hints = {r.floats.get(name) for name in names}
    hint = hints.pop() if len(hints) == 1 else None
    bits = TYPE_BITS[type]
    return hint if hint is not None and type[0] == "b" and bits_of(hint) == bits else IntegerType(bits)


def _order(r: Registers, i: Instruction, order: str) -> tuple[str, str]:
    """The memory order of a load or a store, empty of a weak one, and its scope. A volatile one is relaxed."""
    if "volatile" in i.modifiers:
        return "relaxed", "sys"
    found = next((word for word in i.modifiers if word in (order, "relaxed", "mmio")), "")
    scope = next((word for word in i.modifiers if word in SCOPES), "gpu")
    return ("relaxed", "sys") if found == "mmio" else (found, scope)


def _load(r: Registers, i: Instruction) -> None:
    target, source, *rest = i.operands
    policy = _policy(r, i, rest)
    is_generic = isinstance(source, Address) and not isinstance(source.base, Symbol)
    if i.modifiers[0].startswith("param"):
        if not is_generic:
            _load_parameter(r, i)
            return
        i = replace(i, modifiers=i.modifiers[1:])  # a structure's address knows its memory
    targets = target.items if isinstance(target, Vector) else (target,)
    if (map := _map_at(r, source)) is not None:
        _load_map(r, i, targets, map)
        return
    element = _element(r, i, targets)
    bytes, signed = bits_of(element) // 8 * len(targets), i.modifiers[-1][0] == "s"
    order, scope = _order(r, i, "acquire")
    if order and not _is_private(r, source):
        _load_ordered(r, i, targets, order, scope)
        return
    type = VectorType(element, [len(targets)]) if len(targets) > 1 else element
    hints = _hints(r, i, (*_WEAK, *SCOPES, "relaxed", "volatile"))

    def access(pointer: SSAValue) -> SSAValue:
        is_global = pointer.type == GLOBAL
        return r.emit(ptx.LoadOp(pointer, type, bytes, hints if is_global else "", policy if is_global else None))

    value = accessed(r, i, source, bytes, access)
    assert value is not None
    for index, part in enumerate(targets):
        r.write(part, r.extract(value, index) if len(targets) > 1 else value, signed=signed)


def _map_at(r: Registers, operand: Operand) -> SSAValue | None:
    """The tensor map that an address is of, if it is a parameter's."""
    if not isinstance(operand, Address) or isinstance(operand.base, Integer):
        return None
    pointer = address_of(r, operand.base)
    return pointer if pointer is not None and pointer.type == MAP else None


def _load_map(r: Registers, i: Instruction, targets: Sequence[Operand], map: SSAValue) -> None:
    """Loads words of a tensor map that is a parameter, as kernels do that copy it to memory."""
    source = i.operands[1]
    assert isinstance(source, Address)
    if TYPE_BITS[i.modifiers[-1]] != 64:
        raise r.refuse("a tensor map is loaded by words of 64 bits")
    for index, part in enumerate(targets):
        r.write(part, r.emit(ptx.LoadTensorMapOp(map, source.offset + 8 * index)))


def _is_private(r: Registers, operand: Operand) -> bool:
    """Whether an address is one of local memory, which no other thread sees."""
    if not isinstance(operand, Address) or isinstance(operand.base, Integer):
        return False
    pointer = address_of(r, operand.base)
    return pointer is not None and pointer.type == LOCAL


def _load_ordered(r: Registers, i: Instruction, targets: Sequence[Operand], order: str, scope: str) -> None:
    """A load with a memory order: of each element of a vector one of its own (PTX ISA, Vector Data-types)."""
    bits, source = TYPE_BITS[i.modifiers[-1]], i.operands[1]
    assert isinstance(source, Address)
    for index, part in enumerate(targets):
        element = _element(r, i, (part,))
        at = replace(source, offset=source.offset + bits // 8 * index)

        def access(pointer: SSAValue, element: Attribute = element) -> SSAValue:
            if pointer.type == LOCAL:
                return r.emit(ptx.LoadOp(pointer, element, bits // 8))
            return r.emit(ptx.LoadAcquireOp(pointer, element, scope, relaxed=order == "relaxed"))

        value = accessed(r, i, at, bits // 8, access)
        assert value is not None
        r.write(part, value, signed=i.modifiers[-1][0] == "s")


def _load_parameter(r: Registers, i: Instruction) -> None:
    """ld.param: a parameter, or a part of a structure or of a call's result."""
    target, source = i.operands
    if not isinstance(source, Address) or not isinstance(source.base, Symbol):
        raise r.refuse("the address is not the address of a parameter")
    name, offset = source.base.name, source.offset + source.base.offset
    if name in r.results:
        r.write(target, r.results[name])
        return
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


def changed(r: Registers, pointer: SSAValue) -> SSAValue:
    """An address that is written. PtxError (E1009) for one of constant memory, which kernels do not write."""
    origin = pointer
    while isinstance(origin.owner, ptx.PtrAddOp):
        origin = origin.owner.ptr
    if any(origin == r.passed.get(name) for name in r.constants):
        raise r.refuse("the address is one of constant memory, which no kernel writes")
    return pointer


def _store(r: Registers, i: Instruction) -> None:
    target, source, *rest = i.operands
    policy = _policy(r, i, rest)
    if i.modifiers[0].startswith("param"):
        assert isinstance(target, Address)
        if isinstance(target.base, Symbol) and not target.offset and not isinstance(source, Vector):
            r.arguments[target.base.name] = source
            return
        raise r.refuse("the parameter is not supported")
    items = source.items if isinstance(source, Vector) else (source,)
    bits = TYPE_BITS[i.modifiers[-1]]
    _remember_addresses(r, target, items)
    type = type_of(i.modifiers[-1]) if is_float(i.modifiers[-1]) or bits == 128 else None
    values = [r.read(item, type) if type is not None else r.raw(item, bits) for item in items]
    if len({value.type for value in values}) > 1 or (bits < 128 and split_vector(values[0].type)[1]):
        values = [r.convert(value, IntegerType(bits)) for value in values]
    order, scope = _order(r, i, "release")
    if order and not _is_private(r, target):
        _store_ordered(r, i, values, order, scope)
        return
    bytes = bits // 8 * len(items)
    value = values[0] if len(values) == 1 else r.vector(values)
    hints = _hints(r, i, (*_WEAK, *SCOPES, "relaxed", "volatile"))

    def access(pointer: SSAValue) -> None:
        is_global = changed(r, pointer).type == GLOBAL
        r.add(ptx.StoreOp(value, pointer, bytes, hints if is_global else "", policy if is_global else None))

    accessed(r, i, target, bytes, access)


def _remember_addresses(r: Registers, target: Operand, items: Sequence[Operand]) -> None:
    """Remembers the addresses of variables that are stored, which printf takes from there."""
    if not isinstance(target, Address) or isinstance(target.base, Integer):
        return
    place = address_of(r, target.base)
    for index, item in enumerate(items):
        if place is not None and place.type == LOCAL and isinstance(item, Register) and item.name in r.texts:
            r.stored[place, target.offset + 8 * index] = r.texts[item.name]


def _store_ordered(r: Registers, i: Instruction, values: Sequence[SSAValue], order: str, scope: str) -> None:
    """A store with a memory order, of each element of a vector one of its own."""
    bits, target = TYPE_BITS[i.modifiers[-1]], i.operands[0]
    assert isinstance(target, Address)
    for index, value in enumerate(values):
        at = replace(target, offset=target.offset + bits // 8 * index)

        def access(pointer: SSAValue, value: SSAValue = value) -> None:
            if pointer.type == LOCAL:
                r.add(ptx.StoreOp(value, pointer, bits // 8))
                return
            r.add(ptx.StoreReleaseOp(value, pointer, scope=scope, relaxed=order == "relaxed"))

        accessed(r, i, at, bits // 8, access)


_CP_ASYNC = ("ca", "cg", "shared", "shared::cta", "global", "L2::64B", "L2::128B", "L2::256B", _HINT)


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
            policy = _policy(r, i, more)
            if not isinstance(size, Integer) or len(more) > 1:
                raise r.refuse("the operands are not supported")
            bytes = size.value
            given = None
            if more and r.is_predicate(more[0]):  # to be ignored
                ignored = r.read(more[0], i1)
                given = r.emit(arith.SelectOp(ignored, r.constant(0, i32), r.constant(bytes, i32)))
            elif more and not (isinstance(more[0], Integer) and more[0].value == bytes):
                given = r.read(more[0], i32)
            prefetch = next((word for word in rest if word.startswith("L2::") and word != _HINT), "")
            destination, origin = address(r, to, bytes, SHARED), address(r, source, bytes, GLOBAL)
            r.add(ptx.CpAsyncOp(cache, bytes, destination, origin, given, prefetch, policy))
        case _:
            raise r.refuse("the instruction is not supported")


def _fence(r: Registers, i: Instruction) -> None:
    if i.opcode == "membar":
        scopes = {"cta": "cta", "gl": "gpu", "sys": "sys"}
        if i.modifiers[0] not in scopes or len(i.modifiers) != 1:
            raise r.refuse("the fence is not supported")
        r.add(ptx.FenceOp("sc", scope=scopes[i.modifiers[0]]))
        return
    order = next((word for word in i.modifiers if word in ("acq_rel", "sc", "acquire", "release")), "acq_rel")
    scope = next((word for word in i.modifiers if word in SCOPES), None)
    if set(i.modifiers) - {order, scope}:
        raise r.refuse("the fence is not supported")
    r.add(ptx.FenceOp(order, scope=scope))


def clear_reserved(r: Registers) -> None:
    """Zeros in the reserved shared memory, before any thread goes on: CUDA's runtime leaves no garbage there."""
    is_first = r.emit(arith.CmpiOp(r.thread(), r.constant(0, i32), "eq"))
    outer, block = r.block, Block()
    r.enter(block)
    zeros = r.vector([r.constant(0, i32)] * 4)
    for at in range(0, RESERVED_BYTES, 16):
        r.add(ptx.StoreOp(zeros, r.shifted(r.symbols[RESERVED_SHARED], at), 16))
    r.add(scf.YieldOp())
    r.enter(outer)
    r.add(scf.IfOp(is_first, [], [block]))
    r.add(ptx.BarSyncOp(0, None, None))


MEMORY: Mapping[str, Rule] = MappingProxyType({
    "ld": _load, "st": _store, "cp": _copy, "fence": _fence, "membar": _fence, "ldu": _load,
})  # fmt: skip
"""The rules by opcode."""
