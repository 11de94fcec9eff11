# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled device programs in the `gpu` dialect: `gpu.binary`, and `#gpu.object` for each target."""

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, BytesAttr, StringAttr, SymbolNameConstraint
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import IRDLOperation, irdl_attr_definition, param_def, prop_def, traits_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from ..definitions import irdl_op_definition

FORMATS = ("offload", "assembly", "bin", "fatbin")
"""LLVM bitcode, PTX, machine code of one GPU, machine code of several."""


@irdl_attr_definition
class ObjectAttr(ParametrizedAttribute):
    """`#gpu.object<#nvvm.target<chip = "sm_80">, assembly = "...">`: one program for one target, in one of FORMATS."""

    name = "gpu.object"

    target: Attribute = param_def()
    format: StringAttr = param_def()
    object: BytesAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            target = parser.parse_attribute()
            parser.parse_punctuation(",")
            format = next((name for name in FORMATS if parser.parse_optional_keyword(name) is not None), None)
            if format is not None:
                parser.parse_punctuation("=")
            text = parser.parse_optional_str_literal()  # the parser takes one of characters alone for text
            data = parser.parse_bytes_literal() if text is None else text.encode()
            return target, StringAttr(format or "fatbin"), BytesAttr(data)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.target)
            printer.print_string(f", {self.format.data} = ")
            printer.print_bytes_literal(self.object.data)

    def verify(self) -> None:
        if self.format.data not in FORMATS:
            raise VerifyException(f"an object's format is one of {', '.join(FORMATS)}, not '{self.format.data}'")


@irdl_op_definition
class BinaryOp(IRDLOperation):
    """`gpu.binary @kernels [#gpu.object<...>]`: the result of compiling a `gpu.module`, an object for each target."""

    name = "gpu.binary"
    sym_name = prop_def(SymbolNameConstraint())
    objects = prop_def(ArrayAttr)
    traits = traits_def(SymbolOpInterface())
    assembly_format = "$sym_name attr-dict-with-keyword $objects"

    def __init__(self, name: str, objects: Sequence[ObjectAttr]) -> None:
        super().__init__(properties={"sym_name": StringAttr(name), "objects": ArrayAttr(objects)})

    def verify_(self) -> None:
        if not all(isinstance(object, ObjectAttr) for object in self.objects):
            raise VerifyException("the objects of a binary are #gpu.object attributes")
