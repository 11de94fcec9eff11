# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A tensor within the memory of another one: how stages of a kernel that follow each other share memory."""

from math import gcd
from typing import Self

from xdsl.dialects.builtin import I64, IntegerAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .assembly import parse_tensor, parse_tensor_type, tensor_type_of
from .memory import AllocOp
from .results import print_result
from .types import TensorType


@irdl_op_definition
class AliasOp(IRDLOperation):
    """`%c = tile.alias %buf at 16384 : !tile.tensor<f32, smem, align<128>, "(64,64):(64,1)">`: a tensor of another
    type in the memory of `%buf`, from that byte on.

    `%buf` is the result of `tile.alloc` or of another `tile.alias`. The tensor must lie within it, with whole periods
    of its swizzle; its alignment follows from that of `%buf` and the offset. Both names denote the same bytes: a
    barrier must separate a write by one name from another thread's access by the other name.
    """

    name = "tile.alias"
    source = operand_def(TensorType)
    offset = prop_def(IntegerAttr[I64])
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(self, source: SSAValue | Operation, offset: int, type: TensorType):
        super().__init__(operands=[source], properties={"offset": IntegerAttr(offset, i64)}, result_types=[type])

    @property
    def source_type(self) -> TensorType:
        """The type of the tensor whose memory is shared."""
        return tensor_type_of(self.source)

    @property
    def tensor_type(self) -> TensorType:
        """The type of the new tensor."""
        return tensor_type_of(self.result)

    def verify_(self) -> None:
        source, type, offset = self.source_type, self.tensor_type, self.offset.value.data
        if not isinstance(self.source.owner, AllocOp | AliasOp):
            raise VerifyException("the memory is that of a tile.alloc or tile.alias, not of a view or an argument")
        if type.space != source.space:
            raise VerifyException(f"the memory is in {source.space.data.value}, not in {type.space.data.value}")
        type.check_whole()
        if offset < 0 or offset + type.bytes > source.bytes:
            raise VerifyException(
                f"the tensor occupies bytes {offset} to {offset + type.bytes} of memory that has {source.bytes}"
            )
        known = gcd(source.align.data, offset)
        if type.align.data > known:
            raise VerifyException(
                f"at byte {offset} of memory aligned to {source.align.data} the alignment is {known}, not "
                f"{type.align.data}"
            )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source = parse_tensor(parser)
        parser.parse_keyword("at")
        offset = parser.parse_integer(allow_boolean=False)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        op = cls(source, offset, parse_tensor_type(parser))
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.source)
        printer.print_string(f" at {self.offset.value.data}")
        print_result(printer, self)
