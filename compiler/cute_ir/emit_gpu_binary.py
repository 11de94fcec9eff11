# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`emit-gpu-binary`: device programs as `gpu.binary`.

LLVM IR text of the `llvm` and `nvvm` dialects is the way there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import BytesAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...base.assembler_warnings import check_speed
from ...base.errors import Code, TilefoldError
from ...base.target import Target
from ...dialects.cute.brackets import parameter
from ...dialects.gpu import ModuleOp as GpuModuleOp
from ...dialects.gpu.binary import BinaryOp, ObjectAttr
from ...dialects.nvvm import TargetAttr
from ...passes.cute_ir.one_shot_convert_to_llvm import BLOCK_SIZE, KERNEL
from ...passes.errors import LoweringError
from ..emit.control import join_paths
from ..emit.convert import find_fenced_roundings
from ..emit.types import constant, escape, llvm_type
from ..emit.writer import FunctionWriter, ModuleWriter
from .llvm_instructions import LLVM_RULES, memory_type, symbol, write_constant

FORMATS = {"llvm": "offload", "isa": "assembly", "bin": "bin"}
"""The values of `compilation-target`, with the words of `#gpu.object`: LLVM bitcode, PTX, machine code."""


@dataclass(frozen=True)
class EmitGpuBinaryPass(ModulePass):
    """Compiles every `gpu.module`, whose functions are in the `llvm` dialect, for each of its targets.

    The option `compilation-target` is `isa` for PTX, `bin` for machine code or `llvm` for LLVM bitcode. Refuses a
    module without a target, and a target with features other than the PTX version that the chip implies. The
    optimisation level of a target has no effect.

    Before: `gpu.module @k [#nvvm.target<chip = "sm_80">] { llvm.func ... }`. After:

        gpu.binary @k [#gpu.object<#nvvm.target<chip = "sm_80">, assembly = "...">]
    """

    name = "emit-gpu-binary"
    compilation_target: str = "isa"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.compilation_target not in FORMATS:
            raise TilefoldError(
                Code.PASS_PIPELINE,
                f"'{self.compilation_target}' is not a compilation-target of emit-gpu-binary",
                f"use one of: {', '.join(FORMATS)}",
            )
        for module in list(op.walk()):
            if isinstance(module, GpuModuleOp):
                binary = BinaryOp(module.name_of(), self._objects(module))
                binary.location = module.location
                Rewriter.insert_op(binary, InsertPoint.before(module))
                Rewriter.erase_op(module, safe_erase=False)

    def _objects(self, module: GpuModuleOp) -> list[ObjectAttr]:

        if not module.targets:
            raise LoweringError(
                Code.PASS_FAILED, "the module has no target attributes", module, "run attach-nvvm-target before"
            )
        format = StringAttr(FORMATS[self.compilation_target])
        targets = [(attribute, _target(attribute, module)) for attribute in module.targets]
        return [
            ObjectAttr(attribute, format, BytesAttr(self._compile(write_llvm(module, target), target)))
            for attribute, target in targets
        ]

    def _compile(self, text: str, target: Target) -> bytes:
        from ..machine.assemble import assemble
        from ..machine.nvptx import bitcode, compile_isolated

        if self.compilation_target == "llvm":
            return bitcode(text)
        ptx = compile_isolated(text, target)  # a program may contain code that crashes LLVM
        if self.compilation_target != "bin":
            return ptx.encode()
        cubin = assemble(ptx, target)
        check_speed(cubin.log, allowed=False)
        return cubin.code


def _target(attribute: object, module: GpuModuleOp) -> Target:
    if not isinstance(attribute, TargetAttr):
        raise LoweringError(Code.PASS_FAILED, f"the target {attribute} is not a #nvvm.target", module)
    target = Target(attribute.chip.data)
    known = f"+ptx{target.ptx_version}"
    if attribute.features.data not in ("", known):
        message = f"features '{attribute.features.data}' cannot be chosen for {target}"
        raise LoweringError(Code.PASS_FAILED, message, module, f"leave them out, or give '{known}'")
    return target


