# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared tensors of other blocks of the cluster."""

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import I32, IndexType
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, result_def, traits_def
from xdsl.traits import Pure

from ...base.errors import Code, LayoutError
from ...base.spaces import DSMEM, SMEM
from ..definitions import irdl_op_definition, typed_operand
from ..ptx.base import SpaceAttr
from .results import InferringOp
from .types import TensorType


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
