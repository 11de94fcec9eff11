# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel at the stages `index` and `instr`: `ptx.entry`, PTX's `.entry` directive."""

from collections.abc import Sequence

from xdsl.dialects.builtin import I64, ArrayAttr, DenseArrayBase, FunctionType, IntegerAttr, StringAttr, i64
from xdsl.ir import Region
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from ..kernel import (
    KernelOp,
    LaunchBounds,
    parse_kernel_args,
    parse_launch_bounds,
    parse_optional_number,
    print_kernel_args,
)
from .base import PtxOp
from .types import PtrType


@irdl_op_definition
class EntryOp(KernelOp):
    """`ptx.entry @k(%A: !ptx.ptr<global> align 16) threads(32, 1, 1) shared(4096) { ... }`: a kernel on pointers.

    `threads`, `min_blocks` and `max_registers` are those of `tile.kernel` (PTX ISA, .reqntid, .minnctapersm,
    .maxnreg), `shared` the bytes of shared memory that a block needs (from stage `instr` on),
    `align` what the caller promises of a pointer argument, in bytes.
    """

    name = "ptx.entry"
    arg_aligns = prop_def(DenseArrayBase.constr(i64))
    shared_bytes = opt_prop_def(IntegerAttr[I64])
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(
        self,
        name: str,
        arg_names: Sequence[str],
        arg_aligns: Sequence[int],
        bounds: LaunchBounds,
        body: Region,
        shared_bytes: int | None = None,
    ):
        types = tuple(body.blocks[0].arg_types)
        super().__init__(
            regions=[body],
            properties={
                "sym_name": StringAttr(name),
                "function_type": FunctionType.from_lists(types, ()),
                "arg_names": ArrayAttr(StringAttr(n) for n in arg_names),
                "arg_aligns": DenseArrayBase.from_list(i64, arg_aligns),
                **bounds.properties(),
                "shared_bytes": None if shared_bytes is None else IntegerAttr(shared_bytes, i64),
            },
        )

    def verify_(self) -> None:
        self.verify_kernel()
        aligns = self.arg_aligns.get_values()
        if len(aligns) != len(self.function_type.inputs):
            raise VerifyException(f"{len(aligns)} alignments for {len(self.function_type.inputs)} arguments")
        for name, type, align in zip(self.arg_names, self.function_type.inputs, aligns, strict=True):
            if isinstance(type, PtrType) and (align < 1 or align & (align - 1)):
                raise VerifyException(f"the alignment of argument '{name.data}' is {align}, not a power of two")
        if self.shared_bytes is not None and self.shared_bytes.value.data < 0:
            raise VerifyException("the bytes of shared memory are negative")

    @classmethod
    def parse(cls, parser: Parser) -> "EntryOp":
        name = parser.parse_symbol_name().data
        args, names, aligns = parse_kernel_args(parser)
        bounds = parse_launch_bounds(parser)
        shared = parse_optional_number(parser, "shared")
        return cls(name, names, aligns, bounds, parser.parse_region(args), shared)

    def print(self, printer: Printer) -> None:
        print_kernel_args(printer, self, self.arg_aligns.get_values())
        if self.shared_bytes is not None:
            printer.print_string(f" shared({self.shared_bytes.value.data})")
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


@irdl_op_definition
class RetOp(PtxOp):
    """`ptx.ret`: the thread ends (PTX ISA, ret)."""

    name = "ptx.ret"
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__()

    def mnemonic(self) -> str:
        return "ret"
