# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx.entry` as a kernel function of LLVM IR. LLVM cannot be interrupted, so a kernel that makes too much work for it
is refused before; so is one whose warpgroups are not whole, or have too few registers, for their instructions.
"""

from collections.abc import Iterator, Sequence

from xdsl.dialects import scf
from xdsl.ir import Attribute, Block, Operation
from xdsl.utils.exceptions import VerifyException

from ...base.errors import Code
from ...base.occupancy import REGISTERS
from ...base.parameters import MAX_PARAMETER_BYTES, offsets_of
from ...base.target import MAX_REGISTERS, REGISTER_UNIT, STATIC_SHARED_BYTES, WARP, WARPGROUP
from ...dialects.kernel import passed_as
from ...dialects.ptx import EntryOp, PtrType, RetOp, SetMaxNRegOp, WgmmaMmaAsyncOp
from ...dialects.ptx.effects import Agent, agent_of
from ...dialects.tile.wgmma_rules import OTHER_REGISTERS
from ...layout.atoms.mma_sync import registers
from ...passes.analysis.joined_loads import find_joined_loads
from ...passes.analysis.lane_analysis import WarpValues
from ...passes.analysis.loop_hints import own_copies, stays_a_loop
from ...passes.analysis.ranges import Ranges, register_ranges
from ...passes.analysis.wgmma_fragments import (
    Fragments,
    WarpgroupFragments,
    find_warpgroup_fragments,
    multiplies_by_warpgroups,
)
from ...passes.check_target import check_target
from ...passes.errors import LoweringError
from .convert import find_fenced_roundings
from .ptx_memory import MAX_ALIGN, shared_declaration
from .types import llvm_type
from .writer import FunctionWriter, ModuleWriter


def check_warpgroups(entry: EntryOp, fragments: WarpgroupFragments) -> None:
    """Checks the instructions of warpgroups as far as the lanes that execute them are known.

    LoweringError: E2210 where a warpgroup does not execute one as a whole, E0325 for too many registers.
    """
    operations = [op for op in entry.walk() if agent_of(op) is Agent.WARPGROUP]
    if not operations:
        return
    ranges = Ranges(entry)
    x, y, z = entry.block
    warps = [WarpValues(entry, number, ranges) for number in range(-(-x * y * z // WARP))]
    for op in operations:
        _check_whole(op, warps)
    for op, running in fragments.running.items():
        _check_registers(op, entry, running)


def _check_whole(op: Operation, warps: Sequence[WarpValues]) -> None:
    """Checks that all lanes of the four warps of a warpgroup execute an operation, or none of them; registers may be
    set by the last warps of a block, however many these are.
    """
    partly = isinstance(op, SetMaxNRegOp)
    for first in range(0, len(warps), WARPGROUP // WARP):
        group = warps[first : first + WARPGROUP // WARP]
        active = [warp.active(op) for warp in group]
        counts = [len(lanes) for lanes in active if lanes is not None]
        threads = sum(len(warp.threads) for warp in group)
        known = sum(len(warp.threads) for warp, lanes in zip(group, active, strict=True) if lanes is not None)
        executing = sum(counts)
        if executing == 0 or (executing == known and (partly or threads == WARPGROUP)):
            continue
        where = f"warps {first} to {first + len(group) - 1}"
        if executing == known:
            message = f"{where} are not a whole warpgroup, which '{op.name}' requires"
            hint = f"give the block a multiple of {WARPGROUP} threads"
        else:
            message = f"{executing} of the {known} threads of {where} execute '{op.name}'"
            hint = "branch on a value that the four warps share, such as the thread's number divided by 128"
        raise LoweringError(Code.WARPGROUP, message, op, hint)


def _check_registers(op: WgmmaMmaAsyncOp, entry: EntryOp, running: Fragments) -> None:
    """Checks that the registers of the multiplications that run at the same time fit."""
    needed = sum(fragment.alloc.bytes.value.data // 4 for fragment in running)
    given, by = _registers(op, entry)
    if needed + OTHER_REGISTERS > given:
        raise LoweringError(
            Code.MMA_REGISTERS,
            f"accumulators and registers of A take {needed} registers of each thread at a time, which has {given} {by} "
            f"and needs at least {OTHER_REGISTERS} others",
            op,
            "use a narrower tile or more warpgroups, or move registers by ptx.setmaxnreg",
        )


def _registers(op: Operation, entry: EntryOp) -> tuple[int, str]:
    """The registers that a thread has at an operation, and who says so."""
    for before in _before(op):
        if isinstance(before, SetMaxNRegOp):
            return min(before.n.value.data, MAX_REGISTERS), "by setmaxnreg"
    bounds = entry.launch_bounds
    if bounds.max_registers is not None:
        return bounds.max_registers, "by max_registers"
    x, y, z = entry.block
    fitting = REGISTERS // (x * y * z * (bounds.min_blocks or 1)) // REGISTER_UNIT * REGISTER_UNIT
    return min(fitting, MAX_REGISTERS), "as that many fit a multiprocessor"


def _before(op: Operation) -> Iterator[Operation]:
    """The operations that have been executed before one, those around it included, the last first."""
    outer: Operation | None = op
    while outer is not None and not isinstance(outer, EntryOp):
        inner = outer.prev_op
        while inner is not None:
            yield inner
            inner = inner.prev_op
        outer = outer.parent_op()


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


MAX_LOOPS = 2000
"""Loops of a kernel once those around them are unrolled. LLVM rotates loops, and reduces their variables, in a time
that grows with the square of their number: 1000 take 4 seconds, 2000 14.
"""
MAX_OPERATIONS = 1 << 19
"""Operations of a kernel once its loops are unrolled: 160 thousand take LLVM 3 to 7 seconds, others in proportion."""


def check_effort(entry: EntryOp) -> None:
    """LoweringError for a kernel that is too much work for LLVM."""
    operations, loops = _estimate_work(entry.body.block, 1)
    for number, most, noun in ((operations, MAX_OPERATIONS, "operations"), (loops, MAX_LOOPS, "loops")):
        if number > most:
            raise LoweringError(
                Code.LLVM_EFFORT,
                f"kernel '{entry.sym_name.data}' has {number} {noun} once its loops are unrolled; "
                f"the limit for LLVM is {most}",
                entry,
                "unroll less, use smaller tiles, or split the kernel",
            )


def _size(op: Operation) -> int:
    """The instructions of LLVM IR for an operation, where they are many: those for each accumulator."""
    return 5 * registers(op.atom, "D").count if isinstance(op, WgmmaMmaAsyncOp) else 1


def _estimate_work(block: Block, copies: int) -> tuple[int, int]:
    """The operations and loops of `copies` copies of a block, with those inside of them."""
    operations = loops = 0
    for op in block.ops:
        operations += copies * _size(op)
        if not op.regions:
            continue
        if stays_a_loop(op):
            loops += copies
        inside = copies * own_copies(op) if isinstance(op, scf.ForOp) else copies
        for region in op.regions:
            for inner in region.blocks:
                more, within = _estimate_work(inner, inside)
                operations += more
                loops += within
    return operations, loops
