# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Planted kernels on a GPU under compute-sanitizer, beside the verdict of `tilefold check`: `make gpu-agreement`.

Each kernel gets a name of its own, by which the reports of a tool are told apart. Kernels that would not end on a GPU
are left out, and those that memcheck stops are run under no other tool, since they would take the others with them.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from tilefold.runtime.cuda.cuda_engine import CudaEngine

from benchmarks.record import add_options, circumstances
from tests.planted.judging import checked
from tests.planted.planting import planted
from tilefold.commands.cli import main as tilefold

TOOLS: Mapping[str, tuple[str, ...]] = {
    "memcheck": ("--destroy-on-device-error", "kernel"),
    "racecheck": ("--racecheck-report", "all"),
    "initcheck": (),
    "synccheck": (),
}
"""The tools of compute-sanitizer, memcheck first, with their options."""

ENDLESS = frozenset({"E3207", "E3231"})
"""Faults by which warps wait forever."""

SECONDS = 30
"""How long a tool may take for its share of the kernels: three times as long as it does."""

_REPORT = re.compile(r"^=+ (?P<words>[A-Z].*?)(?: (?:at|in block|of size) .*)?$")
_KERNEL = re.compile(r"\bat (k\d+)\b")


@dataclass(frozen=True)
class Program:
    """A planted kernel, faulty or not, as a program whose kernel has the program's name."""

    name: str
    title: str
    code: str
    text: str

    @property
    def runs(self) -> bool:
        """Whether it ends on a GPU."""
        return self.code not in ENDLESS


def programs() -> Iterator[Program]:
    """All planted kernels, and the corrected twins of the faulty ones, with the code `ok`."""
    number = 0
    for kernel in planted():
        versions = [(kernel.code, kernel.faulty)]
        if kernel.code != "ok":
            versions.append(("ok", kernel.corrected))
        for code, text in versions:
            name = f"k{number}"
            number += 1
            renamed = text.replace("@k(", f"@{name}(").replace("@kernels::@k ", f"@kernels::@{name} ")
            yield Program(name, f"{kernel.table}: {kernel.title}", code, renamed)


def reports(output: str) -> dict[str, str]:
    """The first report of a tool on each kernel, by the kernel's name."""
    found: dict[str, str] = {}
    words = ""
    for line in output.splitlines():
        if (report := _REPORT.match(line)) is not None:
            words = report["words"].strip()
        if line.startswith("=") and (kernel := _KERNEL.search(line)) is not None and words:
            found.setdefault(kernel[1], words)
    return found


def sanitized(tool: str, files: Sequence[Path]) -> dict[str, str]:
    """What a tool says of the programs of some files, launched one after the other. Where one does not end, the others
    go on in a new process.
    """
    command = ["compute-sanitizer", "--tool", tool, *TOOLS[tool], "--show-backtrace", "no", "--print-limit", "1000000"]
    launch = [sys.executable, "-m", "tests.planted.sanitizer", "--launch", *map(str, files)]
    try:
        ran = subprocess.run([*command, *launch], capture_output=True, text=True, timeout=SECONDS, check=False)
        output, late = ran.stdout, False
    except FileNotFoundError:
        raise SystemExit("compute-sanitizer, which comes with CUDA, is not on the PATH") from None
    except subprocess.TimeoutExpired as expired:
        output, late = (expired.stdout or b"").decode(), True
    found = reports(output)
    begun = re.findall(r"^begin (k\d+)$", output, re.MULTILINE)
    if late and begun:
        found.setdefault(begun[-1], "does not end")
    elif len(begun) != len(files):
        raise SystemExit(
            f"{tool} ended early, after {begun[-1:]} of {[file.stem for file in files]}:\n{output[-2000:]}"
        )
    rest = files[len(begun) :]
    return found | (sanitized(tool, rest) if rest else {})


def codes(kernel: Program) -> str:
    """The codes of the faults that `tilefold check` finds."""
    faults = [fault for fault in checked(kernel.text)[0] if fault.get("severity") != "note"]
    return ", ".join(sorted({fault["code"] for fault in faults}))


