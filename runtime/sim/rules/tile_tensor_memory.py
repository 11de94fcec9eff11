# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiplications of tensors into tensor memory, and copies of tensors to and from it: the instructions that they stand
for, in their order."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ....base.spaces import TMEM
from ....dialects import ptx, tile
from ....dialects.arith.integer_range import wrap_signed
from ....dialects.tile.copy_rules import split_atom_mode
from ....dialects.tile.gemm import scale_types
from ....dialects.tile.gemm_rules import infer_gemm_modes
from ....dialects.tile.umma_rules import umma_descriptor_of
from ....layout.algebra.core import Layout, LayoutLike, plain_layout, size
from ....layout.algebra.modes import append
from ....layout.atoms.copy_atom import CopyAtom
from ....layout.atoms.instructions import TmemCp, TmemLoad, TmemStore, Umma
from ....layout.atoms.ptx_text import copy_text, mma_mnemonic
from ....layout.atoms.tmem_copy import halves_apart
from ....layout.atoms.umma_descriptors import MmaKind
from ....layout.atoms.umma_encoding import SCALE_IDS, instruction_descriptor_of
from ....layout.tiling.tmem_copies import values_descriptor
from ....layout.tmem.cells import WITHIN_CELL
from ..events import Step
from ..faults import site_of
from ..memory.elements import Elements
from ..memory.matrices import TiledOperand, descriptor_at
from ..memory.tensors import element_address, port
from ..tcgen05.multiply import Call, Tcgen05MmaRule
from ..translate import Translator
from ..values import TensorValue, add_address
from ..warp import Warp
from .tcgen05_copies import CellAccess, SharedCopies, one_lane, same

Indices = NDArray[np.int64]
Execution = Callable[[Warp, TensorValue, TensorValue], None]


def tensor_gemm(op: tile.GemmOp, t: Translator) -> Step:
    """The rule of a multiplication into tensor memory: K by K, of each M and N one execution."""
    modes = infer_gemm_modes(op.mma_atom, *op.types)
    scales = [append(type.plain_layout, 3) for type in scale_types(op)]
    return _multiplications(op, op.mma_atom, (modes.a, modes.b, modes.c, *scales), t)


def tensor_call(op: tile.MmaCallOp, t: Translator) -> Step:
    """The rule of one execution of a multiplication into tensor memory."""
    given = (op.a, op.b, op.c, *op.scales)
    wholes = [value.type.plain_layout for value in given if isinstance(value.type, tile.TensorType)]
    return _multiplications(op, op.atom, [Layout((x.shape, 1, 1), (x.stride, 0, 0)) for x in wholes], t)


def _multiplications(
    op: tile.GemmOp | tile.MmaCallOp, attr: tile.MmaAtomAttr, layouts: Sequence[LayoutLike], t: Translator
) -> Step:
    """Starts the executions of operands (V,M,K), (V,N,K) and (V,M,N)."""
    t.launch.leave_lockstep()
    atom, site, instruction = attr.atom, site_of(op), attr.atom.instruction
    assert isinstance(instruction, Umma)
    name, idesc = mma_mnemonic(atom), instruction_descriptor_of(atom).value
    factors = atom.products.factors if atom.has_scales else 0
    multiply = Tcgen05MmaRule(op, t, MmaKind(instruction.kind), atom.threads, name, factors=factors)
    operands: list[TiledOperand] = []
    for letter, value, layout in zip(("A", "B", "C", "", ""), (op.a, op.b, op.c, *op.scales), layouts, strict=False):
        type = value.type
        assert isinstance(type, tile.TensorType)
        fields, space = None, type.space.data
        if space is not TMEM:
            mode: LayoutLike = type.layout.data if isinstance(op, tile.MmaCallOp) else type.layout.data[0]
            fields = wrap_signed(umma_descriptor_of(atom, letter, mode).value, 64)
        operands.append(TiledOperand(t.slot(value), plain_layout(layout), space, type.element_bits, site, fields))
    a, b, c, *scales = operands
    m, n, k, cell = size(c.layout[1]), size(c.layout[2]), size(a.layout[2]), multiply.cells.address
    flag = None if op.accumulate is None else t.slot(op.accumulate)

    def step(warp: Warp) -> None:
        warp.launch.spend(m * n * k, site)
        lane = one_lane(warp, site, name)
        accumulates = True if flag is None else bool(same(warp, warp.registers[flag]))
        for p in range(k):
            for i in range(m):
                left = a.at(warp, i, p)
                for j in range(n):
                    first = cell(warp, left) if a.fields is None else same(warp, left)
                    at = [same(warp, x.at(warp, row, p)) for x, row in zip(scales, (i, j), strict=False)]
                    numbers = sum(
                        (x & 0xFFFFFFFF) >> WITHIN_CELL << place for x, place in zip(at, SCALE_IDS, strict=False)
                    )
                    of_scales = (cell(warp, at[0]), cell(warp, at[1])) if at else None
                    multiply.start(
                        warp, lane,
                        Call(
                            cell(warp, c.at(warp, i, j)), first, same(warp, b.at(warp, j, p)), idesc | numbers,
                            accumulates, scales=of_scales,
                        ),
                    )  # fmt: skip
            accumulates = True

    return step


