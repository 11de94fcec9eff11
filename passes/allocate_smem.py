# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`allocate-smem`: on the way from stage `index` to stage `instr`."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.passes import ModulePass

from ..base.errors import Code
from ..base.target import DEFAULT_ARCH, Target
from ..dialects.kernel import kernels_in
from ..dialects.ptx import EntryOp, SmemAddrOp, SmemAllocOp
from .errors import LoweringError
from .writing.emitter import Emitter


@dataclass(frozen=True)
class AllocateSmemPass(ModulePass):
    """Assigns shared memory: each allocation gets an offset, and the kernel gets the total size.

    Allocations are placed in order, each with its alignment. Refuses a kernel that needs more shared memory than the
    target allows per block.

    Before: `%s = ptx.smem.alloc 4096 align 128`. After: `%s = ptx.smem.addr 0 bytes 4096`, and `shared(4096)` on the
    entry.
    """

    name = "allocate-smem"
    target: str = DEFAULT_ARCH

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        limit = Target(self.target).max_shared_bytes
        for entry in kernels_in(op, EntryOp):
            self._place(entry, limit)

    def _place(self, entry: EntryOp, limit: int) -> None:
        end = 0 if entry.shared_bytes is None else entry.shared_bytes.value.data
        for alloc in list(entry.walk()):
            if not isinstance(alloc, SmemAllocOp):
                continue
            align = alloc.align.value.data
            start = -(-end // align) * align
            end = start + alloc.bytes.value.data
            if end > limit:
                raise LoweringError(
                    Code.TARGET_SHARED_MEMORY,
                    f"with this allocation the block needs {end} bytes of shared memory; {self.target} has {limit}",
                    alloc,
                    "use smaller tiles or fewer stages, or a target with more shared memory",
                )
            emitter = Emitter(alloc)
            emitter.replace([emitter.value(SmemAddrOp(start, alloc.bytes.value.data))])
        entry.shared_bytes = IntegerAttr(end, i64)
