# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares what accesses to memory are said to cost with what the simulator counts."""

from collections.abc import Iterable

from tilefold.dialects.ptx import EntryOp
from tilefold.passes.analysis.access_costs import MemoryAccess, memory_accesses
from tilefold.runtime.engine import Counters
from tilefold.runtime.sim.faults import site_of
from xdsl.dialects.builtin import ModuleOp


def accesses(module: ModuleOp, name: str) -> list[MemoryAccess]:
    """What the accesses of a kernel at stage `instr` are said to cost."""
    return memory_accesses(next(op for op in module.walk() if isinstance(op, EntryOp) and op.sym_name.data == name))


def compare(said: Iterable[MemoryAccess], counters: Counters) -> list[MemoryAccess]:
    """The accesses of which nothing is known. AssertionError where others cost something else than is counted.

    Of accesses in branches, those that no warp executed are not counted. Nothing is said of bulk copies, and of the
    matrices of wgmma and tcgen05.
    """
    matrices = ("ptx.wgmma", "ptx.tcgen05")
    counted = [count for count in counters.accesses if count.kind != "bulk" and not count.op.startswith(matrices)]
    executed = {(count.location, count.op) for count in counted}
    said = [access for access in said if (site_of(access.op).location, access.op.name) in executed]
    for access, count in zip(said, counted, strict=True):
        place = (site_of(access.op).location, access.op.name, access.space.ptx, access.width)
        assert place == (count.location, count.op, count.space, count.width)
        if not access.unknown:
            found = count.transactions * access.warps
            assert access.transactions * count.requests <= found <= access.most * count.requests, place
            assert access.least * count.requests == count.minimum * access.warps, place
    return [access for access in said if access.unknown]
