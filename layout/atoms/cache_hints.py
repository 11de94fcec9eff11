# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cache hints of loads, stores and cp.async, as PTX writes them after the state space (PTX ISA, ld, ld.global.nc,
st, cp.async, createpolicy; section Cache Operators).

A hint is the modifiers in the order of the instruction, such as `nc.L1::no_allocate.L2::128B`. It changes where data is
kept, never the data moved; only `nc` has a precondition: the data must not change while the kernel runs.

How the L2 cache keeps data is an operand of the instruction, a policy, for which `L2::cache_hint` stands among the
modifiers. The hint of a copy atom names the priority in that place: `L1::no_allocate.L2::evict_first`.
"""

from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from types import MappingProxyType

from ...base.errors import Code, LayoutError
from .copy_atom import CopyAtom
from .instructions import AutoMove, CpAsync, Move

_PREFETCH = ("L2::64B", "L2::128B", "L2::256B")
_EVICTION = tuple(f"L1::{priority}" for priority in ("evict_normal", "evict_unchanged", "evict_first", "evict_last"))
_L1 = (*_EVICTION, "L1::no_allocate")


def _loads() -> Iterator[str]:
    for operator in ("ca", "cg", "cs", "lu", "cv", *_L1, "nc", *(f"{op}.nc" for op in ("ca", "cg", "cs"))):
        yield from (operator, *(f"{operator}.{prefetch}" for prefetch in _PREFETCH))
    for priority in _L1:
        yield from (f"nc.{priority}", *(f"nc.{priority}.{prefetch}" for prefetch in _PREFETCH))
    yield from _PREFETCH


LOAD_HINTS = frozenset(_loads())
"""The hints of a load of global memory: a cache operator or an eviction priority, `nc`, a prefetch size."""
STORE_HINTS = frozenset(("wb", "cg", "cs", "wt", *_L1))
"""The hints of a store to global memory: a cache operator or an eviction priority."""
PREFETCH_HINTS = frozenset(_PREFETCH)
"""The hints of a cp.async: a prefetch size."""

_L2 = tuple(f"L2::{priority}" for priority in ("evict_first", "evict_last", "evict_normal", "evict_unchanged"))
POLICIES = frozenset(
    (*_L2, *(f"{priority}.L2::{rest}" for priority in _L2 for rest in ("evict_first", "evict_unchanged")))
)
"""The parts of a policy: the priority of a fraction of the accesses, and of the others."""


def with_policy(hint: str, word: str = "L2::cache_hint") -> str:
    """`hint` with the word that stands for a policy, which is before the prefetch size."""
    words = hint.split(".") if hint else []
    at = len(words) - (words[-1:] != [] and words[-1] in _PREFETCH)
    return ".".join((*words[:at], word, *words[at:]))


def split_policy(hint: str) -> tuple[str, str]:
    """The hint of a copy atom without the priority in the L2 cache, and that priority; either may be empty."""
    words = hint.split(".")
    return ".".join(word for word in words if word not in _L2), next((word for word in words if word in _L2), "")


def _with_priorities(hints: frozenset[str]) -> frozenset[str]:
    return hints | {with_policy(hint, priority) for hint in (*hints, "") for priority in _L2}


_ATOM_HINTS = MappingProxyType({
    "load": _with_priorities(LOAD_HINTS),
    "store": _with_priorities(STORE_HINTS),
    "cp.async": _with_priorities(PREFETCH_HINTS),
})  # fmt: skip
"""The hints of a copy atom by the kind of instruction, as messages name it."""


def hint_requires(hint: str) -> tuple[int, int]:
    """The oldest target with a hint: sm and ten times the PTX version (the sections' target notes)."""
    if any(word in hint for word in ("L2::256B", "L2::evict", "L2::cache_hint")):
        return 80, 74
    if "L2::" in hint:
        return 75, 74
    return (70, 74) if "L1::" in hint else (70, 60)


def check_hint(instruction: str, hint: str, allowed: frozenset[str]) -> None:
    """Raises `LayoutError` (E0317) for a hint that PTX does not have; `instruction` names its kind."""
    if hint not in allowed:
        near = get_close_matches(hint[:80], sorted(allowed), n=3, cutoff=0.4)
        raise LayoutError(
            Code.CACHE_HINT,
            f"{hint[:80]!r} is not a cache hint of a {instruction}",
            f"similar ones: {', '.join(near)}" if near else "",
        )


def with_hints(atom: CopyAtom, load: str = "", store: str = "") -> CopyAtom:
    """`atom` with cache hints for its load and its store of global memory.

    Raises `LayoutError` (E0317) for a hint that the instruction does not have.
    """
    is_async = isinstance(atom.instruction, CpAsync)
    if not isinstance(atom.instruction, Move | AutoMove | CpAsync) or (is_async and store):
        raise LayoutError(
            Code.CACHE_HINT,
            f"{atom.name} has no cache hint for its {'store' if store else 'load'}",
            "copies by ld and st take them for both, cp.async for the load",
        )
    for kind, hint in (("cp.async" if is_async else "load", load), ("store", store)):
        if hint:
            check_hint(kind, hint, _ATOM_HINTS[kind])
    needs = [hint_requires(hint) for hint in (load, store) if hint]
    sm, ptx = max([need[0] for need in needs], default=0), max([need[1] for need in needs], default=0)
    contract = replace(atom.contract, targets=atom.targets.since(sm, ptx))
    return replace(atom, load_hint=load, store_hint=store, contract=contract)
