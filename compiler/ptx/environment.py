# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The environment of a kernel, which its text does not declare: special registers of the system, and memory that
CUDA's driver gives (PTX ISA, Special Registers).
"""

from collections.abc import Mapping
from types import MappingProxyType

from .syntax import Place, Variable

GRID_WORKSPACE = "%envreg"
"""The variable in global memory at the address that CUDA's driver gives in %envreg1 and %envreg2: cooperative groups
count there the blocks of a grid that have arrived.
"""
RESERVED_SHARED = "%reserved_smem_offset_1"
"""Where shared memory begins that cooperative groups of several warps use."""
RESERVED_BYTES = 1024
"""Its size, of which the ISA says nothing; they use less."""
HEAP = "%heap"
"""The variable in global memory that malloc takes memory from, and gives it back to by free."""
HEAP_BYTES = 8 << 20
"""Its size: cudaLimitMallocHeapSize, unless a program sets it."""
IN_TEXTS: Mapping[str, int] = MappingProxyType({
    "clock64": 64, "globaltimer": 64, "gridid": 64, "current_graph_exec": 64,
    **{f"envreg{number}": 32 for number in (0, *range(3, 32))},
    **dict.fromkeys(
        ("clock", "clock_hi", "globaltimer_lo", "globaltimer_hi", "warpid", "nwarpid", "smid", "nsmid",
         "dynamic_smem_size"), 32
    ),
})  # fmt: skip
"""The bits of special registers that the simulator reads in texts."""


def variables_of_driver(place: Place) -> tuple[Variable, ...]:
    """The variables of the system that a kernel may have, as if its text declared them there."""
    return (
        Variable(GRID_WORKSPACE, "global", 16, 16, None, place),
        Variable(HEAP, "global", HEAP_BYTES, 256, None, place),
        Variable(RESERVED_SHARED, "shared", RESERVED_BYTES, 16, None, place),
    )
