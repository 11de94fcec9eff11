# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of floating-point arithmetic, conversions and booleans, with what each operation computes by `.numbers`.

Each thread computes two adjacent elements, in an unrolled loop, so that LLVM may join what it does into operations on
pairs. The sign and the payload of a NaN are undefined, so no operation reads them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.emit.numbers import (
    FORMATS,
    decoded,
    encoded,
    extreme,
    fused,
    half_away,
    of_integers,
    rounded,
    to_integers,
    unsigned,
    wrap,
)

COMPUTED = ("f16", "bf16", "f32", "f64")
NARROW = ("f8E4M3FN", "f8E5M2")
INTEGERS = ("i8", "i16", "i32", "i64")
WIDTHS = {"i1": 1, **{type: int(type[1:]) for type in INTEGERS}}
Values = NDArray[Any]
"""Numbers as doubles, integers and booleans as signed integers of 64 bits."""

BINARY: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType({
    "arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply, "arith.divf": np.divide,
    "arith.maximumf": extreme(True, False), "arith.minimumf": extreme(False, False),
    "arith.maxnumf": extreme(True, True), "arith.minnumf": extreme(False, True),
})  # fmt: skip
UNARY: Mapping[str, Callable[[Any], Any]] = MappingProxyType({
    "arith.negf": np.negative, "math.absf": np.abs, "math.ceil": np.ceil, "math.floor": np.floor,
    "math.trunc": np.trunc, "math.roundeven": np.rint, "math.round": half_away, "math.sqrt": np.sqrt,
})  # fmt: skip
WHOLE: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType({
    "addi": np.add, "subi": np.subtract, "muli": np.multiply, "andi": np.bitwise_and, "ori": np.bitwise_or,
    "xori": np.bitwise_xor, "minsi": np.minimum, "maxsi": np.maximum,
})  # fmt: skip
PREDICATES: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType({
    "eq": np.equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal, "ne": np.not_equal,
})  # fmt: skip


def resizes_to(type: str, *types: str) -> list[str]:
    """The types of `types` to which numbers of a type are extended or rounded."""
    size = FORMATS[type].bits
    return [t for t in types if FORMATS[t].bits != size and {FORMATS[t].bits, size} != {8, 64}]


