# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cost of a launch on the host, in microseconds, against the driver alone, PyTorch and Triton in the same run.

    python -m benchmarks.launch [--strict]

Each contender queues an empty kernel, or PyTorch's `add_` of one element, on tensors of torch. They take turns, so that
all see the same clock; the median of many rounds counts. Rounds are short, and the queue is empty before each, so that
no launch waits for a place in it.
"""

import argparse
import ctypes
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from subprocess import run
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from tilefold.runtime.cuda.prepared import Prepared

from benchmarks.record import Figure, Record, add_options, circumstances, take_record
from benchmarks.timing import Torch, load_torch
from tilefold import cute
from tilefold.driver.devices import gpu_engine

ROUND = 100
"""Launches between two synchronisations, fewer than the driver queues before it waits."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownArgumentType=false


@cute.kernel
def three(a, b, c):
    """Does nothing with three tensors."""


@cute.kernel
def eight(a, b, c, d, e, f, g, h):
    """Does nothing with eight tensors."""


@cute.kernel
def three_maps(a, b, c):
    """Lets a cache fetch the tensor map that the launch makes of each of three tensors."""
    tensors: Any = (a, b, c)
    for tensor in tensors:
        layout = cute.make_layout((4, 32), stride=(32, 1))
        op = cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp()
        cute.nvgpu.cpasync.prefetch_descriptor(cute.nvgpu.cpasync.make_tiled_tma_atom(op, tensor, layout, (4, 32))[0])


KERNELS = {3: three, 8: eight}
TVM_FFI = "tilefold, exported for TVM FFI"
TVM_FFI_ALONE = "TVM FFI, a function that does nothing"
NOTHING = """
int __tvm_ffi_nothing(void *self, const void *args, int count, long long *result)
{
    result[0] = result[1] = 0;
    return 0;
}
"""
"""The function: its result, of 16 bytes, is None."""
TVM_FFI_DRIVER = "TVM FFI, the driver's launch alone"
TVM_FFI_LIMIT, OF_EXPORT = 5.0, 0.3
"""The most that a call of an exported function of eight tensors may take, in microseconds, and the most that it may add
to the driver's launch alone on a machine where that takes longer.
"""


@cute.jit
def of_three(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """Launches the kernel of three tensors."""
    three(a, b, c).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.jit
def of_eight(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    d: cute.Tensor,
    e: cute.Tensor,
    f: cute.Tensor,
    g: cute.Tensor,
    h: cute.Tensor,
):
    """Launches the kernel of eight tensors."""
    eight(a, b, c, d, e, f, g, h).launch(grid=(1, 1, 1), block=(32, 1, 1))


FUNCTIONS = {3: of_three, 8: of_eight}
LIMITS = {3: 2.0, 8: 4.0}
"""The most that a launch may take beyond the driver's own call, in microseconds."""
OF_ADD = 1.05
"""The most that a launch of three tensors may take of the time of torch's `add_`, which slows down with the machine."""
OF_MAPS = 0.3
"""The most that three tensor maps may add to a launch of three tensors, in microseconds."""
WITH_MAPS = "tilefold, a tensor map of each"


@dataclass(frozen=True, slots=True)
class Packed:
    """The arguments of a launch as cuLaunchKernel takes them: the address of an array of the values' addresses, and the
    objects that must live as long as it.
    """

    address: int
    owners: tuple[Any, ...]

    @staticmethod
    def of(prepared: Prepared, tensors: Sequence[Any]) -> "Packed":
        """Those of a kernel whose arguments are tensors."""
        from tilefold.runtime.cuda.packed_arguments import PackedArguments

        kernel = prepared.kernel
        packed = PackedArguments(kernel.driver, kernel.artifact, dict(zip(kernel.artifact.names, tensors, strict=True)))
        values = [ctypes.create_string_buffer(value, len(value)) for value in packed.values]
        places = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        return Packed(ctypes.addressof(places), (packed, values, places))


def driver_call(prepared: Prepared, packed: Packed) -> Callable[[], Any]:
    """cuda-python's cuLaunchKernel with arguments that were packed once."""
    launch: Any = prepared.kernel.driver.api.cuLaunchKernel
    function: Any = prepared.kernel.driver.api.CUfunction(prepared.kernel.handle)

    def call() -> None:
        launch(function, 1, 1, 1, 32, 1, 1, 0, 0, packed.address, 0)

    return call


def direct_call(prepared: Prepared) -> Callable[[], Any]:
    """cuLaunchKernelEx by ctypes with everything prepared: what remains when nothing is read or checked."""
    frame = prepared.frame()
    frame.place(prepared.kernel, 1)
    return frame.call


def triton_call(count: int, tensors: Sequence[Any]) -> Callable[[], Any] | None:
    """A Triton kernel that does nothing with the tensors; None where Triton is not installed."""
    try:
        kernels: Any = import_module("benchmarks.triton_launch")
    except ImportError:
        return None
    kernel = kernels.KERNELS[count]
    return lambda: kernel[(1,)](*tensors)


def launching_source(function: int, packed: Packed) -> str:
    """A function in C for TVM FFI that reads none of its arguments and queues a launch whose arguments were packed
    before. Its time is the least that an exported function can take on a machine.
    """
    launch = ctypes.cast(ctypes.CDLL("libcuda.so.1").cuLaunchKernel, ctypes.c_void_p).value
    return f"""
typedef int launch(void *, int, int, int, int, int, int, int, void *, void **, void **);
int __tvm_ffi_alone(void *self, const void *args, int count, long long *result)
{{
    result[0] = result[1] = 0;
    return ((launch *){launch}ul)((void *){function}ul, 1, 1, 1, 32, 1, 1, 0, 0, (void **){packed.address}ul, 0);
}}
"""


def tvm_ffi_calls(
    count: int, tensors: Sequence[Any], prepared: Prepared, packed: Packed
) -> dict[str, Callable[[], Any]]:
    """Calls through the package apache-tvm-ffi, where it is installed: of the host function as a library, and of two
    functions in C, one that does nothing, which is the part of the package itself, and one that only launches.
    """
    try:
        tvm_ffi: Any = import_module("tvm_ffi")
    except ImportError:
        return {}
    with TemporaryDirectory() as folder:
        made, nothing, alone = (Path(folder, name) for name in ("launch.o", "nothing.c", "alone.c"))
        compiled = cute.compile(FUNCTIONS[count], *tensors, options="--enable-tvm-ffi")
        compiled.export_to_c(made)
        nothing.write_text(NOTHING)
        alone.write_text(launching_source(prepared.kernel.handle, packed))

        def loaded(source: Path, name: str) -> Any:
            library = source.with_suffix(".so")
            needs = cute.runtime.find_runtime_libraries(enable_tvm_ffi=True)
            run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, *needs], check=True)
            return tvm_ffi.load_module(str(library))[name]

        functions = {
            TVM_FFI: loaded(made, "launch"),
            TVM_FFI_DRIVER: loaded(alone, "alone"),
            TVM_FFI_ALONE: loaded(nothing, "nothing"),
        }
    return {name: partial(function, *tensors) for name, function in functions.items()}


