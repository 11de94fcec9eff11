# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel at the stages `cute`, `folded` and `atoms`: a function of tensors that every thread of a grid executes."""

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, FunctionType, StringAttr
from xdsl.ir import Region, SSAValue
from xdsl.irdl import IRDLOperation, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from ...base.parameters import POINTER
from ...base.spaces import GMEM
from ...layout.algebra.core import plain_layout
from ..cute.values import unknowns
from ..definitions import irdl_op_definition
from ..kernel import (
    KernelOp,
    LaunchBounds,
    Parameter,
    parse_kernel_args,
    parse_launch_bounds,
    passed_as,
    print_kernel_args,
)
from ..ptx.base import scalar_bits
from .types import TensorType


@irdl_op_definition
class TileKernelOp(KernelOp):
    """`tile.kernel @k(%A: !gmem, %n: i32) threads(128) { ...; return }`: a kernel on tensors and scalars.

    `threads` is the size of the block: one to three numbers. Two options may follow: `min_blocks(2)`, the number of
    blocks that a multiprocessor must hold at a time, and `max_registers(128)`, the number of registers that a thread
    may use. Both direct the assembler (PTX ISA, .minnctapersm and .maxnreg). Tensor arguments are in global memory.
    """

    name = "tile.kernel"
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(self, name: str, arg_names: Sequence[str], bounds: LaunchBounds, body: Region):
        super().__init__(
            regions=[body],
            properties={
                "sym_name": StringAttr(name),
                "function_type": FunctionType.from_lists(body.blocks[0].arg_types, ()),
                "arg_names": ArrayAttr(StringAttr(n) for n in arg_names),
                **bounds.properties(),
            },
        )

    def verify_(self) -> None:
        self.verify_kernel()
        for name, type in zip(self.arg_names, self.function_type.inputs, strict=True):
            if isinstance(type, TensorType):
                type.check_whole()
                if type.space.data is not GMEM:
                    raise VerifyException(
                        f"argument '{name.data}' must be in gmem: a kernel allocates other tensors itself"
                    )
            elif scalar_bits(type) is None and passed_as(type) in (None, POINTER):
                raise VerifyException(f"argument '{name.data}' must be a tensor, an integer or a float, not {type}")

    def parameters(self) -> list[Parameter]:
        block = self.body.blocks[0]
        return [self._parameter(name.data, arg) for name, arg in zip(self.arg_names, block.args, strict=True)]

    def _parameter(self, name: str, argument: SSAValue) -> Parameter:
        type = argument.type
        if not isinstance(type, TensorType):
            return Parameter(name, type, 0, None, (argument,))
        layout = plain_layout(type.layout.data) if unknowns(type.layout.data) else None
        return Parameter(name, type, type.align.data, layout, (argument,))

    @classmethod
    def parse(cls, parser: Parser) -> "TileKernelOp":
        name = parser.parse_symbol_name().data
        at = parser.pos
        parsed = parse_kernel_args(parser)
        if any(parsed.aligns) or parsed.layouts or parsed.maps:
            parser.raise_error("a tensor's alignment and layout are part of its type", at, parser.pos)
        bounds = parse_launch_bounds(parser)
        return cls(name, parsed.names, bounds, parser.parse_region(parsed.arguments))

    def print(self, printer: Printer) -> None:
        print_kernel_args(printer, self)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """`return`: the end of a kernel."""

    name = "tile.return"
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict"
