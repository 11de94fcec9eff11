# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Litmus tests in few words, as kernels in PTX.

A thread is its operations, separated by `;`, and a `|` is between threads. `st.relaxed x 1` stores, `ld.acquire x`
loads, `add x 1`, `exch x 1` and `cas x 1 2` are atomic operations, relaxed where they name no order, and `fence.sc` is
a fence. An operation that names no scope has that of the test. `if ld.acquire x` ends the thread where it loads 0, and
`st.relaxed y r` stores the value that the thread has read last. All values that a thread reads go to results of its
own.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tilefold.base.errors import Code

import tilefold
from tests.ptx.texts import kernel
from tilefold.driver.faults import Report
from tilefold.driver.gaps import GapKind

_PLACES = {"x": 0, "y": 4, "z": 8}
_TABLE = Path(__file__).with_suffix(".txt")
_RESULTS = 64
"""The first byte of the results, 16 of each thread."""
_SCOPES = ("cta", "cluster", "gpu", "sys")


@dataclass(frozen=True)
class Litmus:
    """A litmus test: its name, its threads, the scope of its operations, and whether the threads are of several
    blocks.
    """

    name: str
    threads: str
    scope: str = "gpu"
    blocks: bool = False
    cluster: int = 1
    expected: str = "clean"

    def verdict(self) -> str:
        """The verdict of `check`: clean, depends on outdated values, or the codes of its faults."""
        A = np.zeros(64, np.int32)
        count = self.threads.count("|") + 1
        module = tilefold.load_ptx(self.text())
        grid, block = (count, 1) if self.blocks else (1, 32 * count)
        return told(module["k"](A).check(grid, block, cluster=self.cluster if self.cluster > 1 else None))

    def text(self) -> str:
        """The kernel."""
        number = "mov.u32 %r2, %ctaid.x;" if self.blocks else "mov.u32 %r2, %tid.x; shr.u32 %r2, %r2, 5;"
        lines = [
            "ld.param.u64 %d1, [A]; cvta.to.global.u64 %d2, %d1;", number,
            "mov.u32 %r1, %tid.x; and.b32 %r1, %r1, 31; setp.ne.u32 %p1, %r1, 0; @%p1 ret;",
        ]  # fmt: skip
        for thread, operations in enumerate(self.threads.split("|")):
            lines += [f"setp.ne.u32 %p1, %r2, {thread}; @%p1 bra AFTER{thread};"]
            lines += self._thread(thread, operations)
            lines += [f"AFTER{thread}:"]
        return kernel("\n".join([*lines, "ret;"])).replace(".version 8.0\n.target sm_80", ".version 8.0\n.target sm_90")

    def _thread(self, thread: int, operations: str) -> list[str]:
        lines: list[str] = []
        stores: list[str] = []
        for operation in operations.split(";"):
            words = operation.split()
            is_condition = words[0] == "if"
            name, *operands = words[is_condition:]
            kind, *orders = name.split(".")
            if orders != ["weak"] and orders != ["volatile"] and not set(orders) & set(_SCOPES):
                orders.append(self.scope)
            if kind == "fence":
                lines.append(f"fence.{'.'.join(orders)};")
                continue
            place = f"[%d2+{_PLACES[operands[0]]}]"
            value = operands[1:]
            register = f"%r{10 + len(stores)}"
            if kind == "st":
                given = value[0] if value[0] != "r" else f"%r{9 + len(stores)}"
                lines.append(f"st.{'.'.join(orders)}.global.u32 {place}, {given};")
                continue
            if kind == "ld":
                lines.append(f"ld.{'.'.join(orders)}.global.u32 {register}, {place};")
            else:
                orders = orders if len(orders) > 1 else ["relaxed", *orders]
                type_ = "b32" if kind in ("exch", "cas") else "u32"
                head = f"atom.{'.'.join(orders)}.global.{kind}.{type_}"
                lines.append(f"{head} {register}, {place}, {', '.join(value)};")
            stores.append(f"st.global.u32 [%d2+{_RESULTS + 16 * thread + 4 * len(stores)}], {register};")
            if is_condition:
                lines += [f"setp.eq.u32 %p2, {register}, 0; @%p2 bra TELL{thread};"]
        # the results are stored behind all else, so that nothing waits for them; those not read are 0
        zeros = [f"mov.u32 %r{10 + index}, 0;" for index in range(len(stores))]
        return [*zeros, *lines, f"TELL{thread}:", *stores]


def table() -> Iterator[Litmus]:
    """The tests of `litmus.txt`."""
    _, rows = _TABLE.read_text().split("\n\n")
    for row in rows.splitlines():
        expected, how, name, threads = re.split(r"\s{2,}", row, maxsplit=3)
        scope, _, more = how.partition(", ")
        yield Litmus(name, threads, scope, bool(more), 2 if more == "cluster of 2" else 1, expected)


def told(report: Report) -> str:
    """A report in a word."""
    if report.faults:
        return " ".join(sorted({"race" if fault.code is Code.SIM_RACE else fault.code.id for fault in report.faults}))
    depends = any(gap.kind is GapKind.ASSUMPTION and "newest value" in gap.message for gap in report.gaps)
    return "depends" if depends else "clean"
