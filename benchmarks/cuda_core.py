# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tasks that tilefold does itself beside the same by cuda.core, which cuda-python installs, in one run on a GPU.

    python -m benchmarks.cuda_core

docs/architecture.md says which way tilefold takes for each, by these figures.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from statistics import median
from time import perf_counter
from typing import Any

from tilefold.compiler.machine.assemble import assemble
from tilefold.runtime.arrays.array import read_dlpack
from tilefold.runtime.cuda.loaded_kernel import Kernel

from benchmarks.launch import KERNELS, direct_call, time_on_host
from benchmarks.record import Figure, Record, add_options, circumstances, take_record
from benchmarks.timing import Torch, load_torch
from tilefold.driver.devices import gpu_engine

Pair = dict[str, Callable[[], Any]]


def import_times() -> list[Figure]:
    """Milliseconds that a new process needs for what a launch loads, and for cuda.core; the median of five."""
    return [Figure(f"import: {module}", median(_import(module) for _ in range(5)), "ms")
            for module in ("cuda.bindings.driver", "numpy", "cuda.core")]  # fmt: skip


def _import(module: str) -> float:
    code = f"import time; t = time.perf_counter(); import {module}; print((time.perf_counter() - t) * 1e3)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def pairs(torch: Torch, core: Any) -> dict[str, Pair]:
    """By task: what is timed, ours and cuda.core's."""
    tensors = [torch.zeros(4, 64, device="cuda") for _ in range(3)]
    kernel, tensor = KERNELS[3], tensors[0]
    grid, block = (1, 1, 1), (32, 1, 1)
    kernel(*tensors).launch(grid=grid, block=block)  # builds, loads and prepares
    engine = gpu_engine(0)
    prepared = engine.load(kernel.last.artifact(engine.driver.target.arch))
    artifact = prepared.kernel.artifact
    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    loaded = core.ObjectCode.from_cubin(artifact.code).get_kernel(artifact.kernel)
    config = core.LaunchConfig(grid=grid, block=block)
    addresses = [tensor.data_ptr() for tensor in tensors]
    view = core.utils.StridedMemoryView
    ptx = kernel.ptx(str(artifact.target))
    options = core.LinkerOptions(arch=artifact.target.arch, verbose=True, no_cache=True)
    return {
        "launch, all prepared": {
            "ctypes": direct_call(prepared),
            "cuda.core": lambda: core.launch(stream, config, loaded, *addresses),
        },
        "launch, three tensors of torch": {
            "tilefold, arguments checked": lambda: kernel(*tensors).launch(grid=grid, block=block, stream=stream),
            "cuda.core, arguments not checked": lambda: core.launch(
                stream, core.LaunchConfig(grid=grid, block=block), loaded, *(tensor.data_ptr() for tensor in tensors)
            ),
        },
        "machine code loaded": {
            "tilefold": lambda: Kernel(prepared.kernel.driver, artifact),
            "cuda.core": lambda: core.ObjectCode.from_cubin(artifact.code).get_kernel(artifact.kernel).handle,
        },
        "array by DLPack": {
            "tilefold": lambda: read_dlpack(tensor),
            "cuda.core": lambda: _attributes(view.from_dlpack(tensor, stream_ptr=-1)),
        },
        "PTX assembled": {
            "tilefold": lambda: assemble(ptx, artifact.target),
            "cuda.core": lambda: core.Linker(core.ObjectCode.from_ptx(ptx.encode()), options=options).link("cubin"),
        },
    }


def _attributes(view: Any) -> tuple[Any, ...]:
    return view.ptr, view.shape, view.strides, view.dtype, view.device_id


def unsupported_types(torch: Torch, core: Any) -> list[str]:
    """The element types of torch that kernels have and StridedMemoryView refuses."""
    refused: list[str] = []
    for name in ("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"):
        tensor = torch.zeros(4, 64, device="cuda").to(getattr(torch, name))
        try:
            core.utils.StridedMemoryView.from_dlpack(tensor, stream_ptr=-1)
        except (TypeError, NotImplementedError, BufferError):
            refused.append(name)
    return refused


def milliseconds(call: Callable[[], Any]) -> float:
    """The median of twenty calls on the host."""
    samples: list[float] = []
    for _ in range(20):
        began = perf_counter()
        call()
        samples.append((perf_counter() - began) * 1e3)
    return median(samples)


def measure(rounds: int, commit: str) -> Record:
    """Takes the figures. TilefoldError without a GPU or PyTorch."""
    torch = load_torch()
    core = import_module("cuda.core")
    figures = import_times()
    for task, pair in pairs(torch, core).items():
        if task == "PTX assembled":
            figures += [Figure(f"{task}: {name}", milliseconds(call), "ms") for name, call in pair.items()]
        else:
            times = time_on_host(torch, pair, rounds)
            figures += [Figure(f"{task}: {name}", time, "us") for name, time in times.items()]
    refused = ", ".join(unsupported_types(torch, core)) or "nothing"
    facts = {"cuda.core": core.__version__, "StridedMemoryView refuses": refused, "commit": commit}
    name = gpu_engine(0).driver.name
    return Record("tilefold beside cuda.core", circumstances(name, **facts), tuple(figures), "cuda-core")


def main(arguments: Sequence[str] | None = None) -> int:
    """Takes, prints and keeps the figures; 1 without a GPU."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cuda_core", description=__doc__, allow_abbrev=False)
    parser.add_argument("--rounds", type=int, default=100, metavar="N", help="rounds of each task (default: 100)")
    add_options(parser)
    args = parser.parse_args(arguments)
    return take_record(lambda: measure(args.rounds, args.commit), args.out)


if __name__ == "__main__":
    sys.exit(main())
