# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Translates stage `instr` to LLVM IR text for the NVPTX back end."""

from xdsl.ir import Operation

from ...base.target import Target
from ...dialects.kernel import kernels_in
from ...dialects.ptx import EntryOp
from ..pipeline import concerns
from .entry import write_kernel
from .table import rule_of
from .writer import DATA_LAYOUT, ModuleWriter

__all__ = ["DATA_LAYOUT", "emit_llvm"]


def emit_llvm(module: Operation, target: Target, *, lineinfo: bool = False, assertions: bool = False) -> str:
    """The LLVM IR text of all kernels (`ptx.entry`) under `module`, in their order there.

    `lineinfo` adds the source lines as debug metadata, from which LLVM makes `.loc` directives. `assertions` keeps the
    assertions of kernels, which otherwise leave no trace. The same input gives the same text. Raises LoweringError
    for an operation, a type or a name without translation and for an instruction that is newer than the target,
    TargetError for more shared memory than the target has.
    """
    if concerns("expand-math", module):
        from ...passes.expand_math import expand_functions  # not loaded for other programs

        module = module.clone()
        expand_functions(module)
    w = ModuleWriter(target, rule_of, lineinfo, assertions)
    for entry in kernels_in(module, EntryOp):
        write_kernel(w, entry)
    return w.text()
