# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`attach-nvvm-target`: writes the target of a program's kernels into it."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, IntAttr, ModuleOp, StringAttr
from xdsl.passes import ModulePass

from ...base.target import DEFAULT_ARCH
from ...dialects.gpu import TARGETS
from ...dialects.gpu import ModuleOp as GpuModuleOp
from ...dialects.nvvm import DEFAULT_LEVEL, TargetAttr


@dataclass(frozen=True)
class AttachNvvmTargetPass(ModulePass):
    """Adds a target to every `gpu.module`, unless it has it already; running it again with other options adds another.

    Before: `gpu.module @k { ... }`. After: `gpu.module @k [#nvvm.target<chip = "sm_80">] { ... }`.
    """

    name = "attach-nvvm-target"
    chip: str = DEFAULT_ARCH
    features: str = ""
    opt_level: int = DEFAULT_LEVEL

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = TargetAttr(IntAttr(self.opt_level), StringAttr(self.chip), StringAttr(self.features))
        for module in op.walk():
            if isinstance(module, GpuModuleOp) and target not in module.targets:
                module.attributes[TARGETS] = ArrayAttr([*module.targets, target])