def write_llvm(module: GpuModuleOp, target: Target) -> str:
    """The LLVM IR text of a `gpu.module` whose functions are in the `llvm` dialect, for the NVPTX back end.

    LoweringError for anything without a translation: operations of other dialects, variadic calls, names that PTX
    lacks.
    """
    w = ModuleWriter(target, LLVM_RULES.get)
    fenced = find_fenced_roundings(module)  # of all functions, since LLVM inlines them
    for op in module.body.block.ops:
        match op:
            case llvm.GlobalOp():
                w.globals.append(_global(op))
            case llvm.FuncOp():
                _function(w, op, fenced)
            case _:
                hint = "run one-shot-convert-to-llvm before"
                raise LoweringError(Code.EMIT_UNSUPPORTED, f"'{op.name}' has no translation to PTX", op, hint)
    return w.text()


def _global(op: llvm.GlobalOp) -> str:
    if op.value is None:
        raise LoweringError(Code.EMIT_UNSUPPORTED, "a global of a kernel needs a value", op)
    space = op.addr_space.value.data
    kind = ("constant " if op.constant is not None else "global ") + memory_type(op.global_type, op)
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


def _function(module: ModuleWriter, op: llvm.FuncOp, fenced: frozenset[type[Attribute]]) -> None:
    kind = op.function_type
    if kind.is_variadic:
        raise LoweringError(Code.EMIT_UNSUPPORTED, "PTX has no variadic functions of this kind", op)
    name = symbol(op.sym_name.data, op)
    result = "void" if isinstance(kind.output, llvm.LLVMVoidType) else llvm_type(kind.output, op)
    types = [llvm_type(type, op) for type in kind.inputs]
    blocks = list(op.body.blocks)
    if not blocks:
        module.functions.append(f"declare {result} {name}({', '.join(types)})")
        return
    w = FunctionWriter(module, op.sym_name.data)
    w.fenced_roundings = fenced
    _name(w, blocks)
    paths = _paths(w, blocks)
    for block in blocks:
        if block is not blocks[0]:
            w.start_block(w.labels[block])
            _begin(w, block, paths[block], op)
        w.write_block(block)
    parameters = ", ".join(f"{type} {w.ref(arg)}" for type, arg in zip(types, blocks[0].args, strict=True))
    kernel = "ptx_kernel " if KERNEL in op.attributes else ""
    size = op.attributes.get(BLOCK_SIZE)
    threads = f' "{BLOCK_SIZE}"="{",".join(map(str, parameter(size)))}"' if size is not None else ""
    module.add_function(f"define {_linkage(op.linkage)}{kernel}{result} {name}({parameters}){threads}", w)


def _name(w: FunctionWriter, blocks: Sequence[Block]) -> None:
    """Names all blocks and values, since a block may stand before those that lead to it."""
    entered = {blocks[0], *(after for block in blocks if block.last_op for after in block.last_op.successors)}
    for block in blocks:
        w.labels[block] = w.fresh("bb") if w.labels else "entry"
        for argument in block.args:
            w.bind(argument, w.fresh() if block in entered else "poison")
        for op in block.ops:
            text = write_constant(op)
            for result in op.results:
                w.bind(result, text or w.fresh())


_Paths = list[tuple[str, list[str]]]
"""The labels of the blocks that lead to a block, each with the block's arguments from there."""


def _paths(w: FunctionWriter, blocks: Sequence[Block]) -> dict[Block, _Paths]:
    paths: dict[Block, _Paths] = {block: [] for block in blocks}

    def add(origin: Block, to: Block, arguments: Sequence[SSAValue]) -> None:
        paths[to].append((w.labels[origin], [w.ref(value) for value in arguments]))

    for block in blocks:
        match block.last_op:
            case llvm.BrOp() as op:
                add(block, op.successor, op.arguments)
            case llvm.CondBrOp() as op:
                add(block, op.then_block, op.then_arguments)
                add(block, op.else_block, op.else_arguments)
            case _:
                pass
    return paths


def _begin(w: FunctionWriter, block: Block, paths: _Paths, op: llvm.FuncOp) -> None:
    """Gives a block's arguments their values from every block that leads here."""
    if block.args and len({label for label, _ in paths}) != len(paths):
        message = "both ways of a branch lead to the same block, with arguments"
        raise LoweringError(Code.EMIT_UNSUPPORTED, message, op, "choose the arguments by llvm.select")
    if paths:
        join_paths(w, block.args, paths)
