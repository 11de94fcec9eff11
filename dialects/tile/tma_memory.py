# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps in memory, by which a kernel copies tiles of tensors that it chooses itself (sm_90a)."""

from collections.abc import Iterator
from typing import Any

from xdsl.ir import SSAValue
from xdsl.irdl import operand_def, result_def, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from ...base.spaces import GMEM
from ...layout.algebra.core import Layout, plain_layout
from ...layout.algebra.integers import Unknown
from ...layout.algebra.inttuple import congruent, leaves, unflatten
from ...layout.tma.tma_copy import in_bytes
from ..definitions import irdl_op_definition, refusing, typed_operand
from ..ptx.base import GLOBAL, MAP, SHARED, PtrType
from .directives import TileOp
from .tma_types import TmaType
from .types import TensorType


class _TensorMapInMemoryOp(TileOp):
    """An operation on a tensor map in memory, of the form of another map."""

    tma = typed_operand(TmaType)
    ptr = operand_def(PtrType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def verify_(self) -> None:
        if self.ptr.type not in (GLOBAL, SHARED):
            raise VerifyException(f"a map is in global or shared memory, not at a {self.ptr.type}")


@irdl_op_definition
class TensorMapPtrOp(TileOp):
    """`%m = tile.tensor_map_ptr %a`: the address of a map, which the instructions of `ptx` on boxes
    take with the coordinates of their dimensions.
    """

    name = "tile.tensor_map_ptr"
    tma = typed_operand(TmaType)
    result = result_def(MAP)
    traits = traits_def(Pure())
    assembly_format = "custom<TmaValue>($tma, type($tma)) attr-dict"

    def __init__(self, tma: SSAValue):
        super().__init__(operands=[tma], result_types=[MAP])


@irdl_op_definition
class CopyTensorMapOp(_TensorMapInMemoryOp):
    """`tile.copy_tensor_map %a, %p`: copies a map to 128 bytes of memory at a multiple of 128, where
    `tile.update_tensor_map` changes it; `tile.copy` with `descriptor %p` copies tiles by it.
    """

    name = "tile.copy_tensor_map"
    assembly_format = "custom<TmaValue>($tma, type($tma)) `,` custom<Defined>($ptr, type($ptr)) attr-dict"

    def __init__(self, tma: SSAValue, ptr: SSAValue):
        super().__init__(operands=[tma, ptr])


@irdl_op_definition
class UpdateTensorMapOp(_TensorMapInMemoryOp):
    """`tile.update_tensor_map %a, %T at %p`: makes the map in memory, a copy of `%a`, that of another tensor of the
    same elements and the same modes: its address, its extents and its strides (PTX ISA, tensormap.replace).

    Precondition: the stride that is 1 in the tensor of `%a` is 1; a map has no field for it. The fences of
    `ptx.fence.proxy.tensormap.release` and `acquire` lie between it and the copies by the map.
    """

    name = "tile.update_tensor_map"
    tensor = typed_operand(TensorType)
    assembly_format = (
        "custom<TmaValue>($tma, type($tma)) `,` custom<Tensor>($tensor, type($tensor)) `at` "
        "custom<Defined>($ptr, type($ptr)) attr-dict"
    )

    def __init__(self, tma: SSAValue, tensor: SSAValue, ptr: SSAValue):
        super().__init__(operands=[tensor, tma, ptr])  # those of the class itself come first

    def fields(self, layout: Layout) -> Iterator[tuple[str, int, Any]]:
        """The fields of the tensor with a layout, but for its address: name, dimension and value. Raises `LayoutError`
        (E0322) where its first dimension is not contiguous.
        """
        copy, known = self.tma.type.tma_copy, self.tensor.type.layout.data
        assert isinstance(known, Layout), "checked by the verifier"
        given = zip(leaves(layout.stride), leaves(known.stride), leaves(copy.gmem.stride), strict=True)
        strides = [1 if isinstance(own, Unknown) and was == 1 else stride for stride, own, was in given]
        layout = Layout(layout.shape, unflatten(strides, layout.stride))
        for number, (extent, stride) in enumerate(copy.dimensions(layout)):
            yield "global_dim", number, extent
            if number:
                yield "global_stride", number - 1, in_bytes(stride, copy.bits)

    def verify_(self) -> None:
        super().verify_()
        type, tensor = self.tma.type, self.tensor.type
        if tensor.space.data is not GMEM or tensor.element_type != type.element_type:
            raise VerifyException(f"a map of {type.element_type} in gmem cannot become one of {tensor}")
        if not isinstance(tensor.layout.data, Layout) or not congruent(tensor.layout.data.shape, type.gmem.data.shape):
            text = f"the map is of a tensor {type.gmem.data}, but {plain_layout(tensor.layout.data)} has other modes"
            raise VerifyException(text)
        with refusing():
            _ = list(self.fields(tensor.layout.data))
