# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mbarriers, copies by the async proxy, and multiplications by warpgroups (PTX ISA, mbarrier, cp.async.bulk, wgmma).

The registers of a wgmma's accumulators, and those of A, are memory of the thread here, as fragments are: they are in
use while the multiplication runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i1, i16, i32, i64
from xdsl.ir import Block, SSAValue

from ...base.element_types import BY_PTX
from ...base.spaces import RMEM, SMEM
from ...dialects import ptx
from ...dialects.ptx.base import GLOBAL, SHARED, SHARED_CLUSTER
from ...layout.atoms.contract import Major
from ...layout.atoms.mma_sync import registers
from ...layout.atoms.numbers import MmaOperation
from ...layout.atoms.wgmma import wgmma
from .accesses import MEMORY, address, tensor_map
from .atomics import atomic
from .caches import CACHES
from .clusters import CLUSTERS, fence_of_maps, in_cluster, reduce_async, reduce_bulk, store_async
from .moves import Rule, address_of
from .registers import Registers
from .syntax import Address, Instruction, Integer, Operand, Register, Vector

_PRIORITIES = ("L2::evict_last", "L2::evict_normal", "L2::evict_first")
_UNTOLD = ("tile", "tile::gather4", *_PRIORITIES)
"""Words of a prefetch that tell nothing of the bytes."""
_GROUPS = ("cta_group::1", "cta_group::2")


def _barrier_at(r: Registers, operand: Operand) -> SSAValue:
    """The address of an mbarrier in the own block or the cluster."""
    if isinstance(operand, Address) and not isinstance(operand.base, Integer):
        pointer = address_of(r, operand.base)
        if pointer is not None and pointer.type == SHARED_CLUSTER:
            return r.shifted(pointer, operand.offset)
    return address(r, operand, 8, SHARED)


def _mbarrier(r: Registers, i: Instruction) -> None:
    words = [word for word in i.modifiers if word not in ("shared", "shared::cta", "shared::cluster", "b64")]
    scope = next((word for word in words if word in ("cta", "cluster")), None)
    plain = [word for word in words if word not in ("cta", "cluster", "acquire", "release", "relaxed")]
    operands = i.operands
    match plain:
        case ["init"]:
            r.add(ptx.MbarrierInitOp(address(r, operands[0], 8, SHARED), r.read(operands[1], i32)))
        case ["inval"]:
            r.add(ptx.MbarrierInvalOp(address(r, operands[0], 8, SHARED)))
        case ["arrive"] | ["arrive", "noComplete"]:
            _arrive(r, i, scope)
        case ["arrive_drop"] | ["arrive_drop", "noComplete"]:
            _drop(r, operands)
        case ["arrive_drop", "expect_tx"]:
            r.add(ptx.MbarrierExpectTxOp(_barrier_at(r, operands[1]), r.read(operands[2], i32)))
            _drop(r, operands[:2])
        case ["arrive", "expect_tx"] if _is_read(r, operands[0]):  # the ISA defines it as these two
            r.add(ptx.MbarrierExpectTxOp(_barrier_at(r, operands[1]), r.read(operands[2], i32)))
            _arrive(r, replace(i, operands=operands[:2]), scope)
        case ["arrive", "expect_tx"]:
            r.add(ptx.MbarrierArriveExpectTxOp(_barrier_at(r, operands[1]), r.read(operands[2], i32)))
        case ["pending_count"]:  # of the state that an arrival returns, in its upper half
            state = r.emit(arith.ShRUIOp(r.read(operands[1], i64), r.constant(32, i64)))
            r.write(operands[0], r.resized(state, 32))
        case ["expect_tx"]:
            r.add(ptx.MbarrierExpectTxOp(_barrier_at(r, operands[0]), r.read(operands[1], i32)))
        case ["complete_tx"]:
            r.add(ptx.MbarrierCompleteTxOp(_barrier_at(r, operands[0]), r.read(operands[1], i32)))
        case ["try_wait" | "test_wait" as test, "parity"]:
            kind = ptx.MbarrierTryWaitOp if test == "try_wait" else ptx.MbarrierTestWaitOp
            bar, parity = address(r, operands[1], 8, SHARED), r.read(operands[2], i32)
            r.write(operands[0], r.emit(kind(bar, parity, scope)))
        case ["try_wait" | "test_wait"]:
            bar, state = address(r, operands[1], 8, SHARED), r.read(operands[2], i64)
            r.write(operands[0], r.emit(ptx.MbarrierTryWaitStateOp(bar, state)))
        case ["wait", "parity"]:
            r.add(ptx.MbarrierWaitOp(address(r, operands[1], 8, SHARED), r.read(operands[2], i32), scope))
            r.write(operands[0], r.constant(1, i1))
        case _:
            raise r.refuse("the form is not supported")


