# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions on caches, and for a profiler (PTX ISA, prefetch, prefetchu, applypriority, discard, pmevent)."""

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.dialects.builtin import i64

from ...dialects import ptx
from ...dialects.ptx.base import GLOBAL
from ...dialects.ptx.inline import DISCARD
from .accesses import address, changed
from .moves import Rule
from .registers import Registers
from .syntax import Instruction, Integer


def _prefetch(r: Registers, i: Instruction) -> None:
    """A prefetch, a priority in a cache and an event of the profiler change nothing that is modelled."""
    if i.opcode == "prefetch" and i.modifiers[-1] not in ("L1", "L2", "L2::evict_last", "L2::evict_normal"):
        raise r.refuse("the instruction is not supported")


def _discard(r: Registers, i: Instruction) -> None:
    """discard: 128 bytes of global memory become undefined."""
    where, size = i.operands
    if i.modifiers[-1] != "L2" or size != Integer(128):
        raise r.refuse("the form is not supported")
    pointer = changed(r, address(r, where, 128, None if "global" not in i.modifiers else GLOBAL))
    if pointer.type != GLOBAL:
        raise r.refuse("the address is not one of global memory")
    r.add(ptx.InlineOp(DISCARD, "l", [r.convert(pointer, i64)], []))


CACHES: Mapping[str, Rule] = MappingProxyType({
    "prefetch": _prefetch, "prefetchu": _prefetch, "applypriority": _prefetch, "pmevent": _prefetch,
    "discard": _discard,
})  # fmt: skip
"""The rules by opcode."""
