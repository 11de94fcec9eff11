# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The numbers that a host function computes of its arguments, as a program: a kernel of one thread that stores them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntAttr, IntegerType, ModuleOp, StringAttr, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilefold.base.spaces import GMEM
from tilefold.builder.scalars.casts import integer_attribute
from tilefold.builder.trace import MODULE
from tilefold.compiler.frontend.program import print_program
from tilefold.dialects.cute import CoordAttr, LayoutAttr
from tilefold.dialects.gpu import ModuleOp as GpuModuleOp
from tilefold.dialects.kernel import LaunchBounds
from tilefold.dialects.ptx import SpaceAttr
from tilefold.dialects.tile import ReturnOp, StoreOp, TensorType, TileKernelOp
from tilefold.layout.algebra.core import Layout


@dataclass
class HostProgram:
    """The requested numbers of the host function `name`, whose arguments are `slots`; its `constants` are
    known.
    """

    name: str
    slots: Mapping[str, SSAValue]
    constants: Mapping[SSAValue, int | float | bool]
    values: list[SSAValue | int] = field(default_factory=lambda: [])

    def place_of(self, value: SSAValue | int) -> int:
        """The place of a number among those that the program stores."""
        if value not in self.values:
            self.values.append(value)
        return self.values.index(value)

    def text(self) -> str:
        """The program. Its kernel, NAME_values, stores 64 bits for each number into its last argument."""
        stored = TensorType(i64, SpaceAttr(GMEM), IntAttr(16), LayoutAttr(Layout(len(self.values), 1)))
        block = Block(arg_types=[*(ssa.type for ssa in self.slots.values()), stored])
        known: dict[SSAValue, SSAValue] = dict(zip(self.slots.values(), block.args, strict=False))
        known |= {ssa: _constant(block, number, ssa.type) for ssa, number in self.constants.items()}
        for op in self._needed():
            copy = op.clone(known)
            block.add_op(copy)
            known |= zip(op.results, copy.results, strict=True)
        for place, value in enumerate(self.values):
            number = _constant(block, value, i64) if isinstance(value, int) else _as_i64(block, known[value])
            place_of = {"coord": CoordAttr((place,))}
            block.add_op(StoreOp.build(operands=[number, block.args[-1], []], properties=place_of))
        block.add_op(ReturnOp())
        last = "values"
        while last in self.slots:
            last += "_"
        kernel = TileKernelOp(f"{self.name}_values", [*self.slots, last], LaunchBounds((1, 1, 1)), Region(block))
        module = GpuModuleOp.create(properties={"sym_name": StringAttr(MODULE)}, regions=[Region(Block([kernel]))])
        return print_program(ModuleOp([module]), header=True)

    def _needed(self) -> Iterator[Operation]:
        """The operations of the host that the numbers come from, each behind those that it needs."""
        pending = [value.owner for value in reversed(self.values) if isinstance(value, SSAValue)]
        done = set[Operation]()
        while pending:
            op = pending[-1]
            more = [x.owner for x in op.operands if x.owner not in done] if isinstance(op, Operation) else []
            more = [owner for owner in more if isinstance(owner, Operation)]
            if isinstance(op, Operation) and op not in done and more:
                pending += more
                continue
            pending.pop()
            if isinstance(op, Operation) and op not in done:
                done.add(op)
                yield op


def _constant(block: Block, number: float, type: Attribute) -> SSAValue:
    is_float = isinstance(type, AnyFloat)
    op = arith.ConstantOp(FloatAttr(number, type) if is_float else integer_attribute(int(number), type))
    block.add_op(op)
    return op.result


def _as_i64(block: Block, value: SSAValue) -> SSAValue:
    """A number in the lowest of 64 bits: an integer with its sign, a float by its bits."""

    def add(op: Any) -> SSAValue:
        block.add_op(op)
        return op.results[0]

    if isinstance(value.type, IndexType):
        return add(arith.IndexCastOp(value, i64))
    if isinstance(value.type, AnyFloat):
        value = add(arith.BitcastOp(value, IntegerType(value.type.bitwidth)))
        return value if value.type == i64 else add(arith.ExtUIOp(value, i64))
    if value.type == i1:
        return add(arith.ExtUIOp(value, i64))
    return value if value.type == i64 else add(arith.ExtSIOp(value, i64))
