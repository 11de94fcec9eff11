# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pointers to elements, with arithmetic, loads and stores: the type of the elements is known, no extent is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd
from operator import add, mul, sub
from typing import Any

from xdsl.dialects.builtin import IntAttr, UnitAttr
from xdsl.ir import SSAValue

from ...base.errors import Code, TilefoldError
from ...base.spaces import DSMEM, SMEM
from ...dialects.arith.integer_range import Range, contains, limits
from ...dialects.arith.semantics import CHECKED, INTEGER_OPERATIONS, SUMS, Function
from ...dialects.cute import CoordAttr
from ...dialects.ptx import PtrToIntOp
from ...dialects.tile import CopyOp, PtrOp, TensorType, ViewOp
from ...layout.algebra.core import Layout
from ...layout.algebra.integers import Unknown
from ...layout.algebra.inttuple import product
from ...layout.algebra.swizzle import Swizzle
from ..scalars.dtypes import DType, Int64, as_dtype
from ..scalars.operators import Operand
from ..scalars.values import MOST, Int, convert, index_of, is_scalar, wrap
from ..tracing.state import checked, emit
from ..tracing.truth import refuse_presence
from .address_space import AddressSpace
from .fragments import Vec, load, store
from .tensor_base import Elements, registers, tensor_type
from .vectors import row_major


def moved(offset: object, elements: object, by: Function = add) -> Operand:
    """The distance `elements` elements after `offset`, or before by `sub`; both are numbers or integer values."""
    return _exact(by, offset, elements if type(elements) is int else index_of(elements))


def index_in(coord: Sequence[object], strides: Sequence[object]) -> Operand:
    """The index of a coordinate, numbers or integer values, in modes of these strides."""
    integers = [[x if type(x) is int else index_of(x) for x in part] for part in (coord, strides)]
    products = [_exact(mul, x, stride) for x, stride in zip(*integers, strict=True)]
    return reduce(lambda total, product: _exact(add, total, product), products, 0)


def _exact(function: Function, a: object, b: object) -> Operand:
    """A sum, difference or product; where it may exceed 64 bits, its operation is one that the simulator checks."""
    result = function(a, b)
    if isinstance(result, Int) and isinstance(op := result.ssa.owner, SUMS):
        exact = INTEGER_OPERATIONS[type(op)].range(_range(a), _range(b), 64)
        if exact is None or not contains(limits(64), exact):
            op.attributes[CHECKED] = UnitAttr()
    return result


def _range(x: Operand) -> Range:
    return x.range if isinstance(x, Int) else (x, x)


@dataclass(frozen=True, slots=True)
class Address:
    """The address of an element in global or shared memory, for atomic operations and barriers."""

    ssa: SSAValue
    dtype: DType

    @property
    def value(self) -> "Address":
        """The address itself, as functions of MLIR dialects take it."""
        return self

    @property
    def llvm_ptr(self) -> "Address":
        """The address itself, for programs that pass it to an operation of an IR."""
        return self

    def data_ptr(self) -> "Address":
        """The address itself, for programs to which an mbarrier is an array."""
        return self

    def number(self) -> Int:
        """The address as a number: an Int64 in global memory, an Int32 in shared memory."""
        made = wrap(emit(PtrToIntOp(self.ssa)).results[0])
        assert isinstance(made, Int)
        return made

    toint = number


_CHUNK = 16
"""The bytes that stay together under every swizzle of memory."""


