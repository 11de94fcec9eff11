# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Descriptors of matrices in shared memory, for instructions that read them there; part of `lower-tensors`."""

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ...dialects.arith.semantics import constant_of
from ...dialects.ptx import PtrAddOp
from ...dialects.tile import TensorType
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
