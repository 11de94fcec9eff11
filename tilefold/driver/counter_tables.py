# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The counters of the simulator, as tables for a terminal."""

from collections.abc import Sequence

from tilefold.base.spaces import traffic_of
from tilefold.runtime.engine import AccessCount, Counters


def print_counters(counters: Counters, indent: str = "") -> str:
    """The counts of a launch: a row for each instruction, then one for each operation of the source that accesses
    memory.

    Wavefronts are passes over the banks of shared memory, sectors 32 bytes of global memory; `least` is the
    smallest number that accesses of this width by as many threads can need.
    """
    instructions = [(name, str(count.warps), str(count.threads)) for name, count in counters.instructions.items()]
    lines = _table(("instruction", "by warps", "by threads"), instructions)
    if counters.accesses:
        accesses = [_access(access) for access in counters.by_place()]
        lines += ["", *_table(("access", "bytes", "by warps", "transactions", "least", ""), accesses)]
    return "".join(f"{indent}{line}".rstrip() + "\n" for line in lines)


def _access(access: AccessCount) -> tuple[str, ...]:
    where = f"{access.location}: " if access.location else ""
    return (
        f"{where}{access.op}, {access.space} {access.kind}",
        str(access.width),
        str(access.requests),
        str(access.transactions),
        str(access.minimum),
        traffic_of(access.space).value,
    )


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines of equal columns: the first one left-justified, numbers right-justified, units as they are."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in (head, *rows)]
