# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Device programs in the `llvm` and `nvvm` dialects as LLVM IR text."""

from xdsl.dialects import llvm
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Block, Operation

from ...base.errors import Code
from ...dialects.cute.brackets import parameter
from ...dialects.gpu import ModuleOp as GpuModuleOp
from ...passes.cute_ir.one_shot_convert_to_llvm import BLOCK_SIZE, KERNEL
from ...passes.errors import LoweringError
from ..emit import DATA_LAYOUT
from ..emit.text import escape
from ..emit.types import constant
from .llvm_instructions import CONSTANTS, Names, incoming, instruction, symbol, type_text


def llvm_text(module: GpuModuleOp) -> str:
    """The LLVM IR text of a `gpu.module` whose functions are in the `llvm` dialect, for the NVPTX back end.

    LoweringError for what has no translation: operations of other dialects, variadic calls, names that PTX lacks.
    """
    declarations: dict[str, str] = {}
    parts: list[str] = []
    for op in module.body.block.ops:
        match op:
            case llvm.GlobalOp():
                parts.append(_global(op))
            case llvm.FuncOp():
                parts.append(_function(op, declarations))
            case _:
                hint = "run one-shot-convert-to-llvm before"
                raise LoweringError(Code.EMIT_UNSUPPORTED, f"'{op.name}' has no translation to PTX", op, hint)
    head = f'target datalayout = "{DATA_LAYOUT}"', 'target triple = "nvptx64-nvidia-cuda"'
    return "\n".join((*head, *parts, *declarations.values(), ""))


def _global(op: llvm.GlobalOp) -> str:
    if op.value is None:
        raise LoweringError(Code.EMIT_UNSUPPORTED, "a global of a kernel needs a value", op)
    space = op.addr_space.value.data
    kind = ("constant " if op.constant is not None else "global ") + type_text(op.global_type, op)
    where = f"addrspace({space}) " if space else ""
    align = f", align {op.alignment.value.data}" if op.alignment is not None else ""
    return f"{symbol(op.sym_name.data, op)} = {_linkage(op.linkage)}{where}{kind} {_initial(op.value, op)}{align}"


def _initial(value: Attribute, op: Operation) -> str:
    if not isinstance(value, StringAttr):
        return constant(value, op)
    return f'c"{escape(value.data.encode())}"'


def _linkage(attribute: llvm.LinkageAttr) -> str:
    name = attribute.linkage.data
    return "" if name == "external" else f"{name} "


def _function(op: llvm.FuncOp, declarations: dict[str, str]) -> str:
    kind = op.function_type
    if kind.is_variadic:
        raise LoweringError(Code.EMIT_UNSUPPORTED, "PTX has no variadic functions of this kind", op)
    name, result = symbol(op.sym_name.data, op), type_text(kind.output, op)
    types = [type_text(type, op) for type in kind.inputs]
    if not op.body.blocks:
        return f"declare {result} {name}({', '.join(types)})"
    blocks = list(op.body.blocks)
    names = Names(blocks, declarations)
    parameters = ", ".join(f"{type} {names.ref(arg)}" for type, arg in zip(types, blocks[0].args, strict=True))
    kernel = "ptx_kernel " if KERNEL in op.attributes else ""
    size = op.attributes.get(BLOCK_SIZE)
    threads = f' "{BLOCK_SIZE}"="{",".join(map(str, parameter(size)))}"' if size is not None else ""
    lines = [f"define {_linkage(op.linkage)}{kernel}{result} {name}({parameters}){threads} {{"]
    for block in blocks:
        lines += [f"{names.labels[block]}:", *_phis(names, block, op), *_instructions(names, block)]
    return "\n".join((*lines, "}"))


def _phis(names: Names, block: Block, op: llvm.FuncOp) -> list[str]:
    """The arguments of a block, each from every block that leads here; those of the first are the function's."""
    entries = list(incoming(names, block))
    if not entries or not block.args:
        return []
    if len({label for label, _ in entries}) != len(entries):
        message = "both ways of a branch lead to the same block, with arguments"
        raise LoweringError(Code.EMIT_UNSUPPORTED, message, op, "choose the arguments by llvm.select")
    lines: list[str] = []
    for index, argument in enumerate(block.args):
        origins = ", ".join(f"[ {values[index]}, %{label} ]" for label, values in entries)
        lines.append(f"  {names.ref(argument)} = phi {type_text(argument.type, op)} {origins}")
    return lines


def _instructions(names: Names, block: Block) -> list[str]:
    lines: list[str] = []
    for op in block.ops:
        if isinstance(op, CONSTANTS):
            continue
        text = instruction(names, op)
        lines.append(f"  {names.ref(op.results[0])} = {text}" if op.results else f"  {text}")
    return lines
