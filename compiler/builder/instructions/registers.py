# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special registers of the multiprocessor that executes a thread (PTX ISA, Special Registers).

The simulator has one multiprocessor, and no time passes there.
"""

from typing import Any

from ..scalars.dtypes import Int32, Int64
from .arch import warp_idx
from .inline import inline_ptx


def _register(name: str, simulated: int) -> Any:
    return inline_ptx(f"mov.u32 $0, %{name};", "=r", results=Int32, sim=lambda: simulated)


def _same(x: Any) -> Any:
    return x


def _time(name: str) -> Any:
    return inline_ptx(f"mov.u64 $0, %{name};", "=l", results=Int64, sim=lambda: 0)


def smid() -> Any:
    """The number of the multiprocessor, 0 on the simulator: an Int32."""
    return _register("smid", 0)


def nsmid() -> Any:
    """The least number that is above those of all multiprocessors, 1 on the simulator: an Int32."""
    return _register("nsmid", 1)


def physical_warp_id() -> Any:
    """The place of the warp in its multiprocessor, that in its block on the simulator: an Int32."""
    return inline_ptx("mov.u32 $0, %warpid;", "=r,r", warp_idx(), results=Int32, sim=_same)


def nwarpid() -> Any:
    """The number of places of warps in a multiprocessor: an Int32."""
    return _register("nwarpid", 64)


def clock() -> Any:
    """The lower 32 bits of the multiprocessor's cycles, 0 on the simulator: an Int32."""
    return _register("clock", 0)


def clock64() -> Any:
    """The multiprocessor's cycles, 0 on the simulator: an Int64."""
    return _time("clock64")


def globaltimer() -> Any:
    """The GPU's time in nanoseconds, 0 on the simulator: an Int64."""
    return _time("globaltimer")


def globaltimer_lo() -> Any:
    """The lower 32 bits of `globaltimer`: an Int32."""
    return _register("globaltimer_lo", 0)
