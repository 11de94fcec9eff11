# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `gpu` dialect of xDSL with MLIR's assembly for modules, kernels, launches and thread coordinates.

xDSL reads and writes these operations in generic form only. The classes here derive from xDSL's, so that a test with
`isinstance` holds for both; a context that reads `.cute` files registers this dialect in place of xDSL's.
"""

from collections.abc import Sequence
from typing import ClassVar, Self, cast

from xdsl.dialects import gpu
from xdsl.dialects.builtin import ArrayAttr, IndexType, StringAttr
from xdsl.ir import Attribute, Block, Dialect, Operation
from xdsl.irdl import IRDLOperation, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from ..definitions import irdl_op_definition
from .binary import BinaryOp, ObjectAttr
from .launch import LAUNCHING

TARGETS = "targets"
"""The attribute of a module that lists its targets."""


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


class CoordinateOp(IRDLOperation):
    """`gpu.thread_id x`: one of three coordinates, by letter, of the special register `REGISTER`."""

    REGISTER: ClassVar[str]

    @property
    def register(self) -> str:
        """The special register that holds it, such as `tid.x`."""
        dimension = self.properties["dimension"]
        assert isinstance(dimension, gpu.DimensionAttr)
        return f"{self.REGISTER}.{dimension.data.value}"

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        dimension = gpu.DimensionAttr(parser.parse_str_enum(gpu.DimensionEnum))
        attributes = parser.parse_optional_attr_dict()
        return cls.create(properties={"dimension": dimension}, attributes=attributes, result_types=[IndexType()])

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.register[-1]}")
        printer.print_op_attributes(self.attributes)


class ThreadIdOp(CoordinateOp, gpu.ThreadIdOp):
    """`gpu.thread_id x`: the thread's coordinate in its block."""

    traits = traits_def(Pure())
    REGISTER: ClassVar[str] = "tid"


class BlockIdOp(CoordinateOp, gpu.BlockIdOp):
    """`gpu.block_id x`: the block's coordinate in the grid."""

    traits = traits_def(Pure())
    REGISTER: ClassVar[str] = "ctaid"


class BlockDimOp(CoordinateOp, gpu.BlockDimOp):
    """`gpu.block_dim x`: the block's size in threads."""

    traits = traits_def(Pure())
    REGISTER: ClassVar[str] = "ntid"


class GridDimOp(CoordinateOp, gpu.GridDimOp):
    """`gpu.grid_dim x`: the grid's size in blocks."""

    traits = traits_def(Pure())
    REGISTER: ClassVar[str] = "nctaid"


class _ClusterCoordinateOp(CoordinateOp):
    """A coordinate of MLIR that xDSL lacks."""

    dimension = prop_def(gpu.DimensionAttr)
    result = result_def(IndexType)
    traits = traits_def(Pure())


@irdl_op_definition
class ClusterBlockIdOp(_ClusterCoordinateOp):
    """`gpu.cluster_block_id x`: the block's coordinate in its cluster."""

    name = "gpu.cluster_block_id"
    REGISTER: ClassVar[str] = "cluster_ctaid"


@irdl_op_definition
class ClusterDimBlocksOp(_ClusterCoordinateOp):
    """`gpu.cluster_dim_blocks x`: the cluster's size in blocks."""

    name = "gpu.cluster_dim_blocks"
    REGISTER: ClassVar[str] = "cluster_nctaid"


@irdl_op_definition
class ClusterIdOp(_ClusterCoordinateOp):
    """`gpu.cluster_id x`: the cluster's coordinate in the grid."""

    name = "gpu.cluster_id"
    REGISTER: ClassVar[str] = "clusterid"


@irdl_op_definition
class ClusterDimOp(_ClusterCoordinateOp):
    """`gpu.cluster_dim x`: the grid's size in clusters."""

    name = "gpu.cluster_dim"
    REGISTER: ClassVar[str] = "nclusterid"


COORDINATES = (
    ThreadIdOp,
    BlockIdOp,
    BlockDimOp,
    GridDimOp,
    ClusterBlockIdOp,
    ClusterDimBlocksOp,
    ClusterIdOp,
    ClusterDimOp,
)

_OURS: dict[str, type[Operation]] = {
    **{op.name: op for op in gpu.GPU.operations},
    **{op.name: op for op in (ModuleOp, *COORDINATES, BinaryOp, *LAUNCHING)},
}

GPU = Dialect("gpu", list(_OURS.values()), [*gpu.GPU.attributes, ObjectAttr])
