# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx.entry` as a kernel function of LLVM IR."""

import re

from xdsl.ir import Attribute

from ...dialects.ptx import EntryOp, PtrType, RetOp, StateSpace
from ...dialects.ptx.availability import unavailable
from ...dialects.target import STATIC_SHARED_BYTES
from ...layout.errors import Code
from .errors import EmitError
from .ptx_memory import shared_declaration
from .types import llvm_type
from .writer import FunctionWriter, ModuleWriter

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_RESERVED = frozenset({"_", "WARP_SZ", "vprintf"})
"""Names that a kernel cannot have: two of PTX itself, and the function that printf calls."""


def write_kernel(module: ModuleWriter, entry: EntryOp) -> None:
    """Appends the kernel to the module. EmitError or TargetError for what the target cannot run."""
    name = entry.sym_name.data
    if _NAME.fullmatch(name) is None or name in _RESERVED:
        raise EmitError(
            Code.EMIT_NAME,
            entry,
            f"{name[:40]!r} cannot be the name of a kernel in PTX",
            "use letters, digits and underscores, not first a digit, and no name of PTX's own",
        )
    for op, message in unavailable(entry, module.target):
        raise EmitError(Code.TARGET_TOO_OLD, op, message, f"compile for sm_{op.MIN_SM} or later")
    shared = entry.shared_bytes.value.data if entry.shared_bytes is not None else 0
    module.target.check_shared_bytes(shared, name)
    if shared:
        module.globals.append(shared_declaration(name, shared, STATIC_SHARED_BYTES))

    w = FunctionWriter(module, name, entry.block, shared)
    w.scope = module.lines.function(name, entry) if module.lines is not None else ""
    body = entry.body.block
    if not isinstance(body.last_op, RetOp):
        raise EmitError(Code.EMIT_UNSUPPORTED, entry, f"kernel '{name}' must end in 'ptx.ret'")
    parameters: list[str] = []
    for index, (argument, align) in enumerate(zip(body.args, entry.arg_aligns.get_values(), strict=True)):
        w.bind(argument, f"%a{index}")
        parameters.append(f"{_parameter_type(argument.type, align, entry)} %a{index}")
    w.write_block(body)

    size = ",".join(map(str, entry.block))
    debug = f" !dbg {w.scope}" if w.scope else ""
    head = (
        f'define ptx_kernel void @{name}({", ".join(parameters)}) nounwind "nvvm.reqntid"="{size}"{debug} {{'
    )
    module.functions.append("\n".join((head, "entry:", *w.allocas, *w.lines, "}")))


def _parameter_type(type: Attribute, align: int, entry: EntryOp) -> str:
    if not isinstance(type, PtrType):
        return llvm_type(type, entry)
    if type.space.data is StateSpace.Global:
        return f"{llvm_type(type, entry)} align {align}"
    raise EmitError(
        Code.EMIT_UNSUPPORTED,
        entry,
        f"a kernel cannot have an argument of type {type}",
        "the caller has pointers to global memory only; allocate shared and local memory in the kernel",
    )