def _arrive(r: Registers, i: Instruction, scope: str | None) -> None:
    state, where, *count = i.operands
    bar = _barrier_at(r, where)
    if _is_read(r, state):
        if bar.type != SHARED:
            raise r.refuse("an arrival at the mbarrier of a peer has no state")
        if count and count[0] != Integer(1):  # all but the last arrive first: they do not end the phase
            _arrive_several(r, bar, r.read(count[0], i32))
        r.write(state, r.emit(ptx.MbarrierArriveStateOp(bar)))
        return
    given = None if not count or count[0] == Integer(1) else r.read(count[0], i32)
    near = bar.type == SHARED_CLUSTER and scope != "cluster"
    r.add(ptx.MbarrierArriveOp(bar, given, "cta" if near else None))


def _drop(r: Registers, operands: Sequence[Operand]) -> None:
    """Arrivals that the phases behind this one do not need; the state is that before the first of them."""
    state, where, *count = operands
    bar = address(r, where, 8, SHARED)
    times = None if not count or count[0] == Integer(1) else r.read(count[0], i32)
    r.write(state, r.emit(ptx.MbarrierArriveStateOp(bar, times, drop=True)))


def _arrive_several(r: Registers, bar: SSAValue, count: SSAValue) -> None:
    """One arrival less than the count."""
    others = r.emit(arith.SubiOp(count, r.constant(1, i32)))
    is_several = r.emit(arith.CmpiOp(others, r.constant(0, i32), "ne"))
    outer, block = r.block, Block()
    r.enter(block)
    r.add(ptx.MbarrierArriveOp(bar, others, None))
    r.add(scf.YieldOp())
    r.enter(outer)
    r.add(scf.IfOp(is_several, [], [block]))


def _is_read(r: Registers, state: Operand) -> bool:
    """Whether an instruction reads the state that an arrival returns."""
    return isinstance(state, Register) and state.name in r.read_names


def _bulk_copy(r: Registers, i: Instruction) -> None:
    """cp.async.bulk and its groups."""
    pair = "cta_group::2" in i.modifiers
    words, operands = tuple(word for word in i.modifiers[2:] if word not in _GROUPS), i.operands
    match words:
        case ("commit_group",):
            r.add(ptx.BulkCommitGroupOp())
        case ("wait_group",) | ("wait_group", "read") if isinstance(operands[0], Integer):
            r.add(ptx.BulkWaitGroupOp(operands[0].value, "read" in words))
        case ("tensor", _, "shared::cluster" | "shared::cta", "global", *rest):
            left = [word for word in rest if word not in ("tile", "tile::gather4", "mbarrier::complete_tx::bytes")]
            mask, policy = _optional(r, left, operands[3:])
            map, coords = tensor_map(r, operands[1])
            to, bar = address(r, operands[0], 16, SHARED), _barrier_at(r, operands[2])
            rows = "tile::gather4" in rest
            r.add(ptx.TensorLoadOp(map, coords, to, bar, mask, policy, pair=pair, gather4=rows))
        case ("tensor", _, "global", "shared::cta", *rest):
            left = [word for word in rest if word not in ("tile", "tile::scatter4", "bulk_group")]
            _, policy = _optional(r, left, operands[2:])
            map, coords = tensor_map(r, operands[0])
            source = address(r, operands[1], 16, SHARED)
            r.add(ptx.TensorStoreOp(map, coords, source, policy, scatter4="tile::scatter4" in rest))
        case ("shared::cluster" | "shared::cta", "global", "mbarrier::complete_tx::bytes", *rest):
            mask, policy = _optional(r, rest, operands[4:])
            to, source = address(r, operands[0], 16, SHARED), address(r, operands[1], 16, GLOBAL)
            bar = address(r, operands[3], 8, SHARED)
            r.add(ptx.BulkLoadOp(to, source, r.read(operands[2], i32), bar, mask, policy))
        case ("shared::cluster", "shared::cta", "mbarrier::complete_tx::bytes"):
            to, source = in_cluster(r, operands[0], 16), address(r, operands[1], 16, SHARED)
            r.add(ptx.BulkSendOp(to, source, r.read(operands[2], i32), in_cluster(r, operands[3], 8)))
        case ("prefetch", "L2", "global", *rest):
            _, policy = _optional(r, [word for word in rest if word not in _PRIORITIES], operands[2:])
            r.add(ptx.BulkPrefetchOp(address(r, operands[0], 16, GLOBAL), r.read(operands[1], i32), policy))
        case ("prefetch", "tensor", _, "L2", "global", *rest):
            _, policy = _optional(r, [word for word in rest if word not in _UNTOLD], operands[1:])
            map, coords = tensor_map(r, operands[0])
            if "tile::gather4" not in rest:  # the rows may lie anywhere, and nothing is checked of them
                r.add(ptx.TensorPrefetchOp(map, coords, policy))
        case ("global", "shared::cta", "bulk_group", *rest):
            masked = "cp_mask" in rest
            mask = r.read(operands[-1], i16) if masked else None
            given = operands[3 : len(operands) - masked]
            _, policy = _optional(r, [word for word in rest if word != "cp_mask"], given)
            to, source = address(r, operands[0], 16, GLOBAL), address(r, operands[1], 16, SHARED)
            r.add(ptx.BulkStoreOp(to, source, r.read(operands[2], i32), policy, mask))
        case _:
            raise r.refuse("the instruction is not supported")


