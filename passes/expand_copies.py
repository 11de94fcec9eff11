# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`expand-copies`: stage `folded` to stage `atoms`."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntAttr, ModuleOp, i1, i8, i32
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ..base.errors import Code
from ..base.spaces import RMEM
from ..dialects.cute import CoordAttr, LayoutAttr
from ..dialects.ptx import BulkPrefetchOp
from ..dialects.tile import (
    AllocOp,
    AtomCallOp,
    CoordTensorOp,
    CopyAtomAttr,
    CopyOp,
    InstructionOp,
    LoadOp,
    PrefetchOp,
    PrefetchTensorOp,
    PtrOp,
    TensorType,
    ViewOp,
)
from ..dialects.tile.bulk_rules import runs_of, size_atom
from ..dialects.tile.copy_rules import atom_values, register_align, split_atom_mode
from ..dialects.tile.custom import call_instruction
from ..dialects.tile.fragments import FRAGMENT_ALIGN
from ..layout.algebra.coalesce import contiguous_values
from ..layout.algebra.compose import composition
from ..layout.algebra.core import Layout, LayoutLike, make_layout, plain_layout, size
from ..layout.atoms.contract import Role
from ..layout.atoms.instructions import Custom
from ..layout.atoms.universal import auto_vectorizing_copy, universal_copy
from ..layout.tiling.copy_loops import Repeat, is_constant, repeats, with_outer
from .analysis.vector_width import MAX_BITS, choose_vector
from .errors import LoweringError
from .writing.emitter import Emitter, erase_unused, remark
from .writing.tensor_scalars import Scalars
from .writing.tma import expand_tma_copy, make_part


@dataclass(frozen=True)
class ExpandCopiesPass(ModulePass):
    """Expands each copy into executions of a copy atom, in loops over the repetitions.

    A copy by a tiled copy executes its atom. An element-by-element copy, and one by an auto-vectorising atom, executes
    the widest universal atom that layouts and alignments allow. The attribute `remark` names the atom and the reason
    that it is not wider.

    Before:

        tile.copy #tile.copy_atom<"SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", f16> %src, %dst
            : !tile.tensor<f16, gmem, align<16>, "((8,1),2,8):((1,0),64,4096)">, ...

    After:

        scf.for %k = %c0 to %c8 step %c1 {
          scf.for %m = %c0 to %c2 step %c1 {
            %o = tile.crd2idx (%m, %k) in "(2,8):(64,4096)"
            %s = tile.view %src at %o : ... -> !tile.tensor<f16, gmem, align<16>, "(8,1):(1,0)">
            ...
            tile.atom_call #tile.copy_atom<"SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", f16> %s, %d : ...
          } {unroll}
        } {unroll}

    A bulk copy is executed for each run of elements that are contiguous on both sides, by the atom of its size. A
    TMA copy becomes instructions likewise, `tile.tma_call`, each at its coordinate of the map. Under a predicate,
    `scf.if` surrounds the call; an atom with zero-fill gets the number of values to copy instead.
    """

    name = "expand-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        scalars = Scalars()
        for copy in list(op.walk()):
            if isinstance(copy, PrefetchOp) or (isinstance(copy, CopyOp) and copy.tma is not None):
                expand_tma_copy(copy)
            elif isinstance(copy, CopyOp):
                _expand(copy, scalars)
            elif isinstance(copy, PrefetchTensorOp):
                _prefetch(copy, scalars)
        erase_unused([inner for inner in op.walk() if isinstance(inner, CoordTensorOp)])


def _expand(op: CopyOp, scalars: Scalars, *, explained: bool = True) -> None:
    """Replaces one copy. Those that are not `explained` move registers, which takes no instruction."""
    emitter = Emitter(op)
    src_layout, dst_layout = [scalars.layout(emitter, tensor) for tensor in (op.src, op.dst)]
    atom, pred = op.copy_atom, op.pred_layout
    widest = MAX_BITS if atom is None else atom.atom.max_bits
    if atom is None or widest is not None:
        choice = choose_vector(op.src.type, op.dst.type, widest or MAX_BITS, pred, (src_layout, dst_layout))
        if choice.bits < 8:
            raise LoweringError(
                Code.PACKED_ELEMENTS,
                f"the elements are not adjacent by the byte in source and destination ({choice.remark})",
                op,
                f"copy at least {(count := op.src.type.per_byte)} adjacent elements, starting at a multiple of {count}",
            )
        hints = ("", "") if atom is None else (atom.load, atom.store)
        atom = CopyAtomAttr.of(universal_copy(choice.bits), op.src.type.element_type, *hints)
        values, rest, why = choice.values, choice.rest, choice.remark
    elif atom.atom.is_bulk:
        run, starts = runs_of(atom, op.src.type, op.dst.type)
        sides = (src_layout, dst_layout)
        values = tuple([with_outer(side, composition(plain_layout(side), run)) for side in sides])
        rest = repeats(*([composition(plain_layout(side), starts)] for side in sides))
        atom = size_atom(atom, run.size, op.dst.type)
        why = f"{atom.atom_name}: {run.size} elements at a time are adjacent in source and destination"
    else:
        values, rest = _split_by_atom(atom, src_layout, dst_layout, pred)
        why = f"{atom.atom_name}: chosen by the tiled copy"
    indices = [emitter.loop(repeat.extent) for repeat in reversed(rest)][::-1]
    tensors = [op.src, op.dst] if op.pred is None else [op.src, op.dst, op.pred]
    parts = [
        make_part(emitter, tensor, values[number], indices, [repeat.modes[number] for repeat in rest])
        for number, tensor in enumerate(tensors)
    ]
    count = _predicate(emitter, atom, parts[2], plain_layout(values[2])) if len(parts) == 3 else None
    src, dst = [adjacent(emitter, part, atom) for part in parts[:2]]
    if src is not parts[0]:
        _expand(move_registers(emitter, parts[0], src), scalars, explained=False)
    call = _call(op, atom, src, dst, count)
    if explained:
        remark(call, why)
    emitter.insert(call)
    if dst is not parts[1]:
        _expand(move_registers(emitter, dst, parts[1]), scalars, explained=False)
    emitter.replace()


