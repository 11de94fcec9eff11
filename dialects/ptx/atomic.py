# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Atomic operations on memory, accesses that order others, and fences (PTX ISA, sections atom, red, ld, st, membar)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr, UnitAttr, VectorType, bf16, f16, f32, f64, i8, i16, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import AnyAttr, IRDLOperation, VarConstraint, result_def, traits_def
from xdsl.utils.exceptions import VerifyException

from ...base.spaces import GMEM, SMEM
from ..definitions import (
    fields,
    flag,
    irdl_op_definition,
    operand,
    optional_prop,
    prop,
    row,
    some_text,
    text,
    typed_operand,
)
from .base import GLOBAL, LOCAL, PtrType, PtxOp, pointer, scalar_bits
from .effects import Proxy, by_thread, fences, reads, updates, writes
from .warp import check_word

SCOPES = ("cta", "cluster", "gpu", "sys")
"""The threads among which an operation is atomic and orders accesses (PTX ISA, Scope)."""

_INTEGER_OPS: Mapping[str, str] = MappingProxyType({
    "add": "u", "min": "s", "max": "s", "umin": "u", "umax": "u", "and": "b", "or": "b", "xor": "b", "exch": "b",
    "inc": "u", "dec": "u",
})  # fmt: skip
"""How PTX spells the type of an operation on integers."""

_FLOAT_ADDS: Mapping[Attribute, tuple[str, tuple[int, int]]] = MappingProxyType({
    f32: ("f32", (70, 60)), f64: ("f64", (70, 60)),
    f16: ("noftz.f16", (70, 63)), VectorType(f16, [2]): ("noftz.f16x2", (70, 62)),
    bf16: ("noftz.bf16", (90, 78)), VectorType(bf16, [2]): ("noftz.bf16x2", (90, 78)),
})  # fmt: skip
"""The additions of floats: type suffix, and the oldest sm and PTX version."""

_EXTREMES = ("min", "max")
_VECTORS: Mapping[Attribute, tuple[str, tuple[str, ...]]] = MappingProxyType({
    VectorType(f32, [2]): ("v2.f32", ("add",)), VectorType(f32, [4]): ("v4.f32", ("add",)),
    **{
        VectorType(half, [count]): (f"noftz.{words}", kinds)
        for half, name in ((f16, "f16"), (bf16, "bf16"))
        for count, words, kinds in ((2, f"v2.{name}", _EXTREMES), (4, f"v2.{name}x2", ("add", *_EXTREMES)),
                                    (8, f"v4.{name}x2", ("add", *_EXTREMES)))
    },
})  # fmt: skip
"""The vectors of floats in global memory that are changed at once, each element atomically: their suffix, and the
operations on them (PTX ISA, atom, red: vector types).
"""
_SINCE_VECTORS = (90, 81)

WIDE = VectorType(i64, [2])
"""128 bits, which are exchanged, compared, loaded and stored as a whole."""

WORDS: Mapping[Attribute, int] = MappingProxyType(
    {VectorType(element, [count]): count for element in (i32, f32) for count in (2, 4)}
)
"""The vectors that one instruction loads or stores with a memory order, and how many elements they have: each element
is an access of its own (PTX ISA, Vector Data-types).
"""

_ORDERS = fences(Proxy.GENERIC, GMEM.ptx, SMEM.ptx)
_CHANGES = by_thread(updates("ptr", "value"), _ORDERS.given("order"))


def _space(ptr: SSAValue[PtrType]) -> str:
    """The state space of a pointer in PTX's words."""
    return ptr.type.space.data.ptx


@fields
class ScopedOp(PtxOp):
    """An operation that is atomic, or orders accesses, among the threads of a scope: `gpu` unless one is given."""

    scope: StringAttr | None = optional_prop(converter=some_text, default=None, kw_only=True)

    @property
    def scope_name(self) -> str:
        """The scope in PTX's words."""
        return "gpu" if self.scope is None else self.scope.data

    def requires(self) -> tuple[int, int]:
        return (90, 78) if self.scope_name == "cluster" else self.SINCE

    def check_place(self, ptr: SSAValue | None = None) -> None:
        """Refuses a scope that there is not, and memory that no other thread sees."""
        check_word(self.name.removeprefix("ptx."), self.scope_name, SCOPES)
        if ptr is not None and ptr.type == LOCAL:
            raise VerifyException("a fragment belongs to its thread; there is nothing to share")


