# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One execution of an MMA atom as its instruction on registers; part of `lower-tensors`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never, cast

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import AnyFloat, IntegerType, VectorType, i32
from xdsl.ir import Attribute, SSAValue

from ...base.element_types import BY_PTX
from ...dialects.element_types import ir_type
from ...dialects.ptx import Dp4aOp, LoadOp, MmaSyncOp, MmaSyncScaledOp, StoreOp
from ...dialects.ptx.base import float_bits
from ...dialects.ptx.mma import REGISTER_TYPES
from ...dialects.tile import MmaCallOp, TensorType
from ...layout.algebra.core import size
from ...layout.atoms.instructions import Custom, Dp4a, Fma, MmaSync, Umma, WgMma
from ...layout.atoms.mma_atom import MmaAtom
from ...layout.atoms.mma_sync import OPERANDS, registers
from ...layout.atoms.ptx_text import dp4a_form
from .emitter import Emitter


@dataclass(frozen=True, slots=True)
class _FragmentRegisters:
    """The registers of an operand in its fragment: their type, width in bytes, and where each begins."""

    type: Attribute
    bytes: int
    places: list[SSAValue]
    pair: Attribute | None = None

    def load(self, emitter: Emitter) -> list[SSAValue]:
        """The registers."""
        return [self._register(emitter, place) for place in self.places]

    def _register(self, emitter: Emitter, place: SSAValue) -> SSAValue:
        """A register; one of a pair of halves is loaded as such, so that LLVM converts and packs both at once."""
        if self.pair is None:
            return emitter.value(LoadOp(place, self.type, self.bytes))
        halves = emitter.value(LoadOp(place, VectorType(self.pair, [2]), self.bytes))
        packed = emitter.value(vector.BitcastOp(halves, VectorType(self.type, [1])))
        return emitter.value(vector.ExtractOp(packed, [0], self.type))


def lower_mma_call(emitter: Emitter, op: MmaCallOp, pointers: list[SSAValue]) -> None:
    """Loads the registers of A, B and C from their fragments, multiplies, and stores D.

    `pointers` are those to the first value of D, A, B and C, and to the first scale of A and of B.
    """
    atom = op.atom.atom
    d, *others = [_load_registers(emitter, atom, *o) for o in zip(OPERANDS, op.types, pointers[:4], strict=True)]
    a, b, c = [held.load(emitter) for held in others]
    match atom.instruction:
        case Fma():
            results = [_multiply_add(emitter, atom, (a[0], b[0], c[0]))]
        case Dp4a():
            results = [emitter.value(Dp4aOp(dp4a_form(atom), a[0], b[0], c[0]))]
        case MmaSync() if op.scales:
            scales = [_load_scales(emitter, pointer, atom.products.factors) for pointer in pointers[4:]]
            results = list(emitter.insert(MmaSyncScaledOp(atom.name, (a, b, c), scales)).results)
        case MmaSync():
            results = list(emitter.insert(MmaSyncOp(atom.name, a, b, c)).results)
        case WgMma() | Umma() | Custom():
            raise AssertionError("others write instructions whose operands are not all registers")
        case _:
            assert_never(atom.instruction)
    for value, place in zip(results, d.places, strict=True):
        emitter.insert(StoreOp(value, place, d.bytes))
    emitter.replace()


def _load_scales(emitter: Emitter, pointer: SSAValue, count: int) -> SSAValue:
    """The scales of an execution, 1, 2 or 4 bytes, as the low bytes of a register."""
    loaded = emitter.value(LoadOp(pointer, IntegerType(8 * count), count))
    return loaded if count == 4 else emitter.value(arith.ExtUIOp(loaded, i32))


def _multiply_add(emitter: Emitter, atom: MmaAtom, values: Sequence[SSAValue]) -> SSAValue:
    """a * b + c, all converted to the type of D, which holds their values."""
    to = ir_type(BY_PTX[atom.types[0]])
    a, b, c = [_widen(emitter, value, to, name) for value, name in zip(values, atom.types[1:], strict=True)]
    if isinstance(to, IntegerType):
        return emitter.value(arith.AddiOp(emitter.value(arith.MuliOp(a, b)), c))
    return emitter.value(math.FmaOp(a, b, c))


def _widen(emitter: Emitter, value: SSAValue, to: Attribute, name: str) -> SSAValue:
    """A number of PTX type `name` in the wider type `to`."""
    if value.type == to:
        return value
    if not isinstance(to, IntegerType):
        return emitter.value(arith.ExtFOp(value, cast("AnyFloat", to)))
    extend = arith.ExtUIOp if name.startswith("u") else arith.ExtSIOp
    return emitter.value(extend(value, cast("IntegerType", to)))


def _load_registers(
    emitter: Emitter, atom: MmaAtom, operand: str, tensor: TensorType, pointer: SSAValue
) -> _FragmentRegisters:
    """The registers of an operand, the first of whose values is at `pointer`."""
    layout = tensor.layout.data
    count = size(layout)
    if isinstance(atom.instruction, Fma):
        type, bytes, per_register = tensor.element_type, tensor.element_bytes, 1
    else:
        held = registers(atom, operand)
        type, bytes, per_register = REGISTER_TYPES[held.kind], held.bytes, held.values
    starts = [layout(i) * tensor.element_bits // 8 for i in range(0, count, per_register)]
    pair = tensor.element_type if float_bits(tensor.element_type) == 16 and per_register == 2 else None
    return _FragmentRegisters(type, bytes, [emitter.moved(pointer, start) for start in starts], pair)
