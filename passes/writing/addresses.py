# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Addresses of tensor elements: pointers plus index arithmetic, in 32 bits where the layout proves that they fit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import Block, Operation, SSAValue

from ...base.spaces import TMEM
from ...dialects.arith.integer_range import clip_to
from ...dialects.arith.semantics import constant_of
from ...dialects.cute.values import with_scalars
from ...dialects.ptx import TENSOR, IntToPtrOp, PtrAddOp, PtrToIntOp
from ...dialects.ptx.address import Fixed
from ...dialects.ptx.base import GLOBAL
from ...dialects.tile import Crd2IdxOp, TensorType
from ...dialects.tile.assembly import count_operands, fill_coordinate, unwrap
from ...layout.algebra.coalesce import coalesce_under
from ...layout.algebra.coordinates import fixed_modes
from ...layout.algebra.core import ComposedLayout, Layout, flat_modes, plain_layout
from ...layout.algebra.integers import AnyTuple
from ...layout.algebra.inttuple import transform_leaves
from ...layout.algebra.swizzle import Swizzle
from ...layout.text.layouts import to_text
from ...layout.tmem.cells import CELL
from ..analysis.ranges import Place, Ranges, greatest_index
from .emitter import CheckedEmitter, Emitter, SsaInt, check, erase_unused, insert_behind, int_type, remark

if TYPE_CHECKING:
    from ...layout.algebra.swizzled_sum import Addend


def _sums():  # the type of the module
    """The sums of swizzled indices: few tensors are swizzled."""
    from ...layout.algebra import swizzled_sum

    return swizzled_sum


@dataclass(frozen=True, slots=True)
class Address:
    """A tensor at run time: its pointer, for a swizzled one the parts of the offset within its layout, and the values
    of the `?` in its type.

    `fixed` are integers of type `index` of the coordinates behind the offset, each with the extent of its mode, that
    are not proven to be inside.
    """

    pointer: SSAValue
    offset: "tuple[Addend[SSAValue], ...] | None" = None
    scalars: Sequence[SSAValue] = ()
    fixed: Fixed = ()


