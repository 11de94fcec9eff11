# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory that a kernel allocates, single elements, and printing."""

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import IndexType, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from ...base.spaces import ADDRESSED, Allocation
from ...layout.algebra.coordinates import check_within
from ...layout.algebra.core import plain_layout
from ...layout.algebra.integers import Unknown
from ...layout.algebra.inttuple import is_fully_static, show
from ..cute import CoordAttr
from ..cute.values import unknowns
from ..definitions import irdl_op_definition, refusing, typed_operand
from ..ptx.base import PtrType
from .assembly import check_operands, fill_coordinate, unwrap
from .directives import TileOp
from .results import InferringOp
from .types import TensorType


@irdl_op_definition
class AllocOp(IRDLOperation):
    """`%s = tile.alloc : !tile.tensor<f16, smem, align<128>, "(128,32):(1,128)">`: new memory, contents undefined.

    In `smem` it belongs to the block and lives as long as the kernel; in `rmem` it is the thread's fragment.
    """

    name = "tile.alloc"
    result = result_def(TensorType)
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, type: TensorType):
        super().__init__(result_types=[type])

    def verify_(self) -> None:
        check_allocation(self.result.type)


def check_allocation(type: TensorType) -> None:
    """VerifyException unless a kernel can allocate a tensor of this type."""
    match type.space.data.allocation:
        case Allocation.STATIC:
            limit = 1 << 20
        case Allocation.COMPILER:
            limit = 1 << 16
        case Allocation.PARAMETER | Allocation.MAPPED | Allocation.RUN_TIME | Allocation.CONSTANT:
            raise VerifyException(
                "a kernel allocates only in smem and rmem; global memory comes as an argument, a peer's memory from "
                "tile.peer"
            )
    if not is_fully_static((plain_layout(type.layout.data).shape, plain_layout(type.layout.data).stride)):
        raise VerifyException(f"a kernel allocates memory of static layouts only, not of {type.layout.data}")
    type.check_whole()
    if type.bytes > limit:
        raise VerifyException(
            f"the tensor has {type.bytes} bytes; in {type.space.data.name} at most {limit} are possible"
        )


