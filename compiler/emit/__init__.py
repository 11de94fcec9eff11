# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Translates stage `instr` to LLVM IR text for the NVPTX back end."""

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.ir import Operation

from ...base.target import Target
from ...dialects.kernel import kernels_in
from ...dialects.ptx import EntryOp
from ..pipeline import concerns
from .arith import ARITH
from .control import CONTROL
from .convert import CONVERT
from .entry import write_kernel
from .printf import PRINTF
from .ptx_async import PTX_ASYNC
from .ptx_atomic import PTX_ATOMIC
from .ptx_cluster import PTX_CLUSTER, PTX_LAUNCH_CONTROL
from .ptx_compute import PTX_COMPUTE
from .ptx_custom import PTX_CUSTOM
from .ptx_memory import PTX_MEMORY
from .ptx_tcgen05 import PTX_TCGEN05
from .ptx_warp import PTX_LANES, PTX_MATRIX, PTX_WARP
from .ptx_wgmma import PTX_WGMMA
from .vector import VECTOR
from .writer import DATA_LAYOUT, ModuleWriter, Rule

RULES: Mapping[type[Operation], Rule] = MappingProxyType(dict((
    *ARITH, *CONVERT, *VECTOR, *CONTROL, *PRINTF, *PTX_COMPUTE, *PTX_MEMORY, *PTX_MATRIX, *PTX_WARP, *PTX_LANES,
    *PTX_ATOMIC, *PTX_ASYNC, *PTX_CLUSTER, *PTX_LAUNCH_CONTROL, *PTX_WGMMA, *PTX_TCGEN05, *PTX_CUSTOM,
)))  # fmt: skip


def rule_of(kind: type[Operation]) -> Rule | None:
    """The rule of an operation. Those of structs are loaded when a kernel has one: `llvm` takes long to import."""
    if kind.dialect_name() in ("llvm", "ub"):
        from .structs import STRUCTS

        return dict(STRUCTS).get(kind)
    return RULES.get(kind)


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
