# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a compiled kernel costs: registers, spills, shared memory, and its instructions by kind.

Resources come from the assembler's log, instruction counts from the PTX text: how often each instruction
stands there, not how often it is executed.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TextIO

from ..dialects.target import Target
from .assemble import Cubin, KernelResources

_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(")
_INSTRUCTION = re.compile(r"^\s+(?:@!?%p\d+\s+)?([a-z][\w.:]*)([^;]*);", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class KernelReport:
    """One kernel: its resources, the dynamic shared memory that its launch asks for, and its PTX instructions."""

    name: str
    resources: KernelResources
    dynamic_shared: int
    instructions: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Report:
    """The kernels of one program on one target."""

    target: Target
    kernels: tuple[KernelReport, ...]


def make_report(ptx: str, cubin: Cubin, target: Target, dynamic_shared: Mapping[str, int]) -> Report:
    """Puts together what is known of each kernel of `ptx`; `dynamic_shared` has the bytes of those that ask
    for any."""
    counts = count_instructions(ptx)
    kernels = tuple(
        KernelReport(name, resources, dynamic_shared.get(name, 0), counts.get(name, {}))
        for name, resources in cubin.kernels.items()
    )
    return Report(target, kernels)


def count_instructions(ptx: str) -> dict[str, dict[str, int]]:
    """For each kernel of a PTX text, how often each instruction stands in it, the most frequent first.

    A call of the device's printf counts as `call.vprintf`, as the operation `ptx.printf` is named.
    """
    found: dict[str, dict[str, int]] = {}
    entries = list(_ENTRY.finditer(ptx))
    for entry in entries:
        body = ptx[ptx.find("\n{", entry.end()) : ptx.find("\n}", entry.end())]
        counter: Counter[str] = Counter()
        for match in _INSTRUCTION.finditer(body):
            mnemonic, operands = match.groups()
            called = mnemonic.startswith("call") and "vprintf" in operands
            counter["call.vprintf" if called else mnemonic] += 1
        found[entry[1]] = dict(counter.most_common())
    return found


def print_report(report: Report, file: TextIO) -> None:
    """Prints the report as tables."""
    from rich.console import Console
    from rich.table import Table

    console = Console(file=file, highlight=False)
    table = Table("", title=f"resources on {report.target}", title_justify="left")
    for kernel in report.kernels:
        table.add_column(kernel.name, justify="right")
    rows: tuple[tuple[str, Callable[[KernelReport], int]], ...] = (
        ("registers a thread", lambda kernel: kernel.resources.registers),
        ("spill stores, bytes", lambda kernel: kernel.resources.spill_stores),
        ("spill loads, bytes", lambda kernel: kernel.resources.spill_loads),
        ("stack, bytes", lambda kernel: kernel.resources.stack),
        ("static shared memory, bytes", lambda kernel: kernel.resources.static_shared),
        ("dynamic shared memory, bytes", lambda kernel: kernel.dynamic_shared),
        ("machine code, bytes", lambda kernel: kernel.resources.code),
    )
    for name, value in rows:
        table.add_row(name, *(str(value(kernel)) for kernel in report.kernels))
    console.print(table)
    for kernel in report.kernels:
        table = Table("instruction", title=f"PTX instructions of {kernel.name}", title_justify="left")
        table.add_column("count", justify="right")
        for mnemonic, count in kernel.instructions.items():
            table.add_row(mnemonic, str(count))
        console.print(table)