def _call(
    op: CopyOp, atom: CopyAtomAttr, src: SSAValue, dst: SSAValue, count: SSAValue | None
) -> AtomCallOp | InstructionOp:
    """One execution of the atom of a copy."""
    contract = atom.atom.contract
    if not isinstance(contract.instruction, Custom):
        return AtomCallOp(atom, src, dst, count, op.mbarrier, op.policy)
    given = {Role.SOURCE: src, Role.DESTINATION: dst, Role.BARRIER: op.mbarrier, Role.COUNT: count}
    return call_instruction(contract, given)


def _prefetch(op: PrefetchTensorOp, scalars: Scalars) -> None:
    """Replaces the prefetch of a tensor by those of its runs, each from the address of its bytes on."""
    emitter, (run, starts) = Emitter(op), op.runs()
    layout = scalars.layout(emitter, op.tensor)
    rest = repeats([composition(plain_layout(layout), starts)])
    indices = [emitter.loop(repeat.extent) for repeat in reversed(rest)][::-1]
    elements = with_outer(layout, composition(plain_layout(layout), run))
    part = make_part(emitter, op.tensor, elements, indices, [repeat.modes[0] for repeat in rest])
    assert isinstance(part.type, TensorType)
    count = run.size * part.type.element_bits // 8
    bytes = TensorType(i8, part.type.space, part.type.align, LayoutAttr(Layout(count, 1)))
    pointer = PtrOp.inferred([emitter.value(ViewOp(part, None, bytes)), []], {"coord": CoordAttr((0,))})
    emitter.insert(BulkPrefetchOp(emitter.value(pointer), emitter.constant(count, i32), op.policy))
    emitter.replace()


def _split_by_atom(
    atom: CopyAtomAttr, src: LayoutLike, dst: LayoutLike, pred: Layout | None
) -> tuple[tuple[LayoutLike, ...], list[Repeat]]:
    """The layouts of the atom's values in each operand, and the loops over the rest."""
    sent, received = atom_values(atom)
    operands = [(src, sent), (dst, received)]
    if pred is not None:
        operands.append((pred, sent))
    values: list[LayoutLike] = []
    rest: list[list[Layout]] = []
    for layout, count in operands:
        split = split_atom_mode(layout, count, atom)
        assert split is not None, "the verifier checks this"
        values.append(split[0])
        rest.append([plain_layout(split[1]), *(plain_layout(layout)[i] for i in range(1, len(layout)))])
    return tuple(values), repeats(*rest)


def _predicate(emitter: Emitter, atom: CopyAtomAttr, flags: SSAValue, values: Layout) -> SSAValue | None:
    """Puts the following operations under the predicates of one execution, `values` of `flags`, which are equal.

    With zero-fill nothing is skipped: the number of values whose predicates hold is returned.
    """
    if not atom.atom.zfill:
        emitter.branch(_flag(emitter, flags, 0))
        return None
    total = size(values)
    if is_constant(values):
        counts = [emitter.constant(n, i32) for n in (total, 0)]
        return emitter.value(arith.SelectOp(_flag(emitter, flags, 0), *counts))
    count = emitter.value(arith.ExtUIOp(_flag(emitter, flags, 0), i32))
    for number in range(1, total):
        flag = emitter.value(arith.ExtUIOp(_flag(emitter, flags, number), i32))
        count = emitter.value(arith.AddiOp(count, flag))
    return count


def _flag(emitter: Emitter, flags: SSAValue, number: int) -> SSAValue:
    """The predicate of a value of one execution."""
    coordinate = {"coord": CoordAttr((number,))}
    return emitter.value(LoadOp.build(operands=[flags, []], result_types=[i1], properties=coordinate))


def adjacent(emitter: Emitter, part: SSAValue, atom: CopyAtomAttr) -> SSAValue:
    """The registers that an atom moves: `part` itself, or new ones where the values of `part` lie apart in its
    fragment.
    """
    type = part.type
    assert isinstance(type, TensorType)
    layout = type.layout.data
    count = size(layout)
    if type.space.data is not RMEM or count == 1:
        return part
    together = contiguous_values(layout) % count == 0
    if together and type.align.data * 8 % register_align(atom, count * type.element_bits) == 0:
        return part
    run = TensorType(type.element_type, type.space, IntAttr(FRAGMENT_ALIGN), LayoutAttr(make_layout(count)))
    return emitter.value(AllocOp(run))


def move_registers(emitter: Emitter, src: SSAValue, dst: SSAValue) -> CopyOp:
    """A copy between fragments, a register at a time, so that LLVM sees no wider values that it must take apart."""
    views = [emitter.value(ViewOp(side, None, _in_one_mode(side))) for side in (src, dst)]
    assert isinstance(src.type, TensorType)
    by_register = CopyAtomAttr.of(auto_vectorizing_copy(32), src.type.element_type)
    copy = CopyOp(views[0], views[1], atom=by_register)
    emitter.insert(copy)
    return copy


def _in_one_mode(tensor: SSAValue) -> TensorType:
    """The type of a fragment whose modes are taken as one."""
    type = tensor.type
    assert isinstance(type, TensorType)
    layout = plain_layout(type.layout.data)
    return type.with_layout(Layout((layout.shape,), (layout.stride,)))
