# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Computing on the elements of tensors: one value everywhere, and a function of the elements at each coordinate."""

from collections.abc import Sequence
from typing import Self

from xdsl.ir import Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, region_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsTerminator, MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from ...base.errors import Code, LayoutError
from ...layout.algebra.core import size
from ...layout.algebra.inttuple import is_fully_static, rank, show
from ..definitions import irdl_op_definition, refuse, typed_operand
from .assembly import parse_tensor
from .directives import TileOp
from .types import TensorType


def _check_elements(type: TensorType) -> None:
    """VerifyException unless a tensor has a static number of elements, none of which shares a byte with others."""
    type.check_single_elements()
    shape = type.layout.data.shape
    if not is_fully_static(shape):
        refuse(
            LayoutError(
                Code.DYNAMIC_UNSUPPORTED,
                f"the shape of the tensor is known only at run time, {show(shape)}",
                "loop over its tiles, taken by tile.local_tile, or over its elements, by tile.load and tile.store",
            )
        )


@irdl_op_definition
class FillOp(TileOp):
    """`tile.fill %t, %zero`: writes a value to every element (CuTe's `fill`; `clear` with zero)."""

    name = "tile.fill"
    tensor = typed_operand(TensorType)
    value = operand_def()
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "custom<Tensor>($tensor, type($tensor)) `,` custom<Defined>($value, type($value)) attr-dict"

    def __init__(self, tensor: SSAValue | Operation, value: SSAValue | Operation):
        super().__init__(operands=[tensor, value])

    def verify_(self) -> None:
        _check_elements(self.tensor.type)
        if self.value.type != self.tensor.type.element_type:
            raise VerifyException(
                f"the tensor's elements are {self.tensor.type.element_type}, the value is {self.value.type}"
            )


@irdl_op_definition
class MapOp(IRDLOperation):
    """Computes each element of a tensor from those of others at the same coordinate, and from its own old one:

        tile.map %d, %a, %b (%x: f32, %y: f32) { %s = arith.addf %x, %y : f32  tile.yield %s : f32 }
        tile.map %sum, %a (%x: f32, %old: f32) { %s = arith.addf %old, %x : f32  tile.yield %s : f32 }

    The destination comes first. The body's arguments are the sources' elements and, if there is one more, the
    destination's before it is written. Element types may differ, which makes it a conversion.

    Coordinates are taken one after the other in colexicographic order, so that a destination with a mode of stride 0
    is a reduction over that mode, in order. Sources are repeated likewise, by views of stride 0 (`tile.composition`).

    Preconditions: equal rank and equal sizes of each mode.
    """

    name = "tile.map"
    dst = operand_def(TensorType)
    srcs = var_operand_def(TensorType)
    body = region_def("single_block")
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, dst: SSAValue | Operation, srcs: Sequence[SSAValue | Operation], body: Region):
        super().__init__(operands=[dst, srcs], regions=[body])

    @property
    def types(self) -> list[TensorType]:
        """The types of the destination and the sources."""
        return [value.type for value in self.operands if isinstance(value.type, TensorType)]

    @property
    def reads_old(self) -> bool:
        """Whether the body uses the destination's elements from before."""
        return len(self.body.block.args) == len(self.operands)

    def verify_(self) -> None:
        dst, *srcs = self.types
        for tensor in self.types:
            _check_elements(tensor)
        for number, src in enumerate(srcs):
            ranks = rank(dst.layout.data.shape), rank(src.layout.data.shape)
            if ranks[0] != ranks[1]:
                raise VerifyException(f"the destination has rank {ranks[0]}, source {number} rank {ranks[1]}")
            for mode in range(ranks[0]):
                sizes = size(dst.layout.data[mode]), size(src.layout.data[mode])
                if sizes[0] != sizes[1]:
                    raise VerifyException(
                        f"mode {mode} has {sizes[0]} elements in the destination, {sizes[1]} in source {number}"
                    )
        wanted = [src.element_type for src in srcs]
        given = list(self.body.block.arg_types)
        if given not in (wanted, [*wanted, dst.element_type]):
            listed = ", ".join(map(str, wanted)) or "nothing"
            raise VerifyException(
                f"the body takes {listed}, and {dst.element_type} for the old element if it is used; not "
                f"{', '.join(map(str, given)) or 'nothing'}"
            )
        end = self.body.block.last_op
        if not isinstance(end, YieldOp):
            raise VerifyException("the body must end in tile.yield")
        if end.value.type != dst.element_type:
            raise VerifyException(f"the body yields {end.value.type}, but the elements are {dst.element_type}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        tensors = parser.parse_comma_separated_list(Parser.Delimiter.NONE, lambda: parse_tensor(parser))
        args = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_argument)
        op = cls(tensors[0], tensors[1:], parser.parse_region(args))
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_operand)
        printer.print_string(" ")
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class YieldOp(IRDLOperation):
    """`tile.yield %v : f32`: the end of the body of `tile.map`: the destination's new element."""

    name = "tile.yield"
    value = operand_def()
    traits = traits_def(IsTerminator(), HasParent(MapOp))
    assembly_format = "$value attr-dict `:` type($value)"

    def __init__(self, value: SSAValue | Operation):
        super().__init__(operands=[value])
