# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations of MLIR's `nvvm` dialect that kernels in the `llvm` dialect need, and the attribute of a target."""

from collections.abc import Sequence

from xdsl.dialects.builtin import IntAttr, StringAttr, i32
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute
from xdsl.irdl import IRDLOperation, irdl_attr_definition, param_def, result_def, traits_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from ..base.target import DEFAULT_ARCH
from .definitions import irdl_op_definition

DEFAULT_LEVEL = 2


@irdl_attr_definition
class TargetAttr(ParametrizedAttribute):
    """`#nvvm.target<O = 3, chip = "sm_90", features = "+ptx81">`: the target of a `gpu.module`.

    `O` is the optimisation level, 0 to 3; levels of 2 and empty features are not written.
    """

    name = "nvvm.target"

    level: IntAttr = param_def()
    chip: StringAttr = param_def()
    features: StringAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        level, texts = DEFAULT_LEVEL, {"chip": DEFAULT_ARCH, "features": ""}
        with parser.in_angle_brackets():
            more = True
            while more:
                if parser.parse_optional_keyword("O") is not None:
                    parser.parse_punctuation("=")
                    level = parser.parse_integer(allow_boolean=False, allow_negative=False)
                else:
                    key = "chip" if parser.parse_optional_keyword("chip") is not None else "features"
                    if key == "features":
                        parser.parse_keyword(key)
                    parser.parse_punctuation("=")
                    texts[key] = parser.parse_str_literal()
                more = parser.parse_optional_punctuation(",") is not None
        return IntAttr(level), StringAttr(texts["chip"]), StringAttr(texts["features"])

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            if self.level.data != DEFAULT_LEVEL:
                printer.print_string(f"O = {self.level.data}, ")
            printer.print_string("chip = ")
            printer.print_string_literal(self.chip.data)
            if self.features.data:
                printer.print_string(", features = ")
                printer.print_string_literal(self.features.data)


class SpecialRegisterOp(IRDLOperation):
    """`nvvm.read.ptx.sreg.tid.x : i32`: reads a special register (PTX ISA, Special Registers)."""

    res = result_def(i32)
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($res)"

    def __init__(self) -> None:
        super().__init__(result_types=[i32])


def _register(register: str) -> type[SpecialRegisterOp]:
    """The operation that reads one special register."""
    operation = "nvvm.read.ptx.sreg." + register
    body = {"name": operation, "__doc__": SpecialRegisterOp.__doc__, "__module__": __name__}
    return irdl_op_definition(type(operation.title().replace(".", ""), (SpecialRegisterOp,), body))


SPECIAL_REGISTERS: dict[str, type[SpecialRegisterOp]] = {
    f"{kind}.{axis}": _register(f"{kind}.{axis}") for kind in ("tid", "ctaid", "ntid", "nctaid") for axis in "xyz"
}
"""The operations that read special registers, by the register's name, such as `tid.x`."""


@irdl_op_definition
class Barrier0Op(IRDLOperation):
    """`nvvm.barrier0`: every thread of the block waits for the others (PTX ISA, `bar.sync 0`)."""

    name = "nvvm.barrier0"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


_OPERATIONS: list[type[Operation]] = [*SPECIAL_REGISTERS.values(), Barrier0Op]

NVVM = Dialect("nvvm", _OPERATIONS, [TargetAttr])