@fields
class _AtomicOp(ScopedOp):
    """The base of atomic operations that read and write."""

    ORDERS: ClassVar[tuple[str, ...]] = ("relaxed", "acquire", "release", "acq_rel")
    order: StringAttr | None = optional_prop(converter=some_text, default=None, kw_only=True)

    @property
    def order_name(self) -> str:
        """The memory order in PTX's words."""
        return "relaxed" if self.order is None else self.order.data

    def prefix(self, instruction: str, ptr: SSAValue[PtrType]) -> str:
        """The mnemonic up to the operation."""
        return f"{instruction}.{self.order_name}.{self.scope_name}.{_space(ptr)}"

    def check_order(self, instruction: str) -> None:
        """Refuses a memory order that the instruction does not have."""
        check_word(instruction, self.order_name, self.ORDERS)


def _bits(type: Attribute) -> int | None:
    """The bits of a value that is accessed as a whole."""
    return 128 if type == WIDE else scalar_bits(type)


def _suffix(kind: str, type: Attribute) -> str | None:
    """The operation with its type as PTX spells it; None if it has none for the type."""
    if type in (i32, i64) and kind in _INTEGER_OPS and not (type == i64 and kind in ("inc", "dec")):
        return f"{kind.removeprefix('u')}.{_INTEGER_OPS[kind]}{scalar_bits(type)}"
    if kind == "exch" and type == WIDE:
        return "exch.b128"
    if kind == "add" and type in _FLOAT_ADDS:
        return f"add.{_FLOAT_ADDS[type][0]}"
    words, kinds = _VECTORS.get(type, ("", ()))
    if kind in kinds:
        return f"{kind}.{words}"
    return None


def _since(kind: str, type: Attribute) -> tuple[int, int]:
    """The oldest sm and PTX version that have an operation on a type."""
    if kind in _VECTORS.get(type, ("", ()))[1]:
        return _SINCE_VECTORS
    return (90, 83) if type == WIDE else _FLOAT_ADDS.get(type, ("", (70, 60)))[1]


def _check_vector(ptr: SSAValue, kind: str, type: Attribute) -> None:
    """Refuses an operation on a vector in another memory than global memory."""
    if kind in _VECTORS.get(type, ("", ()))[1] and ptr.type != GLOBAL:
        raise VerifyException("a vector can be changed only in global memory")


_KINDS = (
    f"{', '.join(_INTEGER_OPS)} of i32 and, without inc and dec, i64, exch of {WIDE}, add of f16, bf16, f32, f64 and "
    "vectors of two or four f32, add of two, four or eight f16 or bf16, and min and max of these"
)


@row
class AtomOp(_AtomicOp):
    """`%old = ptx.atom "add" %p, %v order "acq_rel" scope "sys" : !ptx.ptr<global>, f32`: changes memory atomically and
    returns the old value (PTX ISA, atom).

    add, min, max, umin, umax, and, or, xor, exch of i32 and i64; inc and dec of i32, which count up to the value and
    then from 0 on, or down from it; add of f16, bf16, vectors of two of them, f32 and f64; exch of vector<2xi64>, from
    sm_90 on. In global memory, from sm_90 on, also add of vectors of two or four f32, and add, min and max of vectors
    of two, four or eight f16 or bf16, each element atomically. The order is `relaxed` unless acquire, release or
    acq_rel is given.
    """

    name = "ptx.atom"
    T: ClassVar[VarConstraint] = VarConstraint("T", AnyAttr())
    kind: StringAttr = prop(converter=text)
    ptr: SSAValue[PtrType] = operand(PtrType, converter=pointer)
    value: SSAValue = operand(T)
    result = result_def(T)
    traits = traits_def(_CHANGES)
    assembly_format = (
        "$kind $ptr `,` $value (`order` $order^)? (`scope` $scope^)? attr-dict `:` type($ptr) `,` type($value)"
    )

    def requires(self) -> tuple[int, int]:
        return max(super().requires(), _since(self.kind.data, self.value.type))

    def mnemonic(self) -> str:
        return f"{self.prefix('atom', self.ptr)}.{_suffix(self.kind.data, self.value.type)}"

    def verify_(self) -> None:
        self.check_place(self.ptr)
        self.check_order("atom")
        if _suffix(self.kind.data, self.value.type) is None:
            raise VerifyException(f'atom has {_KINDS}; not "{self.kind.data}" of {self.value.type}')
        _check_vector(self.ptr, self.kind.data, self.value.type)


