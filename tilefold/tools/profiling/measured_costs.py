# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Costs as simulated beside those that a GPU had, line by line."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tilefold.base.spaces import GMEM, SMEM
from tilefold.driver.line_costs import Costs, LineCost, join_cells
from tilefold.tools.profiling.measured import Measured, MeasuredLaunch

FAR = 20
"""The difference between shares of samples and of cycles, in percent, above which it is reported."""

_HEAD = ("samples", "cycles", "line", "transactions", "measured", "warps wait for")
_LEFT = (2, 5)
_UNITS: Mapping[str, str] = MappingProxyType(
    {SMEM.ptx: "wavefronts of shared memory", GMEM.ptx: "sectors of global memory"}
)


@dataclass(frozen=True)
class Compared:
    """A line of the source: its costs on the simulator and on a GPU, and the share, in percent, that it has there of
    the cycles and of the samples of its launch.
    """

    place: str
    simulated: LineCost | None
    measured: Measured | None
    cycles: float
    samples: float

    def transactions(self) -> Iterator[tuple[str, int, int]]:
        """For each memory that the line accesses: its unit, and the transactions that are simulated and measured."""
        for space, unit in _UNITS.items():
            accesses = () if self.simulated is None else self.simulated.accesses
            ours = sum(access.transactions for access in accesses if access.space == space)
            theirs = 0
            if self.measured is not None:
                theirs = self.measured.wavefronts if space == SMEM.ptx else self.measured.sectors
            if ours or theirs:
                yield unit, ours, theirs

    def differences(self) -> Iterator[str]:
        """The differences between the model and the GPU."""
        for unit, ours, theirs in self.transactions():
            if ours != theirs:
                yield f"{self.place}: {ours} {unit} simulated, {theirs} measured"
        if abs(self.samples - self.cycles) >= FAR:
            why = f"warps wait there for {self.waits}" if self.samples > self.cycles and self.waits else "it is hidden"
            yield f"{self.place}: {self.cycles:.0f} % of the cycles, {self.samples:.0f} % of the samples: {why}"

    @property
    def waits(self) -> str:
        """The most frequent causes of waits; empty without samples."""
        return self.measured.waits if self.measured is not None and self.samples else ""


def compare_lines(costs: Costs, launch: MeasuredLaunch) -> list[Compared]:
    """The lines that have samples or access memory; those with the most samples first."""
    file = Path(launch.file).name
    simulated = {(Path(line.file).name, line.line): line for line in costs.lines}
    measured = {(file, number): line for number, line in launch.lines.items() if line.instructions}
    cycles = sum(line.cycles for line in costs.lines) or 1
    lines: list[Compared] = []
    for place in sorted({*simulated, *measured}):
        ours, theirs = simulated.get(place), measured.get(place)
        model = 0 if ours is None else 100 * ours.cycles / cycles
        samples = 0 if theirs is None else 100 * theirs.samples / (launch.samples or 1)
        line = Compared(f"{place[0]}:{place[1]}", ours, theirs, model, samples)
        if samples or any(line.transactions()):
            lines.append(line)
    return sorted(lines, key=lambda line: -line.samples)


def comparison(costs: Costs, launch: MeasuredLaunch, device: str) -> str:
    """A table of the lines: the share of the samples, the share of the cycles of the simulator's model, transactions
    there and on the GPU, and that which warps wait for. Under it, where both differ.
    """
    lines = compare_lines(costs, launch)
    rows = [_HEAD, *map(_row, lines)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(_HEAD))]
    grid, block = ("x".join(map(str, size)) for size in (costs.grid, costs.block))
    where = f"simulated for {costs.target}, {launch.samples} samples on {device}"
    notes = [f"  {difference}" for line in lines for difference in line.differences()]
    conclusion = ["the model and the GPU differ:", *notes] if notes else ["the model and the GPU agree"]
    head = f"{costs.label}: grid {grid}, block {block}, {where}"
    return "\n".join([head, *(join_cells(row, widths, _LEFT) for row in rows), *conclusion]) + "\n"


def _row(line: Compared) -> tuple[str, ...]:
    counts = list(line.transactions())
    simulated, measured = (", ".join(str(count[n]) for count in counts) for n in (1, 2))
    return f"{line.samples:.0f} %", f"{line.cycles:.0f} %", line.place, simulated, measured, line.waits
