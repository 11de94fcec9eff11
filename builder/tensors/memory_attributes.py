# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How copies between global memory and registers access it: `make_copy_atom(CopyG2ROp(), ..., invariant=True)`.

The enumerations are named as in the public API reference of CuTe's Python interface (`cute.nvgpu`); their meaning is
that of the modifiers of ld and st in the PTX ISA.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from ...base.errors import Code, TilefoldError
from .nvgpu import CopyG2ROp, CopyOp, CopyR2GOp, LoadCacheMode


class MemoryOrder(Enum):
    """The order of an access. A load is weak, relaxed, acquiring or volatile, a store weak, relaxed, releasing or
    volatile. `VOLATILE` is relaxed among the threads of all devices, `SYS` (PTX ISA, ld.volatile).
    """

    WEAK = "weak"
    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    VOLATILE = "volatile"


class MemoryScope(Enum):
    """The threads that an access is ordered for. A weak one is ordered only for the thread itself."""

    CTA = "cta"
    CLUSTER = "cluster"
    GPU = "gpu"
    SYS = "sys"


class L2PrefetchSize(Enum):
    """The bytes around a load that are fetched into the L2 cache."""

    NONE = ""
    SIZE_64B = "L2::64B"
    SIZE_128B = "L2::128B"
    SIZE_256B = "L2::256B"


class CacheEvictionPriority(Enum):
    """How long the L1 cache keeps data."""

    EVICT_NORMAL = ""
    EVICT_FIRST = "L1::evict_first"
    EVICT_LAST = "L1::evict_last"
    EVICT_UNCHANGED = "L1::evict_unchanged"
    NO_ALLOCATE = "L1::no_allocate"


_TAKEN = {
    "memory_order": MemoryOrder, "memory_scope": MemoryScope, "l2_prefetch_size": L2PrefetchSize,
    "l1c_evict_priority": CacheEvictionPriority, "load_cache_mode": LoadCacheMode, "invariant": bool,
}  # fmt: skip
_STORES = ("memory_order", "memory_scope", "l1c_evict_priority")


@dataclass(frozen=True, slots=True)
class AccessOrder:
    """The memory order of a copy's load, or of its store, and its scope in PTX's word."""

    loads: bool
    word: str
    scope: str

    @property
    def is_relaxed(self) -> bool:
        """Whether it orders no other accesses."""
        return self.word in ("relaxed", "volatile")


@dataclass(frozen=True, slots=True)
class PeerStores:
    """A copy whose stores to the shared memory of a block of the cluster are asynchronous."""


_ORDERS = {
    True: (MemoryOrder.WEAK, MemoryOrder.RELAXED, MemoryOrder.ACQUIRE, MemoryOrder.VOLATILE),
    False: (MemoryOrder.WEAK, MemoryOrder.RELAXED, MemoryOrder.RELEASE, MemoryOrder.VOLATILE),
}


def access_order(op: CopyOp | str, attributes: dict[str, Any]) -> AccessOrder | None:
    """The memory order of a copy, whose attributes `cache_hints` has checked; None for a weak one. A volatile one has
    the scope `sys`. Raises TilefoldError (E5002) for an order that a load or a store does not have, for one without a
    scope, and for one with caches.
    """
    order, loads = attributes.get("memory_order", MemoryOrder.WEAK), isinstance(op, CopyG2ROp)
    if order not in _ORDERS[loads]:
        hint = f"it is {', '.join(each.value for each in _ORDERS[loads][:-1])} or {_ORDERS[loads][-1].value}"
        text = f"a {'load' if loads else 'store'} is not {order.value}"
        raise TilefoldError(Code.BUILD_VALUE, text, hint)
    if order is MemoryOrder.WEAK:
        return None
    if any(cache_hints(op, attributes)):
        text = f"a copy with the order {order.value} takes no attributes of caches"
        raise TilefoldError(Code.BUILD_VALUE, text, "leave out one of them")
    if order is MemoryOrder.VOLATILE:
        return AccessOrder(loads, order.value, MemoryScope.SYS.value)
    if "memory_scope" not in attributes:
        text = f"a copy with the order {order.value} needs a scope"
        raise TilefoldError(Code.BUILD_VALUE, text, "give make_copy_atom one, such as cute.nvgpu.MemoryScope.GPU")
    return AccessOrder(loads, order.value, attributes["memory_scope"].value)


def cache_hints(op: CopyOp | str, attributes: dict[str, Any]) -> tuple[str, str]:
    """The cache hints of a copy's load and store in PTX's words. Raises TilefoldError (E5009) for an attribute that the
    copy does not have, and (E5002) for another value.
    """
    taken = _TAKEN if isinstance(op, CopyG2ROp) else _STORES if isinstance(op, CopyR2GOp) else ()
    for name, value in attributes.items():
        if name not in taken:
            hint = f"it takes {', '.join(taken)}" if taken else "CopyG2ROp and CopyR2GOp take attributes of memory"
            raise TilefoldError(Code.BUILD_NAME, f"a copy of {op!r} has no attribute '{name}'", hint)
        if not isinstance(value, _TAKEN[name]):
            kind = _TAKEN[name].__name__
            raise TilefoldError(Code.BUILD_VALUE, f"{name} is {value!r}", f"write one of cute.nvgpu.{kind}")
    priority = attributes.get("l1c_evict_priority", CacheEvictionPriority.EVICT_NORMAL).value
    mode = "cg" if attributes.get("load_cache_mode") is LoadCacheMode.GLOBAL else ""
    prefetch = attributes.get("l2_prefetch_size", L2PrefetchSize.NONE).value
    if isinstance(op, CopyR2GOp):
        return "", priority
    return ".".join(word for word in (mode, "nc" * attributes.get("invariant", False), priority, prefetch) if word), ""