@row
class AtomCasOp(_AtomicOp):
    """`%old = ptx.atom.cas %p, %compare, %value : !ptx.ptr<global>, i32`: writes the value where memory holds
    `compare`; returns the old value (PTX ISA, atom.cas). For i16, i32, i64 and vector<2xi64>, with order
    and scope as in `ptx.atom`.
    """

    name = "ptx.atom.cas"
    T: ClassVar[VarConstraint] = VarConstraint("T", AnyAttr())
    ptr: SSAValue[PtrType] = operand(PtrType, converter=pointer)
    compare: SSAValue = operand(T)
    value: SSAValue = operand(T)
    result = result_def(T)
    traits = traits_def(_CHANGES)
    assembly_format = (
        "$ptr `,` $compare `,` $value (`order` $order^)? (`scope` $scope^)? attr-dict `:` type($ptr) `,` type($value)"
    )

    def requires(self) -> tuple[int, int]:
        return max(super().requires(), (90, 83) if self.value.type == WIDE else (0, 0))

    def mnemonic(self) -> str:
        return f"{self.prefix('atom', self.ptr)}.cas.b{_bits(self.value.type)}"

    def verify_(self) -> None:
        self.check_place(self.ptr)
        self.check_order("atom.cas")
        if self.value.type not in (i16, i32, i64, WIDE):
            raise VerifyException(f"atom.cas compares i16, i32, i64 or {WIDE}, not {self.value.type}")


@row
class RedOp(_AtomicOp):
    """`ptx.red "add" %p, %v : !ptx.ptr<global>, vector<4xf32>`: as `ptx.atom`, without a result (PTX ISA, red).

    There is no exch. The order is relaxed or release.
    """

    name = "ptx.red"
    ORDERS: ClassVar[tuple[str, ...]] = ("relaxed", "release")
    kind: StringAttr = prop(converter=text)
    ptr: SSAValue[PtrType] = operand(PtrType, converter=pointer)
    value: SSAValue = operand()
    traits = traits_def(_CHANGES)
    assembly_format = (
        "$kind $ptr `,` $value (`order` $order^)? (`scope` $scope^)? attr-dict `:` type($ptr) `,` type($value)"
    )

    @property
    def suffix(self) -> str | None:
        """The operation with its type as PTX spells it; None if there is none."""
        return None if self.kind.data == "exch" else _suffix(self.kind.data, self.value.type)

    def requires(self) -> tuple[int, int]:
        return max(super().requires(), _since(self.kind.data, self.value.type))

    def mnemonic(self) -> str:
        return f"{self.prefix('red', self.ptr)}.{self.suffix}"

    def verify_(self) -> None:
        self.check_place(self.ptr)
        self.check_order("red")
        if self.suffix is None:
            kinds = _KINDS.replace(f", exch of {WIDE}", "").replace(", exch", "")
            raise VerifyException(f'red has {kinds}; not "{self.kind.data}" of {self.value.type}')
        _check_vector(self.ptr, self.kind.data, self.value.type)


def _check_accessed(type: Attribute) -> None:
    if type not in (i8, i16, i32, i64, f32, f64, WIDE, *WORDS):
        kinds = f"i8 to i64, f32, f64, {WIDE}, or two or four i32 or f32"
        raise VerifyException(f"{kinds} can be accessed in this way, not {type}")


