# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `gpu` dialect of xDSL with MLIR's assembly for modules, kernels, launches and thread coordinates.

xDSL reads and writes these operations in generic form only. The classes here derive from xDSL's, so that a test with
`isinstance` holds for both; a context that reads `.cute` files registers this dialect in place of xDSL's.
"""

from collections.abc import Sequence
from typing import Self, cast

from xdsl.dialects import gpu
from xdsl.dialects.builtin import ArrayAttr, IndexType, StringAttr
from xdsl.ir import Attribute, Block, Dialect, Operation
from xdsl.irdl import IRDLOperation, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from .binary import BinaryOp, ObjectAttr
from .launch import LAUNCHING

TARGETS = "targets"
"""The attribute of a module that lists what it is compiled for."""


class ModuleOp(gpu.ModuleOp):
    """`gpu.module @kernels { ... }`: the kernels of one device program; `@kernels [#nvvm.target<...>]` with targets."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        targets = parser.parse_optional_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_attribute)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region()
        if not body.blocks:
            body.add_block(Block())
        op = cls.create(properties={"sym_name": name}, regions=[body])
        if attributes is not None:
            op.attributes |= attributes.data
        if targets is not None:
            op.attributes[TARGETS] = ArrayAttr(targets)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.name_of())
        if self.targets:
            printer.print_string(" ")
            printer.print_attribute(ArrayAttr(self.targets))
        printer.print_op_attributes(self.attributes, reserved_attr_names=(TARGETS,), print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body)

    def name_of(self) -> str:
        """The symbol's name, without the `@`."""
        assert isinstance(self.sym_name, StringAttr)
        return self.sym_name.data

    @property
    def targets(self) -> Sequence[Attribute]:
        """The targets that the module is compiled for; none unless some are attached."""
        targets = self.attributes.get(TARGETS)
        return cast("ArrayAttr[Attribute]", targets).data if isinstance(targets, ArrayAttr) else ()


class _Coordinate(IRDLOperation):
    """`gpu.thread_id x`: one of three coordinates, by letter."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        dimension = gpu.DimensionAttr(parser.parse_str_enum(gpu.DimensionEnum))
        attributes = parser.parse_optional_attr_dict()
        return cls.create(properties={"dimension": dimension}, attributes=attributes, result_types=[IndexType()])

    def print(self, printer: Printer) -> None:
        dimension = self.properties["dimension"]
        assert isinstance(dimension, gpu.DimensionAttr)
        printer.print_string(f" {dimension.data.value}")
        printer.print_op_attributes(self.attributes)


class ThreadIdOp(_Coordinate, gpu.ThreadIdOp):
    """`gpu.thread_id x`: the thread's coordinate in its block."""

    traits = traits_def(Pure())


class BlockIdOp(_Coordinate, gpu.BlockIdOp):
    """`gpu.block_id x`: the block's coordinate in the grid."""

    traits = traits_def(Pure())


class BlockDimOp(_Coordinate, gpu.BlockDimOp):
    """`gpu.block_dim x`: the block's size in threads."""

    traits = traits_def(Pure())


class GridDimOp(_Coordinate, gpu.GridDimOp):
    """`gpu.grid_dim x`: the grid's size in blocks."""

    traits = traits_def(Pure())


_OURS: dict[str, type[Operation]] = {
    **{op.name: op for op in gpu.GPU.operations},
    **{op.name: op for op in (ModuleOp, ThreadIdOp, BlockIdOp, BlockDimOp, GridDimOp, BinaryOp, *LAUNCHING)},
}

GPU = Dialect("gpu", list(_OURS.values()), [*gpu.GPU.attributes, ObjectAttr])
