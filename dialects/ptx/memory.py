# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Addresses, loads, stores, and the memory that a kernel itself allocates."""

from abc import abstractmethod
from typing import ClassVar

from xdsl.dialects.builtin import I64, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...base.spaces import ADDRESSED, RMEM
from ...layout.atoms.cache_hints import LOAD_HINTS, STORE_HINTS
from ..definitions import (
    fields,
    irdl_op_definition,
    number,
    operand,
    optional_prop,
    prop,
    row,
    some_number,
    typed_operand,
)
from .base import GLOBAL, LOCAL, SHARED, PtrType, PtxOp, access_registers, value_bytes
from .effects import allocates, by_thread, reads, writes
from .hints import check_hint, modifiers, with_hint

WIDE = 32
"""The bytes of the widest access."""
WIDE_SINCE = 100, 88
"""The oldest sm and PTX version that have it."""

BULK_WORD = 8
"""The bytes of which `ptx.st.bulk` fills a multiple."""


def _i64(value: int) -> IntegerAttr[I64]:
    return IntegerAttr(value, i64)


def _check_power_of_two(subject: str, value: int) -> None:
    if value < 1 or value & (value - 1):
        raise VerifyException(f"{subject} is {value}; it must be a positive power of two")


def _access_properties(align: int, cache: str) -> dict[str, Attribute | None]:
    return {"align": _i64(align), "cache": StringAttr(cache) if cache else None}


class _Access(PtxOp):
    """The base of loads and stores: cache hint and policy, and the checks of width and alignment."""

    cache = opt_prop_def(StringAttr)
    policy = opt_operand_def(I64)

    @property
    def hinted(self) -> bool:
        """Whether the access says how it is cached."""
        return self.cache is not None or self.policy is not None

    @abstractmethod
    def moved(self) -> Attribute:
        """The type of the value that is moved."""

    @property
    def is_wide(self) -> bool:
        """Whether the access has 256 bits."""
        return value_bytes(self.moved()) == WIDE

    def requires(self) -> tuple[int, int]:
        sm, ptx = with_hint(self, self.cache, self.policy) if self.hinted else super().requires()
        return (max(sm, WIDE_SINCE[0]), max(ptx, WIDE_SINCE[1])) if self.is_wide else (sm, ptx)

    def spelled(self, name: str, ptr: PtrType, value: Attribute) -> str | None:
        """The instruction with space, cache hint, vector and type (`ld.global.cs.v4.b32`); None for a fragment."""
        if ptr.space.data is RMEM:
            return None
        count, bits = access_registers(value)
        prefix = ptr.space.data.ptx + (modifiers(self.cache, self.policy) if self.hinted else "")
        return f"{name}.{prefix}.v{count}.b{bits}" if count > 1 else f"{name}.{prefix}.b{bits}"

    def check_cache(self, instruction: str, ptr: Attribute, allowed: frozenset[str]) -> None:
        """Checks the cache hint."""
        if self.hinted and ptr != GLOBAL:
            raise VerifyException(f"a cache hint is for global memory, not for {ptr}")
        if self.cache is not None:
            check_hint(instruction, self.cache.data, allowed)

    def check(self, ptr: PtrType, value: Attribute, align: int) -> None:
        if ptr.space.data not in ADDRESSED:
            raise VerifyException(f"loads and stores do not reach {ptr}")
        total = value_bytes(value)
        if total is None:
            raise VerifyException(
                f"a value of type {value} cannot be loaded or stored; use integers, floats or 1-D vectors"
            )
        if total == WIDE and ptr != GLOBAL and ptr.space.data is not RMEM:
            raise VerifyException(f"an access of {WIDE} bytes is for global memory, not for {ptr}")
        if total > WIDE or total & (total - 1):
            raise VerifyException(f"the access has {total} bytes; an instruction moves 1, 2, 4, 8, 16 or {WIDE}")
        _check_power_of_two("the alignment", align)
        if align < total:
            raise VerifyException(
                f"an access of {total} bytes needs an address aligned to {total} bytes, not to {align}"
            )


@irdl_op_definition
class LoadOp(_Access):
    """`%v = ptx.ld %p align 16 : !ptx.ptr<global> -> vector<4xf32>`: one `ld` of 1 to 16 bytes, or on sm_100 of 32 of
    global memory (PTX ISA, ld).

    A `local` pointer addresses a fragment, which lives in registers: no instruction is emitted. `cache "..."` is a
    cache hint for global memory, in PTX's words, such as `"nc.L1::no_allocate.L2::128B"`; `policy %p`, of
    `ptx.createpolicy`, sets the eviction policy of the L2 cache. Preconditions: the address is a multiple of the access
    size, allocated and written before; with the hint `nc`, nothing writes there while the kernel runs.
    """

    name = "ptx.ld"
    ptr = typed_operand(PtrType)
    align = prop_def(IntegerAttr[I64])
    result = result_def()
    traits = traits_def(by_thread(reads("ptr", "result")))
    assembly_format = (
        "$ptr (`cache` $cache^)? (`policy` $policy^)? `align` $align attr-dict `:` type($ptr) `->` type($result)"
    )

    def __init__(
        self, ptr: SSAValue | Operation, type: Attribute, align: int, cache: str = "", policy: SSAValue | None = None
    ):
        super().__init__(operands=[ptr, policy], properties=_access_properties(align, cache), result_types=[type])

    def moved(self) -> Attribute:
        return self.result.type

    def mnemonic(self) -> str | None:
        return self.spelled("ld", self.ptr.type, self.result.type)

    def verify_(self) -> None:
        self.check(self.ptr.type, self.result.type, self.align.value.data)
        self.check_cache("load", self.ptr.type, LOAD_HINTS)


