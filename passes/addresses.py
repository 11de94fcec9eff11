# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Addresses of tensor elements: pointers plus index arithmetic, in 32 bits where the layout proves that they fit."""

from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects.ptx import PtrAddOp
from ..dialects.tile import Crd2IdxOp, TensorType
from ..dialects.tile.assembly import count_operands, fill_coordinate, unwrapped
from ..layout.core import ComposedLayout, Layout, cosize
from ..layout.inttuple import leaves, transform_leaves
from ..layout.swizzle import Swizzle
from .constants import constant_of
from .emitter import Emitter, int_type
from .ssa_int import SsaInt
from .swizzled import ANY_BITS, Part, index_bits, split


@dataclass(frozen=True, slots=True)
class Address:
    """A tensor at run time: its pointer, and for a swizzled one the parts of the offset within its layout."""

    pointer: SSAValue
    offset: tuple[Part, ...] | None = None


class Addresses:
    """Computes addresses for one kernel. Each coordinate is converted once, right after it is defined."""

    def __init__(self) -> None:
        self._converted: dict[tuple[SSAValue, int], SSAValue] = {}

    def converted(self, value: SSAValue, width: int) -> SSAValue:
        """`value`, of type `index`, as i32 or i64."""
        key = (value, width)
        if key not in self._converted:
            cast = arith.IndexCastOp(value, int_type(width))
            owner = value.owner
            if isinstance(owner, Block):
                first = owner.first_op
                assert first is not None
                cast.location = first.location
                Rewriter.insert_op(cast, InsertPoint.before(first))
            else:
                cast.location = owner.location
                Rewriter.insert_op(cast, InsertPoint.after(owner))
            self._converted[key] = cast.result
        return self._converted[key]

    def erase_unused_conversions(self) -> None:
        """Erases the conversions of coordinates that, in a mode of stride 0, did not matter after all."""
        erase_unused([cast.owner for cast in self._converted.values() if isinstance(cast.owner, Operation)])

    def evaluate(self, emitter: Emitter, layout: Layout, coord: Any, values: list[SSAValue], bits: int) -> SSAValue:
        """The bytes before element `layout(coord)`, of `bits` each: as i32, or as i64 where the layout's last one needs
        it.

        Of elements narrower than a byte, the coordinate is one that begins a byte, as the verifiers make sure.
        """
        width = index_width(layout, bits)
        scaled, rest = _in_bytes(layout, bits)
        result = scaled(unwrapped(fill_coordinate(coord, [SsaInt(emitter, self.converted(v, width)) for v in values])))
        if rest:
            result = result >> rest
        return result.value if isinstance(result, SsaInt) else emitter.constant(result, int_type(width))

    def distance(self, emitter: Emitter, offset: SSAValue, bits: int) -> SSAValue:
        """The bytes of `offset` elements of `bits` each, of type `index`: the index of a coordinate, or any other
        value.
        """
        owner = offset.owner
        if isinstance(owner, Crd2IdxOp):
            return self.evaluate(emitter, owner.plain_layout, owner.coord.data, list(owner.coords), bits)
        if (constant := constant_of(offset)) is not None:
            bytes = constant * bits // 8
            return emitter.constant(bytes, int_type(32 if abs(bytes) < 2**31 else 64))
        return bytes_of(SsaInt(emitter, self.converted(offset, 64)), bits).value

    def advance(self, emitter: Emitter, tensor: Address, type: TensorType, offset: SSAValue | None) -> Address:
        """The address `offset` elements after `tensor`."""
        if offset is None:
            return tensor
        if isinstance(offset.owner, arith.AddiOp):  # an index and a constant: two steps, each as narrow as it can be
            first, second = offset.owner.operands
            return self.advance(emitter, self.advance(emitter, tensor, type, first), type, second)
        if tensor.offset is None:
            return Address(_moved(emitter, tensor.pointer, self.distance(emitter, offset, type.element_bits)))
        owner = offset.owner
        if isinstance(owner, Crd2IdxOp):
            parts = self._parts(emitter, owner.plain_layout, owner.coord.data, list(owner.coords))
        else:
            parts = [Part(_as_i32(emitter, self.distance(emitter, offset, BYTE)), ANY_BITS)]
        return Address(tensor.pointer, (*tensor.offset, *parts))

    def _parts(self, emitter: Emitter, layout: Layout, coord: Any, values: list[SSAValue]) -> list[Part]:
        """The index of a coordinate as a part for each mode."""
        coords, modes = (coord, list(layout)) if isinstance(coord, tuple) else ((coord,), [layout])  # pyright: ignore[reportUnknownVariableType]
        parts: list[Part] = []
        for each, mode in zip(coords, modes, strict=True):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            used = [values.pop(0) for _ in range(count_operands(each))]  # pyright: ignore[reportUnknownArgumentType]
            parts.append(Part(_as_i32(emitter, self.evaluate(emitter, mode, each, used, BYTE)), index_bits(mode)))
        return parts

    def element(
        self, emitter: Emitter, tensor: Address, type: TensorType, coord: Any, values: list[SSAValue]
    ) -> SSAValue:
        """The pointer to the element of `tensor` at `coord`, whose run-time leaves are `values`."""
        layout = type.layout.data
        inner = layout.inner if isinstance(layout, ComposedLayout) else layout
        assert isinstance(inner, Layout)
        if tensor.offset is None:
            step = self.evaluate(emitter, inner, coord, values, type.element_bits)
            return _moved(emitter, tensor.pointer, step)
        parts = self._parts(emitter, inner, unwrapped(coord), list(values))
        return self.first(emitter, Address(tensor.pointer, (*tensor.offset, *parts)), type)

    def first(self, emitter: Emitter, tensor: Address, type: TensorType) -> SSAValue:
        """The pointer to the first element of `tensor`."""
        if tensor.offset is None:
            return tensor.pointer
        layout = type.layout.data
        assert isinstance(layout, ComposedLayout)
        assert isinstance(layout.outer, Swizzle)
        inside, outside = split(tensor.offset, layout.outer)
        pointer = tensor.pointer
        if inside:
            index = sum((SsaInt(emitter, part.value) for part in inside[1:]), start=SsaInt(emitter, inside[0].value))
            pointer = _moved(emitter, pointer, bytes_of(layout.outer(index), type.element_bits).value)
        for part in outside:
            pointer = _moved(emitter, pointer, bytes_of(SsaInt(emitter, part.value), type.element_bits).value)
        return pointer


