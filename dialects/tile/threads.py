# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A thread's part of a tensor, and that a block has the threads among which a tiled copy or MMA shares its tensors."""

from collections.abc import Iterator

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.gpu import DimensionEnum
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...base.errors import Code, LayoutError
from ...layout.atoms.contract import Counted
from ...layout.tiling.tiled_copy import TiledCopy
from ...layout.tiling.tiled_mma import TiledMma
from .. import gpu
from ..definitions import refusing
from ..kernel import KernelOp, kernel_of
from .view_base import LayoutViewOp, SlicedViewOp, TilingViewOp

_ACCESSES = frozenset({"tile.copy", "tile.gemm", "tile.load", "tile.store", "tile.fill", "tile.map", "tile.ptr"})
"""Operations that access elements of the tensors they are given, or give an address for that."""
_SAME_MEMORY = frozenset({"tile.recast", "tile.make_tensor"})


def is_thread_x(value: SSAValue) -> bool:
    """Whether a value is the thread's coordinate x in its block."""
    owner = value.owner
    return isinstance(owner, gpu.ThreadIdOp) and owner.dimension.data is DimensionEnum.X


def counts_blocks(tiling: object) -> bool:
    """Whether a tiled copy or MMA has parts for the blocks of a pair, not for threads."""
    return isinstance(tiling, TiledCopy | TiledMma) and tiling.atom.contract.counts is Counted.BLOCKS


class ThreadViewOp(SlicedViewOp, TilingViewOp):
    """The base of views of a thread's part of a tensor: the last operand is the thread's index."""

    @property
    def sharing(self) -> int | None:
        """How many threads share the tensor; None if their number is not part of the operation."""
        tiling = self.given(self.operand_types, self.properties).tiling
        return None if tiling is None or counts_blocks(tiling) else tiling.threads

    def verify_(self) -> None:
        if len(self.coords) != 1:
            raise VerifyException("a partition needs one thread index")
        super().verify_()
        with refusing():
            _check_part(self)


def _check_part(op: ThreadViewOp) -> None:
    """Raises `LayoutError` (E0321) for a part of a tensor that each thread takes by its coordinate x, if

    - the block has fewer threads than share the tensor, so that no thread accesses the remaining parts;
    - the block has more, and each of them accesses its part.

    Parts at another index, such as x modulo 32, are not looked at. Where there are some of the same tiled copy or MMA,
    they may belong to other threads.
    """
    kernel = kernel_of(op)
    if counts_blocks(op.given(op.operand_types, op.properties).tiling) and is_thread_x(op.coords[0]):
        raise LayoutError(
            Code.BLOCK_THREADS,
            "the parts belong to blocks, but the index is a thread's",
            "take the part of the block: its rank in the cluster, modulo the blocks that share the tensor",
        )
    if kernel is None or op.sharing is None or not is_thread_x(op.coords[0]):
        return
    threads = kernel.launch_bounds.threads[0]
    made = accesses(op.result) if threads != op.sharing else iter(())
    if threads < op.sharing and not _has_other_index(op) and any(True for _ in made):
        raise LayoutError(
            Code.BLOCK_THREADS,
            f"{op.sharing} threads share the tensor, but the block has {threads}: "
            "no thread accesses the remaining parts",
            f"launch blocks of {op.sharing} threads, or make it for {threads}",
        )
    if threads > op.sharing and any(by_every_thread(access) for access in made):
        raise LayoutError(
            Code.BLOCK_THREADS,
            f"{op.sharing} threads share the tensor, but each of the {threads} threads of the block accesses a part",
            f"make it for {threads} threads, let the first {op.sharing} access their parts under a condition, or give "
            "the index of a part, such as the thread's modulo",
        )


def _has_other_index(op: ThreadViewOp) -> bool:
    """Whether the tiled copy or MMA of a part gives parts at other indices than x."""
    uses = (use.operation for use in op.operands[0].uses)
    return any(isinstance(other, ThreadViewOp) and not is_thread_x(other.coords[0]) for other in uses)


def accesses(tensor: SSAValue) -> Iterator[Operation]:
    """The operations that access a tensor, itself or through views."""
    for use in tensor.uses:
        op = use.operation
        if op.name in _ACCESSES:
            yield op
        elif isinstance(op, LayoutViewOp) or op.name in _SAME_MEMORY:
            yield from accesses(op.results[0])


def by_every_thread(op: Operation) -> bool:
    """Whether every thread of the block is known to execute an operation on all elements."""
    if getattr(op, "pred", None) is not None:
        return False
    around = op.parent_op()
    while isinstance(around, scf.ForOp):
        low, high = (_constant(bound) for bound in (around.lb, around.ub))
        if low is None or high is None or low >= high:
            return False
        around = around.parent_op()
    return isinstance(around, KernelOp)


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    constant = owner.value if isinstance(owner, arith.ConstantOp) else None
    return constant.value.data if isinstance(constant, IntegerAttr) else None
