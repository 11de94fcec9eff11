# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The allocation of tensor memory, and its end."""

from xdsl.dialects.builtin import I64, IntegerAttr
from xdsl.ir import SSAValue
from xdsl.irdl import operand_def, prop_def, result_def, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from ..definitions import irdl_op_definition
from ..kernel import kernel_of
from ..ptx.tcgen05.base import TENSOR
from ..ptx.tcgen05.memory import is_allocatable
from .directives import TileOp


@irdl_op_definition
class TmemAllocOp(TileOp):
    """`%x = tile.tmem_alloc 256 cta_group 1`: the address of 256 columns of tensor memory, contents undefined, until
    `tile.tmem_dealloc %x`. There are 32, 64, 128, 256 or 512 columns. With `cta_group 2` both blocks of a pair allocate
    as many, at the same address.

    `tile.make_fragment_C %mma, %part at %x` is a tensor there, `ptx.ptr_add %x, %n` the address `%n` columns further
    on. The first warp of the block allocates, and the block gives up its permit: two blocks of a multiprocessor that
    allocate twice could wait for each other. So a kernel has one such operation.

    Preconditions: all threads of the block execute it, in a pair those of both blocks; it waits for them.
    """

    name = "tile.tmem_alloc"
    columns = prop_def(IntegerAttr[I64])
    group = prop_def(IntegerAttr[I64])
    result = result_def(TENSOR)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$columns `cta_group` $group attr-dict"

    @property
    def blocks(self) -> int:
        """The blocks that allocate together."""
        return self.group.value.data

    def verify_(self) -> None:
        count = self.columns.value.data
        if not is_allocatable(count):
            raise VerifyException(f"{count} columns cannot be allocated: there are 32, 64, 128, 256 or 512")
        if self.blocks not in (1, 2):
            raise VerifyException(f"cta_group is 1 or 2, not {self.blocks}")
        kernel = kernel_of(self)
        if kernel is not None and next(op for op in kernel.walk() if isinstance(op, TmemAllocOp)) is not self:
            raise VerifyException(
                "a kernel allocates tensor memory once: allocate all columns together, and divide them"
            )


@irdl_op_definition
class TmemDeallocOp(TileOp):
    """`tile.tmem_dealloc %x`: the end of the columns of `tile.tmem_alloc`. All must have ended before the kernel does.

    Preconditions: all threads of the block execute it, in a pair those of both blocks, after their uses of the columns
    are over: multiplications by a wait for their commit, loads and stores by `ptx.tcgen05.wait`. It waits for them.
    """

    name = "tile.tmem_dealloc"
    address: SSAValue = operand_def(TENSOR)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "custom<Operand>($address) attr-dict"

    @property
    def allocation(self) -> TmemAllocOp:
        """The operation that made the columns."""
        assert isinstance(self.address.owner, TmemAllocOp), "the verifier checks this"
        return self.address.owner

    def verify_(self) -> None:
        if not isinstance(self.address.owner, TmemAllocOp):
            raise VerifyException("the address is that of tile.tmem_alloc, all of whose columns end together")
