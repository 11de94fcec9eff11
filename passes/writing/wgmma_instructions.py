# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One execution of an atom of a warpgroup as its instruction, and descriptors of matrices in shared memory, for
instructions that read them there; part of `lower-tensors`.
"""

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1, i32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import gpu
from ...dialects.arith.semantics import constant_of
from ...dialects.ptx import PtrAddOp, ShflSyncOp, SregOp, WgmmaDescriptorOp, WgmmaMmaAsyncOp
from ...dialects.tile import MmaCallOp, TensorType
from ...dialects.tile.wgmma_rules import descriptor_of
from ...layout.atoms.contract import Named
from ...layout.atoms.wgmma_smem import UNIT
from .addresses import BYTE, Address, Addresses
from .emitter import Emitter, SsaInt


def write_descriptor(
    addresses: Addresses,
    emitter: Emitter,
    tensor: SSAValue,
    address: Address,
    make: Callable[[SSAValue], SSAValue],
    of_warp: Callable[[SSAValue], SSAValue] = lambda distance: distance,
) -> SSAValue:
    """The descriptor of an operand: that which `make` gives of where its tensor begins, and the distances of the views
    of it, one by one, so that those of the loops around are added there; `of_warp` may take one from a single lane.
    """
    type = tensor.type
    assert isinstance(type, TensorType)
    pointer = addresses.within(emitter, address)
    distances = [(part.value, type.element_bits) for part in address.offset or ()]
    while isinstance(pointer.owner, PtrAddOp) and not pointer.owner.fixed:
        distances.insert(0, (pointer.owner.offset, BYTE))
        pointer = pointer.owner.ptr
    result = make(pointer)
    for distance, bits in distances:
        if constant_of(distance) != 0:
            units = SsaInt(emitter, of_warp(distance)) >> (UNIT * 8 // bits).bit_length() - 1
            wide = units.value if units.value.type == i64 else emitter.value(arith.ExtUIOp(units.value, i64))
            result = emitter.value(arith.AddiOp(result, wide))
    return result


class WarpgroupCalls:
    """Writes the instructions of one kernel. The common parts of a warp's descriptors are computed once."""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses
        self._same: dict[SSAValue, SSAValue] = {}

    def lower(self, emitter: Emitter, op: MmaCallOp, operands: Sequence[Address]) -> None:
        """Replaces an execution by its instruction. `operands` are the addresses of D, A and B."""
        atom = op.atom.atom
        d, a, b = operands
        described = atom.operand("A").named is Named.DESCRIPTOR
        left = self._descriptor(emitter, op, "A", op.a, a) if described else a.pointer
        right = self._descriptor(emitter, op, "B", op.b, b)
        accumulate = emitter.constant(1, i1) if op.accumulate is None else op.accumulate
        emitter.insert(WgmmaMmaAsyncOp(atom.name, d.pointer, left, right, accumulate))
        emitter.replace()

    def _descriptor(
        self, emitter: Emitter, op: MmaCallOp, operand: str, tensor: SSAValue, address: Address
    ) -> SSAValue:
        """The descriptor of an operand in shared memory."""
        assert isinstance(tensor.type, TensorType)
        fields = descriptor_of(op.atom.atom, operand, tensor.type.layout.data)

        def made(pointer: SSAValue) -> SSAValue:
            leading, stride = fields.leading_byte_offset, fields.stride_byte_offset
            return emitter.value(WgmmaDescriptorOp(pointer, leading, stride, fields.swizzle_bits))

        return write_descriptor(self._addresses, emitter, tensor, address, made, self._of_warp)

    def _of_warp(self, value: SSAValue) -> SSAValue:
        """A distance that all lanes of a warp share. One that is computed from the thread's number is taken from the
        first lane, so that the assembler sees that it is uniform, and keeps it out of vector registers.
        """
        owner = value.owner
        if not (isinstance(owner, Operation) and value.type == i32 and _depends_on_thread(owner)):
            return value
        if value not in self._same:
            first = arith.ConstantOp.from_int_and_width(0, 32)
            same = ShflSyncOp("idx", value, first.result)
            first.location = same.location = owner.location
            Rewriter.insert_op([first, same], InsertPoint.after(owner))
            self._same[value] = same.result
        return self._same[value]


def _depends_on_thread(op: Operation) -> bool:
    """Whether integer arithmetic reads the coordinates of the thread in its block."""
    seen, left = {op}, [op]
    while left:
        op = left.pop()
        if isinstance(op, gpu.ThreadIdOp) or (isinstance(op, SregOp) and op.register.data.startswith("tid.")):
            return True
        if op.dialect_name() == "arith":
            operands = [x.owner for x in op.operands if isinstance(x.owner, Operation)]
            left += [other for other in operands if other not in seen]
            seen.update(operands)
    return False