def executions(
    op: tile.CopyOp | tile.AtomCallOp,
    record: CopyAtom,
    src: tile.TensorType | ptx.PtrType,
    dst: tile.TensorType | ptx.PtrType,
    first: Indices,
    second: Indices,
    t: Translator,
) -> list[Execution]:
    """The executions of an atom that reaches tensor memory, for the places of all values in source and destination."""
    t.launch.leave_lockstep()
    sent, received = record.src[1].size, record.dst[1].size
    begins = list(zip(first.reshape(-1, sent), second.reshape(-1, received), strict=True))
    return [_execution(op, record, src, dst, a, b, t) for a, b in begins]


def _execution(
    op: tile.CopyOp | tile.AtomCallOp,
    record: CopyAtom,
    src: tile.TensorType | ptx.PtrType,
    dst: tile.TensorType | ptx.PtrType,
    first: Indices,
    second: Indices,
    t: Translator,
) -> Execution:
    name, site, instruction = copy_text(record), site_of(op), record.instruction
    if isinstance(instruction, TmemCp):
        return _from_shared(op, record, instruction, int(first[0]), int(second[0]), t)
    assert isinstance(instruction, TmemLoad | TmemStore)
    loads = isinstance(instruction, TmemLoad)
    shape, num, packs = (instruction.shape, instruction.num, instruction.pack if loads else instruction.unpack)
    access = CellAccess(site, t, name, shape, num, packs, halves_apart(shape, num, packs) or 0)
    cells, held = (first, second) if loads else (second, first)
    start, bits = int(cells[0]), record.val_bits
    registers = Elements(port(op, dst if loads else src, "store" if loads else "load", t, record.val_bits), held)

    def load(warp: Warp, source: TensorValue, target: TensorValue) -> None:
        words = access.load(warp, element_address(source.address, start, TMEM, bits))
        registers.store(warp, target, words.view(np.uint8))

    def store(warp: Warp, source: TensorValue, target: TensorValue) -> None:
        content = np.ascontiguousarray(registers.load(warp, source))
        access.store(warp, element_address(target.address, start, TMEM, bits), content.view(np.uint32))

    return load if loads else store


def _from_shared(
    op: tile.CopyOp | tile.AtomCallOp, record: CopyAtom, instruction: TmemCp, first: int, second: int, t: Translator
) -> Execution:
    """A copy from shared memory, of the values from two places on."""
    assert isinstance(op.src.type, tile.TensorType)
    layout = op.src.type.layout.data
    split = split_atom_mode(layout, record.src[1].size) if isinstance(op, tile.CopyOp) else (layout, layout)
    assert split is not None, "the verifier checks this"
    site, name, bits = site_of(op), copy_text(record), record.val_bits
    fields = wrap_signed(values_descriptor(record, plain_layout(split[0])).value, 64)
    shape = ".".join(filter(None, (instruction.shape, instruction.multicast)))
    copies = SharedCopies(op, t, name, shape, record.threads)

    def copy(warp: Warp, source: TensorValue, target: TensorValue) -> None:
        lane = one_lane(warp, site, name)
        matrix = descriptor_at(warp, site, add_address(source.address, first * bits // 8), fields)
        copies.start(warp, lane, element_address(target.address, second, TMEM, bits), same(warp, matrix))

    return copy
