# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx.entry` as a kernel function of LLVM IR."""

from collections.abc import Sequence

from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from ...base.errors import Code
from ...base.parameters import MAX_PARAMETER_BYTES, offsets_of
from ...base.target import STATIC_SHARED_BYTES
from ...dialects.kernel import passed_as
from ...dialects.ptx import EntryOp, PtrType, RetOp
from ...passes.analysis.joined_loads import find_joined_loads
from ...passes.analysis.machine_calls import multiplies_by_warpgroups
from ...passes.analysis.ranges import register_ranges
from ...passes.analysis.wgmma_fragments import find_warpgroup_fragments
from ...passes.check_target import check_target
from ...passes.errors import LoweringError
from .convert import find_fenced_roundings
from .ptx_memory import MAX_ALIGN, shared_declaration
from .types import llvm_type
from .warpgroups import check_warpgroups
from .work_limits import check_effort
from .writer import FunctionWriter, ModuleWriter

_RESERVED = frozenset({"_", "WARP_SZ", "vprintf", "__assertfail"})
"""Names that a kernel cannot have: two of PTX itself, and the functions that printf and assertions call."""


def write_kernel(module: ModuleWriter, entry: EntryOp) -> None:
    """Appends the kernel to the module. LoweringError or TargetError as `emit_llvm`."""
    name = entry.sym_name.data
    try:
        entry.verify_()  # the text relies on its name, sizes and alignments
    except VerifyException as error:
        raise LoweringError(Code.IR_VERIFY, str(error), entry) from error
    if name in _RESERVED:
        raise LoweringError(
            Code.EMIT_NAME, f"'{name}' cannot be the name of a kernel in PTX", entry, "choose another name"
        )
    _, size = offsets_of(kind for type in entry.function_type.inputs if (kind := passed_as(type)) is not None)
    if size > MAX_PARAMETER_BYTES:
        raise LoweringError(
            Code.EMIT_UNSUPPORTED,
            f"the arguments of kernel '{name}' take {size} bytes",
            entry,
            f"a kernel can have {MAX_PARAMETER_BYTES} bytes of arguments; pass more values in a tensor",
        )
    check_target(entry, module.target)
    check_effort(entry)
    fragments = find_warpgroup_fragments(entry)
    check_warpgroups(entry, fragments)
    shared = entry.shared_bytes.value.data if entry.shared_bytes is not None else 0
    if shared:
        module.globals.append(shared_declaration(name, shared, STATIC_SHARED_BYTES))

    bounds = entry.launch_bounds
    w = FunctionWriter(module, name, register_ranges(bounds.threads, bounds.cluster), shared)
    w.fenced_roundings = find_fenced_roundings(entry)
    w.divides_inline = multiplies_by_warpgroups(entry)
    w.joined_loads = find_joined_loads(entry)
    w.tied = fragments.tied
    w.scope = module.lines.function(name, entry) if module.lines is not None else ""
    body = entry.body.block
    if not isinstance(body.last_op, RetOp):
        raise LoweringError(Code.EMIT_UNSUPPORTED, f"kernel '{name}' must end in 'ptx.ret'", entry)
    parameters: list[str] = []
    for index, (argument, align) in enumerate(zip(body.args, entry.arg_aligns.get_values(), strict=True)):
        w.bind(argument, f"%a{index}")
        parameters.append(f"{_find_parameter_type(argument.type, align, entry)} %a{index}")
    w.write_block(body)

    attributes = {
        "nvvm.reqntid": _sizes(bounds.threads),
        "nvvm.cluster_dim": None if bounds.cluster is None else _sizes(bounds.cluster),
        "nvvm.minctasm": bounds.min_blocks,
        "nvvm.maxnreg": bounds.max_registers,
    }
    given = " ".join(f'"{name}"="{value}"' for name, value in attributes.items() if value is not None)
    debug = f" !dbg {w.scope}" if w.scope else ""
    module.add_function(f"define ptx_kernel void @{name}({', '.join(parameters)}) nounwind {given}{debug}", w)


def _sizes(size: Sequence[int]) -> str:
    return ",".join(map(str, size))


def _find_parameter_type(type: Attribute, align: int, entry: EntryOp) -> str:
    kind = passed_as(type)
    if kind is not None:
        return kind.llvm(min(align, MAX_ALIGN))
    if not isinstance(type, PtrType):
        return llvm_type(type, entry)
    raise LoweringError(
        Code.EMIT_UNSUPPORTED,
        f"a kernel cannot have an argument of type {type}",
        entry,
        "the caller has pointers to global memory only; allocate shared and local memory in the kernel",
    )
