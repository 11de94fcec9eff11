# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays: memory with extents, the last one the fastest, and slices of elements that follow each other."""

from math import prod
from typing import Any, cast

from ...base.errors import Code, TilefoldError
from ...base.spaces import RMEM, space_named, tensor_spaces
from ...dialects.tile.fragments import FRAGMENT_ALIGN
from ...layout.algebra.core import Layout, make_ordered_layout
from ...layout.algebra.integers import AnyTuple
from ..control.control_functions import for_
from ..instructions.printing import printf
from ..scalars.dtypes import DType, as_dtype
from ..scalars.operators import Operand
from ..tensors.coordinates import as_tuple
from ..tensors.fragments import Vec
from ..tensors.raw_pointers import RawPointer
from ..tensors.tensor_base import allocate, slice_modes
from ..tensors.tensors import Pointer, Tensor
from .tmem_addresses import TmemPointer

LARGE = 1024
"""Arrays in shared memory of at least this size in bytes begin at a multiple of it, where swizzles of addresses begin,
too: programs write tiles there that TMA copies swizzle.
"""
VECTOR = 16
"""The least alignment of an array in bytes."""


class Array:
    """Elements in memory, `shape` with the last mode the fastest, or the elements of a tensor by its own strides.

    `Array(Float32, (4, 8), space=AddressSpace.smem)` allocates shared memory, without `space` registers;
    `Array(pointer, dtype=Float32, shape=(4, 8))` is memory from a pointer on; in tensor memory it is a pointer, for no
    thread reads elements there. `a[i, j]` is an element, `a[i, :]` and
    `a[i]` are a row; `a[i:n]` are the `n` elements from `i` on as a vector. All can be assigned to.
    """

    __slots__ = ("pointer", "tensor")

    def __new__(cls, source: object = None, *_: object, dtype: object = None, **__: object) -> Any:
        """An array, or for an address in tensor memory a pointer."""
        if isinstance(source, TmemPointer):
            return TmemPointer(source.number, source.dtype if dtype is None else dtype)
        return super().__new__(cls)

    def __init__(  # pyright: ignore[reportInconsistentConstructor]  # whose other arguments `__new__` does not read
        self,
        source: object = None,
        shape: object = 1,
        space: object = RMEM.name,
        alignment: int = 1,
        *,
        dtype: object = None,
        addrspace: object = None,
    ) -> None:
        extents: tuple[Any, ...] = as_tuple(shape)
        if isinstance(source, Pointer | RawPointer):  # which knows its memory, whatever `addrspace` is
            pointer = source.raw_ptr() if dtype is None else source.raw_ptr().recast(dtype)
            self._set(Tensor(pointer.view(_row_major(extents), alignment).ssa, pointer.dtype), pointer)
            return
        element = as_dtype(source if dtype is None else dtype)
        where = space_named(str(getattr(space, "name", space)))
        if where is None:
            known = ", ".join(row.name for row in tensor_spaces())
            raise TilefoldError(Code.BUILD_VALUE, f"an array cannot be in {space}", f"the memories are {known}")
        bytes = -(-prod(extents) * element.bits // 8)
        least = FRAGMENT_ALIGN if where is RMEM else LARGE if bytes >= LARGE else VECTOR
        self._set(Tensor(allocate(element, where, max(least, alignment), _row_major(extents)), element))

    def _set(self, tensor: Tensor, pointer: RawPointer | None = None) -> None:
        self.tensor = tensor
        self.pointer = tensor.iterator.raw_ptr() if pointer is None else pointer

    @classmethod
    def of(cls, tensor: Tensor, pointer: RawPointer | None = None) -> "Array":
        """The elements of a tensor as an array, which begins at `pointer`."""
        made = cls.__new__(cls)
        made._set(tensor, pointer)
        return made

    @property
    def shape(self) -> tuple[Any, ...]:
        """The extents."""
        return as_tuple(self.tensor.shape)

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.tensor.element_type

    element_type = dtype

    @property
    def address(self) -> Any:
        """The address of the first element."""
        return self.pointer.address

    def ir_value(self) -> RawPointer:
        """The address, for programs that hand it to an operation of an IR."""
        return self.pointer

    def data_ptr(self, offset: object = 0) -> RawPointer:
        """The address of an element, counted from the first."""
        return self.pointer + offset

    def subview(self, offset: object) -> "Array":
        """The elements from a place on, counted from the first, as an array of unknown extent."""
        pointer = self.pointer + offset
        return Array.of(Tensor(pointer.view(1).ssa, self.dtype), pointer)

    def _is_open(self) -> bool:
        return self.tensor.ir_type.layout.data == Layout(1, 0)

    def __getitem__(self, index: object) -> Operand:
        part = _from_and_count(index)
        if part is not None:
            return self.load(*part)
        if _keeps_modes(index) or len(as_tuple(index)) < len(self.shape):
            rest = (None,) * (len(self.shape) - len(as_tuple(index)))
            return Array.of(slice_modes(self.tensor, (*as_tuple(index), *rest)))
        return self.pointer[index] if self._is_open() else self.tensor[index]

    def __setitem__(self, index: object, value: object) -> None:
        part = _from_and_count(index)
        if part is not None:
            self.store(value, *part)
        elif _keeps_modes(index):
            slice_modes(self.tensor, index).store(value)
        elif self._is_open():
            self.pointer[index] = value
        else:
            self.tensor[index] = value

    def load(
        self, idx: object = 0, vector_size: int | None = None, alignment: int | None = None, *,
        is_volatile: bool = False, is_invariant: bool = False,
    ) -> Any:  # fmt: skip
        """The element at a place, counted from the first; or `vector_size` of them as a vector. `is_volatile` and
        `is_invariant` change nothing: no access is moved or left out.
        """
        return self.data_ptr(idx).load(vector_size, alignment)

    def store(
        self, value: object, idx: object = 0, vector_size: int | None = None, alignment: int | None = None, *,
        is_volatile: bool = False,
    ) -> None:  # fmt: skip
        """Writes an element, or the elements of a vector, at a place counted from the first."""
        self.data_ptr(idx).store(value, alignment)

    def masked_load(self, index: object, vector_size: int, mask: object, default: object = 0) -> Vec:
        """Loads `vector_size` elements as a vector: `default` where a vector or array of predicates does not hold."""
        return self.data_ptr(index).masked_load(_vector(mask), default)

    def masked_store(self, index: object, value: Vec, mask: object) -> None:
        """Writes the elements of a vector for which the predicates hold."""
        self.data_ptr(index).masked_store(value, _vector(mask))

    def print_runtime(self, max_elements: int | None = None) -> None:
        """Each thread that gets here prints the elements, one per line, at most `max_elements` of each mode."""
        extents = [extent if max_elements is None else min(extent, max_elements) for extent in self.shape]
        strides = [prod(extents[mode + 1 :]) for mode in range(len(extents))]

        def print_element(number: Operand) -> None:
            place = tuple(number // stride % extent for stride, extent in zip(strides, extents, strict=True))
            printf("{}: {}", place, self[place])

        for_(prod(extents), print_element)

    def __iter__(self) -> Any:
        raise TilefoldError(Code.BUILD_VALUE, "Python cannot iterate over an array", "write for i in cute.range(...)")

    def __repr__(self) -> str:
        return f"Array({self.tensor!r})"


def make_array_view(tensor: Tensor) -> Array:
    """A tensor in memory as an array: `a[i, j]` by its strides."""
    return Array.of(tensor)


def _row_major(extents: tuple[AnyTuple, ...]) -> Layout:
    order = tuple(range(len(extents), 0, -1))
    return make_ordered_layout(extents, order) if len(extents) != 1 else Layout(prod(extents), 1)


def _from_and_count(index: object) -> tuple[Any, int] | None:
    """The place and the number of `a[i:n]`."""
    if not isinstance(index, slice):
        return None
    bounds = cast("slice[Any, Any, Any]", index)
    return None if bounds.start is None or bounds.stop is None else (bounds.start, bounds.stop)


def _keeps_modes(index: object) -> bool:
    return any(part is None or isinstance(part, slice) for part in as_tuple(index))


def _vector(mask: object) -> Operand:
    return mask.tensor.load() if isinstance(mask, Array) else mask
