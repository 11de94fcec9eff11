# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The time of the compiler and the simulator, on kernels of the examples: `python -m benchmarks.compiler`.

Exits with 1 where a figure is more than three times its target: something has become slow, on any machine.
"""

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from statistics import median
from tempfile import TemporaryDirectory

from tilefold.base.target import Target
from tilefold.compiler.emit import emit_llvm
from tilefold.compiler.frontend.program import parse_program
from tilefold.compiler.machine.nvptx import compile_llvm
from tilefold.compiler.pass_runner import parse_passes
from tilefold.compiler.pipeline import PASSES, make_context, pipeline_to
from tilefold.runtime.engine import LaunchConfig
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine

from benchmarks import python_gemm
from benchmarks.record import ROOT, Figure, Record, circumstances, print_record, this_machine
from benchmarks.workloads import Workload
from tilefold.driver.filled_arguments import prepare
from tilefold.driver.launches import Changes, read_launches

TARGET = Target("sm_80")
COPY = Workload("tiled copy", "examples/tiled_copy.cute")
GEMM = Workload("GEMM", "examples/gemm.cute", {"M": 4096, "N": 4096, "K": 4096})
ATTENTION = Workload(
    "attention",
    "examples/attention.cute",
    {"S": 4096, "D": 128, "HEADS": 32, "BATCH": 4, "TILE_Q": 128, "TILE_K": 64, "WARPS": 4},
)
HOPPER: Mapping[str, tuple[float, Sequence[str]]] = {
    "GEMM for Hopper, text to machine code": (2.0, (
        "examples/gemm_sm90.cute", "-DM=4096", "-DN=4096", "-DK=4096", "-DBLOCKS=132", "-DTILE_N=256", "-DSTAGES=4",
    )),
    "attention for Hopper, text to machine code": (4.0, (
        "examples/attention_sm90.cute", "-DS=4096", "-DD=128", "-DHEADS=32", "-DBATCH=4", "-DTILE_K=176",
        "-DBLOCKS=132",
    )),
}  # fmt: skip
"""What `tilefold compile` takes in a process of its own, with ptxas: the most seconds, and its file and parameters."""
WARM_TARGETS_MS = {COPY.name: 60.0, GEMM.name: 500.0, ATTENTION.name: 1500.0}
"""Text to PTX in a warm process."""
COMMAND_TARGET_S = 0.6  # the whole command line, on the tiled copy
TILE_TARGET_S = 0.02  # simulating a 128 x 32 tile of the copy at stage instr
GEMM_TILE_TARGET_S = 1.0  # simulating a tile of 128 x 128 x 64 of the GEMM in f16 at stage instr
TILES = ((64, 64), (128, 128), (128, 256))
"""Rows and columns of the tiles of the GEMM by which its time grows."""
GEMM_TILE = Workload("GEMM", GEMM.file, {"M": 128, "N": 128, "K": 64, "TILE_N": 128})
SLACK = 3.0


def measure(repeat: int = 5, commit: str = "") -> Record:
    """Takes all figures; each is the median of `repeat` runs (of the command line and the simulator, of three)."""
    figures = (
        *(figure for workload in (COPY, GEMM, ATTENTION) for figure in _warm(workload, repeat)),
        *(_grown(rows, columns) for rows, columns in TILES),
        *python_gemm.measure(),
        Figure("import of what `opt` needs", _import(), "s"),
        _at_most("`tilefold compile`, whole", [_command(COPY.file) for _ in range(3)], COMMAND_TARGET_S),
        *(_at_most(name, [machine_code_seconds(name) for _ in range(3)], most) for name, (most, _) in HOPPER.items()),
        _at_most("simulator, a tile of the copy at instr", [simulate_tiles() for _ in range(3)], TILE_TARGET_S),
        _at_most("simulator, a tile of the GEMM at instr", [simulate_gemm() for _ in range(3)], GEMM_TILE_TARGET_S),
    )
    facts = circumstances(this_machine(), python=sys.version.split()[0], commit=commit)
    return Record("compiler and simulator", facts, figures, "compiler")


def _at_most(name: str, seconds: list[float], target: float) -> Figure:
    return Figure(name, median(seconds), "s", target=target, at_most=True)


def compile_milliseconds(workload: Workload, repeat: int) -> list[float]:
    """`repeat` compilations from text to PTX, after one other: imports, caches, LLVM's targets."""
    samples: list[float] = []
    for _ in range(repeat + 1):
        began = time.perf_counter()
        program, _ = workload.loaded()
        program.ptx(TARGET)
        samples.append((time.perf_counter() - began) * 1e3)
    return samples[1:]


