# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How copies between global memory and registers access it: `make_copy_atom(CopyG2ROp(), ..., invariant=True)`.

The enumerations are named as in the public API reference of CuTe's Python interface (`cute.nvgpu`); their meaning is
that of the modifiers of ld and st in the PTX ISA.
"""

from enum import Enum
from typing import Any

from ...base.errors import Code, TilefoldError
from .nvgpu import CopyG2ROp, CopyOp, CopyR2GOp, LoadCacheMode


class MemoryOrder(Enum):
    """The order of an access. Copies are weak; `cute.arch.load` and `store` have the others, by name."""

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


def cache_hints(op: CopyOp | str, attributes: dict[str, Any]) -> tuple[str, str]:
    """The cache hints of a copy's load and store in PTX's words. Raises TilefoldError (E5009) for an attribute that the
    copy does not have, and (E5002) for another value or an order that copies do not have.
    """
    taken = _TAKEN if isinstance(op, CopyG2ROp) else _STORES if isinstance(op, CopyR2GOp) else ()
    for name, value in attributes.items():
        if name not in taken:
            hint = f"it takes {', '.join(taken)}" if taken else "CopyG2ROp and CopyR2GOp take attributes of memory"
            raise TilefoldError(Code.BUILD_NAME, f"a copy of {op!r} has no attribute '{name}'", hint)
        if not isinstance(value, _TAKEN[name]):
            kind = _TAKEN[name].__name__
            raise TilefoldError(Code.BUILD_VALUE, f"{name} is {value!r}", f"write one of cute.nvgpu.{kind}")
    order = attributes.get("memory_order", MemoryOrder.WEAK)
    if order is not MemoryOrder.WEAK:
        hint = "use cute.arch.load or cute.arch.store with sem= and scope=, or cute.arch.inline_ptx"
        raise TilefoldError(Code.BUILD_VALUE, f"copies are weak, not {order.value}", hint)
    priority = attributes.get("l1c_evict_priority", CacheEvictionPriority.EVICT_NORMAL).value
    mode = "cg" if attributes.get("load_cache_mode") is LoadCacheMode.GLOBAL else ""
    prefetch = attributes.get("l2_prefetch_size", L2PrefetchSize.NONE).value
    if isinstance(op, CopyR2GOp):
        return "", priority
    return ".".join(word for word in (mode, "nc" * attributes.get("invariant", False), priority, prefetch) if word), ""
