# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Definitions of operations: their decorator, typed operands, and the operations of a dialect."""

from functools import cache
from types import ModuleType
from typing import TypeVar, cast

from xdsl import irdl
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.parser import Parser
from xdsl.printer import Printer

T = TypeVar("T", bound=Attribute)
Op = TypeVar("Op", bound=irdl.IRDLOperation)


def irdl_op_definition(cls: type[Op]) -> type[Op]:
    """xDSL's decorator of this name, which parses the assembly format when it is needed first.

    xDSL parses each format when the class is made. That took a tenth of `import tilefold.cute`, and a program has few
    of the operations. Raises ParseError for a wrong format when the first of these operations is parsed or printed.
    """
    text = cls.assembly_format
    if text is None:
        return irdl.irdl_op_definition(cls)
    cls.assembly_format = None
    irdl.irdl_op_definition(cls)
    definition = cls.get_irdl_definition()
    cls.assembly_format = definition.assembly_format = text

    @cache
    def program() -> FormatProgram:
        return FormatProgram.from_str(text, definition)

    def parse(cls: type[Op], parser: Parser) -> Op:
        return program().parse(parser, cls)

    def write(self: Op, printer: Printer) -> None:
        program().print(printer, self)

    for name, method in (("parse", classmethod(parse)), ("print", write)):
        setattr(cls, name, method)
    return cls


def typed_operand(kind: type[T]) -> SSAValue[T]:
    """`operand_def(kind)`, with a `.type` that the type checker knows."""
    return cast("SSAValue[T]", operand_def(kind))


def find_operations(*modules: ModuleType) -> list[type[Operation]]:
    """The operations that modules define, in the order of their definitions; classes without a name are bases.

    `issubclass` would ask all operations that there are, for every class that is not one.
    """
    classes = [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]
    return [cast("type[Operation]", kind) for kind in classes if Operation in kind.__mro__ and "name" in vars(kind)]