def contenders(torch: Torch, count: int) -> dict[str, Callable[[], Any]]:
    """The launches to time for kernels of `count` tensors."""
    tensors = [torch.zeros(4, 64, device="cuda") for _ in range(count)]
    kernel = KERNELS[count]

    def ours() -> None:
        kernel(*tensors).launch(grid=(1, 1, 1), block=(32, 1, 1))

    ours()  # builds, loads and prepares
    engine = gpu_engine(0)
    prepared = engine.load(kernel.last.artifact(engine.driver.target.arch))
    packed = Packed.of(prepared, tensors)
    launches: dict[str, Callable[[], Any]] = {
        "driver, cuda-python": driver_call(prepared, packed),
        "driver, ctypes": direct_call(prepared),
        "tilefold": ours,
    }
    if count == 3:
        one = torch.zeros(1, device="cuda")
        launches["torch add_"] = lambda: one.add_(one)
        if engine.driver.capability >= (9, 0):
            launches[WITH_MAPS] = lambda: three_maps(*tensors).launch(grid=(1, 1, 1), block=(32, 1, 1))
    launches |= tvm_ffi_calls(count, tensors, prepared, packed)
    triton = triton_call(count, tensors)
    if triton is not None:
        launches["Triton"] = triton
    return launches


def time_on_host(torch: Torch, calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Microseconds of host time for one call of each: the median over rounds, in turns."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(ROUND):
            call()
    for _ in range(rounds):
        for name, call in calls.items():
            torch.cuda.synchronize()
            began = perf_counter()
            for _ in range(ROUND):
                call()
            samples[name].append((perf_counter() - began) / ROUND * 1e6)
    torch.cuda.synchronize()
    return {name: median(times) for name, times in samples.items()}


def measure(rounds: int, commit: str) -> Record:
    """Takes the figures. TilefoldError without a GPU or PyTorch."""
    torch = load_torch()
    figures: list[Figure] = []
    for count in KERNELS:
        times = time_on_host(torch, contenders(torch, count), rounds)
        group = f"launch, {count} tensors"
        bare = times["driver, cuda-python"]
        for name, microseconds in times.items():
            limit = bare + LIMITS[count] if name == "tilefold" else None
            if limit is not None and "torch add_" in times:
                limit = OF_ADD * times["torch add_"]
            if name == WITH_MAPS:
                limit = times["tilefold"] + OF_MAPS
            if name == TVM_FFI and count == 8:
                limit = max(TVM_FFI_LIMIT, times[TVM_FFI_DRIVER] + OF_EXPORT)
            figures.append(Figure(f"{group}: {name}", microseconds, "us", target=limit, at_most=limit is not None))
    driver = gpu_engine(0).driver
    facts = {"torch": str(torch.__version__), "target": str(driver.target), "commit": commit}
    return Record("host time of a launch", circumstances(driver.name, **facts), tuple(figures), "launch")


def main(arguments: Sequence[str] | None = None) -> int:
    """Takes, prints and keeps the figures; 1 where a target is missed with --strict, or there is no GPU."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.launch", description=__doc__, allow_abbrev=False)
    parser.add_argument("--rounds", type=int, default=300, metavar="N", help="rounds of each contender (default: 300)")
    add_options(parser)
    parser.add_argument("--strict", action="store_true", help="fail where a target is missed")
    args = parser.parse_args(arguments)
    return take_record(lambda: measure(args.rounds, args.commit), args.out, strict=args.strict)


if __name__ == "__main__":
    sys.exit(main())
