# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A tensor within the memory of another one: how stages of a kernel that follow each other share memory."""

from math import gcd

from xdsl.dialects.builtin import I64, IntegerAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..definitions import irdl_op_definition, typed_operand
from .directives import TileOp
from .memory import AllocOp
from .types import TensorType


@irdl_op_definition
class AliasOp(TileOp):
    """`%c = tile.alias %buf at 16384 : !tile.tensor<f32, smem, align<128>, "(64,64):(64,1)">`: a tensor of another
    type in the memory of `%buf`, from that byte on.

    `%buf` is the result of `tile.alloc` or of another `tile.alias`. The tensor must lie within it, with whole periods
    of its swizzle; its alignment follows from that of `%buf` and the offset. Both names denote the same bytes: a
    barrier must separate a write by one name from another thread's access by the other name.
    """

    name = "tile.alias"
    source = typed_operand(TensorType)
    offset = prop_def(IntegerAttr[I64])
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "custom<Tensor>($source, type($source)) `at` $offset attr-dict custom<Written>(type($result))"

    def __init__(self, source: SSAValue | Operation, offset: int, type: TensorType):
        super().__init__(operands=[source], properties={"offset": IntegerAttr(offset, i64)}, result_types=[type])

    def verify_(self) -> None:
        source, type, offset = self.source.type, self.result.type, self.offset.value.data
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