class Addresses:
    """Computes addresses for one kernel. Each coordinate is converted once, right after it is defined."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges
        self._reaches: dict[int, list[int]] = {32: [], 64: []}
        self._converted: dict[tuple[SSAValue, int, bool], SSAValue] = {}

    def converted(self, value: SSAValue, width: int, *, must_fit: bool = False) -> SSAValue:
        """`value`, of type `index`, as i32 or i64. Where it `must_fit`, the simulator checks that it does."""
        must_fit = must_fit and not self._ranges.fits(value, width)
        key = (value, width, must_fit)
        if key not in self._converted:
            cast = arith.IndexCastOp(value, int_type(width))
            insert_behind(value, check(cast) if must_fit else cast)
            self._converted[key] = cast.result
        return self._converted[key]

    def greatest(self, place: Place) -> int:
        """The greatest index that can be at `place`."""
        return greatest_index(place, self._ranges)

    def width(self, place: Place, bits: int) -> int:
        """32 if the index at `place`, and its distance in bytes in elements of `bits`, fits in 31 bits, else 64."""
        return 32 if (self.greatest(place) + 1) * max(bits, 8) < 2**34 else 64

    def _fixed(self, emitter: Emitter, place: Place) -> Fixed:
        """The integers of the coordinate of `place`, each with the extent of its mode; none where all are proven to be
        inside.
        """

        def integer(value: SSAValue) -> SsaInt:
            return SsaInt(emitter, value)

        shape = with_scalars(place.layout, [integer(value) for value in place.scalars]).shape
        coord = unwrap(fill_coordinate(place.coord, [integer(value) for value in place.values]))
        pairs = [(_plain(given), _plain(extent)) for given, extent in fixed_modes(coord, shape)]
        return () if all(self._inside(*pair) for pair in pairs) else pairs

    def _inside(self, integer: SSAValue | int, extent: SSAValue | int) -> bool:
        """Whether an integer of a coordinate is proven to be inside of its mode."""
        low, high = (integer, integer) if isinstance(integer, int) else self._ranges.of(integer)
        return low >= 0 and high < (extent if isinstance(extent, int) else self._ranges.of(extent)[0])

    def _moved(
        self, emitter: Emitter, pointer: SSAValue, bytes: SSAValue, place: Place | None, fixed: Fixed = ()
    ) -> SSAValue:
        """`pointer`, moved by the distance of `place`; `fixed` must be inside. A remark says why there are 64 bits."""
        moved = self._step(emitter, pointer, bytes, fixed)
        if place is not None and isinstance(moved.owner, PtrAddOp) and pointer.type == GLOBAL:
            wide = bytes.type == int_type(64)
            self._reaches[64 if wide else 32].append(self.greatest(place))
            if wide:
                remark(moved.owner, f"64-bit offset: {self._reason(place)}")
        return moved

    def _step(self, emitter: Emitter, pointer: SSAValue, bytes: SSAValue, fixed: Fixed = ()) -> SSAValue:
        """`pointer`, moved by `bytes` if `fixed` is inside."""
        if constant_of(bytes) == 0 and not fixed:
            return pointer
        return emitter.value(PtrAddOp(pointer, bytes, fixed))

    def summary(self) -> str | None:
        """The number of offsets in global memory in 32 and in 64 bits, with reasons; None without offsets."""
        narrow, wide = self._reaches[32], self._reaches[64]
        parts: list[str] = []
        if narrow:
            parts.append(f"{len(narrow)} in 32 bits, which reach element {max(narrow)} at most")
        if wide:
            parts.append(f"{len(wide)} in 64 bits (see their remarks)")
        return f"offsets in global memory: {'; '.join(parts)}" if parts else None

    def _reason(self, place: Place) -> str:
        if place.scalars:
            return f"nothing bounds the ? of {to_text(place.layout)}"
        return f"{to_text(place.layout)} reaches element {self.greatest(place)}"

    def erase_unused_conversions(self) -> None:
        """Erases the conversions of coordinates that, in a mode of stride 0, did not matter after all."""
        erase_unused([cast.owner for cast in self._converted.values() if isinstance(cast.owner, Operation)])

    def index(self, emitter: Emitter, place: Place) -> SSAValue:
        """The index of the element at `place`, as `evaluate` gives it, for other uses than an address, which nothing
        else guards: the simulator checks that it does not wrap.
        """
        return self.evaluate(emitter, place, BYTE, must_fit=True)

    def evaluate(self, emitter: Emitter, place: Place, bits: int, *, must_fit: bool = False) -> SSAValue:
        """The bytes before the element at `place`, of `bits` each: as i32 where ranges prove that they fit, else as
        i64. The simulator checks that strides which are known at run time do not make them wrap; and where they
        `must_fit`, that a coordinate outside the layout does not.

        Of elements narrower than a byte, the coordinate is one that begins a byte, as the verifiers make sure.
        """
        width = self.width(place, bits)
        if must_fit or place.scalars:
            emitter = CheckedEmitter(emitter, self._ranges)

        def integer(value: SSAValue) -> SsaInt:
            return SsaInt(emitter, self.converted(value, width, must_fit=must_fit))

        scaled, rest = _in_bytes(with_scalars(place.layout, [integer(value) for value in place.scalars]), bits)
        result = scaled(unwrap(fill_coordinate(place.coord, [integer(value) for value in place.values])))
        if rest:
            result = result >> rest
        return result.value if isinstance(result, SsaInt) else emitter.constant(result, int_type(width))

    def distance(self, emitter: Emitter, offset: SSAValue, bits: int) -> SSAValue:
        """The bytes of `offset` elements of `bits` each, of type `index`: the index of a coordinate, or any other
        value.
        """
        owner = offset.owner
        if isinstance(owner, Crd2IdxOp):
            return self.evaluate(emitter, place_of(owner), bits)
        if (constant := constant_of(offset)) is not None:
            bytes = clip_to(constant * bits // 8, 64)
            return emitter.constant(bytes, int_type(32 if abs(bytes) < 2**31 else 64))
        return bytes_of(SsaInt(CheckedEmitter(emitter, self._ranges), self.converted(offset, 64)), bits).value

    def advance(self, emitter: Emitter, tensor: Address, type: TensorType, offset: SSAValue | None) -> Address:
        """The address `offset` elements after `tensor`."""
        if offset is None:
            return tensor
        if isinstance(offset.owner, arith.AddiOp):  # an index and a constant: two steps, each as narrow as it can be
            first, second = offset.owner.operands
            return self.advance(emitter, self.advance(emitter, tensor, type, first), type, second)
        owner = offset.owner
        place = place_of(owner) if isinstance(owner, Crd2IdxOp) else None
        fixed = () if place is None else self._fixed(emitter, place)
        if _within_cells(type, place, offset):
            return Address(self._in_cell(emitter, tensor.pointer, offset, type.element_bits))
        if tensor.offset is None:
            step = self.distance(emitter, offset, type.step_bits)
            return Address(self._moved(emitter, tensor.pointer, step, place, fixed))
        if isinstance(owner, Crd2IdxOp):
            parts = self._parts(emitter, _swizzle(type), owner.plain_layout, owner.coord.data, list(owner.coords))
        else:
            bits = _sums().ANY_BITS if (known := constant_of(offset)) is None or known < 0 else known
            parts = [_sums().Addend(_as_i32(emitter, self.distance(emitter, offset, BYTE), must_fit=True), bits)]
        return Address(tensor.pointer, (*tensor.offset, *parts), fixed=(*tensor.fixed, *fixed))

    def _in_cell(self, emitter: Emitter, pointer: SSAValue, offset: SSAValue, bits: int) -> SSAValue:
        """An address in tensor memory moved by elements that share cells: see `add_elements` of `layout.tmem.cells`."""
        shift = (CELL // bits).bit_length() - 1
        number, distance = emitter.value(PtrToIntOp(pointer)), self.distance(emitter, offset, BYTE)
        narrow = _as_i32(emitter, distance, must_fit=True)

        def rotated(value: SSAValue, left: int) -> SSAValue:
            up = emitter.value(arith.ShLIOp(value, emitter.constant(left, i32)))
            down = emitter.value(arith.ShRUIOp(value, emitter.constant(32 - left, i32)))
            return emitter.value(arith.OrIOp(up, down))

        moved = emitter.value(arith.AddiOp(rotated(number, shift), narrow))
        return emitter.value(IntToPtrOp(rotated(moved, 32 - shift), 4, TENSOR))

    def choose(self, emitter: Emitter, index: SSAValue, tensors: Sequence[Address]) -> Address:
        """The address of the tensor of this number, of type `index`, which must not be accessed for any other."""
        *others, last = [self._in_parts(emitter, tensor) for tensor in tensors]
        for number, parts in reversed(list(enumerate(others))):
            is_chosen = emitter.value(
                arith.CmpiOp(self.converted(index, 32), emitter.constant(number, int_type(32)), "eq")
            )
            last = [
                a if a is b else emitter.value(arith.SelectOp(is_chosen, a, b))
                for a, b in zip(parts, last, strict=True)
            ]
        pointer, *rest = last
        fixed = () if self._inside(index, len(tensors)) else [(index, len(tensors))]
        if tensors[0].offset is None:
            return Address(self._step(emitter, pointer, emitter.constant(0, int_type(32)), fixed), scalars=rest)
        return Address(pointer, (_sums().Addend(rest.pop(0), _sums().ANY_BITS),), rest, fixed)

    def _in_parts(self, emitter: Emitter, tensor: Address) -> list[SSAValue]:
        """A tensor as its pointer, its whole offset within a swizzle, where it has one, and its scalars."""
        offset: list[SSAValue] = []
        if tensor.offset is not None:
            first, *rest = [SsaInt(emitter, part.value) for part in tensor.offset] or [0]
            whole = sum(rest, start=first)
            offset = [whole.value if isinstance(whole, SsaInt) else emitter.constant(whole, int_type(32))]
        return [self.within(emitter, tensor), *offset, *tensor.scalars]

    def recast(self, emitter: Emitter, tensor: Address, old_bits: int, new_bits: int) -> Address:
        """The address of the same memory as elements of another width."""
        if tensor.offset is None or old_bits == new_bits:
            return tensor
        if new_bits < old_bits:
            factor = old_bits // new_bits
            parts = [
                _sums().Addend((SsaInt(emitter, part.value) * factor).value, min(part.bits * factor, _sums().ANY_BITS))
                for part in tensor.offset
            ]
            return Address(tensor.pointer, tuple(parts), fixed=tensor.fixed)
        if not tensor.offset:
            return tensor
        first, *rest = [SsaInt(emitter, part.value) for part in tensor.offset]  # only their sum is known to divide
        shift = (new_bits // old_bits).bit_length() - 1
        whole = sum(rest, start=first) >> shift
        part = _sums().Addend(whole.value, _sums().sum_bits([part.bits for part in tensor.offset]) >> shift)
        return Address(tensor.pointer, (part,), fixed=tensor.fixed)

    def _parts(
        self, emitter: Emitter, swizzle: Swizzle, layout: Layout, coord: AnyTuple, values: list[SSAValue]
    ) -> "list[Addend[SSAValue]]":
        """The index of a coordinate as a part for each mode, or as two where some of it is whole periods. A part that a
        loop moves is cut at the period, so that most of it is added to the swizzled pointer.
        """
        coords, modes = (coord, list(layout)) if isinstance(coord, tuple) else ((coord,), [layout])  # pyright: ignore[reportUnknownVariableType]
        parts: list[Addend[SSAValue]] = []
        for coordinate, mode in zip(coords, modes, strict=True):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            used = [values.pop(0) for _ in range(count_operands(coordinate))]  # pyright: ignore[reportUnknownArgumentType]
            mode = coalesce_under(coordinate, mode)
            if any(isinstance(value.owner, Block) for value in used):
                mode = _sums().cut_at_period(mode, swizzle)
            for summand in _sums().by_period(mode, swizzle):
                index = self.evaluate(emitter, Place(summand, coordinate, used), BYTE)
                parts.append(_sums().Addend(_as_i32(emitter, index), _sums().index_bits(summand)))
        return parts

    def element(
        self, emitter: Emitter, tensor: Address, type: TensorType, coord: object, values: list[SSAValue]
    ) -> SSAValue:
        """The pointer to the element of `tensor` at `coord`, whose run-time leaves are `values`."""
        layout = type.layout.data
        outer = plain_layout(layout)
        assert isinstance(outer, Layout)
        coord = unwrap(coord)
        fixed = self._fixed(emitter, Place(outer, coord, values, tensor.scalars))
        if tensor.offset is None:
            place = Place(coalesce_under(coord, outer), coord, values, tensor.scalars)
            bytes = self.evaluate(emitter, place, type.step_bits)
            return self._moved(emitter, tensor.pointer, bytes, place, fixed)
        parts = self._parts(emitter, _swizzle(type), outer, coord, list(values))
        whole = Address(tensor.pointer, (*tensor.offset, *parts), fixed=(*tensor.fixed, *fixed))
        return self.first(emitter, whole, type)

    def within(self, emitter: Emitter, tensor: Address) -> SSAValue:
        """The pointer of `tensor`, which must not be accessed where coordinates after its offset are outside."""
        return self._step(emitter, tensor.pointer, emitter.constant(0, int_type(32)), tensor.fixed)

    def first(self, emitter: Emitter, tensor: Address, type: TensorType, swizzled: bool = True) -> SSAValue:
        """The pointer to the first element of `tensor`; or to where it would be if the swizzle were not `swizzled`, as
        instructions take it that swizzle addresses themselves.
        """
        if tensor.offset is None:
            return tensor.pointer
        swizzle = _swizzle(type)
        inside, outside = _sums().split(tensor.offset, swizzle) if swizzled else ([], list(tensor.offset))
        pointer, fixed = tensor.pointer, tensor.fixed
        indices: list[Any] = [SsaInt(emitter, part.value) for part in outside]
        if inside:
            first, *rest = [SsaInt(emitter, part.value) for part in inside]
            indices.insert(0, swizzle(sum(rest, start=first)))
        for index in indices:
            pointer = self._step(emitter, pointer, bytes_of(index, type.step_bits).value, fixed)
            fixed = ()
        return pointer


def _within_cells(type: TensorType, place: Place | None, offset: SSAValue) -> bool:
    """Whether a distance in tensor memory may lead to the middle of a cell."""
    if type.space.data is not TMEM or type.element_bits >= CELL:
        return False
    each = CELL // type.element_bits
    if place is not None:
        return any(extent != 1 and stride % each for extent, stride in flat_modes(place.layout))
    known = constant_of(offset)
    return known is None or bool(known % each)


BYTE = 8
"""The bits of an element where distances are wanted in elements."""


def place_of(op: Crd2IdxOp) -> Place:
    """The place whose index an operation computes."""
    return Place(op.plain_layout, op.coord.data, list(op.coords), list(op.scalars))


def bytes_of(elements: SsaInt, bits: int) -> SsaInt:
    """The bytes of a number of elements of `bits` each; of elements narrower than a byte, a multiple of those in a
    byte."""
    return elements * (bits // 8) if bits >= 8 else elements >> (8 // bits).bit_length() - 1


def _in_bytes(layout: Layout, bits: int) -> tuple[Layout, int]:
    """`layout` with strides in bytes; or in elements, with the shift that makes bytes of an index, where some strides
    are not whole bytes.
    """
    if bits < 8 and any(extent != 1 and not _whole_bytes(stride, bits) for extent, stride in flat_modes(layout)):
        return layout, (8 // bits).bit_length() - 1
    return Layout(layout.shape, transform_leaves(lambda d: _step(d, bits), layout.stride)), 0


def _whole_bytes(stride: int | SsaInt, bits: int) -> bool:
    return isinstance(stride, int) and stride * bits % 8 == 0


def _step(stride: int | SsaInt, bits: int) -> Any:
    """A stride in bytes."""
    return stride * bits // 8 if isinstance(stride, int) else stride * (bits // 8) if bits > 8 else stride


def _swizzle(type: TensorType) -> Swizzle:
    """The swizzle of a swizzled tensor."""
    layout = type.layout.data
    assert isinstance(layout, ComposedLayout)
    assert isinstance(layout.inner, Swizzle)
    return layout.inner


def start_offset(emitter: Emitter, type: TensorType) -> "tuple[Addend[SSAValue], ...] | None":
    """The offset with which a tensor that is allocated or passed begins; None for a plain one."""
    layout = type.layout.data
    if not isinstance(layout, ComposedLayout):
        return None
    assert isinstance(layout.offset, int), "the verifier checks this"
    return (_sums().Addend(emitter.constant(layout.offset, int_type(32)), layout.offset),) if layout.offset else ()


def _plain(x: int | SsaInt) -> int | SSAValue:
    return x.value if isinstance(x, SsaInt) else x


def _as_i32(emitter: Emitter, value: SSAValue, *, must_fit: bool = False) -> SSAValue:
    """A distance within a swizzled tensor: it fits in 32 bits, as the tensor's type makes sure, or the simulator."""
    if value.type == int_type(32):
        return value
    cast = arith.TruncIOp(value, int_type(32))
    return emitter.value(check(cast) if must_fit else cast)
