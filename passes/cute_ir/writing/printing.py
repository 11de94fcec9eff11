# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.print` lowered to C's printf on the host or `gpu.printf` in a kernel, with the value's text as the format."""

import re
from collections.abc import Sequence

from xdsl.dialects import gpu, llvm
from xdsl.dialects.builtin import IntAttr, ModuleOp, StringAttr, i8, i32
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....dialects.cute.types import CuteType
from ....dialects.gpu.launch import PrintfOp
from ...writing.emitter import Emitter

_DYNAMIC = re.compile(r"\?(\{i64\})?")
_PRINTF = "printf"
_FORMAT = "printfFormat_{}"


def format_of(kind: CuteType) -> str:
    """The printf format of a type's values: their text, with a conversion for each dynamic integer, and a newline."""
    return _DYNAMIC.sub(lambda match: "%lld" if match[1] else "%d", kind.text) + "\n"


def print_value(emitter: Emitter, text: str, integers: Sequence[SSAValue]) -> None:
    """Prints by a printf format: on the device inside a kernel, on the host elsewhere."""
    if _on_device(emitter.op):
        emitter.insert(PrintfOp(text, integers))
    else:
        _print_on_host(emitter, text, integers)


def _on_device(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, gpu.ModuleOp | gpu.LaunchOp):
            return True
        parent = parent.parent_op()
    return False


def _print_on_host(emitter: Emitter, text: str, integers: Sequence[SSAValue]) -> None:
    module = _module(emitter.op)
    pointer = llvm.LLVMPointerType()
    symbols = {name.data for op in module.ops if isinstance(name := op.properties.get("sym_name"), StringAttr)}
    if _PRINTF not in symbols:
        kind = llvm.LLVMFunctionType([pointer], i32, is_variadic=True)
        _at_start(emitter, module, llvm.FuncOp(_PRINTF, kind, linkage=llvm.LinkageAttr("external")))
    count = 0
    while (name := _FORMAT.format(count)) in symbols:
        count += 1
    characters = llvm.LLVMArrayType(IntAttr(len(text) + 1), i8)
    value = StringAttr(text + "\0")
    internal = llvm.LinkageAttr("internal")
    _at_start(emitter, module, llvm.GlobalOp(characters, name, internal, constant=True, value=value, addr_space=0))
    address = emitter.value(llvm.AddressOfOp(name, pointer))
    start = emitter.value(llvm.GEPOp(address, [0, 0], result_type=pointer, pointee_type=characters))
    emitter.insert(llvm.CallOp(_PRINTF, start, *integers, return_type=i32, variadic_args=1 + len(integers)))


def _at_start(emitter: Emitter, module: ModuleOp, op: Operation) -> None:
    """Inserts a symbol at the start of a module, after `printf`."""
    op.location = emitter.op.location
    first = module.body.block.first_op
    if isinstance(first, llvm.FuncOp) and first.sym_name.data == _PRINTF:
        Rewriter.insert_op(op, InsertPoint.after(first))
    else:
        Rewriter.insert_op(op, InsertPoint.at_start(module.body.block))


def _module(op: Operation) -> ModuleOp:
    parent = op.parent_op()
    while not isinstance(parent, ModuleOp):
        assert parent is not None, "an operation of a program stands in a module"
        parent = parent.parent_op()
    return parent
