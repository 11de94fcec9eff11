# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cost of a launch before the driver, in microseconds, on any machine: `python -m benchmarks.launch_path`.

The driver's call is a function of the C library that does nothing, and its time is subtracted. With a GPU,
`benchmarks.launch` measures the whole.
"""

import ctypes
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

from tilefold.base.parameters import POINTER
from tilefold.base.target import Target
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.integers import Unknown
from tilefold.layout.tma.recipe_text import parse_recipe
from tilefold.runtime.arrays.signature import Dynamic
from tilefold.runtime.compiled.artifact import Artifact, Parameter, value_name
from tilefold.runtime.cuda.comparison import Rules
from tilefold.runtime.cuda.driver import Library
from tilefold.runtime.cuda.launcher import Launcher
from tilefold.runtime.cuda.loaded_kernel import Kernel
from tilefold.runtime.cuda.prepared import GridOf, Prepared

from benchmarks.launch import KERNELS, LIMITS, OF_MAPS
from benchmarks.record import Figure, Record, circumstances, print_record, this_machine
from tilefold import cute

SHAPE = (4, 64)
CALLS = 1000
"""Launches that are timed at once; the fastest of many such rounds counts."""

# pyright: reportUnknownMemberType=false


class DeviceArray:
    """An array that says what it is by `__cuda_array_interface__`, as those of Numba do."""

    def __init__(self, address: int) -> None:
        self.__cuda_array_interface__ = {"data": (address, False), "shape": SHAPE, "typestr": "<f4", "version": 3}


def prepared(parameters: Sequence[Parameter], grid_of: GridOf | None = None, maps: bool = False) -> Prepared:
    """The launches of a kernel of blocks of 32 threads that does nothing on a device that is not there; with `maps`, of
    one that takes a tensor map of each tensor.
    """
    values = [len(parameter.kinds) for parameter in parameters]
    firsts = [sum(values[:number]) for number in range(len(values) if maps else 0)]
    recipes = [f"f32 {value_name(first)} dims (64, 4) strides (256) box (32, 4)" for first in firsts]
    artifact = Artifact(
        "nothing", "", Target("sm_90"), tuple(parameters), (32, 1, 1), maps=tuple(map(parse_recipe, recipes))
    )
    driver = SimpleNamespace(ordinal=0, context=0, capability=(9, 0))
    kernel = SimpleNamespace(artifact=artifact, handle=1, driver=driver)
    nothing = ctypes.CDLL(None).pthread_equal  # of two addresses that differ: 0, for success
    library = SimpleNamespace(launch=nothing, encode_tensor_map=nothing)
    return Prepared(cast(Kernel, kernel), cast(Library, library), grid_of)


def nanoseconds(call: Callable[[], Any], rounds: int) -> float:
    """The time of a call: of the fastest round."""
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, time.perf_counter() - began)
    return best / CALLS * 1e9


def microseconds(
    arrays: Sequence[Sequence[Any]], rounds: int, dynamic: bool = False, tuned: bool = False, maps: bool = False
) -> float:
    """The time of a launch on arrays beside the driver's call, where these lists of arguments take turns: of a kernel,
    of one that is tuned, or of one that takes tensor maps.
    """
    count = len(arrays[0])
    kernel = KERNELS[count]
    layout = Layout((Unknown(), Unknown()), (Unknown(32, 4), 1)) if dynamic else None
    names = kernel.signature.names
    made = prepared([Parameter(name, POINTER, 16, layout) for name in names], (lambda _: 1) if tuned else None, maps)
    rules = Rules(names, dynamic={name: Dynamic() for name in names} if dynamic else {})
    missed = 0

    def resolve(*_: Any) -> tuple[None, Prepared]:
        nonlocal missed
        missed += 1
        return None, made

    kernel(*arrays[0]).build((32, 1, 1))  # from now on a launch compares the globals that the kernel reads
    tuned_kernel = cute.autotune(configs=[{}], grid=1, block=32)(kernel)
    launchers = tuned_kernel.launchers if tuned else kernel.launchers
    launchers["auto"] = Launcher(rules, resolve)

    def launch() -> None:
        for group in arrays:
            kernel(*group).launch(grid=(1, 1, 1), block=(32, 1, 1), stream=0)

    def launch_tuned() -> None:
        for group in arrays:
            tuned_kernel(*group).launch(stream=0)

    run = launch_tuned if tuned else launch
    run()
    run()
    taken = nanoseconds(run, rounds) / len(arrays)
    del launchers["auto"]
    assert missed == len(arrays), "a launch was not the prepared one"
    frame = made.frame()
    frame.place(made.kernel, 1)
    return (taken - nanoseconds(frame.call, rounds)) / 1e3


def of_torch(torch: Any, count: int, rows: int = SHAPE[0]) -> list[Any]:
    """Tensors in the host's memory; a launch looks at them like at others."""
    return [torch.zeros(rows, SHAPE[1]) for _ in range(count)]


def of_interface(count: int) -> list[Any]:
    """Arrays that are read by `__cuda_array_interface__`."""
    return [DeviceArray(0x1000 * (number + 1)) for number in range(count)]


def figures(rounds: int = 50) -> list[Figure]:
    """All figures; those on tensors of torch where it is installed."""
    figures: list[Figure] = []

    def add(name: str, taken: float, target: float | None = None) -> None:
        figures.append(Figure(f"before the driver, {name}", taken, "us", target=target, at_most=target is not None))

    for count in KERNELS:
        add(f"{count} arrays by __cuda_array_interface__", microseconds([of_interface(count)], rounds))
        add(f"{count} such arrays with a tensor map each", microseconds([of_interface(count)], rounds, maps=True))
    try:
        torch = import_module("torch")
    except ImportError:
        return figures
    for count in KERNELS:
        tensors = of_torch(torch, count)
        plain = microseconds([tensors], rounds)
        add(f"{count} tensors", plain, LIMITS[count])
        add(f"{count} tensors, two shapes in turns", microseconds([tensors, of_torch(torch, count, 8)], rounds))
        add(f"{count} tensors, of a tuned kernel", microseconds([tensors], rounds, tuned=True), LIMITS[count])
        with_maps = microseconds([tensors], rounds, maps=True)
        add(f"{count} tensors with a map each", with_maps, plain + OF_MAPS if count == 3 else None)
        add(f"{count} tensors of dynamic extents", microseconds([tensors], rounds, dynamic=True))
    return figures


def main() -> int:
    """Prints the figures."""
    facts = circumstances(this_machine(), python=sys.version.split()[0])
    print_record(Record("host time of a launch before the driver", facts, tuple(figures()), "launch-path"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