def _accessed(type: Attribute) -> str:
    """The end of an access's name: the vector and the bits of an element."""
    return f"v{WORDS[type]}.b32" if type in WORDS else f"b{_bits(type)}"


@irdl_op_definition
class LoadAcquireOp(ScopedOp):
    """`%v = ptx.ld.acquire %p scope "gpu" : !ptx.ptr<global> -> i32`: an atomic load; everything that its writer
    released with the value happened before all later accesses, unless it is `relaxed` (PTX ISA, ld.acquire). Of a
    vector of two or four i32 or f32, each element is loaded by itself.
    """

    name = "ptx.ld.acquire"
    ptr = typed_operand(PtrType)
    relaxed: UnitAttr | None = optional_prop(converter=flag, default=False, kw_only=True)
    result = result_def()
    traits = traits_def(by_thread(reads("ptr", "result"), _ORDERS))  # later accesses must not be read before
    assembly_format = "(`relaxed` $relaxed^)? $ptr (`scope` $scope^)? attr-dict `:` type($ptr) `->` type($result)"

    def __init__(self, ptr: SSAValue | Operation, type: Attribute, scope: str | None = None, relaxed: bool = False):
        properties = {"scope": some_text(scope), "relaxed": flag(relaxed)}
        IRDLOperation.__init__(self, operands=[ptr], properties=properties, result_types=[type])

    def requires(self) -> tuple[int, int]:
        return max(super().requires(), (70, 83) if self.result.type == WIDE else (0, 0))

    def mnemonic(self) -> str:
        order = "acquire" if self.relaxed is None else "relaxed"
        return f"ld.{order}.{self.scope_name}.{_space(self.ptr)}.{_accessed(self.result.type)}"

    def verify_(self) -> None:
        self.check_place(self.ptr)
        _check_accessed(self.result.type)


@row
class StoreReleaseOp(ScopedOp):
    """`ptx.st.release %v, %p scope "gpu" : i32, !ptx.ptr<global>`: an atomic store; everything before it happened
    before the accesses of a thread that acquires the value, unless it is `relaxed` (PTX ISA, st.release). Of a
    vector of two or four i32 or f32, each element is stored by itself.
    """

    name = "ptx.st.release"
    value: SSAValue = operand()
    ptr: SSAValue[PtrType] = operand(PtrType, converter=pointer)
    relaxed: UnitAttr | None = optional_prop(converter=flag, default=False, kw_only=True)
    traits = traits_def(by_thread(writes("ptr", "value"), _ORDERS))
    assembly_format = (
        "(`relaxed` $relaxed^)? $value `,` $ptr (`scope` $scope^)? attr-dict `:` type($value) `,` type($ptr)"
    )

    def requires(self) -> tuple[int, int]:
        return max(super().requires(), (70, 83) if self.value.type == WIDE else (0, 0))

    def mnemonic(self) -> str:
        order = "release" if self.relaxed is None else "relaxed"
        return f"st.{order}.{self.scope_name}.{_space(self.ptr)}.{_accessed(self.value.type)}"

    def verify_(self) -> None:
        self.check_place(self.ptr)
        _check_accessed(self.value.type)


@row
class FenceOp(ScopedOp):
    """`ptx.fence "acq_rel" scope "gpu"`: relaxed atomic writes after it release, relaxed atomic reads before it acquire
    (PTX ISA, fence; `sc` is also spelled membar). `acquire` and `release` do one of the two.
    """

    name = "ptx.fence"
    order: StringAttr = prop(converter=text, default="acq_rel")
    traits = traits_def(by_thread(_ORDERS))
    assembly_format = "$order (`scope` $scope^)? attr-dict"

    def mnemonic(self) -> str:
        return f"fence.{self.order.data}.{self.scope_name}"

    def verify_(self) -> None:
        self.check_place()
        check_word("fence", self.order.data, ("acq_rel", "sc", "acquire", "release"))

    def requires(self) -> tuple[int, int]:
        return max(super().requires(), (90, 86) if self.order.data in ("acquire", "release") else (0, 0))
