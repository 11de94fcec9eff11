# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The costs of a compiled kernel: registers, spills, shared memory, the blocks that a multiprocessor holds, its
instructions by kind, and the costs of its accesses to shared and global memory.

Resources come from the assembler's log, instruction counts from the PTX text: how often each instruction
stands there, not how often it is executed.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ...base.occupancy import Occupancy, occupancy
from ...base.spaces import Space
from ...base.target import STATIC_SHARED_BYTES, Target
from ...dialects.kernel import LaunchBounds
from ...dialects.ptx import EntryOp, SetMaxNRegOp
from ...dialects.ptx.tma import TmaCopyOp
from ...layout.tma.recipe import MapRecipe
from ..frontend.diagnostics import place_of
from ..machine.assemble import Cubin, KernelResources
from .access_costs import WORDS, AccessCost, access_costs

if TYPE_CHECKING:
    from rich.table import Table

_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(")
_INSTRUCTION = re.compile(r"^\s+(?:@!?%p\d+\s+)?([a-z][\w.:]*)([^;]*);", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class KernelReport:
    """One kernel: its launch bounds and resources; its static shared memory, to which the assembler's log adds what is
    reserved and aligned, and the dynamic one that its launch asks for; the blocks that a multiprocessor holds, its
    PTX instructions, and the costs of its accesses to memory.
    `handed_over` are the registers per thread that its warpgroups have after `setmaxnreg`, the least first; `maps` its
    tensor maps, each with the number of its copies.
    """

    name: str
    bounds: LaunchBounds
    resources: KernelResources
    static_shared: int
    dynamic_shared: int
    occupancy: Occupancy
    instructions: Mapping[str, int]
    accesses: Sequence[AccessCost]
    handed_over: Sequence[int]
    maps: Mapping[str, tuple[MapRecipe, int]]


@dataclass(frozen=True, slots=True)
class Report:
    """The kernels of one program on one target."""

    target: Target
    kernels: tuple[KernelReport, ...]


def make_report(ptx: str, cubin: Cubin, target: Target, entries: Sequence[EntryOp]) -> Report:
    """The report on the kernels `entries`, of stage `instr`, which became `ptx` and then `cubin`."""
    counts = count_instructions(ptx)
    return Report(target, tuple(_kernel(entry, counts, cubin, target) for entry in entries))


def _kernel(entry: EntryOp, counts: Mapping[str, Mapping[str, int]], cubin: Cubin, target: Target) -> KernelReport:
    name, bounds = entry.sym_name.data, entry.launch_bounds
    resources = cubin.kernels[name]
    shared = entry.shared_bytes.value.data if entry.shared_bytes is not None else 0
    if shared > STATIC_SHARED_BYTES:
        static, dynamic = 0, shared
    else:
        static, dynamic = shared if resources.static_shared else 0, 0  # LLVM drops unused memory
    held = occupancy(target, prod(bounds.threads), resources.registers, static or dynamic)
    handed_over = sorted({op.n.value.data for op in entry.walk() if isinstance(op, SetMaxNRegOp)})
    copies = Counter(op.map for op in entry.walk() if isinstance(op, TmaCopyOp))
    maps = {
        entry.arg_names.data[index].data: (recipe, copies[entry.body.blocks[0].args[index]])
        for index, recipe in entry.maps.items()
    }
    accesses = access_costs(entry) if len(entry.body.blocks) == 1 else []  # which thread executes which is not known
    instructions = counts.get(name, {})
    return KernelReport(name, bounds, resources, static, dynamic, held, instructions, accesses, handed_over, maps)


def count_instructions(ptx: str) -> dict[str, dict[str, int]]:
    """For each kernel of a PTX text, how often each instruction stands in it, the most frequent first.

    A call of the device's printf counts as `call.vprintf`, as the operation `ptx.printf` is named.
    """
    counts: dict[str, dict[str, int]] = {}
    entries = list(_ENTRY.finditer(ptx))
    for entry in entries:
        body = ptx[ptx.find("\n{", entry.end()) : ptx.find("\n}", entry.end())]
        counter: Counter[str] = Counter()
        for match in _INSTRUCTION.finditer(body):
            mnemonic, operands = match.groups()
            called = mnemonic.startswith("call") and "vprintf" in operands
            counter["call.vprintf" if called else mnemonic] += 1
        counts[entry[1]] = dict(counter.most_common())
    return counts


def print_report(report: Report, file: TextIO) -> None:
    """Prints the report as tables."""
    from rich.console import Console
    from rich.table import Table

    console = Console(file=file, highlight=False)
    table = Table("", title=f"resources on {report.target}", title_justify="left")
    for kernel in report.kernels:
        table.add_column(kernel.name, justify="right")
    rows: tuple[tuple[str, Callable[[KernelReport], object]], ...] = (
        ("threads per block", lambda kernel: prod(kernel.bounds.threads)),
        ("blocks per cluster", lambda kernel: prod(kernel.bounds.cluster) if kernel.bounds.cluster else ""),
        ("registers per thread", lambda kernel: kernel.resources.registers),
        ("  after setmaxnreg", lambda kernel: ", ".join(map(str, kernel.handed_over))),
        ("spill stores, bytes", lambda kernel: kernel.resources.spill_stores),
        ("spill loads, bytes", lambda kernel: kernel.resources.spill_loads),
        ("stack, bytes", lambda kernel: kernel.resources.stack),
        ("static shared memory, bytes", lambda kernel: kernel.static_shared),
        ("dynamic shared memory, bytes", lambda kernel: kernel.dynamic_shared),
        ("blocks per multiprocessor", lambda kernel: kernel.occupancy.resident),
        ("  limited by", lambda kernel: ", ".join(kernel.occupancy.limits)),
        ("machine code, bytes", lambda kernel: kernel.resources.code),
    )
    for name, value in rows:
        values = [str(value(kernel)) for kernel in report.kernels]
        if any(values):
            table.add_row(name, *values)
    console.print(table)
    for kernel in report.kernels:
        table = Table("instruction", title=f"PTX instructions of {kernel.name}", title_justify="left")
        table.add_column("count", justify="right")
        for mnemonic, count in kernel.instructions.items():
            table.add_row(mnemonic, str(count))
        console.print(table)
        if kernel.maps:
            console.print(_map_table(kernel))
        for space in WORDS:
            if any(cost.space is space for cost in kernel.accesses):
                console.print(_make_access_table(kernel, space))


def _map_table(kernel: KernelReport) -> "Table":
    from rich.table import Table

    table = Table("tensor map", title=f"TMA copies of {kernel.name}", title_justify="left")
    for name in ("elements", "box", "swizzle", "bytes of a copy", "copies"):
        table.add_column(name, justify="right")
    for name, (recipe, copies) in kernel.maps.items():
        box, swizzle = " x ".join(map(str, recipe.box)), f"{16 << recipe.swizzle_bits} bytes"
        bytes = prod(recipe.box) * recipe.element.type.bits // 8
        table.add_row(name, recipe.element.name, box, swizzle if recipe.swizzle_bits else "", str(bytes), str(copies))
    return table


def _make_access_table(kernel: KernelReport, space: Space) -> "Table":
    from rich.table import Table

    table = Table("access", title=f"{space.ptx} memory of {kernel.name}, by one block", title_justify="left")
    for name in ("operations", "by warps", f"{WORDS[space].unit}s", "least"):
        table.add_column(name, justify="right")
    for cost in kernel.accesses:
        if cost.space is not space:
            continue
        place = place_of(cost.op.location)
        name = cost.mnemonic
        if place is not None:  # the file without its folders, since a table is narrow
            name = f"{Path(place.file).name}:{place.line}:{place.column}: {name}"
        numbers = ("?", "?", "?") if cost.unknown else (cost.executions, cost.count, cost.least)
        table.add_row(name, str(cost.operations), *map(str, numbers))
    return table