@irdl_op_definition
class StoreOp(_Access):
    """`ptx.st %v, %p align 16 : vector<4xf32>, !ptx.ptr<global>`: one `st` of 1 to 16 bytes, or on sm_100 of 32 to
    global memory (PTX ISA, st).

    A `local` pointer addresses a fragment, which lives in registers: no instruction is emitted. `cache "cs"` is a
    cache hint for global memory, and `policy %p` a policy of the L2 cache.
    Preconditions: the address is a multiple of the access size and allocated.
    """

    name = "ptx.st"
    value = operand_def()
    ptr = typed_operand(PtrType)
    align = prop_def(IntegerAttr[I64])
    traits = traits_def(by_thread(writes("ptr", "value")))
    assembly_format = (
        "$value `,` $ptr (`cache` $cache^)? (`policy` $policy^)? `align` $align attr-dict "
        "`:` type($value) `,` type($ptr)"
    )

    def __init__(
        self,
        value: SSAValue | Operation,
        ptr: SSAValue | Operation,
        align: int,
        cache: str = "",
        policy: SSAValue | None = None,
    ):
        super().__init__(operands=[value, ptr, policy], properties=_access_properties(align, cache))

    def moved(self) -> Attribute:
        return self.value.type

    def mnemonic(self) -> str | None:
        return self.spelled("st", self.ptr.type, self.value.type)

    def verify_(self) -> None:
        self.check(self.ptr.type, self.value.type, self.align.value.data)
        self.check_cache("store", self.ptr.type, STORE_HINTS)


@row
class StoreBulkOp(PtxOp):
    """`ptx.st.bulk %p, %bytes`: fills bytes of shared memory with zeros (PTX ISA, st.bulk). Preconditions: the address
    and the number of bytes, an i64, are multiples of 8.
    """

    name = "ptx.st.bulk"
    SINCE: ClassVar[tuple[int, int]] = 100, 86
    MNEMONIC: ClassVar[str | None] = "st.bulk.weak.shared::cta"
    ptr: SSAValue = operand(SHARED)
    bytes: SSAValue = operand(I64)
    traits = traits_def(by_thread(writes("ptr", "%bytes")))
    assembly_format = "$ptr `,` $bytes attr-dict"


@fields
class _Alloc(PtxOp):
    """Memory of a fixed size, with its alignment."""

    bytes: IntegerAttr[I64] = prop(converter=number)
    align: IntegerAttr[I64] = prop(converter=number)

    def verify_(self) -> None:
        if self.bytes.value.data < 1:
            raise VerifyException(f"an allocation of {self.bytes.value.data} bytes; at least one is needed")
        _check_power_of_two("the alignment", self.align.value.data)


@row
class LocalAllocOp(_Alloc):
    """`%r = ptx.local.alloc 64 align 16`: a fragment of the thread's own, whose contents are undefined at first.

    LLVM promotes it to registers once every access has a constant offset.
    """

    name = "ptx.local.alloc"
    result = result_def(LOCAL)
    traits = traits_def(by_thread(allocates("result", "bytes")))
    assembly_format = "$bytes `align` $align attr-dict"


@row
class SmemAllocOp(_Alloc):
    """`%s = ptx.smem.alloc 4096 align 128`: shared memory of the block, not yet placed (stage `index`)."""

    name = "ptx.smem.alloc"
    result = result_def(SHARED)
    traits = traits_def(by_thread(allocates("result", "bytes")))
    assembly_format = "$bytes `align` $align attr-dict"


@row
class SmemAddrOp(PtxOp):
    """`%s = ptx.smem.addr 4096 bytes 512`: the address `offset` bytes into the block's shared memory (stage `instr`).

    With `bytes`, an allocation of that size begins there, which no address computed from it may leave.
    """

    name = "ptx.smem.addr"
    offset: IntegerAttr[I64] = prop(converter=number)
    bytes: IntegerAttr[I64] | None = optional_prop(converter=some_number, default=None)
    result = result_def(SHARED)
    traits = traits_def(Pure())
    assembly_format = "$offset (`bytes` $bytes^)? attr-dict"

    def verify_(self) -> None:
        if self.offset.value.data < 0:
            raise VerifyException(f"the offset is {self.offset.value.data}; it must not be negative")
        if self.bytes is not None and self.bytes.value.data < 1:
            raise VerifyException(f"the allocation has {self.bytes.value.data} bytes; it must have at least 1")
