# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`expand-atoms`: on the way from stage `index` to stage `instr`."""

from dataclasses import dataclass
from typing import assert_never

from xdsl.context import Context
from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, VectorType, i8, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ..base.errors import Code
from ..dialects.ptx import (
    BulkLoadOp,
    BulkStoreOp,
    CpAsyncOp,
    CreatePolicyOp,
    EntryOp,
    LdMatrixOp,
    LoadOp,
    MovMatrixOp,
    StMatrixOp,
    StoreOp,
)
from ..dialects.ptx.base import LOCAL, float_bits, scalar_bits
from ..dialects.tile import AtomCallOp
from ..layout.atoms.cache_hints import split_policy
from ..layout.atoms.copy_atom import CopyAtom
from ..layout.atoms.instructions import (
    Absent,
    AutoMove,
    BulkCopy,
    CpAsync,
    Custom,
    LdMatrix,
    Move,
    MovMatrix,
    StMatrix,
    TmaInstruction,
    TmemCp,
    TmemLoad,
    TmemStore,
    WideMove,
)
from .errors import LoweringError
from .writing.emitter import Emitter, int_type


@dataclass(frozen=True)
class ExpandAtomsPass(ModulePass):
    """Replaces each execution of a copy atom by its PTX instructions.

    Before:

        tile.atom_call #tile.copy_atom<"UniversalCopy<uint128_t>", f16> %src, %dst

    After:

        %v = ptx.ld %src align 16 : !ptx.ptr<shared> -> vector<4xi32>
        ptx.st %v, %dst align 16 : vector<4xi32>, !ptx.ptr<global>
    """

    name = "expand-atoms"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for call in list(op.walk()):
            if isinstance(call, AtomCallOp):
                emitter = Emitter(call)
                _expand(emitter, call, call.atom.atom)
                emitter.replace()


def _expand(emitter: Emitter, op: AtomCallOp, atom: CopyAtom) -> None:
    match atom.instruction:
        case Move():
            _move(emitter, op, atom, atom.ref_bits[1].size)
        case CpAsync(cache):
            _cp_async(emitter, op, atom, cache)
        case LdMatrix() as load:
            _ldmatrix(emitter, op, load)
        case StMatrix(num, trans, shape, element):
            value = emitter.value(LoadOp(op.src, VectorType(i32, [num]), 4 * num))
            emitter.insert(StMatrixOp(num, trans, value, op.dst, f"{shape}.{element}"))
        case MovMatrix():
            value = emitter.value(LoadOp(op.src, i32, 4))
            emitter.insert(StoreOp(emitter.value(MovMatrixOp(value)), op.dst, 4))
        case TmemLoad() | TmemStore():
            from .writing.umma_instructions import expand_tmem_move

            expand_tmem_move(emitter, op, atom)
        case BulkCopy() if atom.bits is not None:
            bytes = emitter.constant(atom.bits // 8, i32)
            if atom.loads:
                assert op.mbarrier is not None, "the verifier checks this"
                emitter.insert(BulkLoadOp(op.dst, op.src, bytes, op.mbarrier, policy=op.policy))
            else:
                emitter.insert(BulkStoreOp(op.dst, op.src, bytes, op.policy))
        case Custom() | Absent() | AutoMove() | WideMove() | TmaInstruction() | BulkCopy() | TmemCp():
            raise LoweringError(Code.EMIT_UNSUPPORTED, f"{atom.name} has no lowering to PTX yet", op)
        case _:
            assert_never(atom.instruction)


def _move(emitter: Emitter, op: AtomCallOp, atom: CopyAtom, bits: int) -> None:
    """A load and a store of raw bits; one of them of registers where a side is a fragment."""
    element, from_registers, to_registers = op.atom.value_type, op.src.type == LOCAL, op.dst.type == LOCAL
    if from_registers and bits >= 32 and float_bits(element) == 16:
        # halves of a fragment are loaded as such, so that LLVM converts and packs two of them at once
        type = VectorType(element, [bits // 16])
    elif from_registers != to_registers:
        # as wide as those of the fragment: LLVM joins them to wider ones, and splits wider ones, by shifts
        type = _raw(bits, max(scalar_bits(element) or 0, 32))
    else:
        type = _raw(bits, 64 if bits == 64 else 32)
    value = emitter.value(LoadOp(op.src, type, bits // 8, *_write_cached(op, atom.load_hint)))
    emitter.insert(StoreOp(value, op.dst, bits // 8, *_write_cached(op, atom.store_hint)))


def _write_cached(op: AtomCallOp, hint: str) -> tuple[str, SSAValue | None]:
    """The hint of an instruction, and the policy that it is given: one for each kernel and priority, made at the
    kernel's start.
    """
    modifiers, priority = split_policy(hint)
    if not priority:
        return modifiers, None
    entry = op.parent_op()
    while not isinstance(entry, EntryOp):
        assert entry is not None, "the stage's contract"
        entry = entry.parent_op()
    for made in entry.body.block.ops:
        if not isinstance(made, CreatePolicyOp):
            break
        if made.priority.data == priority:
            return modifiers, made.result
    start = Emitter(op)
    start.point = InsertPoint.at_start(entry.body.block)
    return modifiers, start.value(CreatePolicyOp(priority))


def _raw(bits: int, register: int) -> Attribute:
    """The type of `bits` bits without meaning, in registers of at most `register` bits."""
    return int_type(bits) if bits <= register else VectorType(int_type(register), [bits // register])


def _cp_async(emitter: Emitter, op: AtomCallOp, atom: CopyAtom, cache: str) -> None:
    """The copy; the number of values that it is given with zero-fill becomes one of bytes."""
    count = op.count
    if count is not None and atom.val_bits > 8:
        count = emitter.value(arith.MuliOp(count, emitter.constant(atom.val_bits // 8, i32)))
    elif count is not None and atom.val_bits < 8:
        count = emitter.value(arith.DivUIOp(count, emitter.constant(8 // atom.val_bits, i32)))
    prefetch, policy = _write_cached(op, atom.load_hint)
    emitter.insert(CpAsyncOp(cache, atom.ref_bits[1].size // 8, op.dst, op.src, count, prefetch, policy))


def _ldmatrix(emitter: Emitter, op: AtomCallOp, load: LdMatrix) -> None:
    value = emitter.value(LdMatrixOp(load.num, load.trans, op.src, f"{load.shape}.{load.element}"))
    if load.exchanged:
        value = _in_order(emitter, value, load.registers)
    emitter.insert(StoreOp(value, op.dst, 4 * load.registers))


def _in_order(emitter: Emitter, value: SSAValue, registers: int) -> SSAValue:
    """The bytes of an ldmatrix of 16x16 bytes as its atom orders them: pairs of two registers by turns."""
    order = [first + byte for first in range(0, 4 * registers, 8) for byte in (0, 1, 4, 5, 2, 3, 6, 7)]
    type = VectorType(i8, [4 * registers])
    bytes = emitter.value(vector.BitcastOp(value, type))
    mask = DenseArrayBase.from_list(i64, order)
    paired = emitter.value(vector.ShuffleOp(bytes, bytes, mask, result_type=type))
    return emitter.value(vector.BitcastOp(paired, value.type))