@dataclass
class Kernel:
    """A kernel's lines, and what each of its values is for each element."""

    threads: int = 32
    blocks: int = 1
    values: dict[str, tuple[str, Values]] = field(default_factory=dict[str, tuple[str, Values]])
    inputs: dict[str, str] = field(default_factory=dict[str, str])
    lines: list[str] = field(default_factory=list[str])
    used: set[str] = field(default_factory=set[str])

    @property
    def elements(self) -> int:
        """How many elements each tensor has."""
        return 2 * self.threads * self.blocks

    def targets(self) -> list[str]:
        """The targets, one of each kind, whose instructions suffice."""
        types = {type for type, _ in self.values.values()}
        if types & set(NARROW):
            return ["sm_89", "sm_90a", "sm_100a", "sm_120"]
        fused_bf16 = any("math.fma" in line and line.endswith(": bf16") for line in self.lines)
        return [*([] if fused_bf16 else ["sm_75"]), "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120"]

    def input(self, type: str, values: Values) -> str:
        """A tensor's element; its name."""
        name = f"%in{len(self.inputs)}"
        self.inputs[name] = type
        self.values[name] = type, values
        return name

    def _add(self, text: str, type: str, value: Values, *operands: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.values[name] = type, (rounded(value, type) if type in FORMATS else wrap(value, WIDTHS[type]))
        self.used.update(operands)
        return name

    def _of(self, name: str) -> tuple[str, Values]:
        return self.values[name]

    def stored(self, name: str) -> NDArray[Any]:
        """A value as a tensor's storage."""
        type, values = self.values[name]
        if type in FORMATS:
            return encoded(values, type).astype(f"u{FORMATS[type].bits // 8}").view(FORMATS[type].dtype)
        return values.astype(f"i{max(WIDTHS[type], 8) // 8}")

    def constant(self, type: str, value: Any) -> str:
        """A constant, a number as its bits."""
        values: Values = np.full(self.elements, value, np.float64 if type in FORMATS else np.int64)
        if type == "i1":
            return self._add(f"arith.constant {'true' if value else 'false'}", type, values)
        digits = FORMATS[type].bits // 4 if type in FORMATS else 0
        text = f"0x{encoded(values[:1], type)[0]:0{digits}X}" if digits else str(value)
        return self._add(f"arith.constant {text} : {type}", type, values)

    def binary(self, op: str, a: str, b: str) -> str:
        """One of `BINARY`."""
        (type, x), (_, y) = self._of(a), self._of(b)
        return self._add(f"{op} {a}, {b} : {type}", type, BINARY[op](x, y), a, b)

    def unary(self, op: str, a: str) -> str:
        """One of `UNARY`."""
        type, x = self._of(a)
        return self._add(f"{op} {a} : {type}", type, UNARY[op](x), a)

    def fma(self, a: str, b: str, c: str) -> str:
        """a * b + c, rounded once."""
        (type, x), (_, y), (_, z) = self._of(a), self._of(b), self._of(c)
        return self._add(f"math.fma {a}, {b}, {c} : {type}", type, fused(x, y, z, type), a, b, c)

    def ordered(self, a: str) -> str:
        """The number, or 0 for NaN."""
        type, x = self._of(a)
        zero, whole = self.constant(type, 0.0), self.compare("ord", a, a)
        chosen = np.where(np.isnan(x), 0.0, x)
        return self._add(f"arith.select {whole}, {a}, {zero} : {type}", type, chosen, whole, a, zero)

    def copysign(self, a: str, b: str) -> str:
        """The size of `a` with the sign of `b`, which is no NaN."""
        (type, x), (_, y) = self._of(a), self._of(b)
        return self._add(f"math.copysign {a}, {b} : {type}", type, np.copysign(x, y), a, b)

    def compare(self, predicate: str, a: str, b: str) -> str:
        """A comparison of numbers, such as `olt`, or of integers, such as `slt`."""
        (type, x), (_, y) = self._of(a), self._of(b)
        if type in FORMATS:
            unordered = np.isnan(x) | np.isnan(y)
            if predicate in ("ord", "uno"):
                holds = unordered == (predicate == "uno")
            else:
                holds = np.where(unordered, predicate[0] == "u", PREDICATES[predicate[1:]](x, y))
            return self._add(f"arith.cmpf {predicate}, {a}, {b} : {type}", "i1", holds * -1, a, b)
        if predicate[0] == "u":
            x, y = unsigned(x, WIDTHS[type]), unsigned(y, WIDTHS[type])
        holds = PREDICATES[predicate[-2:]](x, y)
        return self._add(f"arith.cmpi {predicate}, {a}, {b} : {type}", "i1", holds * -1, a, b)

    def select(self, condition: str, a: str, b: str) -> str:
        """`a` where the condition holds, else `b`."""
        (type, x), (_, y) = self._of(a), self._of(b)
        value = np.where(self._of(condition)[1] != 0, x, y)
        return self._add(f"arith.select {condition}, {a}, {b} : {type}", type, value, condition, a, b)

    def resize(self, a: str, result: str) -> str:
        """A number of another width."""
        type, x = self._of(a)
        op = "extf" if FORMATS[result].bits > FORMATS[type].bits else "truncf"
        return self._add(f"arith.{op} {a} : {type} to {result}", result, x, a)

    def from_integer(self, op: str, a: str, result: str) -> str:
        """`sitofp` or `uitofp`."""
        type, x = self._of(a)
        value = of_integers(x, result, WIDTHS[type] if op == "uitofp" else 0)
        return self._add(f"arith.{op} {a} : {type} to {result}", result, value, a)

    def to_integer(self, op: str, a: str, result: str) -> str:
        """`fptosi` or `fptoui`."""
        type, x = self._of(a)
        value = to_integers(x, type, WIDTHS[result], op == "fptosi")
        return self._add(f"arith.{op} {a} : {type} to {result}", result, value, a)

    def whole(self, op: str, a: str, b: str) -> str:
        """One of `WHOLE`."""
        (type, x), (_, y) = self._of(a), self._of(b)
        return self._add(f"arith.{op} {a}, {b} : {type}", type, WHOLE[op](x, y), a, b)

    def absolute(self, a: str) -> str:
        """The size of an integer; of the least one, itself."""
        type, x = self._of(a)
        return self._add(f"math.absi {a} : {type}", type, np.abs(x), a)

    def whole_resize(self, op: str, a: str, result: str) -> str:
        """`trunci`, `extsi` or `extui`."""
        type, x = self._of(a)
        value = unsigned(x, WIDTHS[type]).view(np.int64) if op == "extui" else x
        return self._add(f"arith.{op} {a} : {type} to {result}", result, value, a)

    def bits(self, a: str, result: str) -> str:
        """The same bits as another type; of a number that is no NaN, or of an integer."""
        type, x = self._of(a)
        value = encoded(x, type).view(np.int64) if type in FORMATS else decoded(x, result)
        return self._add(f"arith.bitcast {a} : {type} to {result}", result, value, a)

    def text(self, kept: list[str]) -> str:
        """A module at stage `cute`, whose kernel @k takes a tensor for each input and each value that is kept."""
        tensors = {name: self._of(name)[0] for name in (*self.inputs, *kept)}
        args = ", ".join(f"{name}t: {self._tensor(type)}" for name, type in tensors.items())
        head = ["%t = gpu.thread_id x", "%b = gpu.block_id x"]
        head += [f"%{n} = arith.constant {n} : index" for n in sorted({0, 1, 2, self.threads})]
        head += [f"%r = arith.muli %b, %{self.threads} : index", "%s = arith.addi %r, %t : index"]
        head += ["%first = arith.muli %s, %2 : index"]
        body = ["%i = arith.addi %first, %j : index"]
        for name, type in self.inputs.items():
            if type == "i1":
                body += [f"{name}b = tile.load {name}t(%i)", f"{name} = arith.trunci {name}b : i8 to i1"]
            else:
                body += [f"{name} = tile.load {name}t(%i)"]
        body += self.lines
        for name in kept:
            if self._of(name)[0] == "i1":
                body += [f"{name}b = arith.extsi {name} : i1 to i8", f"tile.store {name}b, {name}t(%i)"]
            else:
                body += [f"tile.store {name}, {name}t(%i)"]
        loop = ["scf.for %j = %0 to %2 step %1 {", *(f"  {line}" for line in body), "} {unroll}"]
        inner = "\n".join(f"    {line}" for line in (*head, *loop, "return"))
        return f"gpu.module @m {{\n  tile.kernel @k({args}) threads({self.threads}) {{\n{inner}\n  }}\n}}\n"

    def _tensor(self, type: str) -> str:
        return f'!tile.tensor<{"i8" if type == "i1" else type}, gmem, align<16>, "{self.elements}:1">'
