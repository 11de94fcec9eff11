# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations of the `gpu` dialect that define, launch and leave kernels, in MLIR's assembly.

As in `gpu`, the classes derive from xDSL's, which read and write the generic form only. `gpu.printf` xDSL lacks.
"""

from collections.abc import Sequence
from typing import Self

from xdsl.dialects import gpu
from xdsl.dialects.builtin import FunctionType, IndexType, StringAttr, SymbolRefAttr, UnitAttr, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, prop_def, traits_def, var_operand_def
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from ..definitions import irdl_op_definition


class FuncOp(gpu.FuncOp):
    """`gpu.func @k(%n: i32) kernel { ... gpu.return }`: a function of a device program; a `kernel` can be launched."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        args = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_argument)
        outputs: Sequence[Attribute] = ()
        if parser.parse_optional_punctuation("->") is not None:
            outputs = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
        kernel = parser.parse_optional_keyword("kernel") is not None
        attributes = parser.parse_optional_attr_dict_with_keyword()
        properties: dict[str, Attribute] = {"function_type": FunctionType.from_lists([a.type for a in args], outputs)}
        if kernel:
            properties["kernel"] = UnitAttr()
        others = dict(attributes.data) if attributes is not None else {}
        region = parser.parse_region(args)
        return cls.create(properties=properties, attributes={"sym_name": name, **others}, regions=[region])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.name_of())
        with printer.in_parens():
            printer.print_list(self.body.blocks[0].args, printer.print_block_argument)
        if self.function_type.outputs.data:
            printer.print_string(" -> ")
            with printer.in_parens():
                printer.print_list(self.function_type.outputs.data, printer.print_attribute)
        if self.kernel is not None:
            printer.print_string(" kernel")
        printer.print_op_attributes(self.attributes, reserved_attr_names=("sym_name",), print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    def name_of(self) -> str:
        """The symbol's name, without the `@`."""
        assert isinstance(self.sym_name, StringAttr)
        return self.sym_name.data


class ReturnOp(gpu.ReturnOp):
    """`gpu.return`: the end of a function of a device program; in a kernel, the end of its thread."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        attributes = parser.parse_optional_attr_dict()
        operands = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        values: Sequence[SSAValue] = ()
        if operands:
            parser.parse_punctuation(":")
            start = parser.pos
            types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
            values = parser.resolve_operands(operands, types, start)
        return cls.create(operands=values, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        if self.args:
            printer.print_string(" ")
            printer.print_list(self.args, printer.print_ssa_value)
            printer.print_string(" : ")
            printer.print_list(self.args.types, printer.print_attribute)


class LaunchFuncOp(gpu.LaunchFuncOp):
    """`gpu.launch_func @m::@k blocks in (%x, %y, %z) threads in (%u, %v, %w) args(%n : i32)`: runs a kernel.

    Sizes are of type `index`, or of that after them: `threads in (%u, %v, %w) : i64`.
    With `async`, for tokens it waits for and the token it gives: `%t = gpu.launch_func async [%s] @m::@k ...`.
    """

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        is_async = parser.parse_optional_keyword("async") is not None
        waits = _tokens(parser)
        kernel = parser.parse_attribute()
        if not isinstance(kernel, SymbolRefAttr):
            parser.raise_error("expected the kernel, such as @module::@kernel")
        named = _three(parser) if parser.parse_optional_keyword("clusters") is not None else None
        parser.parse_keyword("blocks")
        blocks = _three(parser)
        parser.parse_keyword("threads")
        threads = _three(parser)
        size = parser.parse_type() if parser.parse_optional_punctuation(":") is not None else IndexType()
        clusters, grid, block = [
            [parser.resolve_operand(name, size) for name in names or ()] for names in (named, blocks, threads)
        ]
        shared = None
        if parser.parse_optional_keyword("dynamic_shared_memory_size") is not None:
            shared = _operand(parser, i32)
        args: Sequence[SSAValue] = ()
        if parser.parse_optional_keyword("args") is not None:
            args = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, lambda: _typed_operand(parser))
        op = cls(kernel, grid, block, clusters or None, args, is_async, waits, shared)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        if self.asyncToken is not None:
            printer.print_string(" async")
        if self.asyncDependencies:
            printer.print_string(" ")
            with printer.in_square_brackets():
                printer.print_list(self.asyncDependencies, printer.print_ssa_value)
        printer.print_string(" ")
        printer.print_attribute(self.kernel)
        for word, sizes in (("clusters", self.cluster), ("blocks", self.grid), ("threads", self.block)):
            if sizes:
                printer.print_string(f" {word} in ")
                with printer.in_parens():
                    printer.print_list(sizes, printer.print_ssa_value)
        if not isinstance(self.gridSizeX.type, IndexType):
            printer.print_string(" : ")
            printer.print_attribute(self.gridSizeX.type)
        if self.dynamicSharedMemorySize is not None:
            printer.print_string(" dynamic_shared_memory_size ")
            printer.print_ssa_value(self.dynamicSharedMemorySize)
        if self.kernelOperands:
            printer.print_string(" args")
            with printer.in_parens():
                printer.print_list(self.kernelOperands, lambda value: _print_typed(printer, value))
        printer.print_op_attributes(self.attributes)

    @property
    def grid(self) -> tuple[SSAValue, SSAValue, SSAValue]:
        """The size of the grid in blocks: x, y, z."""
        return self.gridSizeX, self.gridSizeY, self.gridSizeZ

    @property
    def block(self) -> tuple[SSAValue, SSAValue, SSAValue]:
        """The size of a block in threads: x, y, z."""
        return self.blockSizeX, self.blockSizeY, self.blockSizeZ

    @property
    def cluster(self) -> tuple[SSAValue, ...]:
        """The size of a cluster in blocks, if one is given."""
        sizes = (self.clusterSizeX, self.clusterSizeY, self.clusterSizeZ)
        return tuple([size for size in sizes if size is not None])

    def verify_(self) -> None:
        if self.asyncObject is not None:
            raise VerifyException("a launch on a stream object has no assembly; use tokens")
        if len({size.type for size in (*self.grid, *self.block, *self.cluster)}) != 1:
            raise VerifyException("the sizes of a launch must have the same type")


def _three(parser: Parser) -> list[UnresolvedOperand]:
    parser.parse_keyword("in")
    at = parser.pos
    sizes = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
    if len(sizes) != 3:
        parser.raise_error("expected three sizes: x, y, z", at, parser.pos)
    return sizes


def _tokens(parser: Parser) -> Sequence[SSAValue]:
    token_type = gpu.AsyncTokenType()
    return (
        parser.parse_optional_comma_separated_list(Parser.Delimiter.SQUARE, lambda: _operand(parser, token_type)) or ()
    )


def _operand(parser: Parser, type: Attribute) -> SSAValue:
    return parser.resolve_operand(parser.parse_unresolved_operand(), type)


def _typed_operand(parser: Parser) -> SSAValue:
    operand = parser.parse_unresolved_operand()
    parser.parse_punctuation(":")
    return parser.resolve_operand(operand, parser.parse_type())


def _print_typed(printer: Printer, value: SSAValue) -> None:
    printer.print_ssa_value(value)
    printer.print_string(" : ")
    printer.print_attribute(value.type)


@irdl_op_definition
class PrintfOp(IRDLOperation):
    """`gpu.printf "n = %d\\n", %n : i32`: prints from the executing thread, as C's printf does."""

    name = "gpu.printf"
    format = prop_def(StringAttr)
    args = var_operand_def()
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$format attr-dict (`,` $args^ `:` type($args))?"

    def __init__(self, format: str, args: Sequence[SSAValue | Operation] = ()) -> None:
        super().__init__(operands=[args], properties={"format": StringAttr(format)})


class WaitOp(gpu.WaitOp):
    """`gpu.wait [%t]`, `%t = gpu.wait async`: the host waits for the work of the tokens, or makes a token of it."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        is_async = parser.parse_optional_keyword("async") is not None
        waits = _tokens(parser)
        attributes = parser.parse_optional_attr_dict()
        results = [gpu.AsyncTokenType()] if is_async else []
        return cls.create(operands=waits, result_types=results, attributes=attributes)

    def print(self, printer: Printer) -> None:
        if self.asyncToken is not None:
            printer.print_string(" async")
        if self.asyncDependencies:
            printer.print_string(" ")
            with printer.in_square_brackets():
                printer.print_list(self.asyncDependencies, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class BarrierOp(gpu.BarrierOp):
    """`gpu.barrier`: every thread of the block waits for the others, and sees their earlier writes."""

    assembly_format = "attr-dict"


LAUNCHING = (FuncOp, ReturnOp, LaunchFuncOp, PrintfOp, WaitOp, BarrierOp)
"""The operations of this module."""
