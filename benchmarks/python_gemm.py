# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The time of compiling a kernel of Python: the tensor-core GEMM of examples/python, for 4096^3 and sm_90a.

`python -m benchmarks.python_gemm` prints the figures; `benchmarks.compiler` takes them with its own.

- Cold: in a new process with an empty cache, from the call to machine code. All modules are imported, but LLVM and the
  assembler have not started. It is measured as a whole, and, in another process, step by step.
- A hit on disk: from the kernel as it was built to its machine code, in a process that has had one before. Building
  the kernel (the step "trace") comes on top; what a process does once, looking at the versions of all that compiles, is
  a figure of its own.
- A hit in memory: from the call to machine code, where a call before had arguments of the same types.

Processes find the bytecode of all modules, as where tilefold is installed.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.record import ROOT, Figure, Record, circumstances, print_record

ARCH = "sm_90a"
TARGETS = {
    "cold, whole": (700.0, "ms"),
    "hit on disk": (2.0, "ms"),
    "hit in memory": (0.1, "ms"),
    "import tilefold": (60.0, "ms"),
    "from tilefold import cute": (400.0, "ms"),
}
"""The targets: the most that each step may take."""
_MODULES = (
    "tilefold.driver.machine_code", "tilefold.compiler.machine.assemble", "tilefold.compiler.emit",
    "tilefold.compiler.machine.nvptx", "tilefold.builder.control.rewrite",
    "cuda.bindings.nvjitlink", "filelock", "llvmlite.binding",
)  # fmt: skip
"""The modules that compiling imports on demand."""
_IMPORTS = '''
import json, time
times = {}
first = """
@cute.kernel(preprocessor=False)
def double(A: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    A[t] = A[t] * 2

double(cute.TensorSpec(32, cute.Float32)).build(block=32)
"""
for name, text in (
    ("import tilefold", "import tilefold"),
    ("from tilefold import cute", "from tilefold import cute"),
    ("the first kernel, which imports the rest", first),
):
    clock, processor = time.perf_counter(), time.process_time()
    exec(text)
    times[name] = ((time.perf_counter() - clock) * 1e3, (time.process_time() - processor) * 1e3)
print(json.dumps(times))
'''

Times = dict[str, tuple[float, float]]
"""Milliseconds by name: of the clock, and of the processor."""


def measure(repeat: int = 3) -> list[Figure]:
    """The figures, each the median of `repeat` processes."""
    with TemporaryDirectory() as folder:
        environment = _environment(Path(folder))
        _child("imports", environment)  # which leaves the bytecode
        taken = [_child(mode, environment) for mode in ("imports", "whole", "steps") for _ in range(repeat)]
    samples: dict[str, list[tuple[float, float]]] = {}
    for times in taken:
        for name, both in times.items():
            samples.setdefault(name, []).append(both)
    return [_figure(name, both) for name, both in samples.items()]


def _figure(name: str, samples: list[tuple[float, float]]) -> Figure:
    target, unit = TARGETS.get(name, (None, "ms"))
    clock = tuple(sample[0] for sample in samples)
    note = f"of a processor {median(sample[1] for sample in samples):.3g} ms"
    return Figure(
        f"Python GEMM, {name}", median(clock), unit, target=target, at_most=target is not None, note=note, samples=clock
    )


def _environment(folder: Path) -> dict[str, str]:
    """That of the processes: a cache of their own, and a folder for bytecode."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    path = os.pathsep.join([str(ROOT), *filter(None, [kept.get("PYTHONPATH")])])
    own = {"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "TILEFOLD_CACHE_DIR": str(folder / "cache")}
    return {**kept, **own, "PYTHONPATH": path}


def _child(mode: str, environment: dict[str, str]) -> Times:
    """The measurements of a new process, with an empty cache."""
    with TemporaryDirectory(dir=environment["TILEFOLD_CACHE_DIR"].removesuffix("cache")) as cache:
        how = ["-c", _IMPORTS] if mode == "imports" else ["-m", "benchmarks.python_gemm", mode]
        done = subprocess.run(
            [sys.executable, *how],
            cwd=ROOT,
            env={**environment, "TILEFOLD_CACHE_DIR": cache},
            capture_output=True,
            text=True,
            check=True,
        )
    return {name: (clock, processor) for name, (clock, processor) in json.loads(done.stdout).items()}


class _Timer:
    """Takes times by name."""

    def __init__(self) -> None:
        self.times: Times = {}

    def __call__(self, name: str, work: Callable[[], Any], count: int = 1) -> Any:
        """The result of the work, of whose `count` repetitions the time of one is noted."""
        clock, processor = time.perf_counter(), time.process_time()
        result = None
        for _ in range(count):
            result = work()
        taken = time.perf_counter() - clock, time.process_time() - processor
        self.times[name] = (taken[0] * 1e3 / count, taken[1] * 1e3 / count)
        return result


def prepared() -> Callable[..., Any]:
    """A call of the kernel, on a copy of it that has built nothing; all that compiling needs is imported."""
    sys.path.insert(0, str(ROOT / "examples" / "python"))
    gemm, np = import_module("gemm"), import_module("numpy")
    from tilefold.compiler.pass_runner import parse_passes
    from tilefold.compiler.pipeline import PASSES, pipeline_to

    from tilefold.cute.kernel import Kernel

    parse_passes(",".join(pipeline_to("instr", ARCH)), PASSES)
    for name in _MODULES:
        import_module(name)
    cute = import_module("tilefold.cute")
    for name in cute.__all__:
        getattr(cute, name)
    arrays = [np.zeros((4096, 4096), np.float16) for _ in range(3)]
    given = (*arrays, None, gemm.DEFAULT, None)

    def build(kernel: Any = None) -> Any:
        return (kernel or Kernel(gemm.gemm_kernel.function))(*given).build(gemm.DEFAULT.threads)

    return build


def _whole(timed: _Timer) -> None:
    build = prepared()
    timed("cold, whole", lambda: build().artifact(ARCH))
    from tilefold.driver.machine_code import toolchain

    toolchain.cache_clear()
    timed("versions, once a process", toolchain)
    hits: list[Times] = []
    for _ in range(20):
        built, hit = build(), _Timer()
        hit("hit", lambda built=built: built.artifact(ARCH))
        hits.append(hit.times)
    timed.times["hit on disk"] = (median(times["hit"][0] for times in hits), median(times["hit"][1] for times in hits))
    from tilefold.cute.kernel import Kernel

    kernel = Kernel(import_module("gemm").gemm_kernel.function)
    build(kernel).artifact(ARCH)
    timed("hit in memory", lambda: build(kernel).artifact(ARCH), 1000)


def _steps(timed: _Timer) -> None:
    build = prepared()
    from tilefold.base.target import Target
    from tilefold.compiler.machine.assemble import assemble
    from tilefold.compiler.machine.nvptx import compile_llvm

    target = Target(ARCH)
    program = timed("  cold: trace", build).program
    timed("  cold: passes", lambda: program.reached("instr", target))
    text = timed("  cold: LLVM IR text", lambda: program.llvm(target))
    ptx = timed("  cold: LLVM to PTX", lambda: compile_llvm(text, target))
    timed("  cold: assembler", lambda: assemble(ptx, target))


_MODES = {"whole": _whole, "steps": _steps}


def main() -> int:
    """Prints the figures; with the name of a mode, this process's measurements as JSON."""
    if len(sys.argv) > 1:
        timed = _Timer()
        _MODES[sys.argv[1]](timed)
        print(json.dumps(timed.times))
        return 0
    print_record(Record("compiler, a kernel of Python", circumstances("cpu"), tuple(measure())))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
