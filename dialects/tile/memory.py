# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory that a kernel allocates, single elements, and printing."""

from abc import ABC, abstractmethod
from typing import Self

from xdsl.dialects.builtin import IndexType, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from ...base.errors import LayoutError
from ...layout.algebra.inttuple import is_fully_static, show
from ...layout.algebra.slicing import check_within, slice_and_offset
from ...layout.algebra.unknown import Unknown
from ..cute import CoordAttr
from ..errors import refuse
from ..ptx.types import GLOBAL, SHARED, PtrType
from .assembly import (
    check_operands,
    fill_coordinate,
    parse_coordinate,
    parse_defined,
    parse_tensor,
    print_coordinate,
    tensor_type_of,
    unwrapped,
)
from .types import Space, TensorType


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

    @property
    def tensor_type(self) -> TensorType:
        """The type of the new tensor."""
        return tensor_type_of(self.result)

    def verify_(self) -> None:
        check_allocation(self.tensor_type)


def check_allocation(type: TensorType) -> None:
    """VerifyException unless a kernel can allocate a tensor of this type."""
    if type.space.data is Space.Gmem:
        raise VerifyException("a kernel allocates in smem and rmem; global memory comes as an argument")
    type.check_whole()
    limit = (1 << 16) if type.space.data is Space.Rmem else (1 << 20)
    if type.bytes > limit:
        raise VerifyException(
            f"the tensor has {type.bytes} bytes; in {type.space.data.value} at most {limit} are possible"
        )


class _ElementOp(IRDLOperation):
    """An operation on the element at a full coordinate."""

    tensor = operand_def(TensorType)
    coords = var_operand_def(IndexType)
    coord = prop_def(CoordAttr)

    @property
    def tensor_type(self) -> TensorType:
        """The type of the tensor."""
        return tensor_type_of(self.tensor)

    def check_element(self, value: Attribute) -> None:
        """Checks the coordinate, and that the value is an element."""
        self.tensor_type.check_single_elements()
        check_operands(self.coord.data, self.coords)
        if value != self.tensor_type.element_type:
            raise VerifyException(f"the tensor's elements are {self.tensor_type.element_type}, the value is {value}")
        coord = fill_coordinate(self.coord.data, [Unknown() for _ in self.coords])
        if _has_wildcard(coord):
            raise VerifyException("an element's coordinate has no '_'; use tile.slice for part of a tensor")
        try:
            layout = self.tensor_type.layout.data
            slice_and_offset(unwrapped(coord), layout)
            check_within(unwrapped(coord), layout.shape, "the tensor")
        except LayoutError as error:
            refuse(error)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.tensor)
        print_coordinate(printer, self.coord.data, self.coords)
        printer.print_op_attributes(self.attributes)


def _has_wildcard(coord: object) -> bool:
    if isinstance(coord, tuple):
        return any(map(_has_wildcard, coord))  # pyright: ignore[reportUnknownArgumentType]
    return coord is None


class _ElementResultOp(_ElementOp, ABC):
    """An operation on an element whose result's type follows from the tensor's."""

    @staticmethod
    @abstractmethod
    def infer(tensor: TensorType) -> Attribute:
        """The type of the result for an element of `tensor`."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        tensor = parse_tensor(parser)
        coord, coords = parse_coordinate(parser)
        return cls.build(
            operands=[tensor, coords],
            result_types=[cls.infer(tensor_type_of(tensor))],
            properties={"coord": coord},
            attributes=parser.parse_optional_attr_dict(),
        )


@irdl_op_definition
class LoadOp(_ElementResultOp):
    """`%v = tile.load %t(%i, 0)`: the element at a coordinate; one number counts colexicographically."""

    name = "tile.load"
    result = result_def()
    traits = traits_def(MemoryReadEffect())

    def verify_(self) -> None:
        self.check_element(self.result.type)

    @staticmethod
    def infer(tensor: TensorType) -> Attribute:
        return tensor.element_type


@irdl_op_definition
class StoreOp(_ElementOp):
    """`tile.store %v, %t(%i, 0)`: writes the element at a coordinate."""

    name = "tile.store"
    value = operand_def()
    traits = traits_def(MemoryWriteEffect())

    def verify_(self) -> None:
        self.check_element(self.value.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        value = parse_defined(parser)
        parser.parse_punctuation(",")
        tensor = parse_tensor(parser)
        coord, coords = parse_coordinate(parser)
        return cls.build(
            operands=[value, tensor, coords],
            properties={"coord": coord},
            attributes=parser.parse_optional_attr_dict(),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list([self.value, self.tensor], printer.print_operand)
        print_coordinate(printer, self.coord.data, self.coords)
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class PtrOp(_ElementResultOp):
    """`%p = tile.ptr %t(%i, 0)`: the address of the element at a coordinate, for the operations of `ptx`: an atomic
    addition, for instance. The result is `!ptx.ptr<global>` or `!ptx.ptr<shared>`; a fragment's elements have none.
    """

    name = "tile.ptr"
    result = result_def(PtrType)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        self.check_element(self.tensor_type.element_type)
        if self.tensor_type.space.data is Space.Rmem:
            raise VerifyException("a fragment is registers, which have no address")
        if self.result.type != _pointer_type(self.tensor_type):
            raise VerifyException(f"the result is {_pointer_type(self.tensor_type)}, not {self.result.type}")

    @staticmethod
    def infer(tensor: TensorType) -> Attribute:
        return _pointer_type(tensor)


def _pointer_type(tensor: TensorType) -> PtrType:
    return SHARED if tensor.space.data is Space.Smem else GLOBAL


class _PrintBase(IRDLOperation):
    """An operation that prints a tensor after a text."""

    text = prop_def(StringAttr)
    tensor = operand_def(TensorType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def verify_(self) -> None:
        if "\0" in self.text.data or len(self.text.data) > 1024:
            raise VerifyException("the text has a NUL character or more than 1024 characters")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        text = StringAttr(parser.parse_str_literal())
        tensor = parse_tensor(parser)
        return cls.build(operands=[tensor], properties={"text": text}, attributes=parser.parse_optional_attr_dict())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.text.data)
        printer.print_string(" ")
        printer.print_operand(self.tensor)
        printer.print_op_attributes(self.attributes)


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
        type = tensor_type_of(self.tensor)
        shape = type.layout.data.shape
        if not is_fully_static(shape):
            raise VerifyException(f"the shape is {show(shape)}; only a static number of elements can be printed")
        type.check_single_elements()
