# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Figures of kernels on a GPU: a copy and a transpose, against PyTorch and Triton in the same run."""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.cuda.arguments import PackedArguments

from benchmarks.record import Figure, Record, circumstances
from benchmarks.timing import Timed, Torch, check_each, checksum, load_torch, time_in_turns
from benchmarks.workloads import COPY, COPY_ELEMENTS, SIDE, TRANSPOSES, Workload

COPY_TARGET = 0.97  # of torch.Tensor.copy_
TRANSPOSE_TARGET = 0.85  # of the bandwidth of that copy
_TORCH_COPY = "torch.Tensor.copy_"


def measure(*, warmup: int = 5, repeat: int = 30, commit: str = "") -> Record:
    """Takes the figures on the first GPU. `commit` is that of the sources where they are no checkout.

    TilefoldError without a GPU, and where a result is wrong.
    """
    torch = load_torch()
    engine = CudaEngine()
    copies = _copies(torch, engine, warmup, repeat)
    figures = [*copies, *_transposes(torch, engine, warmup, repeat, copies[0].value)]
    driver = ".".join(map(str, divmod(engine.driver.call("cuDriverGetVersion") // 10, 100)))
    facts = {
        "driver": f"CUDA {driver}",
        "torch": str(torch.__version__),
        "target": str(engine.driver.target),
        "commit": commit,
    }
    return Record("kernels on the GPU", circumstances(engine.driver.name, **facts), tuple(figures))


def _launcher(engine: CudaEngine, workload: Workload, args: Mapping[str, Any]) -> Callable[[], None]:
    """A function that queues the workload's kernel on the default stream, on arrays in device memory."""
    artifact, config = workload.built(engine.driver.target)
    kernel = engine.load(artifact)
    packed = PackedArguments(engine.driver, artifact, args)
    return lambda: kernel.launch(config, packed.addresses)


def _copies(torch: Torch, engine: CudaEngine, warmup: int, repeat: int) -> list[Figure]:
    torch.manual_seed(0)
    source = torch.randn(COPY_ELEMENTS, device="cuda", dtype=torch.float32)
    output = torch.empty_like(source)
    contenders: dict[str, Callable[[], None]] = {
        _TORCH_COPY: lambda: output.copy_(source),
        "tilefold copy": _launcher(engine, COPY, {"A": source, "B": output}),
    }
    if find_spec("triton") is not None:
        peer = import_module("benchmarks.triton_copy")
        contenders["Triton copy"] = lambda: peer.copy(source, output)
    check_each(torch, contenders, output, source, source, checksum(torch, source))
    times = time_in_turns(torch, contenders, warmup=warmup, repeat=repeat)
    moved = 2 * source.nbytes
    return _figures(times, moved, f"{COPY_ELEMENTS >> 28} GiB", {"tilefold copy": COPY_TARGET})


def _transposes(torch: Torch, engine: CudaEngine, warmup: int, repeat: int, copy_speed: float) -> list[Figure]:
    source = torch.randn(SIDE, SIDE, device="cuda", dtype=torch.float16)
    output = torch.empty_like(source)
    expected = source.T.contiguous()
    contenders: dict[str, Callable[[], None]] = {"torch o.copy_(t.T)": lambda: output.copy_(source.T)}
    for workload in TRANSPOSES:
        contenders[f"tilefold {workload.name}"] = _launcher(engine, workload, {"A": source, "B": output})
    check_each(torch, contenders, output, expected, source, checksum(torch, source))
    times = time_in_turns(torch, contenders, warmup=warmup, repeat=repeat)
    moved = 2 * source.nbytes
    speeds = {name: moved / timed.median / 1e9 for name, timed in times.items()}
    ours = [name for name in speeds if name.startswith("tilefold")]
    best = max(ours, key=lambda name: speeds[name])
    note = f"{SIDE} x {SIDE} f16"
    return [
        Figure(
            name,
            speed,
            "TB/s",
            base=f"{_TORCH_COPY} of 4 GiB",
            ratio=speed / copy_speed,
            target=TRANSPOSE_TARGET if name == best else None,
            note=note,
            samples=times[name].samples,
        )
        for name, speed in speeds.items()
    ] + [
        Figure(best, speeds[best], "TB/s", "torch o.copy_(t.T)", speeds[best] / speeds["torch o.copy_(t.T)"], note=note)
    ]


def _figures(times: Mapping[str, Timed], moved: int, note: str, targets: Mapping[str, float]) -> list[Figure]:
    """Bytes read and written in a second, against the first contender."""
    first = next(iter(times))
    return [
        Figure(
            name,
            moved / timed.median / 1e9,
            "TB/s",
            base="" if name == first else first,
            ratio=None if name == first else times[first].median / timed.median,
            target=targets.get(name),
            note=note,
            samples=timed.samples,
        )
        for name, timed in times.items()
    ]