def _optional(
    r: Registers, words: Sequence[str], operands: Sequence[Operand]
) -> tuple[SSAValue | None, SSAValue | None]:
    """The mask of a multicast and the cache policy, which stand behind the other operands."""
    rest, mask, policy = list(operands), None, None
    for word in words:
        if word == "multicast::cluster":
            mask = r.read(rest.pop(0), i16)
        elif word == "L2::cache_hint":
            policy = r.read(rest.pop(0), i64)
        else:
            raise r.refuse(f"the modifier .{word} is not supported")
    return mask, policy


def fragments_in(instruction: Instruction) -> list[Vector]:
    """The registers of an instruction that are in use while it runs asynchronously."""
    if (instruction.opcode, *instruction.modifiers[:1]) != ("wgmma", "mma_async"):
        return []
    return [operand for operand in instruction.operands[:2] if isinstance(operand, Vector)]


def _wgmma(r: Registers, i: Instruction) -> None:
    match i.modifiers[0]:
        case "fence":
            r.add(ptx.WgmmaFenceOp())
        case "commit_group":
            r.add(ptx.WgmmaCommitGroupOp())
        case "wait_group" if isinstance(i.operands[0], Integer):
            r.add(ptx.WgmmaWaitGroupOp(i.operands[0].value))
        case "mma_async":
            _multiply(r, i)
        case _:
            raise r.refuse("the form is not supported")


def _multiply(r: Registers, i: Instruction) -> None:
    is_sparse = "sp" in i.modifiers
    d, a, b, *rest = i.operands
    metadata, select = (rest.pop(0), rest.pop(0)) if is_sparse else (None, Integer(0))
    scale, *immediates = rest
    shape, *types = [word for word in i.modifiers[1:] if word not in ("sp", "sync", "aligned", "satfinite")]
    numbers = [number.value for number in immediates if isinstance(number, Integer)]
    known = len(numbers) == len(immediates) and isinstance(select, Integer)
    if not isinstance(d, Vector) or len(types) != 3 or not known or not isinstance(select, Integer):
        raise r.refuse("the operands are not supported")
    n, k = shape.removeprefix("m64n").split("k")
    in_registers = isinstance(a, Vector)
    signs, transposed = (numbers[:2], numbers[2:]) if types[0] != "s32" else ([1, 1], [])
    operation = MmaOperation.SATURATE if "satfinite" in i.modifiers else MmaOperation.MULTIPLY_ADD
    orders = [Major.MN if transpose else Major.K for transpose in ([0] if in_registers else []) + transposed]
    majors = (orders[0], orders[1]) if BY_PTX[types[1]].bits == 16 else (Major.K, Major.K)
    atom = wgmma(int(n), (types[0], types[1], types[2]), RMEM if in_registers else SMEM, majors, operation,
                 is_sparse)  # fmt: skip
    if atom.shape[2] != int(k):
        raise r.refuse("the instruction does not support this shape")
    if len(d.items) != registers(atom, "D").count:
        raise r.refuse(f"the accumulators are {registers(atom, 'D').count} registers, not {len(d.items)}")
    left = r.fragment(a) if isinstance(a, Vector) else r.read(a, i64)
    accumulates = r.constant(scale.value, i1) if isinstance(scale, Integer) else r.read(scale, i1)
    negates_a, negates_b = (sign < 0 for sign in (*signs, 1, 1)[:2])
    r.add(
        ptx.WgmmaMmaAsyncOp(
            atom.name,
            r.fragment(d),
            left,
            r.read(b, i64),
            accumulates,
            negates_a,
            negates_b,
            None if metadata is None else r.read(metadata, i32),
            select.value if is_sparse else None,
        )
    )


