# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Allocation of tensor memory, and its fences (PTX ISA, Tensor Memory Allocation and Management Instructions, and
Specialized Fence).

A block has 512 columns of 128 lanes, of 32 bits each. Blocks that share a multiprocessor share them.
"""

from typing import ClassVar

from xdsl.dialects.builtin import I32, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import traits_def
from xdsl.utils.exceptions import VerifyException

from ....base.spaces import TMEM
from ...definitions import operand, prop, row, text
from ..base import SHARED
from ..effects import Group, Proxy, Unit, by_thread, by_warp, ends, fences, waits, writes
from .base import TENSOR, GroupOp, Tcgen05Op, constant_of, refuse_form

MIN_COLUMNS, MAX_COLUMNS = 32, 512
"""The columns that an allocation can have, powers of two."""


def is_allocatable(columns: int) -> bool:
    """Whether an allocation can have this number of columns."""
    return MIN_COLUMNS <= columns <= MAX_COLUMNS and columns & (columns - 1) == 0


def _check_columns(value: SSAValue) -> None:
    columns = constant_of(value)
    if columns is not None and not is_allocatable(columns):
        refuse_form(f"{columns} columns cannot be allocated", "allocate 32, 64, 128, 256 or 512 columns")


@row
class TensorAllocOp(GroupOp):
    """`ptx.tcgen05.alloc cta_group 1 %slot, %columns`: allocates 32, 64, 128, 256 or 512 columns of tensor memory, and
    writes their address to shared memory (PTX ISA, tcgen05.alloc). It waits until as many are free.

    Preconditions: all lanes of a warp execute it, in a pair one warp of each block. No later allocation of a block is
    larger than an earlier one, and none comes after `ptx.tcgen05.relinquish_alloc_permit`.
    """

    name = "ptx.tcgen05.alloc"
    slot: SSAValue = operand(SHARED)
    columns: SSAValue = operand(I32)
    traits = traits_def(by_warp(waits(Unit.TENSOR_COLUMNS), writes("slot", 4)))
    assembly_format = "`cta_group` $group $slot `,` $columns attr-dict"

    def mnemonic(self) -> str:
        return f"tcgen05.alloc.{self.suffix}.sync.aligned.shared::cta.b32"

    def verify_(self) -> None:
        super().verify_()
        _check_columns(self.columns)


@row
class TensorDeallocOp(GroupOp):
    """`ptx.tcgen05.dealloc cta_group 1 %address, %columns`: frees the columns that one `ptx.tcgen05.alloc` has
    allocated (PTX ISA, tcgen05.dealloc). All must be free before the kernel ends.

    Preconditions: all lanes of a warp execute it, in a pair one warp of each block; all uses of the columns have
    completed.
    """

    name = "ptx.tcgen05.dealloc"
    address: SSAValue = operand(TENSOR)
    columns: SSAValue = operand(I32)
    traits = traits_def(by_warp(ends(Unit.TENSOR_COLUMNS)))
    assembly_format = "`cta_group` $group $address `,` $columns attr-dict"

    def mnemonic(self) -> str:
        return f"tcgen05.dealloc.{self.suffix}.sync.aligned.b32"

    def verify_(self) -> None:
        super().verify_()
        _check_columns(self.columns)


@row
class TensorRelinquishOp(GroupOp):
    """`ptx.tcgen05.relinquish_alloc_permit cta_group 1`: the block will allocate nothing more, so that another one of
    the multiprocessor can (PTX ISA, tcgen05.relinquish_alloc_permit).

    Preconditions: all lanes of a warp execute it.
    """

    name = "ptx.tcgen05.relinquish_alloc_permit"
    traits = traits_def(by_warp(ends(Unit.TENSOR_COLUMNS)))
    assembly_format = "`cta_group` $group attr-dict"

    def mnemonic(self) -> str:
        return f"tcgen05.relinquish_alloc_permit.{self.suffix}.sync.aligned"


@row
class TensorFenceOp(Tcgen05Op):
    """`ptx.tcgen05.fence "before_thread_sync"`, `ptx.tcgen05.fence "after_thread_sync"`: orders accesses of tcgen05
    around a synchronisation of threads (PTX ISA, tcgen05.fence). Those before the first come before those behind the
    second in a thread that has waited for the first one's.
    """

    name = "ptx.tcgen05.fence"
    when: StringAttr = prop(converter=text)
    traits = traits_def(by_thread(fences(Proxy.TENSOR, TMEM.ptx)))
    assembly_format = "$when attr-dict"
    FORMS: ClassVar[tuple[str, ...]] = ("before_thread_sync", "after_thread_sync")

    @property
    def is_before(self) -> bool:
        """Whether it stands before the synchronisation."""
        return self.when.data == self.FORMS[0]

    def mnemonic(self) -> str:
        return f"tcgen05.fence::{self.when.data}"

    def verify_(self) -> None:
        if self.when.data not in self.FORMS:
            raise VerifyException(f'tcgen05.fence has {", ".join(self.FORMS)}; not "{self.when.data}"')


@row
class TensorWaitOp(Tcgen05Op):
    """`ptx.tcgen05.wait "ld"`, `ptx.tcgen05.wait "st"`: waits until the loads from tensor memory, or the stores to it,
    that the threads of the warp have issued are complete (PTX ISA, tcgen05.wait).

    Preconditions: all lanes of the warp execute it.
    """

    name = "ptx.tcgen05.wait"
    kind: StringAttr = prop(converter=text)
    traits = traits_def(by_warp(waits(Group.TENSOR_ACCESSES)))
    assembly_format = "$kind attr-dict"
    FORMS: ClassVar[tuple[str, ...]] = ("ld", "st")

    def mnemonic(self) -> str:
        return f"tcgen05.wait::{self.kind.data}.sync.aligned"

    def verify_(self) -> None:
        if self.kind.data not in self.FORMS:
            raise VerifyException(f'tcgen05.wait has {", ".join(self.FORMS)}; not "{self.kind.data}"')
