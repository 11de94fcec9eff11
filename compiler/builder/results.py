# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations of `arith` that arithmetic becomes, and what is known of their results."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from ...layout.unknown import Unknown

FLOATS: Mapping[str, Callable[[SSAValue, SSAValue], Operation]] = MappingProxyType({
    "add": arith.AddfOp, "sub": arith.SubfOp, "mul": arith.MulfOp, "div": arith.DivfOp,
    "min": arith.MinnumfOp, "max": arith.MaxnumfOp,
})  # fmt: skip
INTEGERS: Mapping[str, Callable[[SSAValue, SSAValue], Operation]] = MappingProxyType({
    "add": arith.AddiOp, "sub": arith.SubiOp, "mul": arith.MuliOp, "min": arith.MinSIOp, "max": arith.MaxSIOp,
    "and": arith.AndIOp, "or": arith.OrIOp, "xor": arith.XOrIOp, "shl": arith.ShLIOp, "shr": arith.ShRSIOp,
    "floordiv": arith.FloorDivSIOp,
})  # fmt: skip
UNSIGNED: Mapping[str, Callable[[SSAValue, SSAValue], Operation]] = MappingProxyType({
    "floordiv": arith.DivUIOp, "mod": arith.RemUIOp, "shr": arith.ShRUIOp,
})  # fmt: skip
EXTREMES: Mapping[str, Callable[[SSAValue, SSAValue], Operation]] = MappingProxyType(
    {"min": arith.MinUIOp, "max": arith.MaxUIOp}
)
KNOWN: Mapping[str, Callable[[Unknown, Unknown], Unknown]] = MappingProxyType({
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "min": lambda a, b: a.minimum(b),
    "max": lambda a, b: a.maximum(b), "and": lambda a, b: a & b, "xor": lambda a, b: a ^ b, "or": lambda a, b: a | b,
    "mod": lambda a, b: a % b,
})  # fmt: skip
SIGNS: Mapping[str, Callable[[bool, bool], bool]] = MappingProxyType({
    "add": lambda a, b: a and b, "mul": lambda a, b: a and b, "floordiv": lambda a, b: a and b,
    "mod": lambda a, b: b, "min": lambda a, b: a and b, "max": lambda a, b: a or b, "and": lambda a, b: a or b,
    "or": lambda a, b: a and b, "xor": lambda a, b: a and b, "shr": lambda a, b: a, "shl": lambda a, b: a,
})  # fmt: skip
"""Whether a result is not negative, where that holds of the operands. Overflow is not looked at, as in the addresses
of tensors: a coordinate lies within a shape."""
