# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors in memory that another tensor has: in that of an earlier stage, in one of several buffers, and in the shared
memory of another block of the cluster.
"""

from collections.abc import Mapping, Sequence
from math import gcd

from xdsl.dialects.builtin import I32, I64, IndexType, IntegerAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...base.errors import Code, LayoutError
from ...base.spaces import DSMEM, SMEM
from ..definitions import irdl_op_definition, typed_operand
from ..ptx.base import SpaceAttr
from .directives import TileOp
from .memory import AllocOp
from .results import InferringOp
from .types import TensorType


@irdl_op_definition
class AliasOp(TileOp):
    """`%c = tile.alias %buf at 16384 : !tile.tensor<f32, smem, align<128>, "(64,64):(64,1)">`: a tensor of another
    type in the memory of `%buf`, from that byte on.

    `%buf` is the result of `tile.alloc` or of another `tile.alias`. The tensor must lie within it, with the whole
    blocks that its swizzle permutes; its alignment follows from that of `%buf` and the offset. Both names denote the
    same bytes: a barrier must separate a write by one name from another thread's access by the other name.
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
            raise VerifyException("the memory must come from tile.alloc or tile.alias, not from a view or an argument")
        if type.space != source.space:
            raise VerifyException(f"the memory is in {source.space.data.name}, not in {type.space.data.name}")
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


@irdl_op_definition
class ChooseOp(InferringOp):
    """`%t = tile.choose %i of %A, %B`: the tensor `%A` where `%i` is 0, `%B` where it is 1, and so on.

    The tensors have the same type except for the alignment; the result has the least alignment. Preconditions: `%i`, an
    index, is the number of one of them. A chosen fragment lies in local memory, unless the compiler knows the number.
    """

    name = "tile.choose"
    index = operand_def(IndexType)
    sources = var_operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "custom<Operand>($index) `of` custom<Tensors>($sources, type($sources)) attr-dict "
        "custom<Implied>(type($result))"
    )

    @classmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Sequence[Attribute]:
        types = [type for type in operand_types if isinstance(type, TensorType)]
        if not types:
            raise LayoutError(Code.BAD_ARGUMENT, "there are no tensors to choose from")
        align = min(type.align.data for type in types)
        results = {type.with_layout(type.layout.data, align) for type in types}
        if len(results) > 1:
            first, second, *_ = dict.fromkeys(map(str, types))
            message = f"one of several tensors has the type of each, but they are {first} and {second}"
            raise LayoutError(Code.BAD_ARGUMENT, message, "choose among tensors of one element type, space and layout")
        return [*results]


@irdl_op_definition
class PeerOp(InferringOp):
    """`%p = tile.peer %sA, %rank`: the tensor in the shared memory of the block of this rank in the cluster that `%sA`
    is in the own one's. Its memory space is `dsmem`, distributed shared memory.

    Preconditions: the cluster has a block of this rank, which has begun and has not ended when its elements are
    accessed. The rank is an index or an i32.
    """

    name = "tile.peer"
    source = typed_operand(TensorType)
    rank = operand_def(I32 | IndexType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "custom<Tensor>($source, type($source)) `,` custom<Defined>($rank, type($rank)) attr-dict "
        "custom<Implied>(type($result))"
    )

    @classmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Sequence[Attribute]:
        source = operand_types[0]
        assert isinstance(source, TensorType)
        if source.space.data is not SMEM:
            message = f"a peer has no tensor in {source.space.data.name} that other blocks can access"
            raise LayoutError(Code.BAD_ARGUMENT, message, "take the peer's view of a tensor in smem")
        return [TensorType(source.element_type, SpaceAttr(DSMEM), source.align, source.layout)]
