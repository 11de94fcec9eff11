# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a kernel finds where it runs, which its text does not declare: special registers of the system, and memory that
CUDA's driver gives (PTX ISA, Special Registers).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i32
from xdsl.ir import Block

from ...dialects.ptx import BarSyncOp, StoreOp
from .syntax import Place, Variable

if TYPE_CHECKING:
    from .registers import Registers

GRID_WORKSPACE = "%envreg"
"""The variable in global memory at the address that CUDA's driver gives in %envreg1 and %envreg2: cooperative groups
count there the blocks of a grid that have arrived.
"""
RESERVED_SHARED = "%reserved_smem_offset_1"
"""Where shared memory begins that cooperative groups of several warps use."""
RESERVED_BYTES = 1024
"""Its size, of which the ISA says nothing; they use less."""
IN_TEXTS: Mapping[str, int] = MappingProxyType({
    "clock64": 64, "globaltimer": 64,
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
        Variable(RESERVED_SHARED, "shared", RESERVED_BYTES, 16, None, place),
    )


def clear_reserved(r: "Registers") -> None:
    """Zeros in the reserved shared memory, before any thread goes on: CUDA's runtime leaves no garbage there."""
    is_first = r.emit(arith.CmpiOp(r.thread(), r.constant(0, i32), "eq"))
    outer, block = r.block, Block()
    r.enter(block)
    zeros = r.vector([r.constant(0, i32)] * 4)
    for at in range(0, RESERVED_BYTES, 16):
        r.add(StoreOp(zeros, r.shifted(r.symbols[RESERVED_SHARED], at), 16))
    r.add(scf.YieldOp())
    r.enter(outer)
    r.add(scf.IfOp(is_first, [], [block]))
    r.add(BarSyncOp(0, None, None))