def launched(files: Iterable[str]) -> None:
    """Launches the programs of some files on the GPU; that one fails is what is looked for."""
    for file in files:
        print(f"begin {Path(file).stem}", flush=True)
        tilefold(["run", file, "--device", "cuda"])


def verdicts(kernels: Sequence[Program], folder: Path, jobs: int) -> dict[str, dict[str, str]]:
    """The report of each tool on each kernel that it was run with."""
    paths = {kernel.name: folder / f"{kernel.name}.cute" for kernel in kernels}
    for kernel in kernels:
        paths[kernel.name].write_text(kernel.text)
    found: dict[str, dict[str, str]] = {}
    for tool in TOOLS:
        stopped = found.get("memcheck", {})
        chosen = [paths[kernel.name] for kernel in kernels if kernel.name not in stopped]
        with ThreadPoolExecutor(jobs) as pool:
            shares = [share for n in range(jobs) if (share := chosen[n::jobs])]
            found[tool] = {}
            for reported in pool.map(partial(sanitized, tool), shares):
                found[tool] |= reported
    return found


def table(kernels: Sequence[Program], said: Mapping[str, str], found: Mapping[str, Mapping[str, str]]) -> str:
    """The verdicts as Markdown: sums, the faulty kernels, and those without a fault on which there is a report."""
    faulty = [kernel for kernel in kernels if kernel.code != "ok"]
    whole = [kernel for kernel in kernels if kernel.code == "ok"]
    run = [kernel for kernel in faulty if kernel.runs]

    def by_any(kernel: Program) -> bool:
        return any(kernel.name in reported for reported in found.values())

    ours = [kernel for kernel in faulty if said.get(kernel.name)]
    alone = [kernel for kernel in run if said.get(kernel.name) and not by_any(kernel)]
    lines = [
        f"- faulty kernels: {len(faulty)}, of which {len(faulty) - len(run)} would not end on the GPU and ran nowhere",
        f"- found by `tilefold check`: {len(ours)}; by a tool of compute-sanitizer: {sum(map(by_any, run))}",
        f"- found by `tilefold check` alone, of those that ran: {len(alone)}",
        f"- correct kernels: {len(whole)}; reports of `tilefold check`: {sum(bool(said.get(k.name)) for k in whole)},"
        f" of compute-sanitizer: {sum(map(by_any, whole))}",
        "",
        f"| kernel | tilefold | {' | '.join(TOOLS)} |",
        f"|---|---|{'---|' * len(TOOLS)}",
    ]
    for kernel in [*faulty, *filter(by_any, whole)]:
        words = [_words(kernel, tool, found) for tool in TOOLS]
        title = kernel.title + (" (correct)" if kernel.code == "ok" else "")
        lines.append(f"| {title} | {said.get(kernel.name, '')} | {' | '.join(words)} |")
    return "\n".join(lines) + "\n"


def _words(kernel: Program, tool: str, found: Mapping[str, Mapping[str, str]]) -> str:
    if not kernel.runs or (tool != "memcheck" and kernel.name in found["memcheck"]):
        return "not run"
    return found[tool].get(kernel.name, "")


def main() -> int:
    """Runs all kernels, and writes the table where figures are kept."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.planted.sanitizer", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--launch", nargs="+", metavar="FILE", help="launch these programs on the GPU, and do no more")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    add_options(parser)
    options = parser.parse_args()
    if options.launch:
        launched(options.launch)
        return 0
    kernels = list(programs())
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        said = dict(zip((kernel.name for kernel in kernels), pool.map(codes, kernels), strict=True))
    with tempfile.TemporaryDirectory() as folder:
        found = verdicts([kernel for kernel in kernels if kernel.runs], Path(folder), options.jobs)
    run = circumstances(CudaEngine().driver.name, commit=options.commit)
    head = ["# Planted faults under compute-sanitizer", "", *(f"- {name}: {value}" for name, value in run.items()), ""]
    text = "\n".join(head) + table(kernels, said, found)
    path = options.out / f"{run['date'][:10]}-{run['device'].lower().replace(' ', '-')}-sanitizer.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
