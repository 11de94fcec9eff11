# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`expand-copies`: stage `folded` to stage `atoms`."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ..dialects.cute import CoordAttr, LayoutAttr
from ..dialects.tile import AtomCallOp, CopyAtomAttr, CopyOp, Crd2IdxOp, TensorType, ViewOp
from ..dialects.tile.copy_rules import atom_values, split_atom_mode
from ..dialects.tile.view_base import shifted_type
from ..layout.atoms.universal import universal_copy
from ..layout.core import Layout, LayoutLike
from ..layout.inttuple import leaves
from ..layout.unknown import Unknown
from .copy_loops import Repeat, plain, repeats, with_inner
from .emitter import Emitter
from .vector_width import MAX_BITS, choose_vector

REMARK = "remark"
"""The attribute in which an atom call says why it was chosen."""


@dataclass(frozen=True)
class ExpandCopiesPass(ModulePass):
    """Expands each copy into executions of a copy atom, in loops over the repetitions.

    A copy by a tiled copy executes its atom. An element-by-element copy, and one by an auto-vectorising atom,
    executes the widest universal atom that layouts and alignments allow; the attribute `remark` says which, and what
    kept it from being wider.

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
    """

    name = "expand-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in list(op.walk()):
            if isinstance(each, CopyOp):
                _expand(each)


def _expand(op: CopyOp) -> None:
    atom = op.copy_atom
    widest = MAX_BITS if atom is None else atom.auto_bits
    if atom is None or widest is not None:
        choice = choose_vector(op.src_type, op.dst_type, widest or MAX_BITS)
        atom = CopyAtomAttr(StringAttr(universal_copy(choice.bits).name), op.src_type.element_type)
        values, rest, remark = (choice.src, choice.dst), choice.rest, choice.remark
    else:
        values, rest = _split_by_atom(op, atom)
        remark = f"{atom.atom_name.data}: as the tiled copy says"
    emitter = Emitter(op)
    indices = [emitter.loop(repeat.extent) for repeat in reversed(rest)][::-1]
    src = _operand(emitter, op.src, op.src_type, values[0], indices, [repeat.src for repeat in rest])
    dst = _operand(emitter, op.dst, op.dst_type, values[1], indices, [repeat.dst for repeat in rest])
    call = AtomCallOp(atom, src, dst)
    call.attributes[REMARK] = StringAttr(remark)
    emitter.insert(call)
    emitter.replace()


def _split_by_atom(op: CopyOp, atom: CopyAtomAttr) -> tuple[tuple[LayoutLike, LayoutLike], list[Repeat]]:
    """The layouts of the atom's values in source and destination, and the loops over the rest."""
    counts = atom_values(atom)
    parts: list[tuple[LayoutLike, list[Layout]]] = []
    for tensor, count in zip((op.src_type, op.dst_type), counts, strict=True):
        layout = tensor.layout.data
        split = split_atom_mode(layout, count)
        assert split is not None, "the verifier checks this"
        modes = [plain(split[1]), *(plain(layout)[i] for i in range(1, len(layout)))]
        parts.append((split[0], modes))
    (src, src_rest), (dst, dst_rest) = parts
    return (src, dst), repeats(src_rest, dst_rest)


def _operand(
    emitter: Emitter,
    tensor: SSAValue,
    type: TensorType,
    values: LayoutLike,
    indices: list[SSAValue],
    modes: list[Layout],
) -> SSAValue:
    """The view of `tensor` that one execution of the atom moves: `values`, at the current indices of the loops."""
    moving = [(index, mode) for index, mode in zip(indices, modes, strict=True) if any(leaves(mode.stride))]
    offset, distance = None, 0
    if moving:
        layout = Layout(tuple(mode.shape for _, mode in moving), tuple(mode.stride for _, mode in moving))
        where = (Unknown(),) * len(moving)
        offset = emitter.value(Crd2IdxOp(CoordAttr(where), [index for index, _ in moving], LayoutAttr(layout)))
        distance = layout(where)
    if type.is_swizzled:
        view = type.with_layout(with_inner(type.layout.data, plain(values), distance))
    else:
        view = shifted_type(type, values, distance)
    return tensor if offset is None and view == type else emitter.value(ViewOp(tensor, offset, view))