@irdl_op_definition
class TensorAtOp(TileOp):
    """`%T = tile.tensor_at %p : !tile.tensor<f16, gmem, align<16>, "1:0">`: the tensor that begins at an address in
    global or shared memory. `tile.make_tensor` gives it layouts that are known at run time.

    Preconditions: the address is a multiple of the type's alignment, and the elements that are accessed are memory.
    """

    name = "tile.tensor_at"
    ptr = operand_def(PtrType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "custom<Defined>($ptr, type($ptr)) attr-dict custom<Written>(type($result))"

    def __init__(self, ptr: SSAValue | Operation, type: TensorType):
        super().__init__(operands=[ptr], result_types=[type])

    def verify_(self) -> None:
        type = self.result.type
        match type.space.data.allocation:
            case Allocation.PARAMETER | Allocation.STATIC | Allocation.RUN_TIME:
                pass
            case Allocation.COMPILER | Allocation.MAPPED | Allocation.CONSTANT:
                raise VerifyException(f"no address points into {type.space.data}; gmem and smem have addresses")
        expected = PtrType(type.space)
        if self.ptr.type != expected:
            raise VerifyException(f"a tensor in {type.space.data.name} begins at a {expected}, not {self.ptr.type}")
        type.check_whole()
        if unknowns(type.layout.data):
            raise VerifyException(f"the layout {type.layout.data} has a ?; use tile.make_tensor")


class _ElementOp(TileOp):
    """An operation on the element at a full coordinate."""

    tensor = typed_operand(TensorType)
    coords = var_operand_def(IndexType)
    coord = prop_def(CoordAttr)

    def check_element(self, value: Attribute) -> None:
        """Checks the coordinate, and that the value is an element."""
        self.tensor.type.check_single_elements()
        if not isinstance(self, PtrOp) and self.tensor.type.space.data not in ADDRESSED:
            raise VerifyException(f"loads and stores do not reach {self.tensor.type.space.data}")
        check_operands(self.coord.data, self.coords)
        if value != self.tensor.type.element_type:
            raise VerifyException(f"the tensor's elements are {self.tensor.type.element_type}, the value is {value}")
        coord = fill_coordinate(self.coord.data, [Unknown() for _ in self.coords])
        if _has_wildcard(coord):
            raise VerifyException("an element's coordinate has no '_'; use tile.slice for part of a tensor")
        with refusing():
            layout = self.tensor.type.layout.data
            plain_layout(layout)(unwrap(coord))
            check_within(unwrap(coord), layout.shape, "the tensor")


def _has_wildcard(coord: object) -> bool:
    if isinstance(coord, tuple):
        return any(map(_has_wildcard, coord))  # pyright: ignore[reportUnknownArgumentType]
    return coord is None


_ELEMENT = "custom<Tensor>($tensor, type($tensor)) `` custom<Coordinate>($coord, $coords) attr-dict"


@irdl_op_definition
class LoadOp(_ElementOp, InferringOp):
    """`%v = tile.load %t(%i, 0)`: the element at a coordinate; one number counts colexicographically."""

    name = "tile.load"
    result = result_def()
    traits = traits_def(MemoryReadEffect())
    assembly_format = f"{_ELEMENT} custom<Implied>(type($result))"

    @classmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Sequence[Attribute]:
        assert isinstance(operand_types[0], TensorType)
        return [operand_types[0].element_type]

    def verify_(self) -> None:
        self.check_element(self.result.type)


@irdl_op_definition
class StoreOp(_ElementOp):
    """`tile.store %v, %t(%i, 0)`: writes the element at a coordinate."""

    name = "tile.store"
    value = operand_def()
    traits = traits_def(MemoryWriteEffect())
    assembly_format = f"custom<Defined>($value, type($value)) `,` {_ELEMENT}"

    def verify_(self) -> None:
        self.check_element(self.value.type)


@irdl_op_definition
class PtrOp(_ElementOp, InferringOp):
    """`%p = tile.ptr %t(%i, 0)`: the address of the element at a coordinate, for the operations of `ptx`: an atomic
    addition, for instance. The result is `!ptx.ptr<global>`, `!ptx.ptr<shared>` or, of a peer's tensor,
    `!ptx.ptr<shared_cluster>`; a fragment's elements have none.
    """

    name = "tile.ptr"
    result = result_def(PtrType)
    traits = traits_def(Pure())
    assembly_format = f"{_ELEMENT} custom<Implied>(type($result))"

    @classmethod
    def infer(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> Sequence[Attribute]:
        assert isinstance(operand_types[0], TensorType)
        return [PtrType(operand_types[0].space)]

    def verify_(self) -> None:
        self.check_element(self.tensor.type.element_type)
        if self.tensor.type.space.data.allocation is Allocation.COMPILER:
            raise VerifyException("a fragment is registers, which have no address")
        (expected,) = self.infer(self.operand_types, {})
        if self.result.type != expected:
            raise VerifyException(f"the result is {expected}, not {self.result.type}")


class _PrintBase(TileOp):
    """An operation that prints a tensor after a text."""

    text = prop_def(StringAttr)
    tensor = typed_operand(TensorType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "custom<Text>($text) custom<Tensor>($tensor, type($tensor)) attr-dict"

    def verify_(self) -> None:
        if "\0" in self.text.data or len(self.text.data) > 1024:
            raise VerifyException("the text has a NUL character or more than 1024 characters")


@irdl_op_definition
class PrintOp(_PrintBase):
    """`tile.print "gA" %t`: the executing thread prints the text and the tensor: `gA: gmem_ptr[16b](0x...) o
    (8,4):(1,8)`.
    """

    name = "tile.print"


@irdl_op_definition
class PrintTensorOp(_PrintBase):
    """`tile.print_tensor "rA" %t`: prints the tensor as `tile.print` does, then its elements, a row of mode 0 per
    line.
    """

    name = "tile.print_tensor"

    def verify_(self) -> None:
        super().verify_()
        type = self.tensor.type
        shape = type.layout.data.shape
        if not is_fully_static(shape):
            raise VerifyException(f"the shape is {show(shape)}; only a static number of elements can be printed")
        type.check_single_elements()
