# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the compiler and the simulator take, on the tiled copy of the examples: `python -m benchmarks.compiler`.

Exits with 1 where a figure is more than three times its target: something has become slow, on any machine.
"""

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from tilefold.compiler.context import make_context
from tilefold.compiler.driver import parse_passes
from tilefold.compiler.emit import emit_llvm
from tilefold.compiler.frontend import parse_program
from tilefold.compiler.nvptx import compile_llvm
from tilefold.compiler.params import expand
from tilefold.compiler.pipeline import pipeline_to
from tilefold.compiler.source import Source
from tilefold.dialects.target import Target
from tilefold.passes.registry import PASSES
from tilefold.runtime.engine import LaunchConfig
from tilefold.runtime.sim.engine import SimEngine, SimProgram

from benchmarks.record import Figure, Record, circumstances, print_record
from tilefold.arguments import prepare
from tilefold.launches import Changes, launches_of
from tilefold.lowering import load

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "tiled_copy.cute"
TARGET = Target("sm_80")
WARM_TARGET_MS = 60.0  # text to PTX in a warm process
COMMAND_TARGET_S = 0.6  # the whole command line
TILE_TARGET_S = 0.02  # simulating a 128 x 32 tile at stage instr
SLACK = 3.0


def measure(repeat: int = 9, commit: str = "") -> Record:
    """Takes all figures; each is the median of `repeat` runs (of the command line, of three)."""
    source = _source()
    for _ in range(2):  # imports, caches, LLVM's targets
        load(source).ptx(TARGET)
    whole = _milliseconds(lambda: load(source).ptx(TARGET), repeat)
    commands = [_command() for _ in range(3)]
    tiles = [simulate_tiles() for _ in range(3)]
    figures = (
        Figure("tiled copy, text to PTX, warm", median(whole), "ms", target=WARM_TARGET_MS, at_most=True),
        *_parts(source, repeat),
        Figure("import of what `opt` needs", _import(), "s"),
        Figure("`tilefold compile`, whole", median(commands), "s", target=COMMAND_TARGET_S, at_most=True),
        Figure("simulator, a tile at instr", median(tiles), "s", target=TILE_TARGET_S, at_most=True),
    )
    device = f"{platform.machine()} cpu {os.cpu_count()} cores"
    facts = circumstances(device, python=sys.version.split()[0], commit=commit)
    return Record("compiler and simulator", facts, figures, "compiler")


def _source() -> Source:
    return expand(EXAMPLE.read_text(encoding="utf-8"), EXAMPLE.name, {})


def _milliseconds(run: Callable[[], object], repeat: int) -> list[float]:
    samples: list[float] = []
    for _ in range(repeat):
        began = time.perf_counter()
        run()
        samples.append((time.perf_counter() - began) * 1e3)
    return samples


def warm_milliseconds(repeat: int) -> float:
    """The fastest of `repeat` compilations of the tiled copy, text to PTX, after two others."""
    source = _source()
    for _ in range(2):
        load(source).ptx(TARGET)
    return min(_milliseconds(lambda: load(source).ptx(TARGET), repeat))


def _parts(source: Source, repeat: int) -> list[Figure]:
    """Parsing, each pass, writing LLVM IR, and LLVM."""
    samples: dict[str, list[float]] = {}

    def timed(name: str, began: float) -> float:
        now = time.perf_counter()
        samples.setdefault(name, []).append((now - began) * 1e3)
        return now

    for _ in range(repeat):
        context = make_context()
        now = time.perf_counter()
        module = parse_program(source, context)
        now = timed("parse and verify", now)
        for number, applied in enumerate(parse_passes(",".join(pipeline_to("instr", TARGET.arch)), PASSES), 1):
            applied.apply(context, module)
            now = timed(f"pass {number:2} {applied.name}", now)
        text = emit_llvm(module, TARGET)
        now = timed("LLVM IR text", now)
        compile_llvm(text, TARGET)
        timed("LLVM to PTX", now)
    return [Figure(f"  {name}", median(times), "ms", samples=tuple(times)) for name, times in samples.items()]


def _import() -> float:
    code = "import time; t = time.perf_counter(); import tilefold.lowering; print(time.perf_counter() - t)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return float(done.stdout)


def _command() -> float:
    """Seconds of `tilefold compile` in a process of its own."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "tilefold", "compile", str(EXAMPLE)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - began


def command_seconds(repeat: int) -> float:
    """The fastest of `repeat` runs of the whole command line."""
    return min(_command() for _ in range(repeat))


def simulate_tiles(blocks: tuple[int, int, int] = (4, 2, 1)) -> float:
    """Seconds that the simulator takes for each tile of the tiled copy at stage instr."""
    program = load(_source())
    (launch,) = launches_of(program.module, program.source, Changes(grid=blocks))
    module = program.at("instr")
    assert module is not None
    given = prepare(launch, {}, seed=0, max_bytes=1 << 28).launchable()
    config = LaunchConfig(launch.grid, launch.block)
    return SimEngine().launch(SimProgram(module, launch.kernel), config, given).seconds / config.blocks


def too_slow(record: Record) -> list[Figure]:
    """The figures that exceed their targets by more than the slack."""
    return [f for f in record.figures if f.at_most and f.target is not None and f.value > SLACK * f.target]


def main() -> int:
    """Prints the figures; 1 where one is far from its target."""
    record = measure()
    print_record(record)
    slow = too_slow(record)
    for figure in slow:
        print(
            f"error: {figure.name}: {figure.value:.3g} {figure.unit} is over {SLACK:g} times its target",
            file=sys.stderr,
        )
    return 1 if slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
