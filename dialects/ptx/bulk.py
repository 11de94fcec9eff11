# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bulk copies of contiguous bytes, and their groups (PTX ISA, section Data Movement and Conversion Instructions: Bulk
copy).

One thread has the bytes copied by the async proxy. Its own earlier accesses, by the generic proxy, are before them only
with a `ptx.fence.proxy.async` in between.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from xdsl.dialects.builtin import I16, I32, I64, IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import SSAValue
from xdsl.irdl import AttrSizedOperandSegments, traits_def
from xdsl.utils.exceptions import VerifyException

from ...base.spaces import GMEM, SMEM
from ...layout.atoms.bulk_copy import BULK_TARGETS
from ...layout.atoms.ptx_text import BULK_LOAD, BULK_STORE
from ...layout.tma.recipe import MAP_ELEMENTS, MapElement
from ..definitions import (
    flag,
    irdl_op_definition,
    number,
    operand,
    optional_operand,
    optional_prop,
    prop,
    row,
    some_text,
    text,
)
from .base import GLOBAL, SHARED, SHARED_CLUSTER, PtxOp
from .effects import (
    Group,
    Mbarrier,
    Proxy,
    Unit,
    arrives,
    by_thread,
    copies,
    ends,
    fences,
    issued,
    issues,
    reads,
    updates,
    waits,
)
from .warp import check_word

_FENCED = {SMEM.ptx: ".shared::cta", GMEM.ptx: ".global"}
"""The memories that a fence of the async proxy can be of, in PTX."""


BULK_REDUCTIONS: Mapping[str, tuple[str, MapElement]] = MappingProxyType({
    f"{kind}.{f'b{element.type.bits}' if kind in ('and', 'or', 'xor') else element.name}": (kind, element)
    for element in MAP_ELEMENTS.values()
    for kind in element.reductions
})  # fmt: skip
"""The kinds of reductions with their types as PTX names them: the operation, and its elements."""

SENT_REDUCTIONS = (
    *[name for name, (_, element) in BULK_REDUCTIONS.items() if element.type.kind == "int" and element.type.bits == 32],
    "add.u64",
)
"""Those of bytes that go to the shared memory of another block."""
_BAR = Mbarrier("bar")


class BulkOp(PtxOp):
    """An instruction of the async proxy."""

    SINCE: ClassVar = BULK_TARGETS.oldest.min_sm, BULK_TARGETS.oldest.min_ptx


@row
class BulkLoadOp(BulkOp):
    """`ptx.cp.async.bulk.load %dst, %src, %bytes, %bar multicast %mask policy %p`: starts copying bytes from global to
    shared memory; the mbarrier at `bar` counts them when they are there (PTX ISA, cp.async.bulk).

    With a mask, whose bit i stands for the block of rank i in the cluster, the bytes go to the same place in each of
    these blocks, whose own mbarrier at the place of `bar` counts them.

    Preconditions: addresses and size are multiples of 16. Postcondition: the bytes at `dst` are undefined until the
    phase is complete; who waits for it sees them.
    """

    name = "ptx.cp.async.bulk.load"
    dst: SSAValue = operand(SHARED)
    src: SSAValue = operand(GLOBAL)
    bytes: SSAValue = operand(I32)
    bar: SSAValue = operand(SHARED)
    multicast: SSAValue | None = optional_operand(I16, default=None)
    policy: SSAValue | None = optional_operand(I64, default=None)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(by_thread(*issued(_BAR, Proxy.ASYNC, *copies("%bytes"), arrives(_BAR))))
    assembly_format = "$dst `,` $src `,` $bytes `,` $bar (`multicast` $multicast^)? (`policy` $policy^)? attr-dict"

    def mnemonic(self) -> str:
        to_several = "" if self.multicast is None else ".multicast::cluster"
        return f"{BULK_LOAD}{to_several}{'' if self.policy is None else '.L2::cache_hint'}"


