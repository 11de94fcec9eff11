# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of a host function that its kernels use.

Tensors of the host, and the integers of their layouts, are made again at the beginning of the kernel, from the
arguments of the host. All other numbers become parameters of the kernel, which the host computes.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, i32, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import Pure

from ..dialects.ptx import IntToPtrOp, PtrToIntOp
from ..dialects.tile.directives import TileOp
from .tracing.state import is_of

if TYPE_CHECKING:
    from .tracing.host_function import HostFunction


@dataclass(frozen=True, slots=True)
class Captured:
    """A parameter of a kernel that stands for a host value: an argument of it, or a number that it computes."""

    value: SSAValue
    type: Attribute


def captured(kernel: Block, host: "HostFunction") -> list[Captured]:
    """Makes a kernel independent of the host's block: returns the parameters that it has for the host's values, which
    are added to the arguments of `kernel` in this order.
    """
    capture = _Capture(kernel, host)
    first = kernel.first_op
    for op in list(kernel.walk()):
        for index, operand in enumerate(op.operands):
            if is_of(host.block, operand):
                op.operands[index] = capture.imported(operand)
    for op in capture.prologue:
        Rewriter.insert_op(op, InsertPoint.before(first) if first is not None else InsertPoint.at_end(kernel))
    return capture.parameters


class _Capture:
    def __init__(self, kernel: Block, host: "HostFunction") -> None:
        self.kernel = kernel
        self.host = host
        self.parameters: list[Captured] = []
        self.prologue: list[Operation] = []
        self._known: dict[SSAValue, SSAValue] = {}

    def imported(self, value: SSAValue) -> SSAValue:
        """The value in the kernel for one of the host."""
        known = self._known.get(value)
        if known is None:
            owner = value.owner
            if isinstance(value, BlockArgument):
                known = self._known[value] = self._parameter(value, value.type)
            elif isinstance(owner, TileOp | IntToPtrOp | PtrToIntOp | arith.ConstantOp) and owner.has_trait(Pure):
                known = self._copied(value, owner)
            else:
                known = self._known[value] = self._number(value)
        return known

    def _copied(self, value: SSAValue, op: Operation) -> SSAValue:
        copy = op.clone({operand: self.imported(operand) for operand in op.operands})
        copy.location = op.location
        self.prologue.append(copy)
        self._known.update(zip(op.results, copy.results, strict=True))
        return self._known[value]

    def _number(self, value: SSAValue) -> SSAValue:
        """A parameter for a number: an index has the width that its present value needs, a promise of later ones."""
        if not isinstance(value.type, IndexType):
            return self._parameter(value, value.type)
        present = self.host.present(value)
        fits = present is None or -(1 << 31) <= present < 1 << 31
        cast = arith.IndexCastOp(self._parameter(value, i32 if fits else i64), IndexType())
        self.prologue.append(cast)
        return cast.result

    def _parameter(self, value: SSAValue, type: Attribute) -> SSAValue:
        self.parameters.append(Captured(value, type))
        return self.kernel.insert_arg(type, len(self.kernel.args))