def _setmaxnreg(r: Registers, i: Instruction) -> None:
    (number,) = i.operands
    if not isinstance(number, Integer):
        raise r.refuse("the operand is not a constant")
    r.add(ptx.SetMaxNRegOp(number.value, i.modifiers[0] == "inc"))


def _proxy_fence(r: Registers, i: Instruction) -> bool:
    """Appends a fence of a proxy or of mbarriers; False for another fence."""
    match i.modifiers:
        case ("proxy", "async", *rest):
            spaces = {"shared::cta": "shared", "shared::cluster": "shared", "global": "global"}
            r.add(ptx.FenceProxyAsyncOp(spaces[rest[0]] if rest else None))
        case ("proxy", "alias", *_):  # no address has another name
            pass
        case ("mbarrier_init", "release", "cluster"):
            r.add(ptx.FenceMbarrierInitOp())
        case (*proxy, "acquire" | "release" as order, "sync_restrict::shared::cluster" | "sync_restrict::shared::cta",
              "cluster") if proxy in ([], ["proxy", "async::generic"]):  # fmt: skip
            if proxy:
                r.add(ptx.FenceProxyAsyncOp("shared"))
            r.add(ptx.FenceOp(order, scope="cluster"))
        case _:
            return False
    return True


def _copy(r: Registers, i: Instruction) -> None:
    if i.modifiers[:3] == ("reduce", "async", "bulk"):
        reduce_bulk(r, replace(i, modifiers=i.modifiers[1:]))
    elif i.modifiers[:2] == ("async", "bulk"):
        _bulk_copy(r, i)
    elif i.modifiers[:3] == ("async", "mbarrier", "arrive"):
        r.add(ptx.CpAsyncMbarrierArriveOp(_barrier_at(r, i.operands[0]), "noinc" in i.modifiers))
    else:
        MEMORY["cp"](r, i)


def _fence(r: Registers, i: Instruction) -> None:
    if not (_proxy_fence(r, i) or fence_of_maps(r, i)):
        MEMORY["fence"](r, i)


def _prefetch(r: Registers, i: Instruction) -> None:
    if i.modifiers[-1:] == ("tensormap",):
        r.add(ptx.PrefetchTensorMapOp(tensor_map(r, i.operands[0])[0]))
    else:
        CACHES["prefetch"](r, i)


def _store(r: Registers, i: Instruction) -> None:
    if i.modifiers[:1] == ("bulk",):
        where, size, value = i.operands
        if value != Integer(0):
            raise r.refuse("the value that is stored is 0")
        r.add(ptx.StoreBulkOp(address(r, where, 8, SHARED), r.read(size, i64)))
        return
    (store_async if i.modifiers[:1] == ("async",) else MEMORY["st"])(r, i)


def _reduce(r: Registers, i: Instruction) -> None:
    (reduce_async if i.modifiers[:1] == ("async",) else atomic)(r, i)


HOPPER: Mapping[str, Rule] = MappingProxyType({
    **CLUSTERS, **CACHES, "st": _store, "red": _reduce, "atom": atomic,
    "mbarrier": _mbarrier, "wgmma": _wgmma, "setmaxnreg": _setmaxnreg, "cp": _copy, "fence": _fence, "membar": _fence,
    "prefetch": _prefetch,
})  # fmt: skip
"""The rules by opcode, also of those of `MEMORY` that have forms for the async proxy."""
