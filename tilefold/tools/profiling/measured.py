# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The measurements of a launch by Nsight Compute, by lines of the source.

`ncu` collects its section SourceCounters while the launch runs, and then prints its page of the source as CSV: for each
function a row for each line, followed by rows for the instructions of the line.

Costs as simulated stand beside those that a GPU had, line by line.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.spaces import GMEM, SMEM
from tilefold.driver.line_costs import Costs, LineCost, join_cells

_LINE = re.compile(r'^"(\d+)","')
_STALL = "stall_"
_ISSUED = ("selected",)  # a sample that finds the warp issuing is not a stall

STALLS: Mapping[str, str] = {
    "barrier": "a barrier", "branch_resolving": "a branch", "dispatch": "the dispatcher", "drain": "stores at the end",
    "imc": "constants", "lg": "room for accesses to global memory", "long_sb": "global memory",
    "math": "an arithmetic unit", "membar": "a fence", "mio": "room for accesses to shared memory", "misc": "others",
    "no_inst": "instructions", "not_selected": "other warps", "short_sb": "shared memory", "sleep": "sleep",
    "sleeping": "sleep", "tex": "the texture unit", "wait": "a fixed latency", "gmma": "a multiplication",
}  # fmt: skip
"""The cause of a wait, by ncu's name of the stall (Nsight Compute, Kernel Profiling Guide, warp states)."""


@dataclass(frozen=True)
class Measured:
    """The measurements of a line: samples of warps that execute it, those in which they wait by the reason,
    instructions of warps, wavefronts of shared memory and sectors of global memory.
    """

    samples: int
    stalls: Mapping[str, int]
    instructions: int
    wavefronts: int
    sectors: int

    @property
    def waits(self) -> str:
        """The two most frequent stalls with their share of the samples, `global memory 62 %, a barrier 20 %`."""
        most = sorted(self.stalls.items(), key=lambda stall: -stall[1])[:2]
        return ", ".join(
            f"{STALLS.get(name, name)} {100 * count / self.samples:.0f} %" for name, count in most if count
        )


@dataclass(frozen=True)
class MeasuredLaunch:
    """The lines of a launch of a kernel by their numbers, and their file."""

    kernel: str
    file: str
    lines: Mapping[int, Measured]

    @property
    def samples(self) -> int:
        """The samples of all lines."""
        return sum(line.samples for line in self.lines.values())


def measure(command: Sequence[str], folder: Path) -> list[MeasuredLaunch]:
    """Runs `tilefold` with the words of `command` under ncu. The sources lie in `folder`.

    TilefoldError (E4004) where ncu is not installed, (E3302) where it cannot measure, or the launch fails.
    """
    ncu = shutil.which("ncu")
    if ncu is None:
        hint = "it comes with CUDA; `tilefold explain FILE --costs` needs no GPU"
        raise TilefoldError(Code.PACKAGE_MISSING, "Nsight Compute's command ncu is not on the PATH", hint)
    with tempfile.TemporaryDirectory() as scratch:
        report = str(Path(scratch) / "profile.ncu-rep")
        options = ["--clock-control", "none", "--section", "SourceCounters"]
        sources = ["--import-source", "yes", "--source-folders", str(folder)]
        _run([ncu, *options, *sources, "-o", report, sys.executable, "-m", "tilefold", *command])
        return parse_csv(_run([ncu, "--import", report, "--page", "source", "--print-source", "cuda,sass", "--csv"]))


def _run(command: list[str]) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        output = "\n".join((ran.stdout + ran.stderr).strip().splitlines()[-8:])
        raise TilefoldError(Code.CUDA_FAILED, f"ncu ended with {ran.returncode}:\n{output}", "see that the launch runs")
    return ran.stdout


def parse_csv(text: str) -> list[MeasuredLaunch]:
    """The launches in ncu's CSV. It does not escape quotes within source text, so that rows are read from the end."""
    launches: list[MeasuredLaunch] = []
    columns: list[str] = []
    lines: dict[int, Measured] = {}
    file = ""
    for row in text.splitlines():
        cells = row.strip().strip('"').split('","')
        if cells[0] in ("File Path", "File Name"):
            file = cells[1]
        elif cells[0] == "Function Name":
            lines = {}
            launches.append(MeasuredLaunch(cells[1], file, lines))
        elif cells[0] == "Line No":
            columns = cells[4:]
        elif columns and (number := _LINE.match(row)) is not None:
            values = row.strip().strip('"').rsplit('","', len(columns))[1:]
            lines[int(number[1])] = _read_measured(dict(zip(columns, values, strict=True)))
    return launches


def _read_measured(values: Mapping[str, str]) -> Measured:
    def number(column: str) -> int:
        value = values.get(column, "").replace(",", "")
        return int(value) if value.isdigit() else 0

    stalls = {
        name: number(column)
        for column in values
        if column.startswith(_STALL) and " " not in column and (name := column.removeprefix(_STALL)) not in _ISSUED
    }
    return Measured(
        number("# Samples"),
        stalls,
        number("Instructions Executed"),
        number("L1 Wavefronts Shared"),
        number("L2 Theoretical Sectors Global"),
    )


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
