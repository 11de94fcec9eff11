# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`emit-gpu-binary`: device programs as `gpu.binary`."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import BytesAttr, ModuleOp, StringAttr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...base.assembler_warnings import check_speed
from ...base.errors import Code, TilefoldError
from ...base.target import Target
from ...dialects.gpu import ModuleOp as GpuModuleOp
from ...dialects.gpu.binary import BinaryOp, ObjectAttr
from ...dialects.nvvm import TargetAttr
from ...passes.errors import LoweringError

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
        from .llvm_dialect import write_llvm

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
