# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: addresses, loads, stores, and the kernel's own memory.

Accesses to global and shared memory are volatile in the LLVM IR: LLVM then neither drops, merges, hoists,
widens nor narrows them, so that each execution of the operation is one instruction of exactly its width.
The PTX is cleaned of the word afterwards (see `..nvptx`), because PTX's own `.volatile` means something
else. They move 32-bit registers, whatever the elements are, since the instruction's form must not depend on
how a target packs small elements.
"""

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, Operation

from ...base.errors import Code
from ...base.spaces import SMEM, Allocation, Bytes, Cells
from ...base.target import MAX_LOCAL_BYTES
from ...dialects import ptx
from ...passes.errors import LoweringError
from .hinted_accesses import load_by_assembly, store_by_assembly
from .inline_assembly import ordered
from .writer import FunctionWriter, Rule, rule

FRAGMENT = "fragment."
"""The beginning of the name of a fragment, before its number among those of the kernel, in the order of the program."""
MAX_ALIGN = 4096
"""The greatest alignment that LLVM is given; nothing depends on more."""


def _ptr_add(w: FunctionWriter, op: ptx.PtrAddOp) -> None:
    match op.ptr.type.space.data.form:
        case Bytes():
            w.define(op.result, f"getelementptr i8, {w.typed(op.ptr)}, {w.typed(op.offset)}")
        case Cells():
            distance = w.ref(op.offset) if w.type(op.offset) == "i32" else w.temp(f"trunc {w.typed(op.offset)} to i32")
            w.define(op.result, f"add {w.typed(op.ptr)}, {distance}")


def _number(w: FunctionWriter, op: ptx.IntToPtrOp | ptx.PtrToIntOp) -> None:
    if w.type(op.operands[0]) == w.type(op.results[0]):  # the address of a cell is a number
        w.bind(op.results[0], w.ref(op.operands[0]))
        return
    word = "inttoptr" if isinstance(op, ptx.IntToPtrOp) else "ptrtoint"
    w.define(op.result, f"{word} {w.typed(op.operands[0])} to {w.type(op.result)}")


def write_descriptor(w: FunctionWriter, op: ptx.WgmmaDescriptorOp | ptx.TensorDescriptorOp) -> None:
    """Writes a matrix descriptor of wgmma or tcgen05. The uppermost byte of an address in shared memory is the block's
    rank in its cluster, which would be added to other fields. LLVM would spread a mask over the offsets in loops, but
    not a permutation of bytes.
    """
    address = w.temp(f"ptrtoint {w.typed(op.ptr)} to i32")
    in_block = w.temp(f"call i32 @llvm.nvvm.prmt(i32 {address}, i32 0, i32 {0x4210})")
    start = w.temp(f"lshr i32 {in_block}, 4")
    wide = w.temp(f"zext nneg i32 {start} to i64")
    w.define(op.result, f"or disjoint i64 {wide}, {op.fields.value}")


def _register_type(value: Attribute) -> str:
    """The type in which a value is moved to or from global and shared memory: registers of b8 to b64."""
    count, bits = ptx.access_registers(value)
    return f"<{count} x i{bits}>" if count > 1 else f"i{bits}"


def _load(w: FunctionWriter, op: ptx.LoadOp) -> None:
    type = w.type(op.result)
    where = f"{w.typed(op.ptr)}, align {min(op.align.value.data, MAX_ALIGN)}"
    if op.ptr.type.space.data.allocation is Allocation.COMPILER:
        loaded = f"load {type}, {where}"
        w.define(op.result, f"freeze {type} {w.temp(loaded)}" if op in w.joined_loads else loaded)
        return
    moved = _register_type(op.result.type)
    value = load_by_assembly(w, op) if op.hinted else w.temp(f"load volatile {moved}, {where}")
    w.bind(op.result, value if moved == type else w.temp(f"bitcast {moved} {value} to {type}"))


def _store(w: FunctionWriter, op: ptx.StoreOp) -> None:
    value = w.typed(op.value)
    where = f"{w.typed(op.ptr)}, align {min(op.align.value.data, MAX_ALIGN)}"
    if op.ptr.type.space.data.allocation is Allocation.COMPILER:
        w.emit(f"store {value}, {where}")
        return
    moved = _register_type(op.value.type)
    if moved == "i32" and isinstance(op.value.type, VectorType):
        # by way of a vector: LLVM would load a fragment's halves as an i32, and pack the converted value bit by bit
        register = w.temp(f"bitcast {value} to <1 x i32>")
        value = f"i32 {w.temp(f'extractelement <1 x i32> {register}, i32 0')}"
    elif moved != w.type(op.value):
        value = f"{moved} {w.temp(f'bitcast {value} to {moved}')}"
    if op.hinted:
        store_by_assembly(w, op, value)
        return
    w.emit(f"store volatile {value}, {where}")


def _local_alloc(w: FunctionWriter, op: ptx.LocalAllocOp) -> None:
    size, align = op.bytes.value.data, op.align.value.data
    if size > MAX_LOCAL_BYTES or align > MAX_ALIGN:
        raise LoweringError(
            Code.EMIT_UNSUPPORTED,
            f"a fragment of {size} bytes aligned to {align} does not fit a thread's local memory",
            op,
            f"a thread can have {MAX_LOCAL_BYTES} bytes, aligned to at most {MAX_ALIGN}",
        )
    w.bind(op.result, w.alloca(f"[{size} x i8]", align, f"%{FRAGMENT}{w.fragments}"))
    w.fragments += 1


def _smem_addr(w: FunctionWriter, op: ptx.SmemAddrOp) -> None:
    base = f"@{shared_array(w.kernel)}"
    offset = op.offset.value.data
    if offset >= w.shared_bytes:
        raise LoweringError(
            Code.EMIT_UNSUPPORTED,
            f"offset {offset} is outside the {w.shared_bytes} bytes of shared memory of kernel '{w.kernel}'",
            op,
        )
    w.bind(op.result, base if offset == 0 else f"getelementptr (i8, {SMEM.llvm_pointer} {base}, i32 {offset})")


def shared_array(kernel: str) -> str:
    """The symbol of a kernel's shared memory; no kernel can have this name, since `$` is not allowed in one."""
    return f"{kernel}$shared"


def shared_declaration(kernel: str, size: int, static_limit: int) -> str:
    """The global that holds a block's shared memory: an array, or one whose size the launch gives.

    Aligned to 1024 bytes, the strictest that a swizzled tile can ask for.
    """
    if size <= static_limit:
        return f"@{shared_array(kernel)} = internal addrspace({SMEM.llvm}) global [{size} x i8] undef, align 1024"
    return f"@{shared_array(kernel)} = external addrspace({SMEM.llvm}) global [0 x i8], align 1024"


PTX_MEMORY: tuple[tuple[type[Operation], Rule], ...] = (
    rule(ptx.PtrAddOp, _ptr_add),
    rule(ptx.IntToPtrOp, _number),
    rule(ptx.PtrToIntOp, _number),
    rule(ptx.WgmmaDescriptorOp, write_descriptor),
    rule(ptx.LoadOp, _load),
    rule(ptx.StoreOp, _store),
    (ptx.StoreBulkOp, ordered("[$0], $1, 0")),
    rule(ptx.LocalAllocOp, _local_alloc),
    rule(ptx.SmemAddrOp, _smem_addr),
)