@row
class BulkStoreOp(BulkOp):
    """`ptx.cp.async.bulk.store %dst, %src, %bytes policy %p mask %m`: starts copying bytes from shared to global
    memory, as a part of the thread's bulk group (PTX ISA, cp.async.bulk). The bits of the mask say which bytes of each
    16 are copied, from sm_100 on.

    Preconditions: addresses and size are multiples of 16; a `ptx.fence.proxy.async` lies after the writes of the bytes.
    Postcondition: the bytes at `src` must not change until the thread has waited for its group.
    """

    name = "ptx.cp.async.bulk.store"
    dst: SSAValue = operand(GLOBAL)
    src: SSAValue = operand(SHARED)
    bytes: SSAValue = operand(I32)
    policy: SSAValue | None = optional_operand(I64, default=None)
    mask: SSAValue | None = optional_operand(I16, default=None)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(by_thread(*issued(Group.BULK, Proxy.ASYNC, *copies("%bytes"))))
    assembly_format = "$dst `,` $src `,` $bytes (`policy` $policy^)? (`mask` $mask^)? attr-dict"

    def mnemonic(self) -> str:
        hint, masked = "" if self.policy is None else ".L2::cache_hint", "" if self.mask is None else ".cp_mask"
        return f"{BULK_STORE}{hint}{masked}"

    def requires(self) -> tuple[int, int]:
        return self.SINCE if self.mask is None else (100, 86)


@row
class BulkSendOp(BulkOp):
    """`ptx.cp.async.bulk.send %dst, %src, %bytes, %bar reduce "add.u32"`: starts copying bytes from the block's shared
    memory to that of a block of the cluster; the mbarrier at `bar`, in the same block as `dst`, counts them when they
    are there (PTX ISA, cp.async.bulk). With `reduce`, numbers are combined with those at `dst`, one by one and
    atomically (PTX ISA, cp.reduce.async.bulk): add, min, max of u32 and s32, inc, dec of u32, and, or, xor of b32, add
    of u64.

    Preconditions: addresses and size are multiples of 16; a `ptx.fence.proxy.async` lies after the writes of the bytes.
    Postcondition: the bytes at `src` must not change, and those at `dst` are undefined, until the phase is complete.
    """

    name = "ptx.cp.async.bulk.send"
    dst: SSAValue = operand(SHARED_CLUSTER)
    src: SSAValue = operand(SHARED)
    bytes: SSAValue = operand(I32)
    bar: SSAValue = operand(SHARED_CLUSTER)
    kind: StringAttr | None = optional_prop(converter=some_text, default=None)
    traits = traits_def(by_thread(*issued(_BAR, Proxy.ASYNC, *copies("%bytes"), arrives(_BAR))))
    assembly_format = "$dst `,` $src `,` $bytes `,` $bar (`reduce` $kind^)? attr-dict"

    def mnemonic(self) -> str:
        way, kind = ("cp", "") if self.kind is None else ("cp.reduce", f".{self.kind.data}")
        return f"{way}.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes{kind}"

    def verify_(self) -> None:
        if self.kind is not None:
            check_word("cp.reduce.async.bulk", self.kind.data, SENT_REDUCTIONS)


@row
class BulkReduceOp(BulkOp):
    """`ptx.cp.reduce.async.bulk "add.f16" %dst, %src, %bytes policy %p`: as a store, but numbers in shared memory are
    combined with those in global memory, one by one and atomically (PTX ISA, cp.reduce.async.bulk).

    The kinds are those of TMA copies (`layout.tma.recipe.MAP_ELEMENTS`), and `and`, `or`, `xor` are of b32 and b64.
    Preconditions: those of a store.
    """

    name = "ptx.cp.reduce.async.bulk"
    kind: StringAttr = prop(converter=text)
    dst: SSAValue = operand(GLOBAL)
    src: SSAValue = operand(SHARED)
    bytes: SSAValue = operand(I32)
    policy: SSAValue | None = optional_operand(I64, default=None)
    traits = traits_def(by_thread(*issued(Group.BULK, Proxy.ASYNC, reads("src", "%bytes"), updates("dst", "%bytes"))))
    assembly_format = "$kind $dst `,` $src `,` $bytes (`policy` $policy^)? attr-dict"

    def mnemonic(self) -> str:
        hint = "" if self.policy is None else ".L2::cache_hint"
        kind = self.kind.data.replace("add.f16", "add.noftz.f16").replace("add.bf16", "add.noftz.bf16")
        return f"cp.reduce.async.bulk.global.shared::cta.bulk_group{hint}.{kind}"

    def verify_(self) -> None:
        check_word("cp.reduce.async.bulk", self.kind.data, tuple(BULK_REDUCTIONS))