def _warm(workload: Workload, repeat: int) -> list[Figure]:
    """The whole time of a kernel, text to PTX, and its parts."""
    samples = compile_milliseconds(workload, repeat)
    name, target = f"{workload.name}, text to PTX, warm", WARM_TARGETS_MS[workload.name]
    whole = Figure(
        name, median(samples), "ms", target=target, at_most=True, note=workload.configuration, samples=tuple(samples)
    )
    return [whole, *_parts(workload, repeat)]


def _grown(rows: int, columns: int) -> Figure:
    """The time of the GEMM with tiles of another size."""
    size = {**GEMM.size, "TILE_M": rows, "TILE_N": columns}
    samples = compile_milliseconds(Workload(GEMM.name, GEMM.file, size), 3)
    return Figure(f"GEMM, tile of {rows} x {columns}", median(samples), "ms", samples=tuple(samples))


def _parts(workload: Workload, repeat: int) -> list[Figure]:
    """Parsing, each pass, writing LLVM IR, and LLVM."""
    samples: dict[str, list[float]] = {}

    def timed(name: str, began: float) -> float:
        now = time.perf_counter()
        samples.setdefault(name, []).append((now - began) * 1e3)
        return now

    for _ in range(repeat):
        context = make_context()
        now = time.perf_counter()
        source = workload.source()
        now = timed("parameters", now)
        module = parse_program(source, context)
        now = timed("parse and verify", now)
        for number, applied in enumerate(parse_passes(",".join(pipeline_to("instr", TARGET.arch)), PASSES), 1):
            applied.apply(context, module)
            now = timed(f"pass {number:2} {applied.name}", now)
        text = emit_llvm(module, TARGET)
        now = timed("LLVM IR text", now)
        compile_llvm(text, TARGET)
        timed("LLVM to PTX", now)
    return [
        Figure(f"  {workload.name}: {name}", median(times), "ms", samples=tuple(times))
        for name, times in samples.items()
    ]


def _import() -> float:
    code = "import time; t = time.perf_counter(); import tilefold.driver.lowering; print(time.perf_counter() - t)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return float(done.stdout)


def _command(*words: str) -> float:
    """Seconds of `tilefold compile` in a process of its own."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "tilefold", "compile", *words], cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - began


def machine_code_seconds(name: str) -> float:
    """Seconds of the whole command line that makes machine code of one of `HOPPER`."""
    with TemporaryDirectory() as folder:
        return _command(*HOPPER[name][1], "--target", "sm_90a", "--emit", "cubin", "-o", f"{folder}/k.cubin")


def simulate_tiles(workload: Workload = COPY, blocks: tuple[int, int, int] | None = (4, 2, 1)) -> float:
    """Seconds that the simulator takes for each block of a kernel at stage instr, of as many blocks or of all."""
    program, _ = workload.loaded()
    (launch,) = read_launches(program.module, program.source, Changes(grid=blocks))
    module = program.at("instr")
    assert module is not None
    given = prepare(launch, {}, seed=0, max_bytes=1 << 28).launchable()
    config = LaunchConfig(launch.grid, launch.block)
    return SimEngine().launch(SimProgram(module, launch.kernel), config, given).seconds / config.blocks


def simulate_gemm() -> float:
    """Seconds that the simulator takes for a tile of 128 x 128 x 64 of the GEMM in f16 at stage instr."""
    return simulate_tiles(GEMM_TILE, None)


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