class RawPointer:
    """The address of an element: `offset` elements after the first one of `base`.

    `p + n` is `n` elements further on; `p[i]` is an element, `p[i] = v` writes it. Accesses to several elements are as
    wide as the alignment allows that is known. The simulator refuses accesses outside the memory of `base`.
    """

    __slots__ = ("base", "offset")

    def __init__(self, base: Elements, offset: Any = 0) -> None:
        self.base = base
        self.offset = offset

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.base.element_type

    @property
    def memspace(self) -> AddressSpace:
        """`AddressSpace.gmem`, `smem`, `rmem` or `dsmem`."""
        return self.base.memspace

    @property
    def alignment(self) -> int:
        """The alignment of the address in bytes, as far as it is known."""
        divisor = self.offset.known.div if isinstance(self.offset, Int) else self.offset
        bits = gcd(divisor * self.base.ir_type.element_bits, 8 * self.base.ir_type.align.data)
        return bits // 8 & -(bits // 8)

    max_alignment = alignment

    @property
    def address(self) -> Address:
        """The address as instructions take it."""
        first = self.view(1)
        return Address(emit(PtrOp.inferred([first.ssa, []], {"coord": CoordAttr((0,))})).results[0], self.dtype)

    def tospace(self, space: object) -> "RawPointer":
        """The pointer as one of another memory: of the block's shared memory as of the cluster's, where it is the same,
        and any as a generic one. Raises TilefoldError (E5002) for other memories.
        """
        name, own = getattr(space, "name", str(space)), self.memspace.name
        if name not in (own, AddressSpace.generic.name) and (own, name) != (SMEM.name, DSMEM.name):
            message = f"an address in {own} is not one in {name}"
            raise TilefoldError(Code.BUILD_VALUE, message, "use the pointer itself")
        return self

    def toint(self, dtype: DType = Int64) -> Operand:
        """The address as a number of a type."""
        return convert(self.address.number(), dtype)

    def raw_ptr(self) -> "RawPointer":
        """The pointer itself."""
        return self

    llvm_ptr = property(raw_ptr)
    to_llvm_ptr = raw_ptr

    def __bool__(self) -> bool:
        refuse_presence("a pointer is neither true nor false", "p.load() is the element")

    def __add__(self, elements: object) -> "RawPointer":
        return RawPointer(self.base, moved(self.offset, elements))

    __radd__ = __add__

    def __sub__(self, elements: object) -> "RawPointer":
        return RawPointer(self.base, moved(self.offset, elements, sub))

    def __getitem__(self, index: object) -> Operand:
        return (self + index).load()

    def __setitem__(self, index: object, value: object) -> None:
        (self + index).store(value)

    def view(self, count: int | Layout, alignment: int | None = None) -> Elements:
        """The next `count` elements, or those of a layout, as a tensor. `alignment` promises more bytes than are known,
        as far as the memory has them.
        """
        memory: TensorType = self.base.ir_type
        align = max(self.alignment, min(alignment or 1, memory.align.data))
        layout = count if isinstance(count, Layout) else Layout(1, 0) if count == 1 else Layout(count, 1)
        with checked():
            made = memory.with_layout(layout, align)
        offset = index_of(self.offset)
        return type(self.base)(emit(ViewOp(self.base.ssa, offset.ssa, made)).results[0], self.dtype)

    def load(self, count: int | None = None, alignment: int | None = None) -> Any:
        """The element; or `count` elements as a vector. `alignment` in bytes is a promise of the program."""
        return self.view(1, alignment)[0] if count is None else load(self.view(count, alignment))

    def store(self, value: Operand, alignment: int | None = None) -> None:
        """Writes an element, or those of a vector, the last mode the fastest, with the alignment of `load`."""
        if is_scalar(value):
            self.view(1, alignment).write(0, value)
        else:
            store(self.view(value.size, alignment), row_major(value))

    def masked_load(self, mask: Operand, default: object = 0, alignment: int | None = None) -> Vec:
        """The elements for which a vector of predicates holds, and `default` for the others; these are not read."""
        made = registers(self.dtype, Layout(mask.size, 1))
        made.fill(default)
        _copy_if(mask, self.view(mask.size, alignment), made)
        return load(made)

    def masked_store(self, value: Vec, mask: Operand, alignment: int | None = None) -> None:
        """Writes the elements of a vector for which a vector of predicates holds."""
        made = registers(self.dtype, Layout(value.size, 1))
        store(made, row_major(value))
        _copy_if(mask, made, self.view(value.size, alignment))

    def apply_swizzle(self, swizzle: Swizzle) -> "RawPointer":
        """The pointer with bits of its address in shared memory exchanged, a swizzle of bytes. Raises TilefoldError
        (E5002) where the memory does not begin at a period of the swizzle, whose addresses are then not known.
        """
        if swizzle.bits == 0:
            return self
        period = 1 << (swizzle.y_mask | swizzle.z_mask).bit_length()
        if self.base.ir_type.align.data % period or self.base.ir_type.space.data is not SMEM:
            message = f"the swizzle {swizzle} needs shared memory that begins at a multiple of {period} bytes"
            hint = f"give the array alignment={period}"
            raise TilefoldError(Code.BUILD_VALUE, message, hint)
        unit = self.base.ir_type.element_bytes.bit_length() - 1
        together = 1 << max(swizzle.base - unit, 0)
        moved = Swizzle(swizzle.bits, swizzle.base - unit, swizzle.shift)(self.offset)
        if isinstance(moved, Int):
            moved = Int(moved.ssa, moved.dtype, Unknown(64, gcd(self.offset.known.div, together)), (0, MOST))
        return RawPointer(self.base, moved)

    def load_swizzled(self, swizzle: Swizzle, alignment: int | None = None, count: int | None = None) -> Operand:
        """Loads as `load` does, each group of bytes that the swizzle keeps together from its own address."""
        if count is None:
            return self.apply_swizzle(swizzle).load()
        made = registers(self.dtype, Layout(count, 1))
        for place, part in self._groups(swizzle, count):
            RawPointer(made, place).store(part.load(min(count - place, self._group), alignment))
        return load(made)

    def store_swizzled(self, value: Operand, swizzle: Swizzle, alignment: int | None = None) -> None:
        """Stores as `store` does, each group of bytes that the swizzle keeps together to its own address."""
        if is_scalar(value):
            self.apply_swizzle(swizzle).store(value)
            return
        made = registers(self.dtype, Layout(value.size, 1))
        store(made, row_major(value))
        for place, part in self._groups(swizzle, value.size):
            part.store(RawPointer(made, place).load(min(value.size - place, self._group)), alignment)

    @property
    def _group(self) -> int:
        """The elements that stay together under every swizzle of memory."""
        return max(1, _CHUNK // self.base.ir_type.element_bytes)

    def _groups(self, swizzle: Swizzle, count: int) -> "Iterator[tuple[int, RawPointer]]":
        """The position of each group of elements in a vector, and in memory."""
        for place in range(0, count, self._group):
            yield place, (self + place).apply_swizzle(swizzle)

    def recast(self, dtype: object) -> "RawPointer":
        """The same address, of elements of another type: a promise that it is a multiple of their size."""
        element, first = as_dtype(dtype), self.view(1)
        type_: TensorType = first.ir_type
        with checked():
            align = IntAttr(max(type_.align.data, element.bits // 8))
            made = TensorType(element.in_memory, type_.space, align, type_.layout)
        return RawPointer(type(first)(emit(ViewOp(first.ssa, None, made)).results[0], element))

    def __repr__(self) -> str:
        return f"{self.memspace.name}_ptr[{self.base.ir_type.element_bits}b]"


def _copy_if(mask: Vec, source: Elements, target: Elements) -> None:
    """A copy of the elements for which predicates hold. Raises TilefoldError (E5002) where they are not predicates."""
    predicates = row_major(mask).materialize()
    if not tensor_type(predicates).is_predicate or mask.size != product(target.shape):
        message = f"a mask of {product(target.shape)} elements needs one predicate for each, not {mask!r}"
        raise TilefoldError(Code.BUILD_VALUE, message, "make it by comparisons, or of type cute.Boolean")
    emit(CopyOp(source.ssa, target.ssa, pred=predicates.ssa))
