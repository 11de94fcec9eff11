# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accesses to multicast memory: one address stands for the same place in the memory of several devices (PTX ISA,
multimem.ld_reduce, multimem.st, multimem.red).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from xdsl.dialects.builtin import AnyFloat, StringAttr, VectorType, bf16, f16, f32, f64, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import AnyAttr, IRDLOperation, VarConstraint, result_def, traits_def
from xdsl.utils.exceptions import VerifyException

from ...base.spaces import GMEM, SMEM
from ..definitions import (
    fields,
    irdl_op_definition,
    operand,
    optional_prop,
    prop,
    row,
    some_text,
    text,
    typed_operand,
)
from .atomic import ScopedOp
from .base import GLOBAL, PtrType, pointer
from .effects import Proxy, by_thread, fences, reads, updates, writes
from .warp import check_word

_ORDERS = fences(Proxy.GENERIC, GMEM.ptx, SMEM.ptx)

_INTEGERS: Mapping[str, str] = MappingProxyType(
    {"add": "u", "min": "s", "max": "s", "umin": "u", "umax": "u", "and": "b", "or": "b", "xor": "b"}
)
"""How PTX spells the type of a reduction of integers."""


def _pairs(half: AnyFloat, before: str = "") -> dict[Attribute, str]:
    """Vectors of floats of 16 bits, as PTX spells them: one, two or four pairs."""
    return {
        VectorType(half, [count]): f"{before}{words}{half.name}x2" for count, words in ((2, ""), (4, "v2."), (8, "v4."))
    }


_WIDE: Mapping[Attribute, str] = MappingProxyType({f64: f64.name})
_FLOATS: Mapping[Attribute, str] = MappingProxyType({
    f32: "f32", **_WIDE, VectorType(f32, [2]): "v2.f32", VectorType(f32, [4]): "v4.f32",
    **_pairs(f16, "acc::f32."), **_pairs(bf16, "acc::f32."),
})  # fmt: skip
"""The types of floats that are added, as PTX spells them; loaded sums of 16 bits are rounded once, from f32."""
_HALVES: Mapping[Attribute, str] = MappingProxyType({**_pairs(f16), **_pairs(bf16)})
"""The types of floats that have extremes."""

_PAIR = (VectorType(f16, [2]), VectorType(bf16, [2]))
_STORED: Mapping[Attribute, str] = MappingProxyType({
    i32: "b32", i64: "b64", f32: "f32", **_WIDE, VectorType(f32, [2]): "v2.f32", VectorType(f32, [4]): "v4.f32",
    **_HALVES,
})  # fmt: skip
"""The types of values that are stored, as PTX spells them."""


def _reduction(kind: str, type: Attribute) -> str | None:
    """The reduction with its type as PTX spells it; None if there is none."""
    if type in (i32, i64) and kind in _INTEGERS:
        return f"{kind.removeprefix('u')}.{_INTEGERS[kind]}{32 if type == i32 else 64}"
    if kind in ("min", "max") and type in _HALVES:
        return f"{kind}.{_HALVES[type]}"
    return f"add.{_FLOATS[type]}" if kind == "add" and type in _FLOATS else None


@fields
class _MultimemOp(ScopedOp):
    """The base of accesses to multicast memory."""

    SINCE: ClassVar[tuple[int, int]] = (90, 81)
    ORDERS: ClassVar[tuple[str, ...]] = ()
    order: StringAttr | None = optional_prop(converter=some_text, default=None, kw_only=True)

    @property
    def order_name(self) -> str:
        """The memory order in PTX's words."""
        return "relaxed" if self.order is None else self.order.data

    def requires(self) -> tuple[int, int]:
        return self.SINCE

    def prefix(self) -> str:
        """The mnemonic up to the operation."""
        return f"{self.name.removeprefix('ptx.')}.{self.order_name}.{self.scope_name}.global"

    def check(self, ptr: SSAValue) -> None:
        """Refuses another space than global memory, and a scope or an order that the instruction does not have."""
        instruction = self.name.removeprefix("ptx.")
        self.check_place(ptr)
        check_word(instruction, self.order_name, self.ORDERS)
        if ptr.type != GLOBAL:
            raise VerifyException(f"{instruction} takes an address of global memory")

    def check_reduction(self, kind: str, type: Attribute) -> None:
        """Refuses a reduction that the instruction does not have."""
        if _reduction(kind, type) is None:
            kinds = ", ".join(_INTEGERS)
            instruction = self.name.removeprefix("ptx.")
            message = (
                f"{instruction} has {kinds} of i32 and i64, add of f32, f64 and of 2 or 4 f32, and add, min and max"
            )
            raise VerifyException(f'{message} of 2, 4 or 8 f16 or bf16; not "{kind}" of {type}')


