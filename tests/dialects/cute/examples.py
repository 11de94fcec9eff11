# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples in the docstrings of the operations, as programs: each operand is a parameter of a function."""

import re
from inspect import cleandoc

from tilefold.dialects.cute.dialect import CUTE
from tilefold.dialects.cute.op import CuteOp, Signature
from xdsl.ir import Operation

OPERATIONS: dict[str, type[CuteOp]] = {op.name: op for op in CUTE.operations if issubclass(op, CuteOp)}
"""Every operation of the dialect, by name."""

_EXAMPLE = re.compile(r"`((?:%[\w, %]+ = )?cute\.\w+.*?)`", re.DOTALL)
_OPERANDS = re.compile(r"\((%[\w, %]+)\)")
_TYPE = re.compile(r'(!cute\.\w+)?<"[^"]*">|i32|i64')


def example(op: type[Operation]) -> str:
    """The operation in the docstring of its class, on one line."""
    assert op.__doc__ is not None
    found = _EXAMPLE.search(cleandoc(op.__doc__))
    assert found is not None, f"{op.name} has no example"
    return " ".join(found[1].split())


def program(op: type[CuteOp]) -> str:
    """A function that holds the example alone."""
    text = example(op)
    operands = _OPERANDS.search(text)
    names = operands[1].split(", ") if operands else []
    written = [match[0] for match in _TYPE.finditer(text, text.index(" : "))]
    fields = [name for name, _ in op.get_irdl_definition().operands]
    parameters: list[str] = []
    for index, name in enumerate(names):
        kind = written[index]
        if kind.startswith("<"):
            kind = f"!{op.SHORT[fields[index]].name}{kind}"
        parameters.append(f"{name}: {kind}")
    return f"func.func @example({', '.join(parameters)}) {{\n  {text}\n  func.return\n}}\n"


def infers(op: type[CuteOp]) -> bool:
    """Whether the types of the results are left out of the assembly."""
    return op.SIGNATURE is Signature.OPERANDS
