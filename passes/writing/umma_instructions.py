# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One execution of a multiplication into tensor memory, or of a copy to or from it, as its instruction; part of
`lower-tensors` and `expand-atoms`."""

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1, i32
from xdsl.ir import SSAValue

from ...dialects.ptx import (
    TENSOR,
    IntToPtrOp,
    LoadOp,
    PtrToIntOp,
    StoreOp,
    TensorDescriptorOp,
    TensorLoadRegistersOp,
    TensorMmaOp,
    TensorMmaScaledOp,
    TensorStoreRegistersOp,
    TmaCopySharedOp,
)
from ...dialects.tile import AtomCallOp, MmaCallOp, TensorType
from ...dialects.tile.copy_rules import REGISTER
from ...dialects.tile.umma_rules import umma_descriptor_of
from ...layout.atoms.contract import Named
from ...layout.atoms.copy_atom import CopyAtom
from ...layout.atoms.instructions import TmemCp, TmemLoad, TmemStore, Umma
from ...layout.atoms.tmem_copy import halves_apart
from ...layout.atoms.umma_descriptors import SmemDescriptor
from ...layout.atoms.umma_encoding import SCALE_IDS, instruction_descriptor_of
from ...layout.tiling.tmem_copies import values_descriptor
from ...layout.tmem.cells import WITHIN_CELL
from .addresses import Address, Addresses
from .emitter import Emitter, extract_elements, join_vector
from .wgmma_instructions import write_descriptor


def lower_umma_call(emitter: Emitter, addresses: Addresses, op: MmaCallOp, operands: Sequence[Address]) -> None:
    """Replaces an execution by its instruction. `operands` are the addresses of D, A and B, and of the scale factors of
    A and B, if there are any.
    """
    atom, facts = op.atom.atom, op.atom.atom.instruction
    assert isinstance(facts, Umma)
    d, *others = operands
    cell = _cell(emitter, addresses, op.d, d)
    sources: list[SSAValue] = []
    for name, tensor, address in zip("AB", (op.a, op.b), others[:2], strict=True):
        if atom.operand(name).named is Named.CELL:
            sources.append(_cell(emitter, addresses, tensor, address))
            continue
        assert isinstance(tensor.type, TensorType)
        fields = umma_descriptor_of(atom, name, tensor.type.layout.data)
        sources.append(_describe(emitter, addresses, tensor, address, fields))
    idesc = emitter.constant(instruction_descriptor_of(atom).value, i32)
    accumulate = emitter.constant(1, i1) if op.accumulate is None else op.accumulate
    if op.scales:
        scales: list[SSAValue] = []
        for tensor, address, place in zip(op.scales, others[2:], SCALE_IDS, strict=True):
            factors, number = _factors(emitter, _cell(emitter, addresses, tensor, address), place)
            scales.append(factors)
            idesc = emitter.value(arith.OrIOp(idesc, number))
        word = f"block{atom.products.scaled}" if facts.kind == "mxf4nvf4" else ""
        given = [cell, *sources, idesc, accumulate]
        emitter.insert(TensorMmaScaledOp(facts.kind, atom.threads, given, (scales[0], scales[1]), scale=word))
    else:
        emitter.insert(TensorMmaOp(facts.kind, atom.threads, [cell, *sources, idesc, accumulate]))
    emitter.replace()


def _factors(emitter: Emitter, pointer: SSAValue, place: int) -> tuple[SSAValue, SSAValue]:
    """The address of the cells of scale factors, and their number there in the instruction descriptor, from bit
    `place` on.
    """
    address = emitter.value(PtrToIntOp(pointer))
    within = emitter.value(arith.ShRUIOp(address, emitter.constant(WITHIN_CELL, i32)))
    number = emitter.value(arith.ShLIOp(within, emitter.constant(place, i32)))
    cell = emitter.value(arith.AndIOp(address, emitter.constant((1 << WITHIN_CELL) - 1, i32)))
    return emitter.value(IntToPtrOp(cell, 4, TENSOR)), number


def _cell(emitter: Emitter, addresses: Addresses, tensor: SSAValue, address: Address) -> SSAValue:
    """The address of a tensor in tensor memory."""
    assert isinstance(tensor.type, TensorType)
    return addresses.first(emitter, address, tensor.type)


def _describe(
    emitter: Emitter, addresses: Addresses, tensor: SSAValue, address: Address, fields: SmemDescriptor
) -> SSAValue:
    def made(pointer: SSAValue) -> SSAValue:
        leading, stride, form = fields.leading, fields.stride, fields.swizzling
        return emitter.value(TensorDescriptorOp(pointer, leading, stride, form))

    return write_descriptor(addresses, emitter, tensor, address, made)


def lower_tmem_cp(emitter: Emitter, addresses: Addresses, op: AtomCallOp, sides: tuple[Address, Address]) -> None:
    """Replaces a copy from shared to tensor memory by its instruction. `sides` are the addresses of both."""
    atom = op.atom.atom
    assert isinstance(atom.instruction, TmemCp)
    assert isinstance(op.src.type, TensorType)
    fields = values_descriptor(atom, op.src.type.plain_layout)
    shape = ".".join(filter(None, (atom.instruction.shape, atom.instruction.multicast)))
    matrix = _describe(emitter, addresses, op.src, sides[0], fields)
    emitter.insert(TmaCopySharedOp(atom.threads, shape, _cell(emitter, addresses, op.dst, sides[1]), matrix))
    emitter.replace()


def expand_tmem_move(emitter: Emitter, op: AtomCallOp, atom: CopyAtom) -> None:
    """Writes the instruction of a copy between tensor memory and the registers of a fragment."""
    match atom.instruction:
        case TmemLoad(shape, num, packs):
            apart = halves_apart(shape, num, packs)
            loaded = emitter.value(TensorLoadRegistersOp(shape, num, op.src, packed=packs, offset=apart))
            for number, word in enumerate(extract_elements(emitter, loaded)):
                emitter.insert(StoreOp(word, emitter.moved(op.dst, REGISTER * number), REGISTER))
        case TmemStore(shape, num, unpacks):
            count, apart = atom.src_bits[1].size // 32, halves_apart(shape, num, unpacks)
            places = [emitter.moved(op.src, REGISTER * number) for number in range(count)]
            words = [emitter.value(LoadOp(place, i32, REGISTER)) for place in places]
            held = join_vector(emitter, words)
            emitter.insert(TensorStoreRegistersOp(shape, num, held, op.dst, packed=unpacks, offset=apart))
        case _:
            raise AssertionError("the caller has other instructions")
