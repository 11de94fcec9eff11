# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special registers of the multiprocessor that executes a thread (PTX ISA, Special Registers).

The simulator has one multiprocessor, and no time passes there.
"""

from ..scalars.dtypes import Int32, Int64
from ..scalars.values import Int
from .inline import inline_ptx


def _register(name: str) -> Int:
    return inline_ptx(f"mov.u32 $0, %{name};", "=r", results=Int32)


def _time(name: str) -> Int:
    return inline_ptx(f"mov.u64 $0, %{name};", "=l", results=Int64)


def smid() -> Int:
    """The number of the multiprocessor, 0 on the simulator: an Int32."""
    return _register("smid")


def nsmid() -> Int:
    """The least number that is above those of all multiprocessors, 1 on the simulator: an Int32."""
    return _register("nsmid")


def physical_warp_id() -> Int:
    """The place of the warp in its multiprocessor, that in its block on the simulator: an Int32."""
    return _register("warpid")


def nwarpid() -> Int:
    """The number of places of warps in a multiprocessor: an Int32."""
    return _register("nwarpid")


def clock() -> Int:
    """The lower 32 bits of the multiprocessor's cycles, 0 on the simulator: an Int32."""
    return _register("clock")


def clock64() -> Int:
    """The multiprocessor's cycles, 0 on the simulator: an Int64."""
    return _time("clock64")


def globaltimer() -> Int:
    """The GPU's time in nanoseconds, 0 on the simulator: an Int64."""
    return _time("globaltimer")


def globaltimer_lo() -> Int:
    """The lower 32 bits of `globaltimer`: an Int32."""
    return _register("globaltimer_lo")