@row
class BulkPrefetchOp(BulkOp):
    """`ptx.cp.async.bulk.prefetch %src, %bytes policy %p`: the L2 cache may fetch bytes of global memory (PTX ISA,
    cp.async.bulk.prefetch). Preconditions: address and size are multiples of 16.
    """

    name = "ptx.cp.async.bulk.prefetch"
    src: SSAValue = operand(GLOBAL)
    bytes: SSAValue = operand(I32)
    policy: SSAValue | None = optional_operand(I64, default=None)
    traits = traits_def(by_thread(issues(Unit.CACHE)))
    assembly_format = "$src `,` $bytes (`policy` $policy^)? attr-dict"

    def mnemonic(self) -> str:
        return f"cp.async.bulk.prefetch.L2.global{'' if self.policy is None else '.L2::cache_hint'}"


@irdl_op_definition
class BulkCommitGroupOp(BulkOp):
    """`ptx.cp.async.bulk.commit_group`: the thread's bulk copies to global memory since the last commit become one
    group (PTX ISA, cp.async.bulk.commit_group).
    """

    name = "ptx.cp.async.bulk.commit_group"
    traits = traits_def(by_thread(ends(Group.BULK)))
    assembly_format = "attr-dict"

    def mnemonic(self) -> str:
        return "cp.async.bulk.commit_group"


@row
class BulkWaitGroupOp(BulkOp):
    """`ptx.cp.async.bulk.wait_group 1 read`: waits until at most this number of the thread's latest bulk groups is in
    flight (PTX ISA, cp.async.bulk.wait_group). With `read`, the others may still write: their sources have been read.
    """

    name = "ptx.cp.async.bulk.wait_group"
    n: IntegerAttr[I64] = prop(converter=number)
    read: UnitAttr | None = optional_prop(converter=flag, default=False)
    traits = traits_def(by_thread(waits(Group.BULK).given("not read"), waits(Group.BULK_READS).given("read")))
    assembly_format = "$n (`read` $read^)? attr-dict"

    def mnemonic(self) -> str:
        return f"cp.async.bulk.wait_group{'' if self.read is None else '.read'}"

    def verify_(self) -> None:
        if not 0 <= self.n.value.data < 2**31:
            raise VerifyException(f"the number of groups is {self.n.value.data}; it must be 0 or more")


@row
class FenceProxyAsyncOp(BulkOp):
    """`ptx.fence.proxy.async of "shared"`: accesses of memory before it are before those by the async proxy after it,
    such as bulk copies; with `of`, only those of shared or of global memory (PTX ISA, membar: fence.proxy.async).

    A fence of only shared memory takes much less time. The thread that wrote the bytes executes it before it tells
    others, or the thread that starts the copy, after it.
    """

    name = "ptx.fence.proxy.async"
    space: StringAttr | None = optional_prop(converter=some_text, default=None)
    traits = traits_def(
        by_thread(
            fences(Proxy.ASYNC, SMEM.ptx, GMEM.ptx).given("not space"), fences(Proxy.ASYNC, "%space").given("space")
        )
    )
    assembly_format = "(`of` $space^)? attr-dict"

    @property
    def spaces(self) -> tuple[str, ...]:
        """The memories whose accesses it orders."""
        return (SMEM.ptx, GMEM.ptx) if self.space is None else (self.space.data,)

    def mnemonic(self) -> str:
        return "fence.proxy.async" + ("" if self.space is None else _FENCED[self.space.data])

    def verify_(self) -> None:
        if self.space is not None:
            check_word("space", self.space.data, tuple(_FENCED))
