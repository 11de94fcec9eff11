# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clusters, stores that an mbarrier counts, reductions by the async proxy, and changes of tensor maps (PTX ISA, mapa,
getctarank, barrier.cluster, st.async, red.async, cp.reduce.async.bulk, tensormap.replace, createpolicy).
"""

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i32, i64
from xdsl.ir import SSAValue

from ...dialects import ptx
from ...dialects.ptx.base import GLOBAL, SHARED, SHARED_CLUSTER, PtrType
from ...dialects.ptx.launch_control import ANSWER
from ...dialects.ptx.tensor_map import MAP_FIELDS
from .accesses import SCOPES, address, changed, tensor_map
from .arithmetic import ARITHMETIC
from .inference import aligned_by, is_leader, rounded_by
from .moves import Rule, address_of
from .registers import Registers, type_of
from .syntax import TYPE_BITS, Address, Float, Instruction, Integer, Operand, Vector


def _peer(r: Registers, i: Instruction) -> None:
    """mapa: an address in the shared memory of another block."""
    target, source, rank = i.operands
    pointer = address_of(r, source)
    if pointer is None:
        pointer = r.emit(ptx.IntToPtrOp(r.resized(r.read(source, IntegerType(_bits(i))), 32), 1, SHARED))
    r.write(target, r.emit(ptx.MapaOp(pointer, r.read(rank, i32))))


def _and(r: Registers, i: Instruction) -> None:
    """and: of an address with a mask that clears its lowest bits, or of shared memory with one that leaves that of the
    even block of a pair.
    """
    pointer, low, leads = address_of(r, i.operands[1]), rounded_by(i), is_leader(i)
    if leads and pointer is not None and pointer.type == SHARED:
        low = aligned_by(i)
    elif low is None or pointer is None or not isinstance(pointer.type, PtrType):
        ARITHMETIC["and"](r, i)
        return
    if low:
        number = r.read(i.operands[1], type_of(i.modifiers[-1]))
        over = r.emit(arith.AndIOp(number, r.constant(low, number.type)))
        pointer = r.emit(ptx.PtrAddOp(pointer, r.emit(arith.SubiOp(r.constant(0, number.type), over))))
    r.write(i.operands[0], r.emit(ptx.PairLeaderOp(pointer)) if leads else pointer)


def _launch_control(r: Registers, i: Instruction) -> None:
    """clusterlaunchcontrol.try_cancel and .query_cancel."""
    words, operands = i.modifiers, i.operands
    if words[0] == "try_cancel":
        answer, bar = address(r, operands[0], 16, SHARED), address(r, operands[1], 8, SHARED)
        r.add(ptx.TryCancelOp(answer, bar, "multicast::cluster::all" in words))
        return
    target, given = operands
    answer = r.read(given, ANSWER)
    if words[1] == "is_canceled":
        r.write(target, r.emit(ptx.IsCanceledOp(answer)))
        return
    found = r.add(ptx.FirstCtaidOp(answer)).results
    axis = next((word[-1] for word in words if word.startswith("get_first_ctaid::")), None)
    if axis is not None:
        r.write(target, found["xyz".index(axis)])
    elif isinstance(target, Vector):
        for item, result in zip(target.items, found, strict=False):
            r.write(item, result)
    else:
        raise r.refuse("the form is not supported")


def _bits(i: Instruction) -> int:
    return TYPE_BITS[i.modifiers[-1]]


def _rank(r: Registers, i: Instruction) -> None:
    """getctarank: of an address in shared memory. A generic one is a number below those of the other memories."""
    pointer = address_of(r, i.operands[1])
    if pointer is None:
        bits = 32 if "shared::cluster" in i.modifiers else _bits(i)
        number = r.resized(r.read(i.operands[1], IntegerType(bits)), 32)
        pointer = r.emit(ptx.IntToPtrOp(number, 1, SHARED_CLUSTER))
    if pointer.type not in (SHARED, SHARED_CLUSTER):
        raise r.refuse("the address is not one of shared memory")
    if pointer.type == SHARED:
        r.write(i.operands[0], r.emit(ptx.SregOp("cluster_ctarank")))
    else:
        r.write(i.operands[0], r.emit(ptx.GetCtaRankOp(pointer)))


def cluster_barrier(r: Registers, i: Instruction) -> None:
    """barrier.cluster.arrive and .wait."""
    aligned = "aligned" in i.modifiers
    if "arrive" in i.modifiers:
        r.add(ptx.ClusterArriveOp("relaxed" in i.modifiers, aligned=aligned))
    else:
        r.add(ptx.ClusterWaitOp(aligned=aligned))


def in_cluster(r: Registers, operand: Operand, align: int) -> SSAValue:
    """An address in the shared memory of any block of the cluster; that of the own block has its rank."""
    pointer = address(r, operand, align, SHARED_CLUSTER)
    if pointer.type == SHARED:
        pointer = r.emit(ptx.MapaOp(pointer, r.emit(ptx.SregOp("cluster_ctarank"))))
    return pointer


def store_async(r: Registers, i: Instruction) -> None:
    """st.async; one to global memory is a store that releases, for the caches of another device."""
    if "global" in i.modifiers:
        order, scope = _released(r, i)
        value = r.read(i.operands[1], type_of(i.modifiers[-1]))
        pointer = changed(r, address(r, i.operands[0], TYPE_BITS[i.modifiers[-1]] // 8, GLOBAL))
        r.add(ptx.StoreReleaseOp(value, pointer, scope=scope, relaxed=order != "release"))
        return
    where, source, bar = i.operands
    items = source.items if isinstance(source, Vector) else (source,)
    type = type_of(i.modifiers[-1])
    values = [r.read(item, type) for item in items]
    value = values[0] if len(values) == 1 else r.vector(values)
    bytes = TYPE_BITS[i.modifiers[-1]] // 8 * len(items)
    r.add(ptx.StAsyncOp(value, in_cluster(r, where, bytes), in_cluster(r, bar, 8)))


def _released(r: Registers, i: Instruction) -> tuple[str | None, str]:
    """The order and the scope of an asynchronous access to global memory."""
    scope = next((word for word in i.modifiers if word in SCOPES), "sys")
    return ("release" if "release" in i.modifiers else None), scope


def reduce_async(r: Registers, i: Instruction) -> None:
    """red.async; one in global memory is an atomic operation that releases."""
    kind, type = i.modifiers[-2:]
    kind = f"u{kind}" if kind in ("min", "max") and type[0] == "u" else kind
    if "mmio" in i.modifiers:
        order, scope = _released(r, i)
        pointer = changed(r, address(r, i.operands[0], TYPE_BITS[type] // 8, GLOBAL))
        r.add(ptx.RedOp(kind, pointer, r.read(i.operands[1], type_of(type)), order=order, scope=scope))
        return
    where, source, bar = i.operands
    value = r.read(source, type_of(type))
    r.add(ptx.RedAsyncOp(value, in_cluster(r, where, 4), in_cluster(r, bar, 8), kind))


def reduce_bulk(r: Registers, i: Instruction) -> None:
    """cp.reduce.async.bulk to global memory, also of a tensor, and to the shared memory of a block of the cluster."""
    words = [word for word in i.modifiers[2:] if word not in ("tile", "bulk_group", "noftz")]
    policy = r.read(i.operands[-1], i64) if "L2::cache_hint" in words else None
    words = [word for word in words if word != "L2::cache_hint"]
    match words:
        case ["global", "shared::cta", kind, type]:
            to, source = address(r, i.operands[0], 16, GLOBAL), address(r, i.operands[1], 16, SHARED)
            r.add(ptx.BulkReduceOp(f"{kind}.{type}", to, source, r.read(i.operands[2], i32), policy))
        case ["shared::cluster", "shared::cta", "mbarrier::complete_tx::bytes", kind, type]:
            to, source = in_cluster(r, i.operands[0], 16), address(r, i.operands[1], 16, SHARED)
            name = f"{kind}.{f'b{type[1:]}' if kind in ('and', 'or', 'xor') else type}"
            bar = in_cluster(r, i.operands[3], 8)
            r.add(ptx.BulkSendOp(to, source, r.read(i.operands[2], i32), bar, name))
        case ["tensor", _, "global", "shared::cta", kind]:
            map, coords = tensor_map(r, i.operands[0])
            source = address(r, i.operands[1], 16, SHARED)
            r.add(ptx.TensorReduceOp(kind, map, coords, source, policy))
        case _:
            raise r.refuse("the form is not supported")


def _change_map(r: Registers, i: Instruction) -> None:
    """tensormap.replace and tensormap.cp_fenceproxy."""
    match i.modifiers:
        case ("cp_fenceproxy", "global", "shared::cta", "tensormap::generic", "release", scope, "sync", "aligned"):
            to, source = address(r, i.operands[0], 128, GLOBAL), address(r, i.operands[1], 128, SHARED)
            r.add(ptx.TensorMapCpFenceOp(to, source, scope=scope))
        case ("replace", "tile", field, *_) if field in MAP_FIELDS:
            where, *rest = i.operands
            known, ordinal = MAP_FIELDS[field], None
            space = SHARED if any(word.startswith("shared") for word in i.modifiers) else GLOBAL
            if known.dimensions:
                given = rest.pop(0)
                ordinal = given.value if isinstance(given, Integer) else -1
            (value,) = rest
            pointer = address(r, where, 128, space)
            if known.words:
                if not isinstance(value, Integer) or not 0 <= value.value < len(known.words):
                    raise r.refuse(f"the value of {field} is not supported")
                r.add(ptx.TensorMapReplaceOp(field, pointer, None, ordinal, known.words[value.value]))
                return
            number = address_of(r, value) if field == "global_address" else None
            if number is None or number.type != GLOBAL:
                number = r.read(value, IntegerType(known.bits))
            r.add(ptx.TensorMapReplaceOp(field, pointer, number, ordinal))
        case _:
            raise r.refuse("the form is not supported")


def fence_of_maps(r: Registers, i: Instruction) -> bool:
    """Appends a fence of the proxy of tensor maps; False for another fence."""
    match i.modifiers:
        case ("proxy", "tensormap::generic", "release", scope):
            r.add(ptx.FenceTensorMapReleaseOp(scope=scope))
        case ("proxy", "tensormap::generic", "acquire", scope):
            r.add(ptx.FenceTensorMapAcquireOp(address(r, _first(i), 128, GLOBAL), scope=scope))
        case _:
            return False
    return True


def _first(i: Instruction) -> Operand:
    where = i.operands[0]
    assert isinstance(where, Address)
    return where


def _policy(r: Registers, i: Instruction) -> None:
    """createpolicy.fractional; those of ranges of addresses have the same value, which means nothing else."""
    target, *rest = i.operands
    priorities = [word for word in i.modifiers if word.startswith("L2::")]
    if i.modifiers[0] not in ("fractional", "range", "cvt") or (not priorities and i.modifiers[0] != "cvt"):
        raise r.refuse("the form is not supported")
    fraction = 1.0
    if i.modifiers[0] == "fractional" and rest:
        fraction = rest[0].value if isinstance(rest[0], Float) else 1.0  # which accesses it is of has no effect here
    if i.modifiers[0] == "cvt":
        r.write(target, r.constant(0, i64))
        return
    r.write(target, r.emit(ptx.CreatePolicyOp(".".join(priorities), fraction)))


CLUSTERS: Mapping[str, Rule] = MappingProxyType({
    "and": _and, "clusterlaunchcontrol": _launch_control, "mapa": _peer, "getctarank": _rank,
    "tensormap": _change_map, "createpolicy": _policy,
})  # fmt: skip
"""The rules by opcode."""