BYTE = 8
"""The bits of an element where distances are wanted in elements."""


def index_width(layout: Layout, bits: int) -> int:
    """32 if every index of `layout`, and its distance in bytes in elements of `bits`, fits in 31 bits, else 64."""
    return 32 if cosize(layout) * max(bits, 8) < 2**34 else 64


def bytes_of(elements: SsaInt, bits: int) -> SsaInt:
    """The bytes of so many elements of `bits` each; of elements narrower than a byte, a multiple of those in a byte."""
    return elements * (bits // 8) if bits >= 8 else elements >> (8 // bits).bit_length() - 1


def _in_bytes(layout: Layout, bits: int) -> tuple[Layout, int]:
    """`layout` with strides in bytes; or in elements, with the shift that makes bytes of an index, where some strides
    are no whole bytes.
    """
    modes = zip(leaves(layout.shape), leaves(layout.stride), strict=True)
    if bits < 8 and any(extent != 1 and stride * bits % 8 for extent, stride in modes):
        return layout, (8 // bits).bit_length() - 1
    return Layout(layout.shape, transform_leaves(lambda d: d * bits // 8, layout.stride)), 0


def start_offset(emitter: Emitter, type: TensorType) -> tuple[Part, ...] | None:
    """The offset with which a tensor that is allocated or passed begins; None for a plain one."""
    layout = type.layout.data
    if not isinstance(layout, ComposedLayout):
        return None
    assert isinstance(layout.offset, int), "the verifier checks this"
    return (Part(emitter.constant(layout.offset, int_type(32)), layout.offset),) if layout.offset else ()


def _moved(emitter: Emitter, pointer: SSAValue, bytes: SSAValue) -> SSAValue:
    if constant_of(bytes) == 0:
        return pointer
    return emitter.value(PtrAddOp(pointer, bytes))


def _as_i32(emitter: Emitter, value: SSAValue) -> SSAValue:
    """A distance within a swizzled tensor: it fits in 32 bits, as the tensor's type makes sure."""
    if value.type == int_type(32):
        return value
    return emitter.value(arith.TruncIOp(value, int_type(32)))


def erase_unused(ops: list[Operation]) -> None:
    """Erases those of `ops`, in reverse order, whose results nothing uses."""
    for op in reversed(ops):
        if not any(result.uses for result in op.results):
            Rewriter.erase_op(op)