@irdl_op_definition
class MultimemLdReduceOp(_MultimemOp):
    """`%sum = ptx.multimem.ld_reduce "add" %p order "acquire" scope "sys" : !ptx.ptr<global> -> vector<4xf32>`:
    the values that all devices have at a multicast address, reduced to one (PTX ISA, multimem.ld_reduce).

    add, min, max, umin, umax, and, or, xor of i32 and i64; add of f32, f64, and vectors of 2 or 4 f32; add, min and max
    of vectors of 2, 4 or 8 f16 or bf16, which are summed in f32. The order is relaxed unless it is acquire.
    """

    name = "ptx.multimem.ld_reduce"
    ORDERS: ClassVar[tuple[str, ...]] = ("relaxed", "acquire")
    kind: StringAttr = prop(converter=text)
    ptr = typed_operand(PtrType)
    result = result_def()
    traits = traits_def(by_thread(reads("ptr", "result"), _ORDERS.given("order")))
    assembly_format = "$kind $ptr (`order` $order^)? (`scope` $scope^)? attr-dict `:` type($ptr) `->` type($result)"

    def __init__(
        self, kind: str, ptr: SSAValue, type: Attribute, *, order: str | None = None, scope: str | None = None
    ) -> None:
        properties = {"kind": text(kind), "order": some_text(order), "scope": some_text(scope)}
        IRDLOperation.__init__(self, operands=[ptr], properties=properties, result_types=[type])

    def mnemonic(self) -> str:
        return f"{self.prefix()}.{_reduction(self.kind.data, self.result.type)}"

    def verify_(self) -> None:
        self.check(self.ptr)
        self.check_reduction(self.kind.data, self.result.type)


@row
class MultimemStOp(_MultimemOp):
    """`ptx.multimem.st %value, %p order "release" scope "sys" : vector<4xf32>, !ptx.ptr<global>`: writes a value at a
    multicast address, to the memory of all devices (PTX ISA, multimem.st).

    i32, i64, f32, f64, vectors of 2 or 4 f32, and of 2, 4 or 8 f16 or bf16. The order is relaxed unless it is release.
    """

    name = "ptx.multimem.st"
    ORDERS: ClassVar[tuple[str, ...]] = ("relaxed", "release")
    value: SSAValue = operand()
    ptr: SSAValue[PtrType] = operand(PtrType, converter=pointer)
    traits = traits_def(by_thread(writes("ptr", "value"), _ORDERS.given("order")))
    assembly_format = "$value `,` $ptr (`order` $order^)? (`scope` $scope^)? attr-dict `:` type($value) `,` type($ptr)"

    def mnemonic(self) -> str:
        return f"{self.prefix()}.{_STORED.get(self.value.type)}"

    def verify_(self) -> None:
        self.check(self.ptr)
        if self.value.type not in _STORED:
            known = "i32, i64, f32, f64, vectors of 2 or 4 f32, and of 2, 4 or 8 f16 or bf16"
            raise VerifyException(f"multimem.st writes {known}, not {self.value.type}")


@row
class MultimemRedOp(_MultimemOp):
    """`ptx.multimem.red "add" %p, %value order "release" scope "sys" : !ptx.ptr<global>, i32`: changes the memory of
    all devices at a multicast address, each element atomically (PTX ISA, multimem.red). It has the reductions of
    `ptx.multimem.ld_reduce`, without extremes of two f16 or bf16, and the orders of `ptx.multimem.st`.
    """

    name = "ptx.multimem.red"
    T: ClassVar[VarConstraint] = VarConstraint("T", AnyAttr())
    ORDERS: ClassVar[tuple[str, ...]] = ("relaxed", "release")
    kind: StringAttr = prop(converter=text)
    ptr: SSAValue[PtrType] = operand(PtrType, converter=pointer)
    value: SSAValue = operand(T)
    traits = traits_def(by_thread(updates("ptr", "value"), _ORDERS.given("order")))
    assembly_format = (
        "$kind $ptr `,` $value (`order` $order^)? (`scope` $scope^)? attr-dict `:` type($ptr) `,` type($value)"
    )

    def mnemonic(self) -> str:
        suffix = _reduction(self.kind.data, self.value.type) or ""
        return f"{self.prefix()}.{suffix.replace('acc::f32.', '')}"

    def verify_(self) -> None:
        self.check(self.ptr)
        self.check_reduction(self.kind.data, self.value.type)
        if self.kind.data in ("min", "max") and self.value.type in _PAIR:
            raise VerifyException(f'multimem.red has no "{self.kind.data}" of {self.value.type}')
