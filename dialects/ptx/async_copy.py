# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cp.async` and its groups (PTX ISA, section Data Movement and Conversion Instructions: Non-bulk copy)."""

from typing import ClassVar

from xdsl.dialects.builtin import I32, I64, IntegerAttr, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import AttrSizedOperandSegments, traits_def
from xdsl.utils.exceptions import VerifyException

from ...base.target import Targets
from ...layout.atoms.bulk_copy import CP_ASYNC_TARGETS
from ...layout.atoms.cache_hints import PREFETCH_HINTS
from ...layout.atoms.instructions import CP_ASYNC_BYTES
from ...layout.atoms.ptx_text import cp_async_mnemonic
from ..definitions import (
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
from .base import GLOBAL, SHARED, PtxOp
from .effects import Group, Proxy, by_thread, copies, ends, issued, waits
from .hints import check_hint, modifiers, with_hint


class _AsyncOp(PtxOp):
    """An instruction of the cp.async family."""

    TARGETS: ClassVar[Targets | None] = CP_ASYNC_TARGETS


@row
class CpAsyncOp(_AsyncOp):
    """`ptx.cp.async "cg" 16 %dst, %src`: starts copying bytes from global to shared memory.

    `ca` caches at all levels and copies 4, 8 or 16 bytes, `cg` caches at L2 only and copies 16. With `size %n`, an
    i32 from 0 to the bytes, only that many are read, and zeros are written for the rest. `prefetch "L2::128B"` hints
    that the L2 cache may fetch 64, 128 or 256 bytes there, and `policy %p`, of `ptx.createpolicy`, how it keeps the
    data.
    Preconditions: both addresses are multiples of the size. Postcondition: the bytes at `dst` are undefined until the
    executing thread has waited for the group that holds the copy; other threads need a barrier after that.
    """

    name = "ptx.cp.async"
    cache: StringAttr = prop(converter=text)
    bytes: IntegerAttr[I64] = prop(converter=number)
    dst: SSAValue = operand(SHARED)
    src: SSAValue = operand(GLOBAL)
    src_size: SSAValue | None = optional_operand(I32, default=None)
    prefetch: StringAttr | None = optional_prop(converter=some_text, default="")
    policy: SSAValue | None = optional_operand(I64, default=None)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(by_thread(*issued(Group.CP_ASYNC, Proxy.GENERIC, *copies("bytes"))))
    assembly_format = (
        "$cache $bytes $dst `,` $src (`size` $src_size^)? (`policy` $policy^)? (`prefetch` $prefetch^)? attr-dict"
    )

    def mnemonic(self) -> str:
        return cp_async_mnemonic(self.cache.data) + modifiers(self.prefetch, self.policy)

    @property
    def targets(self) -> Targets:
        return CP_ASYNC_TARGETS.since(*with_hint(self, self.prefetch, self.policy))

    def verify_(self) -> None:
        allowed = CP_ASYNC_BYTES.get(self.cache.data)
        if allowed is None:
            raise VerifyException(f'the cache operator is "{self.cache.data}"; cp.async has "ca" and "cg"')
        if self.bytes.value.data not in allowed:
            sizes = " or ".join(map(str, allowed))
            raise VerifyException(f"cp.async.{self.cache.data} copies {sizes} bytes, not {self.bytes.value.data}")
        if self.prefetch is not None:
            check_hint("cp.async", self.prefetch.data, PREFETCH_HINTS)


@irdl_op_definition
class CpAsyncCommitGroupOp(_AsyncOp):
    """`ptx.cp.async.commit_group`: the thread's cp.async since the last commit become one group."""

    name = "ptx.cp.async.commit_group"
    MNEMONIC: ClassVar[str | None] = "cp.async.commit_group"
    traits = traits_def(by_thread(ends(Group.CP_ASYNC)))
    assembly_format = "attr-dict"


@row
class CpAsyncWaitGroupOp(_AsyncOp):
    """`ptx.cp.async.wait_group 1`: waits until at most this number of the thread's latest groups is in flight."""

    name = "ptx.cp.async.wait_group"
    MNEMONIC: ClassVar[str | None] = "cp.async.wait_group"
    n: IntegerAttr[I64] = prop(converter=number)
    traits = traits_def(by_thread(waits(Group.CP_ASYNC)))
    assembly_format = "$n attr-dict"

    def verify_(self) -> None:
        if not 0 <= self.n.value.data < 2**31:
            raise VerifyException(f"the number of groups is {self.n.value.data}; it must be 0 or more")


@irdl_op_definition
class CpAsyncWaitAllOp(_AsyncOp):
    """`ptx.cp.async.wait_all`: waits for all of the thread's cp.async, committed or not."""

    name = "ptx.cp.async.wait_all"
    MNEMONIC: ClassVar[str | None] = "cp.async.wait_all"
    traits = traits_def(by_thread(waits(Group.CP_ASYNC)))
    assembly_format = "attr-dict"
